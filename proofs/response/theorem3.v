(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns Theorem 3 of docs/theory/strong-edf.md: a bound on response times for any affinities, and
   that of a task that is alone in its component. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong.
From Shiftwork Require Import response.field response.schedule response.potential response.sharper.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The maxima below are at least each of their members. *)
Lemma max_ge {R : realFieldType} {I : finType} (P : pred I) (F : I -> R) (x : R) i :
  P i -> F i <= \big[Num.max/x]_(j | P j) F j.
Proof.
move=> Pi; have: i \in index_enum I by rewrite mem_index_enum.
elim: (index_enum I) => // j s IH; rewrite in_cons big_cons => /orP [/eqP <-|/IH le].
  by rewrite Pi le_maxr lexx.
by case: ifP => // _; rewrite le_maxr le orbT.
Qed.

Section Theorem3.

Context {R : realFieldType} {task cpu : finType}.

Add Field operations : (field_operations R).

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> R.
Variable wcet period deadline : task -> R.
Variable instant : nat -> R.
Variable run : nat -> @state task cpu.
Variable released : task -> nat -> nat.

Implicit Types (i j l : task) (k n : nat) (S : {set task}) (B : {set cpu}).

Notation finished := (finished cost instant run).
Notation u := (utilization wcet period).

Hypothesis model : sporadic release cost wcet period.
Hypothesis time : timeline release cost instant run released.
Hypothesis scheduler : strong_edf release cost deadline instant run released alpha.

(* A component: the affinities of its tasks overlap with those of no others. That it is the smallest
   such set is not needed. *)
Variable part : {set task}.
Hypothesis separate : forall i j, i \in part -> j \notin part -> [disjoint alpha i & alpha j].

(* The demand fits. *)
Hypothesis utilization_le1 : forall i, i \in part -> u i <= 1.
Hypothesis demand_fits : forall B, \sum_(i in inside alpha part B) u i <= #|B|%:R.

Let u_positive i : 0 < u i := utilization_positive model i.

(* U of the document. *)
Definition total_utilization : R := \sum_(i in part) u i.

(* Theorem 3 for any [b] that is large enough, and for any number [most] in the place of the maximum
   that is no less. *)
Theorem response_time_for (b most : R) i k :
  {in part &, forall i j, i != j -> (period i + period j) / (u i + u j) <= b} ->
  {in part, forall j, (period j - b * u j) / 2%:R - deadline j <= most} ->
  i \in part ->
  exists2 n,
    instant n <=
      release i k + (deadline i + (period i - b * u i) / 2%:R + b * total_utilization + most) &
    finished i n k.
Proof.
move=> b_pairs most_ge ip; pose c (i j : task) : R := b.
have M j : j \in part -> others wcet period part c j = b * (total_utilization - u j).
  move=> jp; rewrite /others -mulr_suml mulrC /total_utilization [in RHS](big_setD1 j) //=.
  by rewrite [u j + _]addrC addrK.
pose most' := most + b * total_utilization / 2%:R.
have pairs' i' j : i' \in part -> j \in part -> i' != j ->
    period i' + period j + \sum_(l in part :\ i' :\ j) u l * `|c i' l - c j l| <=
    (u i' + u j) * c i' j.
  move=> i'p jp ij; rewrite big1 ?addr0 => [|l _]; last by rewrite subrr normr0 mulr0.
  by rewrite mulrC -ler_pdivr_mulr ?addr_gt0 //; exact: b_pairs.
have most'_ge j : j \in part ->
    (period j + others wcet period part c j) / 2%:R - deadline j <= most'.
  move=> jp; apply: le_difference (most_ge j jp); rewrite (M j jp) /most'.
  by by_halves R.
have symmetric i' j : c i' j = c j i' by [].
have [n le done] := sharper_response_time model time scheduler separate utilization_le1 demand_fits
  symmetric pairs' most'_ge k ip.
exists n => //; apply: le_difference le; rewrite (M i ip) /most'.
by by_halves R.
Qed.

(* b of the document: the greatest (T_i + T_j) / (u_i + u_j) of two tasks. *)
Definition greatest_quotient : R :=
  \big[Num.max/0]_(i in part) \big[Num.max/0]_(j in part | j != i)
     ((period i + period j) / (u i + u j)).

(* R_i of the document; the maximum is that over all tasks of the component, of which [i] is one. *)
Definition response_bound3 i : R :=
  let b := greatest_quotient in
  let g j := (period j - b * u j) / 2%:R - deadline j in
  deadline i + (period i - b * u i) / 2%:R + b * total_utilization +
  \big[Num.max/g i]_(j in part) g j.

(* Theorem 3. If the demand fits, every job of a task completes within R_i after its release. *)
Theorem response_time i k :
  i \in part -> exists2 n, instant n <= release i k + response_bound3 i & finished i n k.
Proof.
apply: response_time_for => [i' j i'p jp ij|j jp].
  apply: le_trans (max_ge _ _ i'p).
  by apply: (max_ge (P := fun j => (j \in part) && (j != i'))); rewrite jp eq_sym.
exact: (max_ge _ _ jp).
Qed.

(* The bound is never below this, so it shows no deadline before the end of the period. *)
Theorem response_bound_least i :
  i \in part ->
  period i + greatest_quotient * (total_utilization - u i) <= response_bound3 i.
Proof.
move=> ip; rewrite /response_bound3; set b := greatest_quotient.
pose g j := (period j - b * u j) / 2%:R - deadline j.
have := max_ge g (g i) ip; rewrite -/(g i); set most := \big[_/_]_(_ in _) _.
by rewrite {1}/g => le; apply: le_difference le; by_halves R.
Qed.

(* The greatest quotient is one of a pair with a task that has the greatest T / u: it is enough to
   look at the pairs of one task. *)
Theorem greatest_pair m i j :
  {in part, forall l, period l / u l <= period m / u m} ->
  i \in part -> j \in part -> i != j ->
  exists2 l, (l \in part) && (l != m) &
    (period i + period j) / (u i + u j) <= (period m + period l) / (u m + u l).
Proof.
move=> greatest; set q := _ / (u i + u j).
wlog: i j @q / q <= period i / u i => [one|qi] ip jp ij.
  case: (lerP q (period i / u i)) => [qi|iq]; first exact: one ij.
  rewrite /q [period i + _]addrC [u i + _]addrC; apply: one; rewrite 1?eq_sym //.
  rewrite leNgt; apply/negP => jq; have := ltxx q.
  rewrite {1}/q ltr_pdivr_mulr ?addr_gt0 // mulrDr.
  rewrite ltr_pdivr_mulr // in iq; rewrite ltr_pdivr_mulr // in jq.
  by rewrite (ltr_add iq) // /q [period i + _]addrC [u i + _]addrC.
case: (i =P m) => [im|/eqP im].
  by exists j; rewrite ?/q -im // jp eq_sym.
exists i; first by rewrite ip.
rewrite ler_pdivl_mulr ?addr_gt0 // mulrDr.
by apply: ler_add; rewrite -ler_pdivl_mulr //; apply: le_trans qi (greatest i ip).
Qed.

End Theorem3.

Section Alone.

Context {R : realFieldType} {task cpu : finType}.

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> R.
Variable wcet period deadline : task -> R.
Variable instant : nat -> R.
Variable run : nat -> @state task cpu.
Variable released : task -> nat -> nat.

Hypothesis model : sporadic release cost wcet period.
Hypothesis time : timeline release cost instant run released.
Hypothesis scheduler : strong_edf release cost deadline instant run released alpha.

(* A task that is alone in its component responds within C_i: it is one with the period C_i. *)
Theorem response_time_alone (i : task) (k : nat) :
  (forall j, j != i -> [disjoint alpha i & alpha j]) ->
  alpha i != set0 -> wcet i <= period i ->
  exists2 n, instant n <= release i k + wcet i & finished cost instant run i n k.
Proof.
move=> separate0 usable short; have Ci := wcet_positive model i.
pose period' j := if j == i then wcet i else period j.
have period'i : period' i = wcet i by rewrite /period' eqxx.
have model' : sporadic release cost wcet period'.
  split; [exact: wcet_positive model | | exact: cost_nonnegative model
         | exact: cost_bounded model |] => j.
    by rewrite /period'; case: eqP => // _; exact: period_positive model j.
  move=> m; apply: le_trans (release_apart model j m); rewrite ler_add2l /period'.
  by case: eqP => [->|].
have ui : utilization wcet period' i = 1 by rewrite /utilization period'i divff ?gt_eqF.
pose f (S : {set task}) : R := if i \in S then wcet i - deadline i else 0.
have separate j l : j \in [set i] -> l \notin [set i] -> [disjoint alpha j & alpha l].
  by rewrite !inE => /eqP -> li; exact: separate0.
have le1 j : j \in [set i] -> utilization wcet period' j <= 1.
  by rewrite inE => /eqP ->; rewrite ui.
have fits (B : {set cpu}) :
    \sum_(j in inside alpha [set i] B) utilization wcet period' j <= #|B|%:R.
  case: (boolP (alpha i \subset B)) => iB; last first.
    rewrite big1 ?ler0n // => j; rewrite !inE => /andP [/eqP ->].
    by rewrite (negbTE iB).
  have -> : inside alpha [set i] B = [set i].
    by apply/setP => j; rewrite !inE; case: eqP => // ->.
  rewrite big_set1 ui ler1n card_gt0; apply: contraNneq usable => B0.
  by rewrite -subset0 -B0.
have f0 : 0 <= f set0 by rewrite /f inE.
have enter (S : {set task}) j : S \subset [set i] -> j \in [set i] -> j \notin S ->
    utilization wcet period' j * (period' j - deadline j) <= f (j |: S) - f S.
  move=> _; rewrite inE => /eqP -> iS.
  by rewrite /f !inE eqxx (negbTE iS) ui mul1r period'i subr0.
have order (S : {set task}) j l : S \subset [set i] -> j \in S -> l \in [set i] -> l \notin S ->
    (f (l |: S) - f S) / utilization wcet period' l <=
    (f S - f (S :\ j)) / utilization wcet period' j - period' j.
  by move=> sub jS; have := subsetP sub _ jS; rewrite !inE => /eqP <- /eqP ->; rewrite jS.
have := response_bounded model' time scheduler separate le1 fits f0 enter order k (set11 i).
by rewrite /response_bound /f inE eqxx ui divr1 [deadline i + _]addrC subrK.
Qed.

End Alone.
