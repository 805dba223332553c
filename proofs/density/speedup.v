(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the first half of Theorem 2 of docs/theory/strong-edf.md: at the speed that it names, EDF
   with the strong invariant is in time with every collection of jobs that some scheduler can
   schedule in time at unit speed. Nested affinities, discrete time. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong selection.laminar.
From Shiftwork Require Import density.levels density.load.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The speed of each node. *)
Section Factor.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Implicit Types (j k : job) (g h : {set cpu}) (n : nat).

(* s(g) = max(2 - 1/|g|, max over nodes h inside g, not equal, of s(h) + 1 - |h|/|g|). The number
   bounds the depth; the size of [g] is enough. *)
Fixpoint factor_to_depth n g : rat :=
  Num.max (2%:R - #|g|%:R^-1)
    (if n is n'.+1 then
       \big[Num.max/0]_(k | alpha k \proper g)
          (factor_to_depth n' (alpha k) + 1 - #|alpha k|%:R / #|g|%:R)
     else 0).

Definition factor g : rat := factor_to_depth #|g| g.

Lemma factor_depth n g : (#|g| <= n)%N -> factor_to_depth n g = factor g.
Proof.
rewrite /factor; elim: n {-2}n (leqnn n) g => [|b IH] n nb g gn.
  by move: nb gn; rewrite leqn0 => /eqP ->; rewrite leqn0 => /eqP ->.
case: n nb gn => [|n] nb gn; first by move: gn; rewrite leqn0 => /eqP ->.
case size_g : #|g| gn => [|m] gn /=.
  congr Num.max; apply: big_pred0 => k; apply/negP => /proper_card.
  by rewrite size_g.
congr Num.max; apply: eq_bigr => k kg; have km : (#|alpha k| <= m)%N.
  by rewrite -ltnS -size_g; exact: proper_card.
have mn : (m <= n)%N by rewrite -ltnS.
rewrite (IH n) ?(leq_trans km) // (IH m) //; exact: leq_trans mn _.
Qed.

Lemma factor_own g : 2%:R - #|g|%:R^-1 <= factor g.
Proof.
suff : forall n, 2%:R - #|g|%:R^-1 <= factor_to_depth n g by apply.
by case=> [|n] /=; rewrite le_maxr lexx.
Qed.

Lemma factor_inside k g :
  alpha k \proper g -> factor (alpha k) + 1 - #|alpha k|%:R / #|g|%:R <= factor g.
Proof.
move=> kg; have size_g := proper_card kg.
rewrite [factor g]/factor; case e: #|g| size_g => [|n] //= size_g; rewrite le_maxr; apply/orP; right.
rewrite -e -(@factor_depth n (alpha k)) //.
exact: (bigmax_ge (fun k => factor_to_depth n (alpha k) + 1 - #|alpha k|%:R / #|g|%:R)
          (mem_index_enum k) kg).
Qed.

End Factor.

Section Speedup.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

(* Times are quanta, costs are quanta of a CPU of EDF. *)
Variable release due cost : job -> nat.

(* What a CPU does in a quantum: one of EDF, one of the other scheduler. *)
Variable fast slow : nat.
Hypothesis fast_positive : (0 < fast)%N.

Hypothesis affinity_not_empty : forall j, alpha j != set0.
Hypothesis laminar_jobs : forall j k, nested (alpha j) (alpha k).

Implicit Types (j k : job) (t u d : nat).

Definition quanta (run : nat -> @state job cpu) j t : nat :=
  \sum_(0 <= u < t) (j \in running (run u)).

(* EDF with the strong invariant. *)
Variable edf : nat -> @state job cpu.

Definition unfinished t : {set job} :=
  [set j | (release j <= t)%N && (quanta edf j t < cost j)%N].

Hypothesis scheduler : forall t,
  [/\ valid alpha (edf t), running (edf t) \subset unfinished t &
      strong_invariant alpha (fun k j => due j < due k)%N (unfinished t) (edf t)].

(* Another scheduler, which is in time. *)
Variable other : nat -> @state job cpu.

Hypothesis other_valid : forall t, valid alpha (other t).
Hypothesis other_released : forall t j, j \in running (other t) -> (release j <= t)%N.
Hypothesis other_in_time : forall j, (cost j * fast <= quanta other j (due j) * slow)%N.

Hypothesis fast_enough : forall j, slow%:R * factor alpha (alpha j) <= fast%:R.

Section FixedDeadline.

Variable d : nat.

Definition urgent t : {set job} := [set j in unfinished t | (due j <= d)%N].
Definition edf_urgent t : {set job} := running (edf t) :&: urgent t.

(* Work of the other scheduler on jobs that are due, without what it does beyond their costs. *)
Definition other_work j t : nat :=
  if (due j <= d)%N then minn (quanta other j t * slow) (cost j * fast) else 0%N.

Lemma quanta_step run j t : quanta run j t.+1 = (quanta run j t + (j \in running (run t)))%N.
Proof. by rewrite /quanta big_nat_recr. Qed.

Lemma other_step j t :
  (other_work j t.+1 <= other_work j t + slow * (j \in running (other t)))%N.
Proof.
rewrite /other_work; case: ifP => // _; rewrite quanta_step mulnDl addn_minl.
rewrite leq_min; apply/andP; split.
  by apply: leq_trans (geq_minl _ _) _; rewrite leq_add2l mulnC.
by apply: leq_trans (geq_minr _ _) _; exact: leq_addr.
Qed.

Lemma edf_work j t :
  work fast%:R edf_urgent j t = ((if (due j <= d)%N then quanta edf j t else 0) * fast)%N%:R.
Proof.
elim: t => [|t IH]; first by rewrite /work /quanta !big_geq //; case: ifP.
rewrite work_step IH quanta_step natrM natrM -natrM natrM mulrC -mulrDr mulrC; congr (_ * _).
rewrite -natrD; congr (_ %:R); rewrite in_setI in_set; have [_ sub _] := scheduler t.
case: (boolP (j \in running (edf t))) => [jr|_]; last by rewrite addn0; case: ifP; rewrite ?addn0.
by rewrite (subsetP sub _ jr) /=; case: ifP.
Qed.

Notation reference := (fun j t => (other_work j t)%:R : rat).

Lemma other_start j : reference j 0%N <= 0.
Proof. by rewrite /other_work /quanta big_geq // mul0n min0n; case: ifP. Qed.

Lemma other_rate j t : reference j t.+1 - reference j t <= slow%:R.
Proof.
rewrite ler_subl_addl -natrD ler_nat; apply: leq_trans (other_step j t) _.
by rewrite leq_add2l -{2}(muln1 slow) leq_mul2l leq_b1 orbT.
Qed.

(* All CPUs of a node together do no more than one job for each. *)
Lemma other_demand (g : {set cpu}) t :
  \sum_(j | alpha j \subset g) (reference j t.+1 - reference j t) <= slow%:R * #|g|%:R.
Proof.
apply: (@le_trans _ _ (\sum_(j | alpha j \subset g) (slow * (j \in running (other t)))%N%:R)).
  by apply: ler_sum => j _; rewrite ler_subl_addl -natrD ler_nat other_step.
rewrite -natr_sum -natrM ler_nat -big_distrr /= leq_mul2l; apply/orP; right.
apply: leq_trans (running_inside g (other_valid t)).
rewrite -sum1_card big_mkcond [X in (_ <= X)%N]big_mkcond /=; apply: leq_sum => j _.
by rewrite in_set andbC; case: ifP => //= _; case: (j \in running (other t)).
Qed.

Lemma quanta_mono run j t t' : (t <= t')%N -> (quanta run j t <= quanta run j t')%N.
Proof. by move=> le; rewrite /quanta (big_cat_nat _ _ _ _ le) //= leq_addr. Qed.

Lemma other_caught_up j t :
  j \notin urgent t -> reference j t.+1 <= work fast%:R edf_urgent j t.+1.
Proof.
rewrite edf_work ler_nat /other_work !inE; case: ifP => [jd|//]; rewrite andbT negb_and -!ltnNge.
case/orP => [tj|cj]; last first.
  apply: leq_trans (geq_minr _ _) _; rewrite leq_mul2r; apply/orP; right.
  by rewrite ltnS in cj; apply: leq_trans cj (quanta_mono _ _ (leqnSn t)).
rewrite /quanta big_nat big1 ?mul0n ?min0n // => u /andP [_ ut]; apply/eqP; rewrite eqb0.
by apply: contraL tj => /other_released ju; rewrite -leqNgt (leq_trans ju).
Qed.

Lemma edf_blocked j t :
  j \in urgent t -> j \notin edf_urgent t ->
  exists2 k, alpha j \subset alpha k & full alpha edf_urgent t (alpha k).
Proof.
move=> ju; rewrite in_setI ju andbT => jr; have [v sub strong] := scheduler t.
have [jp jd] : j \in unfinished t /\ (due j <= d)%N by move: ju; rewrite in_set => /andP.
have lam : laminar alpha (unfinished t) by move=> k l _ _; exact: laminar_jobs.
have [k _ [jk tight]] := blocker v sub lam strong jp jr.
exists k => //; rewrite /full -tight; apply: subset_leq_card; apply/subsetP => l.
rewrite /inside in_set in_set => /andP [/andP [lr lk] not_later].
rewrite in_set in_setI lr lk andbT in_set (subsetP sub _ lr) /=.
by apply: leq_trans jd; rewrite leqNgt.
Qed.

End FixedDeadline.

Lemma edf_bounded j t : (quanta edf j t <= cost j)%N.
Proof.
elim: t => [|t IH]; first by rewrite /quanta big_geq.
rewrite quanta_step; case: (boolP (j \in running (edf t))) => [jr|_]; last by rewrite addn0.
have [_ sub _] := scheduler t; have := subsetP sub _ jr.
by rewrite in_set addn1 => /andP [].
Qed.

(* Theorem 2, first half. If the other scheduler is in time, so is EDF. *)
Theorem speedup_sufficient j : quanta edf j (due j) = cost j.
Proof.
set d := due j; have fast0 : 0 < (fast%:R : rat) by rewrite ltr0n.
have slow0 : 0 <= (slow%:R : rat) := ler0n _ slow.
pose load g : rat := slow%:R * factor alpha g.
pose demand (g : {set cpu}) : rat := slow%:R * #|g|%:R.
have size0 k : 0 < (#|alpha k|%:R : rat) by rewrite ltr0n card_gt0.
have own k : (#|alpha k|%:R - 1) * slow%:R <= levels.surplus demand load (alpha k).
  rewrite /levels.surplus /load /demand mulrCA -mulrBr [_ * slow%:R]mulrC; apply: ler_wpmul2l => //.
  rewrite ler_subr_addr.
  have := factor_own alpha (alpha k); rewrite -(ler_pmul2l (size0 k)) => /(le_trans _); apply.
  by rewrite mulrBr divff ?gt_eqF // mulr_natr mulr2n addrAC.
have child k l : alpha k \proper alpha l ->
    #|alpha l|%:R * load (alpha k) - demand (alpha k) <= levels.surplus demand load (alpha l).
  move=> kl; rewrite /levels.surplus /load /demand mulrCA -mulrBr mulrCA -mulrBr.
  apply: ler_wpmul2l => //; rewrite ler_subr_addr.
  have := factor_inside kl; rewrite -(ler_pmul2l (size0 l)) => /(le_trans _); apply.
  by rewrite mulrBr mulrDr mulr1 mulrCA divff ?gt_eqF // mulr1 addrAC.
pose P := [pred k | alpha j \subset alpha k].
have Pj : P j by rewrite /=.
case: (arg_maxnP (fun k => #|alpha k|) Pj) => r jr most.
have top l : ~~ (alpha r \proper alpha l).
  apply/negP => rl; have /= := most l (subset_trans jr (proper_sub rl)).
  by rewrite leqNgt proper_card.
have := never_behind laminar_jobs affinity_not_empty fast0
  (other_start d) (other_rate d) (other_demand d) (@other_caught_up d) (@edf_blocked d)
  own child top (fast_enough r) d.
rewrite /behind -leNgt /reference_in /work_in.
under [X in _ <= X]eq_bigr do rewrite edf_work.
rewrite -!natr_sum ler_nat => enough; apply/eqP; rewrite eqn_leq edf_bounded /= leqNgt.
apply/negP => short; move: enough; rewrite leqNgt => /negP; apply.
rewrite (bigD1 j) //= [X in (_ < X)%N](bigD1 j) //= leqnn -addSn leq_add //.
  rewrite /other_work leqnn (minn_idPr (other_in_time j)).
  by rewrite ltn_pmul2r.
apply: leq_sum => k _; rewrite /other_work; case: ifP => // kd.
rewrite (minn_idPr _) ?leq_mul2r ?edf_bounded ?orbT //.
by apply: leq_trans (other_in_time k) _; rewrite leq_mul2r quanta_mono ?orbT.
Qed.

End Speedup.
