(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns Theorem 1 of docs/theory/strong-edf.md: the density test for nested affinities, in discrete
   time. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong selection.greedy.
From Shiftwork Require Import selection.laminar.
From Shiftwork Require Import density.levels density.load density.sporadic density.reference.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Theorem1.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> nat.
Variable wcet period deadline : task -> nat.
Variable run : nat -> @state task cpu.

Hypothesis model : sporadic release cost wcet period deadline.
Hypothesis affinity_not_empty : forall i, alpha i != set0.
Hypothesis laminar_tasks : forall i j, nested (alpha i) (alpha j).
Hypothesis scheduler : strong_edf release cost deadline run alpha.

Implicit Types (i j : task) (k n t d : nat).

Notation delta := (delta wcet period deadline).
Notation service := (service run).
Notation first_cost := (cost_of_first cost).
Notation pending := (pending release cost run).
Notation due d i := (due_by release deadline i d).

Section FixedDeadline.

Variable d : nat.

(* A task is active if a job of it that is released and due at [d] or before is unfinished. *)
Definition active t : {set task} :=
  [set i in pending t | (service i t < first_cost i (due d i))%N].

Definition served t : {set task} := running (run t) :&: active t.

Notation reference := (reference release cost period deadline d).

(* The work that counts is the service up to the cost of the jobs that are due. *)
Lemma work_service i t :
  work 1 served i t = (minn (service i t) (first_cost i (due d i)))%:R.
Proof.
elim: t => [|t IH]; first by rewrite /work /service !big_geq // min0n.
rewrite work_step IH mul1r -natrD; congr (_ %:R); rewrite service_step in_setI in_set.
have [_ sub _] := scheduler t.
case: (boolP (i \in running (run t))) => [ir|_]; last by rewrite !addn0.
rewrite (subsetP sub _ ir) /= addn1; case: (ltnP (service i t)) => [lt|ge].
  by rewrite (minn_idPl lt) addn1.
by rewrite addn0 (minn_idPr (leqW ge)).
Qed.

Lemma caught_up i t : i \notin active t -> reference i t.+1 <= work 1 served i t.+1.
Proof.
move=> ia; have not_served : (i \in served t) = false by rewrite in_setI (negbTE ia) andbF.
rewrite work_step not_served mulr0 addr0 work_service.
apply: le_trans (reference_released model d i t) _; rewrite ler_nat.
rewrite leq_min geq_minl andbT geq_min; move: ia; rewrite !in_set negb_and -!leqNgt.
by case/orP => ->; rewrite ?orbT.
Qed.

(* Lemma 1, for active tasks: one that is not served has a blocker whose CPUs serve active tasks. *)
Lemma blocked i t :
  i \in active t -> i \notin served t ->
  exists2 k, alpha i \subset alpha k & full alpha served t (alpha k).
Proof.
move=> ia; rewrite in_setI ia andbT => ir; have [v sub strong] := scheduler t.
have [ip short] : i \in pending t /\ (service i t < first_cost i (due d i))%N.
  by move: ia; rewrite in_set => /andP.
have lam : laminar alpha (pending t) by move=> j k _ _; exact: laminar_tasks.
have [k _ [ik tight]] := blocker v sub lam strong ip ir.
exists k => //; rewrite /full -tight; apply: subset_leq_card; apply/subsetP => j.
rewrite /inside /served !inE => /andP [/andP [jr ->] not_later]; rewrite jr /= andbT.
have jp := subsetP sub _ jr; apply/andP; split; first by rewrite inE in jp.
apply: leq_trans (current_unfinished jp) (cost_of_first_mono cost j _).
rewrite (lt_due_by model); apply: (@leq_trans (current_deadline release cost deadline run i t)).
  by rewrite leqNgt.
by rewrite /current_deadline -(lt_due_by model); exact: current_lt ip short.
Qed.

End FixedDeadline.

(* Every task has a largest affinity around its own. *)
Lemma root_of i :
  exists2 j, alpha i \subset alpha j & forall l, ~~ (alpha j \proper alpha l).
Proof.
pose P := [pred j | alpha i \subset alpha j].
have Pi : P i by rewrite /=.
case: (arg_maxnP (fun j => #|alpha j|) Pi) => j ij most; exists j => // l.
apply/negP => jl; have /= := most l (subset_trans ij (proper_sub jl)).
by rewrite leqNgt proper_card.
Qed.

(* Theorem 1. If for every task [i]
     delta_i + sum over the other tasks j of its component of delta_j / |i v j| <= 1,
   then EDF with the strong invariant meets all deadlines. *)
Theorem nested_density :
  (forall i, left_side alpha delta i <= 1) ->
  forall i k, meets_deadline release cost deadline run i k.
Proof.
move=> test i k; set d := (release i k + deadline i)%N.
have delta0 := delta_nonnegative wcet period deadline.
have [r ir top] := root_of i.
have rate_in (g : {set cpu}) t :
    \sum_(j | alpha j \subset g) (reference release cost period deadline d j t.+1 -
                                  reference release cost period deadline d j t) <=
    density_in alpha delta g.
  by apply: ler_sum => j _; exact: (reference_rate model).
have := never_behind laminar_tasks affinity_not_empty ltr01
  (reference_start release cost period deadline d) (reference_rate model d) rate_in
  (@caught_up d) (@blocked d) (load_own affinity_not_empty delta0)
  (load_child affinity_not_empty delta0) top (load_fits delta0 r test) d.
rewrite /behind -leNgt /reference_in /work_in.
under eq_bigr do rewrite (reference_end model).
under [X in _ <= X]eq_bigr do rewrite work_service.
rewrite -!natr_sum ler_nat => enough.
have short : (minn (service i d) (first_cost i (due d i)) >= first_cost i (due d i))%N.
  rewrite leqNgt; apply/negP => lt; move: enough; rewrite leqNgt => /negP; apply.
  rewrite (bigD1 i) //= [X in (_ < X)%N](bigD1 i) //= -addSn leq_add //.
  by apply: leq_sum => j _; exact: geq_minr.
rewrite /meets_deadline /finished -/d.
apply: (@leq_trans (first_cost i (due d i))); last exact: leq_trans short (geq_minl _ _).
by apply: cost_of_first_mono; rewrite (lt_due_by model).
Qed.

End Theorem1.
