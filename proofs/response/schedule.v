(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the model of time that is not cut into quanta: instants of any ordered field, the rational or
   real numbers for example, at which jobs are released, complete and are given CPUs, and between
   which nothing changes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong response.field.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Schedule.

Context {R : realFieldType} {task cpu : finType}.

Implicit Types (i j : task) (k n : nat).

Add Field operations : (field_operations R).

(* Job [k] of task [i] is released at [release i k] and costs [cost i k]. A cost of 0 is a job that
   is not there, so that a task may also release finitely many jobs. *)
Variable release cost : task -> nat -> R.

(* C, T and D of a task. *)
Variable wcet period deadline : task -> R.

(* Relative deadlines may be any numbers. *)
Record sporadic : Prop := Sporadic {
  wcet_positive : forall i, 0 < wcet i;
  period_positive : forall i, 0 < period i;
  cost_nonnegative : forall i k, 0 <= cost i k;
  cost_bounded : forall i k, cost i k <= wcet i;
  release_apart : forall i k, release i k + period i <= release i k.+1
}.

(* The instants at which anything happens, and what each CPU serves from one to the next. *)
Variable instant : nat -> R.
Variable run : nat -> @state task cpu.

(* How many jobs of a task are released at an instant or before. *)
Variable released : task -> nat -> nat.

Definition length n : R := instant n.+1 - instant n.

(* Cost of the first [n] jobs of a task. *)
Definition cost_of_first i n : R := \sum_(0 <= k < n) cost i k.

(* What a task has executed before an instant. *)
Definition service i n : R := \sum_(0 <= k < n) length k * (i \in running (run k))%:R.

(* A task is pending if work that it has released is unfinished. *)
Definition pending n : {set task} := [set i | service i n < cost_of_first i (released i n)].

(* Jobs of one task run in order: the current job is the first that is unfinished. *)
Definition finished i n k : bool := cost_of_first i k.+1 <= service i n.

Definition current i n : nat := find (fun k => ~~ finished i n k) (iota 0 (released i n)).

Definition current_deadline i n : R := release i (current i n) + deadline i.

(* The current job of [i] is due later than that of [j]. *)
Definition due_later n : rel task := fun i j => current_deadline j n < current_deadline i n.

(* Instants go on for ever, start before the first release, and none is missing at which a job is
   released or completes. Several instants may be at the same time. *)
Record timeline : Prop := Timeline {
  instant_order : forall n, instant n <= instant n.+1;
  instant_unbounded : forall t, exists n, t < instant n;
  release_after_start : forall i k, instant 0 <= release i k;
  released_exact : forall i k n, (k < released i n)%N = (release i k <= instant n);
  release_at_instant : forall i k n, release i k <= instant n \/ instant n.+1 <= release i k;
  completion_at_instant : forall i n,
    i \in running (run n) -> service i n.+1 <= cost_of_first i (current i n).+1
}.

Variable alpha : task -> {set cpu}.

(* EDF with the strong invariant: from each instant to the next, pending tasks run within their
   affinities, and none waits that could run instead of one that is due later. *)
Definition strong_edf : Prop :=
  forall n, [/\ valid alpha (run n), running (run n) \subset pending n &
                strong_invariant alpha (due_later n) (pending n) (run n)].

Hypothesis model : sporadic.
Hypothesis time : timeline.

Lemma length_nonnegative n : 0 <= length n.
Proof. by rewrite subr_ge0; exact: instant_order time n. Qed.

Lemma instant_mono n n' : (n <= n')%N -> instant n <= instant n'.
Proof.
elim: n' => [|n' IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /orP [/eqP -> //|]; rewrite ltnS => /IH le.
exact: le_trans le (instant_order time n').
Qed.

Lemma release_mono i k k' : (k <= k')%N -> release i k <= release i k'.
Proof.
elim: k' => [|k' IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /orP [/eqP -> //|]; rewrite ltnS => /IH le.
apply: le_trans le _; apply: le_trans (release_apart model i k').
by rewrite ler_addl ltW // (period_positive model).
Qed.

Lemma release_apart_far i k k' : (k < k')%N -> release i k + period i <= release i k'.
Proof. by move=> lt; apply: le_trans (release_apart model i k) (release_mono i lt). Qed.

Lemma cost_of_first_step i n : cost_of_first i n.+1 = cost_of_first i n + cost i n.
Proof. by rewrite /cost_of_first big_nat_recr. Qed.

Lemma cost_of_first_mono i n n' : (n <= n')%N -> cost_of_first i n <= cost_of_first i n'.
Proof.
elim: n' => [|n' IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /orP [/eqP -> //|]; rewrite ltnS => /IH le.
by apply: le_trans le _; rewrite cost_of_first_step ler_addl (cost_nonnegative model).
Qed.

Lemma service_step i n : service i n.+1 = service i n + length n * (i \in running (run n))%:R.
Proof. by rewrite /service big_nat_recr. Qed.

Lemma service_start i : service i 0 = 0.
Proof. by rewrite /service big_geq. Qed.

Lemma service_grows i n : service i n <= service i n.+1.
Proof. by rewrite service_step ler_addl mulr_ge0 ?length_nonnegative ?ler0n. Qed.

Lemma service_nonnegative i n : 0 <= service i n.
Proof.
by elim: n => [|n IH]; [rewrite service_start | exact: le_trans IH (service_grows i n)].
Qed.

(* Before its first job that is unfinished, all jobs of a task are finished. *)
Lemma current_started i n : cost_of_first i (current i n) <= service i n.
Proof.
case c: (current i n) => [|k]; first by rewrite /cost_of_first big_geq // service_nonnegative.
have kc : (k < current i n)%N by rewrite c.
have kr : (k < released i n)%N.
  apply: leq_trans kc _; rewrite -[X in (_ <= X)%N](size_iota 0); exact: find_size.
by have /negbFE := before_find 0%N kc; rewrite nth_iota // add0n.
Qed.

Lemma current_unfinished_released i n :
  i \in pending n ->
  (current i n < released i n)%N /\ service i n < cost_of_first i (current i n).+1.
Proof.
rewrite inE => pend; have has_one : has (fun k => ~~ finished i n k) (iota 0 (released i n)).
  case r: (released i n) pend => [|k] pend.
    by move: pend; rewrite /cost_of_first big_geq // ltNge service_nonnegative.
  by apply/hasP; exists k; [rewrite mem_iota add0n ltnSn | rewrite /finished -ltNge].
have lt : (current i n < released i n)%N by move: has_one; rewrite has_find size_iota.
split=> //; have /= := nth_find 0%N has_one.
by rewrite -/(current i n) nth_iota // add0n /finished -ltNge.
Qed.

Lemma current_released i n : i \in pending n -> (current i n < released i n)%N.
Proof. by case/current_unfinished_released. Qed.

Lemma current_unfinished i n :
  i \in pending n -> service i n < cost_of_first i (current i n).+1.
Proof. by case/current_unfinished_released. Qed.

(* Jobs that are finished are before the current one. *)
Lemma current_ge i n k :
  i \in pending n -> cost_of_first i k <= service i n -> (k <= current i n)%N.
Proof.
move=> pend done; rewrite leqNgt; apply/negP => lt.
have := lt_le_trans (current_unfinished pend) (cost_of_first_mono i lt).
by rewrite ltNge done.
Qed.

(* A released job that is unfinished is the current one or comes after it. *)
Lemma unfinished_pending i n k :
  release i k <= instant n -> ~~ finished i n k ->
  i \in pending n /\ (current i n <= k)%N.
Proof.
rewrite -(released_exact time) -ltNge => kr short; split.
  by rewrite inE; apply: lt_le_trans short (cost_of_first_mono i kr).
rewrite leqNgt; apply/negP => lt.
have := le_trans (cost_of_first_mono i lt) (current_started i n).
by rewrite leNgt short.
Qed.

(* What has been executed of the current job when a part [h] of the time to the next instant is
   over. *)
Definition executed n (h : R) i : R :=
  service i n + h * (length n * (i \in running (run n))%:R) - cost_of_first i (current i n).

Lemma executed_nonnegative n h i : 0 <= h -> 0 <= executed n h i.
Proof.
move=> h0; rewrite subr_ge0; apply: le_trans (current_started i n) _.
by rewrite ler_addl !mulr_ge0 ?length_nonnegative ?ler0n.
Qed.

(* It is all of it at the end of the interval at the earliest. *)
Lemma executed_end n i : i \in pending n -> executed n 1 i <= wcet i.
Proof.
move=> pend; rewrite /executed mul1r -service_step ler_subl_addl.
apply: (@le_trans _ _ (cost_of_first i (current i n).+1)); last first.
  by rewrite cost_of_first_step ler_add2l (cost_bounded model).
case: (boolP (i \in running (run n))) => [ir|/negbTE ir]; first exact: completion_at_instant.
by rewrite service_step ir mulr0 addr0 ltW // current_unfinished.
Qed.

Lemma executed_before_end n h i : i \in pending n -> 0 <= h < 1 -> executed n h i < wcet i.
Proof.
move=> pend /andP [h0 h1]; have e1 := executed_end pend.
have e0 : executed n 0 i < wcet i.
  rewrite /executed mul0r addr0 ltr_subl_addl.
  apply: lt_le_trans (current_unfinished pend) _.
  by rewrite cost_of_first_step ler_add2l (cost_bounded model).
have -> : executed n h i = (1 - h) * executed n 0 i + h * executed n 1 i.
  by rewrite /executed; by_ring R.
have -> : wcet i = (1 - h) * wcet i + h * wcet i by by_ring R.
by rewrite ltr_le_add ?ltr_pmul2l ?subr_gt0 // ler_wpmul2l.
Qed.

End Schedule.
