(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the model of one moment: jobs with affinities, the state of the CPUs at that moment, and
   which sets of jobs can run together. Nothing here knows time or urgency. *)

From mathcomp Require Import all_ssreflect.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section State.

Context {job cpu : finType}.

(* The CPUs that a job may use. *)
Variable alpha : job -> {set cpu}.

Implicit Types (S : {set job}) (X : {set cpu}) (j k : job) (c : cpu).

(* What each CPU runs; [None] if it is idle. *)
Definition state := {ffun cpu -> option job}.

Implicit Type run : state.

(* The lock keeps rewriting with [inE] from opening the definition. *)
Fact running_key : unit. Proof. by []. Qed.
Definition running run : {set job} :=
  locked_with running_key [set j | [exists c, run c == Some j]].

(* Jobs run within their affinities, and none on two CPUs. *)
Definition valid run : bool :=
  [forall c, forall j, (run c == Some j) ==> (c \in alpha j)] &&
  [forall c, forall c', forall j,
     (run c == Some j) ==> (run c' == Some j) ==> (c == c')].

(* The jobs of [S], and no others, can run at one moment. *)
Definition feasible S : bool := [exists run : state, valid run && (running run == S)].

(* The jobs of [S] that cannot leave [X]. *)
Definition inside S X : {set job} := [set j in S | alpha j \subset X].

Lemma runningP run j : reflect (exists c, run c = Some j) (j \in running run).
Proof.
rewrite /running locked_withE inE; apply: (iffP existsP) => [[c /eqP e]|[c e]]; exists c => //.
exact/eqP.
Qed.

Lemma validP run :
  reflect ((forall c j, run c = Some j -> c \in alpha j) /\
           (forall c c' j, run c = Some j -> run c' = Some j -> c = c'))
          (valid run).
Proof.
apply: (iffP andP) => [[/forallP a /forallP u]|[a u]]; split.
- by move=> c j e; move/forallP: (a c) => /(_ j) /implyP; apply; apply/eqP.
- move=> c c' j e e'; move/forallP: (u c) => /(_ c') /forallP /(_ j).
  by rewrite e e' !eqxx => /eqP.
- by apply/forallP => c; apply/forallP => j; apply/implyP => /eqP; exact: a.
- apply/forallP => c; apply/forallP => c'; apply/forallP => j.
  by apply/implyP => /eqP e; apply/implyP => /eqP e'; apply/eqP; exact: u e e'.
Qed.

Lemma feasibleP S :
  reflect (exists2 run, valid run & running run = S) (feasible S).
Proof.
apply: (iffP existsP) => [[run /andP [v /eqP e]]|[run v e]]; exists run => //.
by rewrite v e eqxx.
Qed.

(* [feasible] is the existence of a matching: a CPU for each job, from its affinity, and different
   CPUs for different jobs. *)
Lemma feasible_matching S :
  feasible S <->
  exists f : job -> option cpu,
    (forall j, j \in S -> exists2 c, f j = Some c & c \in alpha j) /\
    {in S &, injective f}.
Proof.
split=> [/feasibleP [run /validP [a u] <-]|[f [fa fi]]].
  exists (fun j => [pick c | run c == Some j]); split=> [j /runningP [c e]|j k].
    case: pickP => [c' /eqP e'|/(_ c)]; last by rewrite e eqxx.
    by exists c' => //; exact: a e'.
  move=> /runningP [c e] /runningP [c' e'].
  case: pickP => [d /eqP ed|/(_ c)]; last by rewrite e eqxx.
  case: pickP => [d' /eqP ed'|/(_ c')]; last by rewrite e' eqxx.
  by case=> dd; move: ed'; rewrite -dd ed => -[].
pose run : state := [ffun c => [pick j in S | f j == Some c]].
have runE c j : run c = Some j <-> (j \in S) && (f j == Some c).
  rewrite ffunE; case: pickP => [k /andP [kS /eqP fk]|none]; last first.
    by rewrite (none j).
  split=> [[<-]|/andP [jS /eqP fj]]; first by rewrite kS fk eqxx.
  by rewrite (fi k j) // fk fj.
apply/feasibleP; exists run.
  apply/validP; split=> [c j /runE /andP [jS /eqP fj]|c c' j].
    by have [c' ] := fa j jS; rewrite fj => -[->].
  by move=> /runE /andP [_ /eqP fj] /runE /andP [_ /eqP]; rewrite fj => -[].
apply/setP => j; apply/runningP/idP => [[c /runE /andP []] //|jS].
by have [c fj _] := fa j jS; exists c; apply/runE; rewrite jS fj eqxx.
Qed.

Lemma feasible0 : feasible set0.
Proof.
apply/feasibleP; exists [ffun=> None]; last first.
  by apply/setP => j; rewrite [RHS]inE; apply/runningP => -[c]; rewrite ffunE.
by apply/validP; split=> c; [move=> j | move=> c' j]; rewrite ffunE.
Qed.

(* Feasible sets are closed under subsets: the CPUs of the other jobs are left idle. *)
Theorem feasible_subset S S' : S' \subset S -> feasible S -> feasible S'.
Proof.
move=> sub /feasibleP [run /validP [a u] e].
pose run' : state := [ffun c => if run c is Some j then
                                  if j \in S' then Some j else None else None].
have run'E c j : run' c = Some j <-> run c = Some j /\ j \in S'.
  rewrite ffunE; case: (run c) => [k|]; last by split=> [|[]].
  case: ifP => kS; split=> //; [by case=> <- | by case | by case=> -[<-]; rewrite kS].
apply/feasibleP; exists run'.
  apply/validP; split=> [c j /run'E [rc _]|c c' j /run'E [rc _] /run'E [rc' _]].
    exact: a rc.
  exact: u rc rc'.
apply/setP => j; apply/runningP/idP => [[c /run'E []] //|jS'].
have /runningP [c rc] : j \in running run by rewrite e (subsetP sub).
by exists c; apply/run'E.
Qed.

(* Jobs that cannot leave [X] run on CPUs of [X], each on its own. *)
Lemma running_inside run X : valid run -> #|inside (running run) X| <= #|X|.
Proof.
move=> /validP [a u].
have sub : [set Some j | j in inside (running run) X] \subset run @: X.
  apply/subsetP => o /imsetP [j]; rewrite in_set => /andP [/runningP [c rc] jX] ->.
  by apply/imsetP; exists c => //; apply: (subsetP jX); exact: a rc.
have <- : #|[set Some j | j in inside (running run) X]| = #|inside (running run) X|.
  by rewrite card_imset // => j k [].
by apply: leq_trans (subset_leq_card sub) (leq_imset_card _ _).
Qed.

(* Hall's condition is necessary, for any affinities. *)
Theorem hall_necessary S X : feasible S -> #|inside S X| <= #|X|.
Proof. by move=> /feasibleP [run v <-]; exact: running_inside. Qed.

(* A tight set leaves no room for one more job inside it. *)
Lemma tight_infeasible S X j :
  j \notin S -> alpha j \subset X -> #|X| <= #|inside S X| -> ~~ feasible (j |: S).
Proof.
move=> jS jX tight; apply/negP => /(@hall_necessary _ X); apply/negP; rewrite -ltnNge.
suff -> : inside (j |: S) X = j |: inside S X.
  by rewrite cardsU1 inE (negbTE jS) /= add1n ltnS.
by apply/setP => k; rewrite !inE andb_orl; case: eqP => [->|] //=; rewrite jX.
Qed.

Lemma inside_subset S S' X : S \subset S' -> inside S X \subset inside S' X.
Proof.
by move=> sub; apply/subsetP => j; rewrite !inE => /andP [/(subsetP sub) -> ->].
Qed.

End State.

Arguments running {job cpu} run.
