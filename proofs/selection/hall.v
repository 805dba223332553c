(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns Hall's theorem for jobs and CPUs: for any affinities, and for nested ones, where it is
   enough to count inside the affinities themselves. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Hall.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).
Notation reach := (reach alpha).

Implicit Types (run : state) (S : {set job}) (X : {set cpu}) (j k : job) (c : cpu).

(* If all CPUs of a closed set are busy, as many jobs run that cannot leave it. *)
Lemma busy_tight run X (P : pred job) :
  valid run ->
  (forall c, c \in X -> exists k, [/\ run c = Some k, alpha k \subset X & P k]) ->
  #|X| <= #|[set k in inside (running run) X | P k]|.
Proof.
move=> /validP [a u] busy.
have sub : run @: X \subset [set Some k | k in [set k in inside (running run) X | P k]].
  apply/subsetP => o /imsetP [c cX ->]; have [k [rc kX Pk]] := busy c cX.
  rewrite rc; apply: imset_f; rewrite !inE kX Pk !andbT.
  by apply/runningP; exists c.
have <- : #|run @: X| = #|X|.
  rewrite card_in_imset // => c c' cX c'X e; have [k [rc _ _]] := busy c cX.
  by apply: (u c c' k) => //; rewrite -e.
exact: leq_trans (subset_leq_card sub) (leq_imset_card _ _).
Qed.

(* A job fits beside those that run, or its reach is tight. *)
Theorem fits_or_tight run j :
  valid run -> j \notin running run ->
  feasible (j |: running run) \/
  (forall c, c \in reach run j ->
     exists2 k, run c = Some k & alpha k \subset reach run j).
Proof.
move=> v jn; case idle: [exists c in reach run j, run c == None].
  case/existsP: idle => c /andP [cR /eqP rc]; left; apply/feasibleP.
  by have [run' v' e] := reach_gives v jn cR; rewrite rc in e; exists run'.
right=> c cR; case rc: (run c) => [k|]; last first.
  by move/existsP: idle; case; exists c; rewrite cR rc.
by exists k => //; exact: reach_closed cR rc.
Qed.

(* Induction principle of both forms: a set that no tight set blocks at any step is feasible. *)
Lemma feasible_by_steps (good : {set job} -> Prop) :
  (forall S S', S' \subset S -> good S -> good S') ->
  (forall run j, valid run -> j \notin running run -> good (j |: running run) ->
     (forall c, c \in reach run j ->
        exists2 k, run c = Some k & alpha k \subset reach run j) -> False) ->
  forall S, good S -> feasible S.
Proof.
move=> mono step S; elim: {S}#|S| {-2}S (leqnn #|S|) => [|n IH] S.
  by rewrite leqn0 cards_eq0 => /eqP -> _; exact: feasible0.
case: (set_0Vmem S) => [-> _ _|[j jS]]; first exact: feasible0.
rewrite (cardsD1 j) jS ltnS => Sn gS.
have /feasibleP [run v e] := IH _ Sn (mono _ _ (subsetDl S [set j]) gS).
have jn : j \notin running run by rewrite e setD11.
have eS : j |: running run = S by rewrite e setD1K.
by case: (fits_or_tight v jn) => [|/(step run j v jn)]; rewrite eS // => /(_ gS).
Qed.

(* Hall's theorem: any affinities. *)
Theorem hall S :
  feasible S <-> forall X, #|inside S X| <= #|X|.
Proof.
split=> [fS X|]; first exact: hall_necessary.
pose good S := forall X, #|inside S X| <= #|X|.
apply: (feasible_by_steps (good := good)) => {S} [S S' sub H X|run j v jn H busy].
  exact: leq_trans (subset_leq_card (inside_subset _ _ sub)) (H X).
have tight : #|reach run j| <= #|inside (running run) (reach run j)|.
  have busy' c : c \in reach run j ->
    exists k, [/\ run c = Some k, alpha k \subset reach run j & predT k].
    by move=> /busy [k rc kR]; exists k.
  apply: leq_trans (busy_tight v busy') _; apply: subset_leq_card.
  by apply/subsetP => k; rewrite inE => /andP [].
move: (H (reach run j)); apply/negP; rewrite -ltnNge.
apply: leq_ltn_trans tight _; apply: proper_card; apply/properP; split.
  by apply: inside_subset; exact: subsetUr.
exists j; first by rewrite in_set in_setU1 eqxx reach_base.
by rewrite in_set (negbTE jn).
Qed.

End Hall.
