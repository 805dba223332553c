(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the induction over nested affinities of docs/theory/strong-edf.md (Lemma 2): if loads add up
   to no more than the speed, the work of the scheduler never falls behind a reference. Knows no
   jobs: time is a number of moments, and each moment has the tasks that are active (an urgent job
   of them is unfinished) and those that are served. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.laminar.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma sum_le0 (I : Type) (r : seq I) (P : pred I) (F : I -> rat) :
  (forall i, P i -> F i <= 0) -> \sum_(i <- r | P i) F i <= 0.
Proof.
move=> le0; rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => i Pi.
by rewrite oppr_ge0; exact: le0.
Qed.

Section Levels.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.

Hypothesis laminar_tasks : forall i j, nested (alpha i) (alpha j).
Hypothesis affinity_not_empty : forall i, alpha i != set0.

Implicit Types (i j k : task) (g h : {set cpu}) (s t u : nat).

(* Work that the scheduler does in one moment on a task that it serves. *)
Variable speed : rat.
Hypothesis speed_positive : 0 < speed.

Variables active served : nat -> {set task}.

(* Work of the reference schedule on each task before a moment. *)
Variable reference : task -> nat -> rat.

(* The most that the reference does in a moment on a task, and on all tasks inside a node. *)
Variable delta : task -> rat.
Variable demand : {set cpu} -> rat.

Definition work i t : rat := \sum_(0 <= u < t) speed * (i \in served u)%:R.

Hypothesis reference_start : forall i, reference i 0 <= 0.
Hypothesis reference_rate : forall i t, reference i t.+1 - reference i t <= delta i.
Hypothesis reference_demand : forall g t,
  \sum_(i | alpha i \subset g) (reference i t.+1 - reference i t) <= demand g.

(* If all that was released of a task is finished, the reference is not ahead. *)
Hypothesis caught_up : forall i t,
  i \notin active t -> reference i t.+1 <= work i t.+1.

(* All CPUs of [g] serve tasks that cannot leave it. *)
Definition full u g : bool := (#|g| <= #|inside alpha (served u) g|)%N.

(* What the strong invariant gives: an active task is served or has a full node around it. *)
Hypothesis blocked : forall i t,
  i \in active t -> i \notin served t ->
  exists2 k, alpha i \subset alpha k & full t (alpha k).

(* A node around [g], not equal, is full. *)
Definition above u g : bool := [exists k, (g \proper alpha k) && full u (alpha k)].

Variable load : {set cpu} -> rat.

Definition surplus g : rat := #|g|%:R * load g - demand g.

Hypothesis load_own : forall i,
  (#|alpha i|%:R - 1) * delta i <= surplus (alpha i).
Hypothesis load_child : forall i k,
  alpha i \proper alpha k ->
  #|alpha k|%:R * load (alpha i) - demand (alpha i) <= surplus (alpha k).

Definition work_in g t : rat := \sum_(i | alpha i \subset g) work i t.
Definition reference_in g t : rat := \sum_(i | alpha i \subset g) reference i t.
Definition behind g t : bool := work_in g t < reference_in g t.

(* What a moment adds to the side that the scheduler has done enough. *)
Definition gain g u : rat :=
  (if above u g then 0 else speed * (#|inside alpha (served u) g|%:R - #|g|%:R)) + surplus g.

Lemma work_step i t : work i t.+1 = work i t + speed * (i \in served t)%:R.
Proof. by rewrite /work big_nat_recr. Qed.

Lemma work_in_step g t :
  work_in g t.+1 = work_in g t + speed * #|inside alpha (served t) g|%:R.
Proof.
rewrite /work_in (eq_bigr _ (fun i _ => work_step i t)) big_split /=; congr (_ + _).
rewrite -mulr_sumr; congr (_ * _); rewrite -sum1_card natr_sum big_mkcond /=.
rewrite [RHS]big_mkcond /=; apply: eq_bigr => i _; rewrite in_set andbC.
by case: ifP => //= _; case: (i \in served t).
Qed.

Lemma work_in_diff g s t :
  (s <= t)%N ->
  work_in g t - work_in g s = \sum_(s <= u < t) speed * #|inside alpha (served u) g|%:R.
Proof.
move=> st; rewrite -(telescope_sumr _ st); apply: eq_bigr => u _.
by rewrite work_in_step addrC addKr.
Qed.

Lemma reference_in_diff g s t :
  (s <= t)%N -> reference_in g t - reference_in g s <= demand g * (t - s)%:R.
Proof.
move=> st; rewrite -(telescope_sumr _ st) mulr_natr -sumr_const_nat.
by apply: ler_sum => u _; rewrite /reference_in -sumrB; exact: reference_demand.
Qed.

Lemma reference_diff i s t :
  (s <= t)%N -> reference i t - reference i s <= delta i * (t - s)%:R.
Proof.
move=> st; rewrite -(telescope_sumr _ st) mulr_natr -sumr_const_nat.
by apply: ler_sum => u _; exact: reference_rate.
Qed.

Lemma work_diff i s t :
  (s <= t)%N -> work i t - work i s = \sum_(s <= u < t) speed * (i \in served u)%:R.
Proof.
by move=> st; rewrite -(telescope_sumr _ st); apply: eq_bigr => u _; rewrite work_step addrC addKr.
Qed.

(* Back to the last moment at which the reference was not ahead on a task. *)
Lemma active_since i t :
  exists s, [/\ (s <= t)%N, forall u, (s <= u < t)%N -> i \in active u &
                reference i s <= work i s].
Proof.
elim: t => [|t [s [st act ok]]].
  exists 0%N; split=> //; rewrite /work big_geq // reference_start.
case: (boolP (i \in active t)) => [it|it]; last first.
  exists t.+1; split=> //; last exact: caught_up.
  by move=> u /andP [tu]; rewrite ltnNge tu.
exists s; split=> //; first exact: leqW.
move=> u /andP [su]; rewrite ltnS leq_eqVlt => /orP [/eqP -> //|ut].
by apply: act; rewrite su.
Qed.

(* Lemma 2, a task of the node itself. *)
Lemma step_own i t :
  work i t < reference i t ->
  exists s, [/\ (s < t)%N, reference i s <= work i s &
                0 <= \sum_(s <= u < t) gain (alpha i) u].
Proof.
move=> beh; have [s [st act ok]] := active_since i t; exists s.
have lt_st : (s < t)%N.
  by rewrite ltn_neqAle st andbT; apply: contraTneq beh => <-; rewrite -leNgt.
split=> //; set g := alpha i.
have g1 : 0 <= (#|g|%:R - 1 : rat).
  by rewrite subr_ge0 ler1n card_gt0 affinity_not_empty.
have moment u : (s <= u < t)%N ->
    surplus g - (#|g|%:R - 1) * (speed * (i \in served u)%:R) <= gain g u.
  move=> su; rewrite /gain addrC ler_add2r.
  have le0 : - ((#|g|%:R - 1) * (speed * (i \in served u)%:R)) <= 0.
    by rewrite oppr_le0 mulr_ge0 // mulr_ge0 ?ler0n // ltW.
  case: ifP => // notabove.
  case: (boolP (i \in served u)) => iu.
    rewrite mulr1 mulrC -mulrN ler_pmul2l // opprB ler_add2r ler1n card_gt0.
    by apply/set0Pn; exists i; rewrite in_set iu /=.
  rewrite mulr0 mulr0 oppr0; apply: mulr_ge0; first exact: ltW.
  have [k ik fk] := blocked (act u su) iu.
  have /eqP kg : alpha k == g.
    apply: contraFT notabove => kg; apply/existsP; exists k.
    by rewrite fk properEneq eq_sym kg ik.
  by rewrite subr_ge0 ler_nat -kg.
apply: le_trans (ler_sum_nat moment).
rewrite sumrB sumr_const_nat -mulr_sumr -(work_diff _ st) -[surplus g *+ _]mulr_natr subr_ge0.
apply: (@le_trans _ _ ((#|g|%:R - 1) * (delta i * (t - s)%:R))).
  apply: ler_wpmul2l => //; apply: le_trans (reference_diff _ st).
  by apply: ler_sub => //; exact: ltW.
by rewrite mulrA ler_wpmul2r ?ler0n // load_own.
Qed.

(* The largest affinity inside [g], not equal, around that of [i]: the child of [g] on the way to
   [i], if there is one. *)
Definition child g i : task :=
  [arg max_(k > i | (alpha k \proper g) && (alpha i \subset alpha k)) #|alpha k|]%N.

Lemma childP g i :
  alpha i \proper g ->
  [/\ alpha (child g i) \proper g, alpha i \subset alpha (child g i) &
      forall k, alpha k \proper g -> alpha i \subset alpha k ->
                alpha k \subset alpha (child g i)].
Proof.
move=> ig; rewrite /child; pose P := [pred k | (alpha k \proper g) && (alpha i \subset alpha k)].
have Pi : P i by rewrite /= ig subxx.
case: (arg_maxnP (fun k => #|alpha k|) Pi) => k /andP [kg ik] most.
split=> // l lg il; have lk : (#|alpha l| <= #|alpha k|)%N by apply: most; rewrite /= lg.
case/or3P: (laminar_tasks l k) => // [kl|/pred0P dis].
  by have /eqP -> : alpha k == alpha l by rewrite eqEcard kl.
have [c ci] := set0Pn _ (affinity_not_empty i).
by have := dis c; rewrite /= (subsetP il) // (subsetP ik).
Qed.

(* The affinities below a child are those that have the same child. *)
Lemma below_child g i j :
  alpha i \proper g ->
  (alpha j \subset alpha (child g i)) =
  (alpha j \proper g) && (alpha (child g j) == alpha (child g i)).
Proof.
move=> ig; have [cg ic top] := childP ig; apply/idP/andP => [jc|[jg /eqP <-]]; last first.
  by have [] := childP jg.
have jg : alpha j \proper g by exact: sub_proper_trans jc cg.
split=> //; have [cjg jcj topj] := childP jg; rewrite eqEsubset topj // andbT.
apply: top => //; apply: subset_trans ic _; exact: topj.
Qed.

(* What contains a child and is larger contains its parent. *)
Lemma around_child i j k :
  alpha i \proper alpha j -> alpha (child (alpha j) i) \proper alpha k ->
  alpha j \subset alpha k.
Proof.
move=> ij ck; have [cj ic top] := childP ij.
case: (boolP (alpha k \proper alpha j)) => kj.
  have := top k kj (subset_trans ic (proper_sub ck)).
  by move: ck; rewrite properE => /andP [_ /negbTE ->].
case/or3P: (laminar_tasks j k) => // [kj'|/pred0P dis].
  by move: kj; rewrite properEneq kj' andbT negbK => /eqP ->.
have [c cc] := set0Pn _ (affinity_not_empty (child (alpha j) i)).
by have := dis c; rewrite /= (subsetP (proper_sub cj)) // (subsetP (proper_sub ck)).
Qed.

(* A node that is behind has a task of its own that is, or a child. *)
Lemma behind_inside g :
  forall t, behind g t ->
  (exists2 i, alpha i = g & work i t < reference i t) \/
  (exists2 i, alpha i \proper g & behind (alpha (child g i)) t).
Proof.
move=> t beh; pose short i := reference i t - work i t.
have total h : (0 < \sum_(i | alpha i \subset h) short i) = behind h t.
  by rewrite sumrB subr_gt0.
move: beh; rewrite -total (bigID (fun i => alpha i == g)) /= => pos.
case: (boolP [exists i, (alpha i == g) && (0 < short i)]) => [/existsP [i /andP [/eqP ig]]|own].
  by rewrite subr_gt0; left; exists i.
right; have own0 : \sum_(i | (alpha i \subset g) && (alpha i == g)) short i <= 0.
  apply: sum_le0 => i /andP [_ ig]; rewrite leNgt; apply: contra own => si.
  by apply/existsP; exists i; rewrite ig.
have {own0} pos : 0 < \sum_(i | alpha i \proper g) short i.
  have -> : \sum_(i | alpha i \proper g) short i =
            \sum_(i | (alpha i \subset g) && (alpha i != g)) short i.
    by apply: eq_bigl => i; rewrite properEneq andbC.
  by rewrite -(ltr_addl (\sum_(i | (alpha i \subset g) && (alpha i == g)) short i));
     apply: le_lt_trans own0 _.
rewrite (partition_big (fun i => alpha (child g i))
  [pred h | [exists i, (alpha i \proper g) && (h == alpha (child g i))]]) /= in pos; last first.
  by move=> i ig; apply/existsP; exists i; rewrite ig eqxx.
have [h /existsP [i /andP [ig /eqP hi]] hb] : exists2 h,
    [exists i, (alpha i \proper g) && (h == alpha (child g i))] &
    0 < \sum_(i | (alpha i \proper g) && (alpha (child g i) == h)) short i.
  apply/exists_inP; apply: contraTT pos; rewrite negb_exists_in => /forall_inP none.
  by rewrite -leNgt; apply: sum_le0 => h /none; rewrite -leNgt.
exists i => //; rewrite -total -hi; move: hb; rewrite (eq_bigl (fun j => alpha j \subset h)) //.
by move=> j; rewrite hi below_child.
Qed.

(* Lemma 2, a child of the node. *)
Lemma step_child i j s t :
  alpha i \proper alpha j -> (s <= t)%N ->
  behind (alpha (child (alpha j) i)) t -> ~~ behind (alpha (child (alpha j) i)) s ->
  0 <= \sum_(s <= u < t) gain (alpha (child (alpha j) i)) u ->
  0 <= \sum_(s <= u < t) gain (alpha j) u.
Proof.
move=> ij st beh nbeh; have [cj ic _] := childP ij.
set h := alpha (child _ _) in beh nbeh cj ic *; set g := alpha j in ij cj *.
(* How much less the moments without a full node around the child are than its load allows. *)
pose free u : rat := (if above u h then 0 else speed) - load h.
have gainE u : gain h u =
    (if above u h then 0 else speed * #|inside alpha (served u) h|%:R) - demand h +
    - (#|h|%:R * free u).
  rewrite /gain /surplus /free; case: ifP => _.
    by rewrite !add0r mulrN opprK addrC.
  rewrite !mulrBr opprB addrACA [in RHS]addrACA; congr (_ + _).
  by rewrite addrC [speed * #|h|%:R]mulrC.
have h0 : 0 < (#|h|%:R : rat) by rewrite ltr0n card_gt0 affinity_not_empty.
have hg : (#|h|%:R : rat) <= #|g|%:R by rewrite ler_nat; apply: subset_leq_card; exact: proper_sub.
move=> enough.
have free0 : \sum_(s <= u < t) free u <= 0.
  have : #|h|%:R * (\sum_(s <= u < t) free u) <= 0; last by rewrite pmulr_rle0.
  move: enough; rewrite (eq_bigr _ (fun u _ => gainE u)) big_split /= sumrN subr_ge0.
  rewrite -mulr_sumr => /le_trans; apply.
  rewrite sumrB subr_le0 sumr_const_nat -[demand h *+ _]mulr_natr.
  apply: le_trans (reference_in_diff h st); apply: (@le_trans _ _ (work_in h t - work_in h s)).
    rewrite (work_in_diff _ st); apply: ler_sum => u _; case: ifP => // _.
    by rewrite mulr_ge0 ?ler0n // ltW.
  by apply: ler_sub; [exact: ltW | rewrite leNgt].
have moment u : gain h u - (#|g|%:R - #|h|%:R) * free u <= gain g u.
  have ch := load_child (k := j) cj; rewrite -/g -/h in ch.
  have -> : gain h u - (#|g|%:R - #|h|%:R) * free u =
      (if above u h then 0 else speed * (#|inside alpha (served u) h|%:R - #|g|%:R)) +
      (#|g|%:R * load h - demand h).
    rewrite /gain /surplus /free; case: ifP => _.
      by rewrite !add0r mulrN opprK mulrBl addrC addrA subrK.
    rewrite [_ * (speed - load h)]mulrBr opprD opprK addrACA; congr (_ + _).
      by rewrite [_ * speed]mulrC -mulrBr opprB addrA subrK.
    by rewrite mulrBl addrC addrA subrK.
  rewrite /gain; apply: ler_add => //.
  case: (boolP (above u h)) => [ah|nah].
    case: ifP => // /negbT nag; rewrite mulr_ge0 ?(ltW speed_positive) // subr_ge0 ler_nat.
    have [k /andP [hk fk]] := existsP ah.
    have /eqP kg : alpha k == g.
      apply: contraNT nag => kg; apply/existsP; exists k.
      by rewrite fk andbT properEneq eq_sym kg (around_child ij hk).
    by rewrite -kg.
  rewrite ifN; last first.
    apply: contra nah => /existsP [k /andP [gk fk]]; apply/existsP; exists k.
    by rewrite fk andbT; exact: proper_trans cj gk.
  rewrite ler_pmul2l // ler_add2r ler_nat; apply: subset_leq_card.
  apply/subsetP => k; rewrite !in_set => /andP [-> /subset_trans]; apply.
  exact: proper_sub.
apply: (@le_trans _ _ (\sum_(s <= u < t) (gain h u - (#|g|%:R - #|h|%:R) * free u))); last first.
  by apply: ler_sum => u _; exact: moment.
rewrite sumrB -mulr_sumr; apply: addr_ge0 => //.
by rewrite oppr_ge0; apply: mulr_ge0_le0 => //; rewrite subr_ge0.
Qed.

(* Lemma 2: a node that is behind was not, and has gained since. *)
Lemma behind_since j t :
  behind (alpha j) t ->
  exists s, [/\ (s < t)%N, ~~ behind (alpha j) s & 0 <= \sum_(s <= u < t) gain (alpha j) u].
Proof.
move: {2}#|alpha j| (leqnn #|alpha j|) => n; elim: n j t => [|n IHn] j t.
  by rewrite leqn0 cards_eq0 (negbTE (affinity_not_empty j)).
move=> size_j; elim/ltn_ind: t => t IHt beh.
have [s [st ss]] : exists s, (s < t)%N /\ 0 <= \sum_(s <= u < t) gain (alpha j) u.
  case: (behind_inside beh) => [[i ij /step_own [s [st _ ss]]]|[i ij cb]].
    by exists s; rewrite -ij.
  have [cj _ _] := childP ij.
  have [|s [st ns ss]] := IHn _ t _ cb.
    by rewrite -ltnS; apply: leq_trans size_j; exact: proper_card.
  by exists s; split=> //; exact: step_child ij (ltnW st) cb ns ss.
case: (boolP (behind (alpha j) s)) => [bs|ns]; last by exists s.
have [r [rs nr sr]] := IHt s st bs; exists r; split=> //; first exact: ltn_trans rs st.
by rewrite (big_cat_nat _ _ _ (ltnW rs) (ltnW st)) /= addr_ge0.
Qed.

(* A node that no other contains is never behind, if its load is at most the speed. *)
Theorem never_behind j :
  (forall k, ~~ (alpha j \proper alpha k)) -> load (alpha j) <= speed ->
  forall t, ~~ behind (alpha j) t.
Proof.
move=> top fits t; apply/negP => beh; have [s [st ns]] := behind_since beh.
have notabove u : above u (alpha j) = false.
  by apply/existsP => -[k /andP [jk _]]; case/negP: (top k).
apply/negP; rewrite -ltNge; set g := alpha j in beh ns fits *.
have gainE u : gain g u =
    speed * #|inside alpha (served u) g|%:R - (demand g + #|g|%:R * (speed - load g)).
  rewrite /gain notabove /surplus !mulrBr [#|g|%:R * speed]mulrC.
  by rewrite opprD opprB -addrA; congr (_ + _); rewrite addrCA [RHS]addrCA [- demand g + _]addrC.
rewrite (eq_bigr _ (fun u _ => gainE u)) sumrB -(work_in_diff _ (ltnW st)).
rewrite sumr_const_nat -[(_ + _) *+ _]mulr_natr mulrDl subr_lt0.
apply: (@lt_le_trans _ _ (demand g * (t - s)%:R)).
  apply: lt_le_trans (reference_in_diff g (ltnW st)).
  by apply: ltr_le_sub => //; rewrite leNgt.
by rewrite ler_addl mulr_ge0 ?ler0n // mulr_ge0 ?ler0n // subr_ge0.
Qed.

End Levels.
