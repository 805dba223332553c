(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the argument of Theorem 3 of docs/theory/strong-edf.md for any set function with two
   properties: the function bounds the potentials of all sets of pending tasks at all times, so that
   response times are bounded. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.reach selection.hall selection.strong.
From Shiftwork Require Import response.field response.crossing response.schedule.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Potential.

Context {R : realFieldType} {task cpu : finType}.

Add Field operations : (field_operations R).

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> R.
Variable wcet period deadline : task -> R.
Variable instant : nat -> R.
Variable run : nat -> @state task cpu.
Variable released : task -> nat -> nat.

Implicit Types (i j k : task) (n : nat) (h : R) (S : {set task}) (B : {set cpu}).

Notation service := (service instant run).
Notation length := (length instant).
Notation pending := (pending cost instant run released).
Notation current := (current cost instant run released).
Notation current_deadline := (current_deadline release cost deadline instant run released).
Notation due_later := (due_later release cost deadline instant run released).
Notation finished := (finished cost instant run).
Notation executed := (executed cost instant run released).

Hypothesis model : sporadic release cost wcet period.
Hypothesis time : timeline release cost instant run released.
Hypothesis scheduler : strong_edf release cost deadline instant run released alpha.

(* A set of tasks whose affinities overlap with those of no others: a component, several, or all. *)
Variable part : {set task}.
Hypothesis separate : forall i j, i \in part -> j \notin part -> [disjoint alpha i & alpha j].

Definition utilization i : R := wcet i / period i.

(* The demand fits. *)
Hypothesis utilization_le1 : forall i, i \in part -> utilization i <= 1.
Hypothesis demand_fits : forall B, \sum_(i in inside alpha part B) utilization i <= #|B|%:R.

(* The set function: a task that becomes pending adds enough to it, and with a tight set come tasks
   that are due earlier than those outside. *)
Variable f : {set task} -> R.
Hypothesis f_empty : 0 <= f set0.
Hypothesis f_enter : forall S j, S \subset part -> j \in part -> j \notin S ->
  utilization j * (period j - deadline j) <= f (j |: S) - f S.
Hypothesis f_order : forall S i j, S \subset part -> i \in S -> j \in part -> j \notin S ->
  (f (j |: S) - f S) / utilization j <= (f S - f (S :\ i)) / utilization i - period i.

Lemma utilization_positive i : 0 < utilization i.
Proof. by rewrite divr_gt0 ?(wcet_positive model) ?(period_positive model). Qed.

Lemma utilization_period i : utilization i * period i = wcet i.
Proof. by rewrite divfK // gt_eqF // (period_positive model). Qed.

Definition at_part n h : R := instant n + h * length n.

(* x_i of the document, of a pending task, when a part [h] of the time between the instants [n] and
   [n + 1] is over. Nothing that happens at [n + 1] counts. *)
Definition potential n h i : R :=
  utilization i * (at_part n h - current_deadline i n) + (wcet i - executed n h i).

Definition candidates n : {set task} := pending n :&: part.

(* While nothing happens the potential is linear. *)
Definition slope n i : R := length n * (utilization i - (i \in running (run n))%:R).

Lemma potential_linear n h i : potential n h i = potential n 0 i + h * slope n i.
Proof. by rewrite /potential /executed /slope /at_part; by_ring R. Qed.

Lemma at_end n : at_part n 1 = instant n.+1.
Proof. by rewrite /at_part mul1r addrC subrK. Qed.

(* Tasks that wait, with the CPUs that they can get, keep the tasks of a set busy if these are due
   before all others. *)
Lemma busy_slope n S :
  S \subset candidates n ->
  (forall i j, i \in S -> j \in candidates n -> j \notin S -> due_later n j i) ->
  \sum_(i in S) slope n i <= 0.
Proof.
move=> sub first; have [v sub_run strong] := scheduler n.
have Sp i : i \in S -> i \in pending n by move/(subsetP sub); rewrite inE => /andP [].
have Spart : S \subset part by apply: subset_trans sub _; exact: subsetIr.
set waiting := S :\: running (run n).
pose B := \bigcup_(i in waiting) reach alpha (run n) i.
have busy c : c \in B -> exists k, [/\ run n c = Some k, alpha k \subset B & k \in S].
  case/bigcupP => i; rewrite inE => /andP [ir iS] cR.
  have [k [rc kR kd]] := reach_busy v strong (Sp i iS) ir cR; exists k; split=> //.
    by apply: subset_trans kR _; apply: bigcup_sup; rewrite inE ir.
  have [a u] := validP _ _ v.
  have kr : k \in running (run n) by apply/runningP; exists c.
  have kpart : k \in part.
    (* The CPUs of the tasks of a part serve no others. *)
    pose X := \bigcup_(l in part) alpha l.
    have inX d l : d \in X -> run n d = Some l -> l \in part.
      case/bigcupP => m mp dm rd; apply: contraT => lp.
      by have /pred0P /(_ d) := separate mp lp; rewrite /= dm (a _ _ rd).
    have sX : reach alpha (run n) i \subset X.
      apply: reach_least => [|d l dX rd]; first by apply: bigcup_sup; exact: (subsetP Spart).
      by apply: bigcup_sup; exact: inX dX rd.
    exact: inX (subsetP sX _ cR) rc.
  apply: contraR kd => kS; apply: first => //.
  by rewrite inE kpart (subsetP sub_run).
have tight : (#|B| <= #|[set k in inside alpha (running (run n)) B | k \in S]|)%N.
  exact: busy_tight v busy.
rewrite -mulr_sumr; apply: mulr_ge0_le0; first exact: (length_nonnegative time).
rewrite (bigID (fun i => alpha i \subset B)) /= -[X in _ <= X]addr0; apply: ler_add; last first.
  apply: (@le_trans _ _ (\sum_(i in S | ~~ (alpha i \subset B)) 0)); last by rewrite big1.
  apply: ler_sum => i /andP [iS iB].
  suff -> : i \in running (run n) by rewrite subr_le0 utilization_le1 ?(subsetP Spart).
  apply: contraR iB => ir; apply: subset_trans (reach_base alpha (run n) i) _.
  by apply: bigcup_sup; rewrite inE ir.
rewrite sumrB subr_le0; apply: (@le_trans _ _ #|B|%:R).
  apply: le_trans (demand_fits B); rewrite big_mkcond [X in _ <= X]big_mkcond /=.
  apply: ler_sum => i _; rewrite inE; case: (boolP (i \in S)) => iS /=; last first.
    by case: ifP => // _; rewrite ltW // utilization_positive.
  by rewrite (subsetP Spart).
apply: (@le_trans _ _ #|[set k in inside alpha (running (run n)) B | k \in S]|%:R).
  by rewrite ler_nat.
rewrite -sum1_card natr_sum big_mkcond [X in _ <= X]big_mkcond /=; apply: ler_sum => i _.
rewrite !inE; case: (i \in S); rewrite ?andbF //= andbT.
by rewrite andbC; case: (alpha i \subset B); case: (i \in running _).
Qed.

(* When no set of pending tasks is above its bound and one has reached it, its tasks are due earlier
   than all others. *)
Lemma tight_first n h S i j :
  0 <= h < 1 ->
  (forall S', S' \subset candidates n -> \sum_(k in S') potential n h k <= f S') ->
  S \subset candidates n -> \sum_(k in S) potential n h k = f S ->
  i \in S -> j \in candidates n -> j \notin S -> due_later n j i.
Proof.
move=> h01 bounded sub tight iS jc jS; have /andP [h0 h1] := h01.
have Spart : S \subset part by apply: subset_trans sub _; exact: subsetIr.
have /setIP [jp jpart] := jc.
have ui := utilization_positive i; have uj := utilization_positive j.
have xi : f S - f (S :\ i) <= potential n h i.
  rewrite -tight (big_setD1 i) //= ler_subl_addr ler_add2l.
  by apply: bounded; apply: subset_trans sub; exact: subsetDl.
have xj : potential n h j <= f (j |: S) - f S.
  rewrite -tight ler_subr_addr -(big_setU1 _ jS) /=.
  by apply: bounded; rewrite subUset sub1set jc.
have ei : wcet i - executed n h i <= wcet i.
  by rewrite ler_subl_addl ler_addr (executed_nonnegative time).
have ej : 0 < wcet j - executed n h j.
  by rewrite subr_gt0 (executed_before_end model time).
have lj : at_part n h - current_deadline j n < (f (j |: S) - f S) / utilization j.
  rewrite ltr_pdivl_mulr // mulrC; apply: lt_le_trans xj.
  by rewrite /potential ltr_addl.
have li : (f S - f (S :\ i)) / utilization i - period i <= at_part n h - current_deadline i n.
  rewrite ler_subl_addr ler_pdivr_mulr // mulrC mulrDr utilization_period.
  by apply: le_trans xi _; rewrite /potential ler_add2l.
suff : at_part n h - current_deadline j n < at_part n h - current_deadline i n.
  by rewrite ltr_add2l ltr_opp2.
by apply: lt_le_trans lj _; apply: le_trans li; exact: f_order.
Qed.

(* If the bounds hold at an instant, they do up to the next. *)
Lemma bounded_between n :
  (forall S, S \subset candidates n -> \sum_(k in S) potential n 0 k <= f S) ->
  forall h S, 0 <= h <= 1 -> S \subset candidates n -> \sum_(k in S) potential n h k <= f S.
Proof.
move=> start h S hb sub.
pose start_of S := \sum_(k in S) potential n 0 k - f S.
pose slope_of S := \sum_(k in S) slope n k.
have valueE h' S' : value start_of slope_of h' S' = \sum_(k in S') potential n h' k - f S'.
  rewrite /value /start_of /slope_of addrAC mulr_sumr -big_split /=; congr (_ - _).
  by apply: eq_bigr => k _; rewrite [RHS]potential_linear.
rewrite -subr_le0 -valueE.
apply: (no_crossing (considered := fun S => S \subset candidates n)) => //.
  by move=> S' sub'; rewrite subr_le0; exact: start.
move=> {hb sub} {}h {}S h01 others sub /eqP; rewrite valueE subr_eq0 => /eqP tight.
apply: busy_slope => // i j iS jc jS; apply: tight_first h01 _ sub tight iS jc jS.
by move=> S' sub'; rewrite -subr_le0 -valueE; exact: others.
Qed.

(* A task that stays pending, with the same job or the next one, does not gain. *)
Lemma potential_stays n i :
  i \in pending n -> i \in pending n.+1 -> potential n.+1 0 i <= potential n 1 i.
Proof.
move=> pn pn1; have ui := utilization_positive i.
have serv : service i n + 1 * (length n * (i \in running (run n))%:R) = service i n.+1.
  by rewrite mul1r service_step.
have at0 : at_part n.+1 0 = instant n.+1 by rewrite /at_part mul0r addr0.
have le : (current i n <= current i n.+1)%N.
  apply: (current_ge model time pn1).
  exact: le_trans (current_started time i n) (service_grows time i n).
move: le; rewrite leq_eqVlt => /orP [/eqP same|lt].
  by rewrite /potential /executed /current_deadline serv mul0r addr0 at0 at_end same.
have rest : 0 <= wcet i - executed n 1 i by rewrite subr_ge0 (executed_end model time).
have begun : wcet i - executed n.+1 0 i <= wcet i.
  by rewrite ler_subl_addl ler_addr (executed_nonnegative time).
rewrite /potential at0 at_end.
apply: (@le_trans _ _ (utilization i * (instant n.+1 - current_deadline i n))); last first.
  by rewrite ler_addl.
apply: (@le_trans _ _ (utilization i * (instant n.+1 - current_deadline i n.+1) + wcet i)).
  by rewrite ler_add2l.
rewrite -(utilization_period i) -mulrDr ler_pmul2l // -addrA ler_add2l.
rewrite addrC -ler_subr_addr opprK addrC /current_deadline -subr_ge0.
have := release_apart_far model i lt; rewrite -subr_ge0; congr (0 <= _).
by by_ring R.
Qed.

(* The potential of a task that becomes pending. *)
Lemma potential_enters n i :
  i \in pending n -> instant n <= release i (current i n) ->
  potential n 0 i <= utilization i * (period i - deadline i).
Proof.
move=> pn later; have ui := utilization_positive i.
have begun : wcet i - executed n 0 i <= wcet i.
  by rewrite ler_subl_addl ler_addr (executed_nonnegative time).
apply: (@le_trans _ _ (utilization i * (at_part n 0 - current_deadline i n) + wcet i)).
  by rewrite ler_add2l.
rewrite -(utilization_period i) -mulrDr ler_pmul2l // addrC ler_add2l /at_part mul0r addr0.
by rewrite ler_subl_addr /current_deadline addrCA addNr addr0.
Qed.

Lemma enters_later n i :
  i \in pending n.+1 -> i \notin pending n -> instant n.+1 <= release i (current i n.+1).
Proof.
move=> pn1 pn; have := pn; rewrite inE -leNgt => done.
have ge : (released i n <= current i n.+1)%N.
  by apply: (current_ge model time pn1); exact: le_trans done (service_grows time i n).
case: (release_at_instant time i (current i n.+1) n) => //.
by rewrite -(released_exact time) ltnNge ge.
Qed.

(* Tasks that become pending keep the bounds. *)
Lemma bounded_enter (x : task -> R) (old : {set task}) S :
  (forall S', S' \subset S -> S' \subset old -> \sum_(k in S') x k <= f S') ->
  (forall k, k \in S -> k \notin old -> x k <= utilization k * (period k - deadline k)) ->
  S \subset part -> \sum_(k in S) x k <= f S.
Proof.
move: {2}#|S :\: old| (leqnn #|S :\: old|) => m; elim: m S => [|m IH] S.
  by rewrite leqn0 cards_eq0 setD_eq0 => sub bounded _ _; exact: bounded.
move=> le bounded enter sub; case: (set_0Vmem (S :\: old)) => [/eqP|[j]].
  by rewrite setD_eq0; exact: bounded.
rewrite inE => /andP [jold jS]; rewrite (big_setD1 j) //=.
have sub' : S :\ j \subset S by exact: subsetDl.
have rest : \sum_(k in S :\ j) x k <= f (S :\ j).
  apply: IH; last exact: subset_trans sub' sub.
  - move: le; rewrite (cardsD1 j) inE jold jS ltnS; congr (_ <= _)%N.
    by apply: eq_card => k; rewrite !inE andbCA.
  - by move=> S' subS; apply: bounded; exact: subset_trans subS sub'.
  - by move=> k kS; apply: enter; exact: (subsetP sub').
have := f_enter (subset_trans sub' sub) (subsetP sub _ jS) (negbT (setD11 j S)).
rewrite setD1K // => step; apply: le_trans (ler_add (enter j jS jold) rest) _.
by rewrite -ler_subr_addr.
Qed.

(* The claim of the document: at all times. *)
Theorem potential_bounded n h S :
  0 <= h <= 1 -> S \subset candidates n -> \sum_(k in S) potential n h k <= f S.
Proof.
move: h S; elim: n => [|n IH]; apply: bounded_between => S sub.
- have inS k : k \in S -> k \in pending 0.
    by move/(subsetP sub); rewrite inE => /andP [].
  apply: (bounded_enter (old := set0)); last by apply: subset_trans sub _; exact: subsetIr.
    by move=> S' _; rewrite subset0 => /eqP ->; rewrite big_set0.
  move=> k kS _; apply: potential_enters; first exact: inS.
  exact: (release_after_start time).
- have inS k : k \in S -> k \in pending n.+1.
    by move/(subsetP sub); rewrite inE => /andP [].
  have Spart : S \subset part by apply: subset_trans sub _; exact: subsetIr.
  apply: (bounded_enter (old := pending n)) => // [S' subS old|k kS kold]; last first.
    by apply: potential_enters; [exact: inS | apply: enters_later => //; exact: inS].
  apply: (@le_trans _ _ (\sum_(k in S') potential n 1 k)).
    apply: ler_sum => k kS; apply: potential_stays; first exact: (subsetP old).
    by apply: inS; exact: (subsetP subS).
  apply: IH; first by rewrite ler01 lexx.
  by rewrite subsetI old (subset_trans subS).
Qed.

(* So a job is late by at most the bound of its task alone, by its utilization. *)
Definition response_bound i : R := deadline i + f [set i] / utilization i.

Lemma lateness_bounded n i :
  i \in candidates n -> instant n.+1 - current_deadline i n <= f [set i] / utilization i.
Proof.
move=> ic; have /setIP [ip _] := ic.
have := @potential_bounded n 1 [set i]; rewrite big_set1 sub1set ler01 lexx => /(_ isT ic) le.
rewrite ler_pdivl_mulr ?utilization_positive // mulrC -at_end; apply: le_trans le.
by rewrite /potential ler_addl subr_ge0 (executed_end model time).
Qed.

Lemma response_bound_ge i : i \in part -> period i <= response_bound i.
Proof.
move=> ip; have ui := utilization_positive i.
have := @f_enter set0 i (sub0set _) ip; rewrite inE setU0 => /(_ isT) le.
rewrite /response_bound -ler_subl_addl ler_pdivl_mulr // mulrC; apply: le_trans le _.
by rewrite ler_subl_addr ler_addl.
Qed.

(* Every job completes within the bound after its release. *)
Theorem response_bounded i (k : nat) :
  i \in part ->
  exists2 n, instant n <= release i k + response_bound i & finished i n k.
Proof.
move=> ip; set due := release i k + response_bound i.
have after : release i k <= due.
  rewrite ler_addl; apply: le_trans (response_bound_ge ip).
  by rewrite ltW // (period_positive model).
have over : exists n, due < instant n.+1.
  have [n lt] := instant_unbounded time due; exists n.
  exact: lt_le_trans lt (instant_order time n).
pose n := ex_minn over; have lt : due < instant n.+1 by rewrite /n; case: ex_minnP.
have le : instant n <= due.
  rewrite /n; case: ex_minnP => -[|m] _ least.
    exact: le_trans (release_after_start time i k) after.
  by rewrite leNgt; apply/negP => /least; rewrite ltnn.
exists n => //; apply: contraT => short.
have rn : release i k <= instant n.
  case: (release_at_instant time i k n) => // ge.
  by have := lt_le_trans lt (le_trans ge after); rewrite ltxx.
have [pn ck] := unfinished_pending model time rn short.
have := @lateness_bounded n i; rewrite inE pn ip ler_subl_addr => /(_ isT) late.
suff : instant n.+1 <= due by rewrite leNgt lt.
apply: le_trans late _; rewrite /due /response_bound /current_deadline addrC addrA ler_add2r.
by rewrite ler_add2r (release_mono model).
Qed.

End Potential.
