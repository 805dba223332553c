(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the strong invariant of Bonifaci et al. (ECRTS 2016, Definition II.2) and the tight sets
   that it gives: Lemma 1(a) of docs/theory/strong-edf.md, for any affinities. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach selection.hall.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Strong.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

(* [later k j]: the deadline of [k] is later than that of [j]. Nothing is assumed of it, so ties
   may go any way. *)
Variable later : rel job.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).
Notation reach := (reach alpha).

Implicit Types (run : state) (S pending : {set job}) (X : {set cpu}) (j k : job) (c : cpu).

(* [j] could run beside all that runs, or instead of a job with a later deadline, if running jobs
   moved within their affinities. How they move is left open: any valid state will do. *)
Definition could_run run j : Prop :=
  feasible (j |: running run) \/
  (exists k, [/\ k \in running run, later k j & feasible (j |: (running run :\ k))]).

(* No pending job waits that could run. *)
Definition strong_invariant pending run : Prop :=
  forall j, j \in pending -> j \notin running run -> ~ could_run run j.

(* All CPUs of [X] are needed by running jobs that cannot leave [X] and whose deadlines are not
   later than that of [j]. *)
Definition blocks run X j : Prop :=
  alpha j \subset X /\ #|[set k in inside (running run) X | ~~ later k j]| = #|X|.

(* Lemma 1(a): all CPUs that a waiting job could get run jobs that cannot leave these CPUs and are
   not due later. *)
Theorem reach_busy pending run j :
  valid run -> strong_invariant pending run -> j \in pending -> j \notin running run ->
  forall c, c \in reach run j ->
  exists k, [/\ run c = Some k, alpha k \subset reach run j & ~~ later k j].
Proof.
move=> v strong jp jn c cR; have [fits|busy] := fits_or_tight v jn.
  by case: (strong j jp jn); left.
have [k rc kR] := busy c cR; exists k; split=> //.
apply/negP => kj; case: (strong j jp jn); right; exists k; split=> //.
  by apply/runningP; exists c.
have [run' v' e] := reach_gives v jn cR; rewrite rc in e.
by apply/feasibleP; exists run'.
Qed.

(* So the reach of a waiting job is tight. *)
Theorem strong_blocked pending run j :
  valid run -> strong_invariant pending run -> j \in pending -> j \notin running run ->
  blocks run (reach run j) j.
Proof.
move=> v strong jp jn; split; first exact: reach_base.
have busy := reach_busy v strong jp jn.
apply/eqP; rewrite eqn_leq (busy_tight v busy) andbT.
apply: leq_trans (running_inside (reach run j) v); apply: subset_leq_card.
by apply/subsetP => k; rewrite inE => /andP [].
Qed.

(* And the other way round: a job that a tight set blocks cannot run. *)
Theorem blocked_waits run X j :
  j \notin running run -> blocks run X j -> ~ could_run run j.
Proof.
move=> jn [jX tight] [|[k [kr kj]]]; apply/negP.
  apply: (tight_infeasible jn jX); rewrite -tight; apply: subset_leq_card.
  by apply/subsetP => k; rewrite inE => /andP [].
apply: (tight_infeasible (X := X)) => //; first by rewrite in_setD1 (negbTE jn) andbF.
rewrite -tight; apply: subset_leq_card; apply/subsetP => l; rewrite !in_set.
case/andP => /andP [lr ->] nl; rewrite lr !andbT.
by apply: contraNneq nl => ->.
Qed.

(* The strong invariant, by tight sets. *)
Theorem strong_iff_blocked pending run :
  valid run ->
  (strong_invariant pending run <->
   forall j, j \in pending -> j \notin running run -> exists X, blocks run X j).
Proof.
move=> v; split=> [strong j jp jn|blocked j jp jn].
  by exists (reach run j); exact: strong_blocked strong jp jn.
by have [X bX] := blocked j jp jn; exact: blocked_waits bX.
Qed.

End Strong.

(* The invariant for an order is that for every order that has its ties broken further. *)
Lemma strong_weaken {job cpu : finType} (alpha : job -> {set cpu}) (later finer : rel job)
    (pending : {set job}) (run : @state job cpu) :
  running run \subset pending ->
  {in pending &, forall k j, later k j -> finer k j} ->
  strong_invariant alpha finer pending run -> strong_invariant alpha later pending run.
Proof.
move=> sub imp strong j jp jn [fits|[k [kr kj f]]]; apply: (strong j jp jn); first by left.
by right; exists k; split=> //; apply: imp => //; exact: (subsetP sub).
Qed.
