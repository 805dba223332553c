(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns chains of shifts: which CPUs a waiting job can get if running jobs move within their
   affinities. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Chains.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).

Implicit Types (run : state) (S : {set job}) (X : {set cpu}) (j k : job) (c : cpu).

(* The job on [c] could move to [c']. *)
Definition step run : rel cpu :=
  fun c c' => if run c is Some k then c' \in alpha k else false.

(* The least set of CPUs that contains the affinity of [j] and that of every job that runs on one
   of its CPUs. *)
Definition reach run j : {set cpu} :=
  [set c | [exists c0 in alpha j, connect (step run) c0 c]].

Lemma reach_base run j : alpha j \subset reach run j.
Proof.
by apply/subsetP => c cj; rewrite inE; apply/existsP; exists c; rewrite cj connect0.
Qed.

Lemma reach_closed run j c k :
  c \in reach run j -> run c = Some k -> alpha k \subset reach run j.
Proof.
rewrite inE => /existsP [c0 /andP [c0j con]] rc; apply/subsetP => c' c'k.
rewrite inE; apply/existsP; exists c0; rewrite c0j.
by apply: connect_trans con _; apply: connect1; rewrite /step rc.
Qed.

Lemma reach_least run j X :
  alpha j \subset X ->
  (forall c k, c \in X -> run c = Some k -> alpha k \subset X) ->
  reach run j \subset X.
Proof.
move=> base closed; apply/subsetP => c; rewrite inE.
case/existsP => c0 /andP [/(subsetP base) c0X] /connectP [p].
elim: p c0 c0X => [|c1 p IH] c0 c0X /=; first by move=> _ ->.
case/andP; rewrite {1}/step; case rc: (run c0) => [k|] // c1k; apply: IH.
exact: (subsetP (closed _ _ c0X rc)).
Qed.

(* [c] runs [o] from now on. *)
Definition put run c (o : option job) : state :=
  [ffun c' => if c' == c then o else run c'].

Lemma put_same run c o : put run c o c = o.
Proof. by rewrite ffunE eqxx. Qed.

Lemma put_other run c o c' : c' != c -> put run c o c' = run c'.
Proof. by rewrite ffunE => /negbTE ->. Qed.

(* An idle CPU takes a job that does not run. *)
Lemma put_some run c j :
  valid run -> run c = None -> j \notin running run -> c \in alpha j ->
  valid (put run c (Some j)) /\ running (put run c (Some j)) = j |: running run.
Proof.
move=> /validP [a u] idle jn cj; split.
  apply/validP; split=> [d k|d d' k]; rewrite !ffunE.
    by case: eqP => [->|_]; [case=> <- | exact: a].
  case: (d =P c) => [->|_]; case: (d' =P c) => [->|_] //.
  - by case=> <- rd; case/negP: jn; apply/runningP; exists d'.
  - by move=> rd [kj]; case/negP: jn; apply/runningP; exists d; rewrite rd kj.
  - exact: u.
apply/setP => k; rewrite in_setU1; apply/runningP/orP => [[d]|[/eqP ->|/runningP [d rd]]].
- rewrite ffunE; case: eqP => [_ [->]|_ rd]; first by left.
  by right; apply/runningP; exists d.
- by exists c; rewrite put_same.
- by exists d; rewrite put_other //; apply/eqP => dc; move: rd; rewrite dc idle.
Qed.

(* A CPU gives up what it runs. *)
Lemma put_none run c :
  valid run ->
  valid (put run c None) /\
  running (put run c None) =
    if run c is Some k then running run :\ k else running run.
Proof.
move=> /validP [a u]; split.
  apply/validP; split=> [d k|d d' k]; rewrite !ffunE.
    by case: eqP => // _; exact: a.
  by case: eqP => // _; case: eqP => // _; exact: u.
apply/setP => k; apply/runningP/idP => [[d]|].
  rewrite ffunE; case: eqP => // dc rd.
  have kr : k \in running run by apply/runningP; exists d.
  case rc: (run c) => [l|] //; rewrite in_setD1 kr andbT.
  by apply/eqP => kl; apply: dc; apply: u rd _; rewrite kl.
case rc: (run c) => [l|].
  rewrite in_setD1 => /andP [kl /runningP [d rd]]; exists d.
  by rewrite put_other //; apply: contraNneq kl => dc; move: rd; rewrite dc rc => -[->].
move=> /runningP [d rd]; exists d; rewrite put_other //.
by apply/eqP => dc; move: rd; rewrite dc rc.
Qed.

(* What the CPU at the end of a chain runs does not matter for the chain. *)
Lemma path_put run c o c0 p :
  path (step run) c0 p -> c \notin belast c0 p -> path (step (put run c o)) c0 p.
Proof.
elim: p c0 => //= d p IH c0 /andP [s0 pp]; rewrite in_cons negb_or => /andP [n0 n1].
by rewrite IH // andbT /step put_other 1?eq_sym.
Qed.

(* Moves each job of a chain on by one CPU: the idle CPU at its end is then at its beginning. *)
Lemma shift_chain run c p :
  valid run -> path (step run) c p -> uniq (c :: p) -> run (last c p) = None ->
  exists run',
    [/\ valid run', running run' = running run, run' c = None &
        forall d, d \notin c :: p -> run' d = run d].
Proof.
move=> v; elim: p c => [|c1 p IH] c /=; first by exists run.
case/andP; rewrite {1}/step; case rc: (run c) => [k|] // c1k pp /andP [cn un] idle.
have [run1 [v1 e1 idle1 same1]] := IH c1 pp un idle.
have r1c : run1 c = Some k by rewrite same1.
have [v2 e2] := put_none c v1; rewrite r1c in e2.
have c1c : c1 != c by apply: contraNneq cn => ->; rewrite mem_head.
have kn : k \notin running (put run1 c None) by rewrite e2 setD11.
have i2 : put run1 c None c1 = None by rewrite put_other.
have [v3 e3] := put_some v2 i2 kn c1k.
exists (put (put run1 c None) c1 (Some k)); split=> //.
- rewrite e3 e2 setD1K ?e1 //; apply/runningP.
  by exists c.
- by rewrite put_other 1?eq_sym // put_same.
- move=> d; rewrite in_cons negb_or => /andP [dc dn].
  rewrite !put_other // ?same1 //.
  by apply: contraNneq dn => ->; rewrite mem_head.
Qed.

(* A waiting job can get each CPU of its reach. If that CPU is idle nothing stops. *)
Theorem reach_gives run j c :
  valid run -> j \notin running run -> c \in reach run j ->
  exists2 run', valid run' &
    running run' = j |: (if run c is Some k then running run :\ k else running run).
Proof.
move=> v jn; rewrite inE => /existsP [c0 /andP [c0j /connectP [q qp ->]]].
case: (shortenP qp) => p pp up _ {q qp}; set c1 := last c0 p.
have [v1 e1] := put_none c1 v.
have jn1 : j \notin running (put run c1 None).
  by rewrite e1; case: (run c1) => [k|] //; rewrite in_setD1 (negbTE jn) andbF.
have pp1 : path (step (put run c1 None)) c0 p.
  by apply: path_put pp _; move: up; rewrite lastI rcons_uniq => /andP [].
have idle1 : put run c1 None c1 = None by rewrite put_same.
have [run2 [v2 e2 idle2 _]] := shift_chain v1 pp1 up idle1.
have jn2 : j \notin running run2 by rewrite e2.
have [v3 e3] := put_some v2 idle2 jn2 c0j.
by exists (put run2 c0 (Some j)); rewrite // e3 e2 e1.
Qed.

End Chains.
