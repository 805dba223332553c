(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the step from the algorithm to the density test: a schedule that runs in every quantum what
   counting along the tree of affinities selects keeps the strong invariant. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong selection.greedy.
From Shiftwork Require Import selection.laminar.
From Shiftwork Require Import density.load density.sporadic density.reference density.theorem1.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.

Section Hierarchical.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> nat.
Variable wcet period deadline : task -> nat.
Variable run : nat -> @state task cpu.

(* The tree of affinities. It may have nodes that are no task's affinity, such as all CPUs. *)
Variable nodes : {set {set cpu}}.

Hypothesis affinity_is_node : forall i, alpha i \in nodes.
Hypothesis affinity_not_empty : forall i, alpha i != set0.
Hypothesis laminar_nodes : {in nodes &, forall X Y, nested X Y}.

Notation pending := (pending release cost run).
Notation due_later := (due_later release cost deadline run).

(* The pending tasks by the deadlines of their current jobs, ties in any order. *)
Definition by_deadline t (s : seq task) : Prop :=
  [/\ uniq s, pending t = [set i in s] &
      {in pending t &, forall i j, due_later t i j -> index j s < index i s}].

(* In every quantum the selected tasks run within their affinities. *)
Definition hierarchical_edf : Prop :=
  forall t, valid alpha (run t) /\
    exists2 s, by_deadline t s & running (run t) = kept (select alpha nodes s).

Theorem hierarchical_strong : hierarchical_edf -> strong_edf release cost deadline run alpha.
Proof.
move=> sel t; have [v [s [un pend order] e]] := sel t.
rewrite (select_greedy affinity_is_node affinity_not_empty laminar_nodes un) in e.
have sub : running (run t) \subset [set i in s].
  by rewrite e; apply/subsetP => i /greedy_subset; rewrite in_set.
split=> //; first by rewrite pend.
have strong : strong_invariant alpha (after s) [set i in s] (run t).
  exact/(strong_iff_greedy un v sub).
rewrite pend; apply: strong_weaken strong => //.
by rewrite -pend; exact: order.
Qed.

(* The density test for the algorithm itself. *)
Theorem hierarchical_density :
  sporadic release cost wcet period deadline -> hierarchical_edf ->
  (forall i, left_side alpha (delta wcet period deadline) i <= 1)%R ->
  forall i k, meets_deadline release cost deadline run i k.
Proof.
move=> model sel; apply: (nested_density model affinity_not_empty).
  by move=> i j; exact: laminar_nodes.
exact: hierarchical_strong.
Qed.

(* Such schedules exist at every moment: what is selected has CPUs. *)
Theorem selected_can_run s :
  uniq s -> exists2 state, valid alpha state & running state = kept (select alpha nodes s).
Proof.
move=> un; rewrite (select_greedy affinity_is_node affinity_not_empty laminar_nodes un).
exact/feasibleP/greedy_feasible.
Qed.

End Hierarchical.
