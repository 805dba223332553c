(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the number of running jobs that have to move when a job is added: the length of a shortest
   chain from the affinity of that job to an idle CPU, for any affinities. For nested affinities also
   which job a shortest chain moves next. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach selection.laminar.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Shifts.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation step := (step alpha).

Implicit Types (run : state) (j k : job) (c d : cpu).

(* CPUs whose job runs on another one, or not at all, in the second state. *)
Definition moved run run' : {set cpu} := [set c | (run c != None) && (run' c != run c)].

(* [p] leads from a CPU of [j] to an idle one. *)
Definition chain run j c p : Prop :=
  [/\ c \in alpha j, path (step run) c p, uniq (c :: p) & run (last c p) = None].

(* As many shifts as the chain is long are enough. *)
Theorem chain_enough run j c p :
  valid run -> j \notin running run -> chain run j c p ->
  exists run', [/\ valid run', running run' = j |: running run & #|moved run run'| <= size p].
Proof.
move=> v jn [cj pp up idle]; have [run1 [v1 e1 idle1 same]] := shift_chain v pp up idle.
have jn1 : j \notin running run1 by rewrite e1.
have [v2 e2] := put_some v1 idle1 jn1 cj.
exists (put run1 c (Some j)); split=> //; first by rewrite e2 e1.
have sub : moved run (put run1 c (Some j)) \subset [pred d in belast c p].
  apply/subsetP => d; rewrite inE => /andP [busy]; apply: contraNT => dn.
  have dl : d \notin rcons (belast c p) (last c p).
    rewrite mem_rcons in_cons negb_or dn andbT.
    by apply: contra busy => /eqP ->; rewrite idle.
  rewrite -lastI in dl; rewrite put_other ?same //.
  by move: dl; rewrite in_cons negb_or => /andP [].
apply: leq_trans (subset_leq_card sub) _; rewrite -(size_belast c p).
exact: card_size.
Qed.

(* And no state that adds [j] moves fewer jobs than some chain is long. *)
Theorem chain_needed run run' j :
  valid run -> valid run' -> j \notin running run -> running run' = j |: running run ->
  exists c p, chain run j c p /\ size p <= #|moved run run'|.
Proof.
move=> /validP [a u] /validP [a' u'] jn e.
have /runningP [c0 rc0] : j \in running run' by rewrite e setU11.
(* Where the job on [c] runs in the second state. *)
pose next c c' := (run c != None) && (run' c' == run c).
pose V := [set c | connect next c0 c].
have next_step c c' : next c c' -> step run c c'.
  rewrite /next /step; case rc: (run c) => [k|] //= /eqP rc'.
  exact: a' rc'.
have all_moved p c : run' c != run c -> path next c p -> {subset belast c p <= moved run run'}.
  elim: p c => //= d p IH c other /andP [nd pp] x; rewrite in_cons => /orP [/eqP ->|xp].
    by rewrite inE other andbT; case/andP: nd.
  apply: IH pp x xp; move/andP: nd => [busy /eqP rd]; apply: contra other => /eqP e'.
  case rc: (run c) rd busy => [k|] // rd _.
  by have <- : d = c by [apply: (u d c k); rewrite // -e' rd]; rewrite e' -rd e'.
have start : run' c0 != run c0.
  by rewrite rc0; apply: contra jn => /eqP rc; apply/runningP; exists c0.
(* The chain ends, since no CPU passes its job on to the first one. *)
have [d dV idle] : exists2 d, d \in V & run d = None.
  case: (boolP [exists d in V, run d == None]) => [/existsP [d /andP [dV /eqP]]|none].
    by exists d.
  have busy d : d \in V -> exists k, run d = Some k.
    move=> dV; case rd: (run d) => [k|]; first by exists k.
    by case/negP: none; apply/existsP; exists d; rewrite dV rd.
  have sub : run @: V \subset run' @: (V :\ c0).
    apply/subsetP => o /imsetP [d dV ->]; have [k rd] := busy d dV.
    have kr : k \in running run by apply/runningP; exists d.
    have /runningP [d' rd'] : k \in running run' by rewrite e setU1r.
    apply/imsetP; exists d'; last by rewrite rd rd'.
    rewrite in_setD1 inE; apply/andP; split.
      by apply: contraNneq jn => dc; move: rd'; rewrite dc rc0 => -[->].
    by rewrite inE in dV; apply: connect_trans dV (connect1 _); rewrite /next rd rd' eqxx.
  have := leq_trans (subset_leq_card sub) (leq_imset_card _ _).
  have -> : #|run @: V| = #|V|.
    rewrite card_in_imset // => x y xV yV; have [k rx] := busy x xV => xy.
    by apply: (u x y k); rewrite // -xy.
  by rewrite [X in X <= _](cardsD1 c0) inE connect0 ltnn.
rewrite inE in dV; case/connectP: dV => q qp dq; move: idle; rewrite dq {dq}.
case: (shortenP qp) => p pp up _ idle; exists c0, p; split.
  by split=> //; [exact: a' rc0 | exact: sub_path pp].
have up' : uniq (belast c0 p) by move: up; rewrite lastI rcons_uniq => /andP [].
rewrite -(size_belast c0 p) -(card_uniqP up'); apply: subset_leq_card; apply/subsetP.
exact: all_moved start pp.
Qed.

(* The fewest moves are the length of a shortest chain. *)
Theorem fewest_shifts run j n :
  valid run -> j \notin running run ->
  (exists run', [/\ valid run', running run' = j |: running run & #|moved run run'| <= n]) <->
  (exists c p, chain run j c p /\ size p <= n).
Proof.
move=> v jn; split=> [[run' [v' e m]]|[c [p [ch sp]]]].
  by have [c [p [ch sp]]] := chain_needed v v' jn e; exists c, p; split; last exact: leq_trans m.
have [run' [v' e m]] := chain_enough v jn ch.
by exists run'; split; last exact: leq_trans sp.
Qed.

(* [n] shifts lead from a CPU of [X] to an idle one. *)
Definition leads run (X : {set cpu}) n : Prop :=
  exists c p, [/\ c \in X, path (step run) c p, size p = n & run (last c p) = None].

(* A shortest way of shifts is a chain: it visits no CPU twice. *)
Lemma leads_chain run j n :
  leads run (alpha j) n -> (forall m, m < n -> ~ leads run (alpha j) m) ->
  exists c p, chain run j c p /\ size p = n.
Proof.
move=> [c [q [cj qp qn idle]]] least; move: idle (qn) => /[swap].
case: (shortenP qp) => p pp up sub qn' idle; exists c, p; split=> //.
apply/eqP; rewrite eqn_leq -{1}qn'; apply/andP; split.
  by apply: uniq_leq_size sub; case/andP: up.
by rewrite leqNgt; apply/negP => /least; apply; exists c, p.
Qed.

(* Nested affinities, no idle CPU in that of [j]: a shortest way goes on from the job with the
   largest affinity among those that run on the CPUs of [j]. *)
Theorem largest_affinity_next run j c k n :
  valid run -> (forall x y, nested (alpha x) (alpha y)) ->
  leads run (alpha j) n.+1 -> (forall m, m <= n -> ~ leads run (alpha j) m) ->
  c \in alpha j -> run c = Some k ->
  (forall c' k', c' \in alpha j -> run c' = Some k' -> #|alpha k'| <= #|alpha k|) ->
  leads run (alpha k) n /\ forall m, m < n -> ~ leads run (alpha k) m.
Proof.
move=> /validP [a _] lam [c0 [[|c1 p] [c0j /= pp]]] // [pn] idle least cj rc largest.
split; last first.
  move=> m mn [c2 [q [c2k qp qm qi]]]; case: (least m.+1 mn).
  by exists c, (c2 :: q); split=> //=; rewrite ?qm // /step rc c2k.
case/andP: pp; rewrite {1}/step; case r0: (run c0) => [k0|] // c1k0 pp.
have rest (X : {set cpu}) : alpha k0 \subset X -> leads run X n.
  by move=> sub; exists c1, p; split=> //; exact: (subsetP sub).
case/or3P: (lam k0 k) => [|kk0|/pred0P dis]; first exact: rest.
  by apply: rest; have /eqP -> : alpha k == alpha k0 by rewrite eqEcard kk0 (largest c0).
case/or3P: (lam k0 j) => [/rest|jk0|/pred0P dis'].
- by move/(least n (leqnn n)).
- by have := dis c; rewrite /= (a c k rc) (subsetP jk0).
- by have := dis' c0; rewrite /= (a c0 k0 r0) c0j.
Qed.

End Shifts.
