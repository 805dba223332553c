(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the step from quanta to instants: a schedule in integer time, as the density test has it, is
   one whose instants are the whole numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong density.sporadic.
From Shiftwork Require response.schedule.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Quanta.

Context {R : archiFieldType} {task cpu : finType}.

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> nat.
Variable wcet period deadline : task -> nat.
Variable run : nat -> @state task cpu.

Hypothesis model : sporadic release cost wcet period deadline.
Hypothesis wcet_positive : forall i, (0 < wcet i)%N.
Hypothesis scheduler : strong_edf release cost deadline run alpha.

Implicit Types (i j : task) (k n : nat).

(* The same numbers in the field. *)
Definition release_at i k : R := (release i k)%:R.
Definition cost_at i k : R := (cost i k)%:R.
Definition wcet_of i : R := (wcet i)%:R.
Definition period_of i : R := (period i)%:R.
Definition deadline_of i : R := (deadline i)%:R.
Definition whole n : R := n%:R.

Notation released := (released_by release).

Lemma cost_whole i n : schedule.cost_of_first cost_at i n = (cost_of_first cost i n)%:R.
Proof. by rewrite /cost_of_first natr_sum. Qed.

Lemma service_whole i n : schedule.service whole run i n = (service run i n)%:R.
Proof.
rewrite /service natr_sum; apply: eq_bigr => k _.
by rewrite /schedule.length /whole -natrB // subSnn mul1r.
Qed.

Lemma pending_whole n : schedule.pending cost_at whole run released n = pending release cost run n.
Proof. by apply/setP => i; rewrite !inE service_whole cost_whole ltr_nat. Qed.

Lemma current_whole i n :
  schedule.current cost_at whole run released i n = current release cost run i n.
Proof.
by apply: eq_find => k; rewrite /schedule.finished service_whole cost_whole ler_nat.
Qed.

Lemma sporadic_whole : schedule.sporadic release_at cost_at wcet_of period_of.
Proof.
split=> [i|i|i k|i k|i k]; rewrite ?ltr0n ?ler0n //; first exact: period_positive model i.
  by rewrite ler_nat; exact: cost_bounded model i k.
by rewrite -natrD ler_nat; exact: release_apart model i k.
Qed.

Lemma timeline_whole : schedule.timeline release_at cost_at whole run released.
Proof.
split=> [n|t|i k|i k n|i k n|i n ir]; rewrite ?ler_nat ?ler0n //.
- exists (Num.bound `|t|); apply: le_lt_trans (ler_norm t) _.
  exact: archi_boundP.
- by rewrite (lt_released_by model).
- by case: (leqP (release i k) n); [left | right].
- rewrite service_whole cost_whole current_whole ler_nat service_step ir addn1.
  by apply: current_unfinished; have [_ /subsetP /(_ i ir)] := scheduler n.
Qed.

(* So Theorem 3 holds for schedules in integer time. *)
Theorem whole_schedule :
  [/\ schedule.sporadic release_at cost_at wcet_of period_of,
      schedule.timeline release_at cost_at whole run released &
      schedule.strong_edf release_at cost_at deadline_of whole run released alpha].
Proof.
split; [exact: sporadic_whole | exact: timeline_whole |] => n; rewrite pending_whole.
have [v sub strong] := scheduler n; split=> //.
apply: strong_weaken strong => // i j _ _.
rewrite /schedule.due_later /schedule.current_deadline !current_whole.
by rewrite -!natrD ltr_nat.
Qed.

End Quanta.
