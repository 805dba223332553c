(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the reference schedule of Theorem 1 of docs/theory/strong-edf.md: each job at a constant
   rate from its release on, for min(D, T) quanta. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import density.sporadic.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Reference.

Context {task : finType}.
Variable release cost : task -> nat -> nat.
Variable wcet period deadline : task -> nat.
Hypothesis model : sporadic release cost wcet period deadline.

Implicit Types (i : task) (k n t d : nat).

(* Length of the window of a job. *)
Definition window i : nat := minn (deadline i) (period i).

Definition delta i : rat := (wcet i)%:R / (window i)%:R.

(* Quanta of the window of job [k] before [t]. *)
Definition elapsed i k t : nat := minn (t - release i k) (window i).

(* Work that the reference has done before [t] on jobs that are due at [d] or before. *)
Definition reference d i t : rat :=
  \sum_(0 <= k < due_by release deadline i d) (cost i k)%:R * ((elapsed i k t)%:R / (window i)%:R).

Lemma window_positive i : (0 < window i)%N.
Proof. by rewrite /window leq_min (deadline_positive model) (period_positive model). Qed.

Lemma delta_nonnegative i : 0 <= delta i.
Proof. by rewrite divr_ge0 ?ler0n. Qed.

Lemma reference_start d i : reference d i 0 <= 0.
Proof.
rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: big1 => k _.
by rewrite /elapsed sub0n min0n mul0r mulr0.
Qed.

Lemma share_le1 i k t : (elapsed i k t)%:R / (window i)%:R <= 1 :> rat.
Proof.
by rewrite ler_pdivr_mulr ?ltr0n ?window_positive // mul1r ler_nat geq_minr.
Qed.

(* A quantum of the window of a job passes, or none does. *)
Lemma elapsed_step i k t :
  elapsed i k t.+1 = (elapsed i k t + (release i k <= t < release i k + window i))%N.
Proof.
rewrite /elapsed; case: (leqP (release i k) t) => [rt|tr] /=; last first.
  by rewrite addn0; move/eqP: (tr) => ->; move/ltnW/eqP: tr => ->.
rewrite subSn //; case: (ltnP t (release i k + window i)) => [tw|wt].
  have lt : (t - release i k < window i)%N by rewrite ltn_subLR.
  by rewrite (minn_idPl lt) (minn_idPl (ltnW lt)) addn1.
have le : (window i <= t - release i k)%N by rewrite leq_subRL.
by rewrite (minn_idPr le) (minn_idPr (leqW le)) addn0.
Qed.

(* At most one window of a task is open. *)
Lemma one_window i n t :
  (\sum_(0 <= k < n) (release i k <= t < release i k + window i) <= 1)%N.
Proof.
elim: n => [|n IH]; first by rewrite big_geq.
rewrite big_nat_recr //=; case: (boolP (release i n <= t < _)%N) => [/andP [nt _]|_]; last first.
  by rewrite addn0.
rewrite big_nat big1 // => k /andP [_ kn]; apply/eqP; rewrite eqb0 negb_and -!leqNgt.
apply/orP; right; apply: leq_trans nt; apply: leq_trans (release_apart_far model i kn).
by rewrite leq_add2l geq_minr.
Qed.

Lemma reference_rate d i t : reference d i t.+1 - reference d i t <= delta i.
Proof.
rewrite /reference -sumrB.
apply: (@le_trans _ _ (\sum_(0 <= k < due_by release deadline i d)
    delta i * (release i k <= t < release i k + window i)%N%:R)).
  apply: ler_sum => k _; rewrite elapsed_step natrD -mulrBr mulrDl addrAC subrr add0r.
  rewrite mulrCA mulrC; apply: ler_wpmul2r; rewrite ?ler0n //.
  rewrite /delta ler_wpmul2r ?invr_ge0 ?ler0n // ler_nat.
  exact: cost_bounded model i k.
rewrite -mulr_sumr -natr_sum; apply: ler_pimulr; first exact: delta_nonnegative.
by rewrite -[1]/(1%:R) ler_nat one_window.
Qed.

(* The reference does nothing before a release. *)
Lemma reference_released d i t :
  reference d i t.+1 <=
  (minn (cost_of_first cost i (due_by release deadline i d))
        (cost_of_first cost i (released_by release i t)))%:R.
Proof.
apply: (@le_trans _ _ (\sum_(0 <= k < due_by release deadline i d)
    (if (k < released_by release i t)%N then cost i k else 0%N)%:R)).
  apply: ler_sum => k _; rewrite (lt_released_by model); case: leqP => [_|tr].
    by rewrite -[X in _ <= X]mulr1 ler_wpmul2l ?ler0n // share_le1.
  by rewrite /elapsed; move/eqP: tr => ->; rewrite min0n mul0r mulr0.
rewrite -natr_sum ler_nat leq_min; apply/andP; split.
  by apply: leq_sum => k _; case: ifP.
elim: (due_by _ _ _) => [|n IH]; first by rewrite big_geq.
rewrite big_nat_recr //=; case: (ltnP n (released_by release i t)) => [nr|_]; last by rewrite addn0.
apply: leq_trans (cost_of_first_mono cost i nr); rewrite /cost_of_first big_nat_recr //= leq_add2r.
by apply: leq_sum => k _; case: ifP.
Qed.

(* At [d] the reference has done all that is due. *)
Lemma reference_end d i :
  reference d i d = (cost_of_first cost i (due_by release deadline i d))%:R.
Proof.
rewrite /reference /cost_of_first natr_sum; apply: eq_big_nat => k /andP [_].
rewrite (lt_due_by model) => due; rewrite /elapsed (minn_idPr _).
  by rewrite divff ?mulr1 // pnatr_eq0 -lt0n window_positive.
have /leq_trans : (release i k + window i <= release i k + deadline i)%N.
  by rewrite leq_add2l geq_minl.
by move/(_ _ due) => wd; rewrite leq_subRL // (leq_trans _ wd) // leq_addr.
Qed.

End Reference.
