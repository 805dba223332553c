(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the existence of the schedules of which the theorems speak: whatever the tasks release, some
   schedule runs in every quantum what counting along the tree selects. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.greedy selection.laminar.
From Shiftwork Require Import density.sporadic density.hierarchical.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Existence.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> nat.
Variable deadline : task -> nat.
Variable nodes : {set {set cpu}}.

Hypothesis affinity_is_node : forall i, alpha i \in nodes.
Hypothesis affinity_not_empty : forall i, alpha i != set0.
Hypothesis laminar_nodes : {in nodes &, forall X Y, nested X Y}.

Notation state := (@state task cpu).

Implicit Types (run : nat -> state) (i j : task) (t u : nat).

(* Tasks by numbers that stand for their deadlines. *)
Definition sort_by (key : {ffun task -> nat}) (S : {set task}) : seq task :=
  sort (fun i j => key i <= key j) (enum S).

Definition deadlines run t : {ffun task -> nat} :=
  [ffun i => current_deadline release cost deadline run i t].

(* The pending tasks by the deadlines of their current jobs. *)
Definition queue run t : seq task := sort_by (deadlines run t) (pending release cost run t).

Definition idle : state := [ffun=> None].

(* What runs at [t] after a schedule up to [t]. *)
Definition choose run t : state :=
  odflt idle [pick s | valid alpha s && (running s == kept (select alpha nodes (queue run t)))].

Fixpoint history t : seq state :=
  if t is u.+1 then rcons (history u) (choose (nth idle (history u)) u) else [::].

Definition schedule t : state := choose (nth idle (history t)) t.

Lemma size_history t : size (history t) = t.
Proof. by elim: t => //= t IH; rewrite size_rcons IH. Qed.

Lemma nth_history t u : u < t -> nth idle (history t) u = schedule u.
Proof.
elim: t => // t IH; rewrite ltnS leq_eqVlt nth_rcons size_history.
by case/orP => [/eqP ->|ut]; rewrite ?ltnn ?eqxx // ut IH.
Qed.

(* What is selected depends on the past alone. *)
Lemma queue_past run run' t :
  (forall u, u < t -> run u = run' u) -> queue run t = queue run' t.
Proof.
move=> same; have serv i : service run i t = service run' i t.
  by apply: eq_big_nat => u /andP [_ ut]; rewrite same.
have pend : pending release cost run t = pending release cost run' t.
  by apply/setP => i; rewrite !inE serv.
have cur i : current release cost run i t = current release cost run' i t.
  by rewrite /current; apply: eq_find => k; rewrite /finished serv.
rewrite /queue pend; congr sort_by; apply/ffunP => i.
by rewrite !ffunE /current_deadline cur.
Qed.

Lemma queue_by_deadline run t : by_deadline release cost deadline run t (queue run t).
Proof.
have mem i : (i \in queue run t) = (i \in pending release cost run t).
  by rewrite mem_sort mem_enum.
split; first by rewrite sort_uniq enum_uniq.
  by apply/setP => i; rewrite [RHS]in_set mem.
move=> i j ip jp ij; rewrite ltnNge; apply: contraL ij => le; rewrite -leqNgt.
set key := deadlines run t.
have tr : transitive (fun i j => key i <= key j) by move=> x y z; exact: leq_trans.
have sorted_queue : sorted (fun i j => key i <= key j) (queue run t).
  by apply: sort_sorted => x y; exact: leq_total.
have := sorted_leq_index tr (fun x => leqnn (key x)) sorted_queue.
by move/(_ i j); rewrite !mem !ffunE; exact.
Qed.

Theorem hierarchical_exists :
  exists run, hierarchical_edf alpha release cost deadline run nodes.
Proof.
exists schedule => t; set past := nth idle (history t).
have same : queue schedule t = queue past t.
  by apply: queue_past => u ut; rewrite /past nth_history.
have order := queue_by_deadline schedule t; have [un _ _] := order.
have [s v e] := selected_can_run affinity_is_node affinity_not_empty laminar_nodes un.
rewrite /schedule /choose -/past -same; case: pickP => [s' /andP [v' /eqP e']|/(_ s)] /=.
  by split=> //; exists (queue schedule t).
by rewrite v e eqxx.
Qed.

End Existence.
