(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the model of time: sporadic tasks, the service that a schedule gives them, their current
   jobs and deadlines, and what it means to schedule by EDF with the strong invariant. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.strong.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Sporadic.

Context {task cpu : finType}.

Implicit Types (i j : task) (k n t d : nat).

(* Time is a number of quanta; decisions are taken between them. Job [k] of task [i] is released at
   [release i k] and costs [cost i k] quanta of a CPU. A cost of 0 is a job that is not there, so
   that a task may also release finitely many jobs. *)
Variable release cost : task -> nat -> nat.

(* C, T and D of a task. *)
Variable wcet period deadline : task -> nat.

Record sporadic : Prop := Sporadic {
  period_positive : forall i, 0 < period i;
  deadline_positive : forall i, 0 < deadline i;
  cost_bounded : forall i k, cost i k <= wcet i;
  release_apart : forall i k, release i k + period i <= release i k.+1
}.

Hypothesis model : sporadic.

(* Cost of the first [n] jobs of a task. *)
Definition cost_of_first i n : nat := \sum_(0 <= k < n) cost i k.

Lemma cost_of_first_mono i n n' : n <= n' -> cost_of_first i n <= cost_of_first i n'.
Proof. by move=> le; rewrite /cost_of_first (big_cat_nat _ _ _ _ le) //= leq_addr. Qed.

Lemma release_mono i k k' : k <= k' -> release i k <= release i k'.
Proof.
elim: k' => [|k' IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /orP [/eqP -> //|]; rewrite ltnS => /IH le.
apply: leq_trans le _; apply: leq_trans (release_apart model i k'); exact: leq_addr.
Qed.

Lemma release_apart_far i k k' : k < k' -> release i k + period i <= release i k'.
Proof. by move=> lt; apply: leq_trans (release_apart model i k) (release_mono i lt). Qed.

Lemma release_ge i k : k <= release i k.
Proof.
elim: k => // k IH; apply: leq_trans (release_apart model i k).
by rewrite -addn1; apply: leq_add => //; exact: period_positive model i.
Qed.

(* How many jobs are released at [t] or before. As a quantum lies between two releases of a task, it
   is enough to look at the first [t + 2] jobs. *)
Definition released_by i t : nat := find (fun k => t < release i k) (iota 0 t.+2).

Lemma lt_released_by i t k : (k < released_by i t) = (release i k <= t).
Proof.
have has_one : has (fun k => t < release i k) (iota 0 t.+2).
  by apply/hasP; exists t.+1; [rewrite mem_iota add0n ltnSn | exact: release_ge].
have n_lt : released_by i t < t.+2 by move: has_one; rewrite has_find size_iota.
apply/idP/idP => [kn|kt].
  have : (t < release i (nth 0 (iota 0 t.+2) k)) = false := before_find 0 kn.
  by rewrite nth_iota ?(ltn_trans kn) // add0n => /negbT; rewrite -leqNgt.
rewrite ltnNge; apply: contraL kt => /(release_mono i) nk.
have : t < release i (nth 0 (iota 0 t.+2) (released_by i t)) := nth_find 0 has_one.
by rewrite nth_iota // add0n -ltnNge => /leq_trans; apply.
Qed.

(* How many jobs are due at [d] or before. *)
Definition due_by i d : nat := if deadline i <= d then released_by i (d - deadline i) else 0.

Lemma lt_due_by i d k : (k < due_by i d) = (release i k + deadline i <= d).
Proof.
rewrite /due_by; case: (leqP (deadline i) d) => [Dd|dD].
  by rewrite lt_released_by leq_subRL // addnC.
by rewrite ltn0; apply/esym/negbTE; rewrite -ltnNge (leq_trans dD) // leq_addl.
Qed.

(* A schedule: what each CPU serves in each quantum. *)
Variable run : nat -> @state task cpu.

Definition service i t : nat := \sum_(0 <= u < t) (i \in running (run u)).

(* A task is pending if work that it has released is unfinished. *)
Definition pending t : {set task} :=
  [set i | service i t < cost_of_first i (released_by i t)].

(* Jobs of one task run in order: the current job is the first that is unfinished. *)
Definition finished i t k : bool := cost_of_first i k.+1 <= service i t.

Definition current i t : nat :=
  find (fun k => ~~ finished i t k) (iota 0 (released_by i t)).

Definition current_deadline i t : nat := release i (current i t) + deadline i.

(* The current job of [i] is due later than that of [j]. *)
Definition due_later t : rel task :=
  fun i j => current_deadline j t < current_deadline i t.

Lemma service_step i t : service i t.+1 = service i t + (i \in running (run t)).
Proof. by rewrite /service big_nat_recr. Qed.

(* If the first [n] jobs of a pending task are not finished, the current job is one of them. *)
Lemma current_lt i t n :
  i \in pending t -> service i t < cost_of_first i n -> current i t < n.
Proof.
rewrite inE => pend short; rewrite ltnNge; apply/negP => ge.
case: n short ge => [|n]; first by rewrite /cost_of_first big_geq.
move=> short ge; case: (leqP (released_by i t) n) => [rn|nr].
  have : current i t <= released_by i t.
    have := find_size (fun k => ~~ finished i t k) (iota 0 (released_by i t)).
    by rewrite size_iota.
  by rewrite leqNgt (leq_trans _ ge).
have := before_find 0 ge; rewrite nth_iota // add0n /finished.
by rewrite -ltnNge short.
Qed.

(* The current job of a pending task is unfinished. *)
Lemma current_unfinished i t :
  i \in pending t -> service i t < cost_of_first i (current i t).+1.
Proof.
rewrite inE => pend; have has_one : has (fun k => ~~ finished i t k) (iota 0 (released_by i t)).
  case r: (released_by i t) pend => [|n] pend; first by rewrite /cost_of_first big_geq in pend.
  by apply/hasP; exists n; [rewrite mem_iota add0n ltnSn | rewrite /finished -ltnNge].
have lt : current i t < released_by i t by move: has_one; rewrite has_find size_iota.
by have /= := nth_find 0 has_one; rewrite -/(current i t) nth_iota // add0n /finished -ltnNge.
Qed.

Variable alpha : task -> {set cpu}.

(* EDF with the strong invariant: in every quantum pending tasks run within their affinities, and
   none waits that could run instead of one that is due later. *)
Definition strong_edf : Prop :=
  forall t, [/\ valid alpha (run t), running (run t) \subset pending t &
                strong_invariant alpha (due_later t) (pending t) (run t)].

(* Job [k] of task [i] is finished when it is due. *)
Definition meets_deadline i k : Prop := finished i (release i k + deadline i) k.

End Sporadic.
