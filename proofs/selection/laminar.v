(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns nested affinities: reaches are affinities (Lemma 1(b) of docs/theory/strong-edf.md), it is
   enough to count inside affinities, and counting along the path to the root selects the jobs of
   the definition. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach selection.hall selection.strong.
From Shiftwork Require Import selection.greedy.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* Disjoint, or one contains the other. *)
Definition nested {cpu : finType} : rel {set cpu} :=
  fun X Y => [|| X \subset Y, Y \subset X | [disjoint X & Y]].

Section Laminar.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).
Notation reach := (reach alpha).

Implicit Types (run : state) (S : {set job}) (X Y Z : {set cpu}) (j k : job) (c : cpu).

(* Only the affinities of jobs that run or wait need be nested. *)
Definition laminar S : Prop := {in S &, forall j k, nested (alpha j) (alpha k)}.

(* Lemma 1(b): the reach of a waiting job is an affinity around its own. *)
Theorem reach_node run j :
  valid run -> laminar (j |: running run) ->
  exists k, [/\ k \in j |: running run, reach run j = alpha k & alpha j \subset alpha k].
Proof.
move=> /validP [a _] lam.
pose P k := [&& k \in j |: running run, alpha k \subset reach run j & alpha j \subset alpha k].
have Pj : P j by rewrite /P setU11 reach_base subxx.
case: (arg_maxnP (fun k => #|alpha k|) Pj) => k /and3P [kS kR jk] most.
exists k; split=> //; apply/eqP; rewrite eqEsubset kR andbT.
apply: (reach_least jk) => c l ck rc.
have lS : l \in j |: running run by rewrite in_setU1; apply/orP; right; apply/runningP; exists c.
have cl := a _ _ rc.
case/or3P: (lam k l kS lS) => [kl|//|dis].
  have Pl : P l.
    apply/and3P; split=> //; last exact: subset_trans jk kl.
    exact: reach_closed (subsetP kR _ ck) rc.
  by have /= := most l Pl; rewrite (geq_leqif (subset_leqif_card kl)).
by move/pred0P: dis => /(_ c) /=; rewrite ck cl.
Qed.

(* A job that waits under the strong invariant has a blocker: an affinity around its own all CPUs
   of which are needed by running jobs that cannot leave it and are not due later. *)
Theorem blocker (later : rel job) (pending : {set job}) run j :
  valid run -> running run \subset pending -> laminar pending ->
  strong_invariant alpha later pending run -> j \in pending -> j \notin running run ->
  exists2 k, k \in pending & blocks alpha later run (alpha k) j.
Proof.
move=> v sub lam strong jp jn; have sub' : j |: running run \subset pending.
  by rewrite subUset sub1set jp.
have lam' : laminar (j |: running run).
  by move=> k l kS lS; apply: lam; apply: (subsetP sub').
have [k [kS Rk _]] := reach_node v lam'.
by exists k; rewrite -?Rk; [exact: (subsetP sub') | exact: (strong_blocked v strong jp jn)].
Qed.

(* Hall's theorem for nested affinities: it is enough to count inside affinities that occur. *)
Theorem hall_laminar S :
  laminar S ->
  (feasible S <-> forall k, k \in S -> #|inside S (alpha k)| <= #|alpha k|).
Proof.
move=> lamS; split=> [fS k _|H]; first exact: hall_necessary.
pose good S := laminar S /\ forall k, k \in S -> #|inside S (alpha k)| <= #|alpha k|.
apply: (feasible_by_steps (good := good)) => // {S lamS H}.
  move=> S S' sub [lam H]; split=> [j k jS kS|k kS].
    by apply: lam; apply: (subsetP sub).
  exact: leq_trans (subset_leq_card (inside_subset _ _ sub)) (H k (subsetP sub _ kS)).
move=> run j v jn [lam H] busy; have [k [kS Rk jk]] := reach_node v lam.
have busy' c : c \in reach run j ->
    exists k, [/\ run c = Some k, alpha k \subset reach run j & predT k].
  by move=> /busy [l rc lR]; exists l.
move: (H k kS); apply/negP; rewrite -ltnNge -Rk.
apply: leq_ltn_trans (busy_tight v busy') _; apply: proper_card; apply/properP; split.
  apply/subsetP => l; rewrite in_set => /andP [+ _]; apply/subsetP.
  by apply: inside_subset; exact: subsetUr.
exists j; first by rewrite in_set in_setU1 eqxx reach_base.
by rewrite !in_set (negbTE jn).
Qed.

End Laminar.

(* The tree of affinities: its nodes are a family of sets, the parent of a node the smallest node
   around it. *)
Section Tree.

Context {cpu : finType}.
Variable nodes : {set {set cpu}}.

Implicit Types (X Y Z : {set cpu}).

Definition parent X : option {set cpu} :=
  [pick Y in nodes | (X \proper Y) && [forall Z in nodes, (X \proper Z) ==> (Y \subset Z)]].

(* A node and its ancestors, from the inside, in at most this many steps. *)
Fixpoint climb steps X : seq {set cpu} :=
  X :: (if steps is rest.+1 then if parent X is Some Y then climb rest Y else [::] else [::]).

Definition path_to_root X : seq {set cpu} := climb #|cpu| X.

Hypothesis laminar_nodes : {in nodes &, forall X Y, nested X Y}.

(* A node that has a node around it has a parent. *)
Lemma parent_exists X Z :
  X != set0 -> Z \in nodes -> X \proper Z -> parent X.
Proof.
move=> X0 Zn XZ; rewrite /parent; case: pickP => // none.
pose P := [pred Y in nodes | X \proper Y].
have PZ : P Z by rewrite /= Zn.
case: (arg_minnP (fun Y : {set cpu} => #|Y|) PZ) => Y /andP [Yn XY] least.
case/negP: (none Y); rewrite Yn XY /=; apply/forallP => V; apply/implyP => Vn.
apply/implyP => XV; have YV : #|Y| <= #|V| by apply: least; rewrite /= Vn.
case/or3P: (laminar_nodes Yn Vn) => // [VY|dis].
  by have /eqP -> : V == Y by rewrite eqEcard VY.
have [c cX] := set0Pn _ X0.
move/pred0P: dis => /(_ c) /=.
by rewrite (subsetP (proper_sub XY)) // (subsetP (proper_sub XV)).
Qed.

Lemma mem_climb steps X Z :
  X \in nodes -> X != set0 -> #|cpu| <= steps + #|X| ->
  (Z \in climb steps X) = (Z \in nodes) && (X \subset Z).
Proof.
elim: steps X => [|steps IH] X Xn X0 room /=; rewrite in_cons.
  have full : X = setT by apply/eqP; rewrite eqEcard subsetT cardsT.
  rewrite in_nil orbF full subTset; case: eqP => [->|]; last by rewrite andbF.
  by rewrite -full Xn.
case pX: (parent X) => [Y|]; last first.
  rewrite in_nil orbF; case: eqP => [->|ZX]; first by rewrite Xn subxx.
  apply/esym/negP => /andP [Zn XZ].
  suff : parent X by rewrite pX.
  by apply: (parent_exists X0 Zn); rewrite properEneq eq_sym XZ andbT; apply/eqP.
move: pX; rewrite /parent; case: pickP => // Y' /and3P [Yn XY /forallP least] [eY].
rewrite {}eY in Yn XY least *.
have Y0 : Y != set0.
  by apply: contraNneq X0 => Y0; move: (proper_sub XY); rewrite Y0 subset0.
rewrite IH //; last first.
  by apply: leq_trans room _; rewrite addSnnS leq_add2l; exact: proper_card.
case: eqP => [->|ZX] /=; first by rewrite Xn subxx.
case Zn: (Z \in nodes) => //=; apply/idP/idP; first exact: subset_trans (proper_sub XY).
move=> XZ; move/implyP: (least Z) => /(_ Zn) /implyP; apply.
by rewrite properEneq eq_sym XZ andbT; apply/eqP.
Qed.

(* The path visits exactly the nodes around a node, itself included. *)
Theorem mem_path_to_root X Z :
  X \in nodes -> X != set0 ->
  (Z \in path_to_root X) = (Z \in nodes) && (X \subset Z).
Proof. by move=> Xn X0; apply: mem_climb => //; exact: leq_addr. Qed.

End Tree.

(* The algorithm: each node counts the kept jobs inside it; a job is kept if no node on its path to
   the root is full. *)
Section Counting.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.
Variable nodes : {set {set cpu}}.

Hypothesis affinity_is_node : forall j, alpha j \in nodes.
Hypothesis affinity_not_empty : forall j, alpha j != set0.
Hypothesis laminar_nodes : {in nodes &, forall X Y, nested X Y}.

Implicit Types (S : {set job}) (X : {set cpu}) (j : job) (s : seq job).

Record selection := Selection { kept : {set job}; count : {set cpu} -> nat }.

Definition nothing : selection := Selection set0 (fun=> 0).

Definition has_room sel j : bool :=
  all (fun X => count sel X < #|X|) (path_to_root nodes (alpha j)).

Definition add_if_room sel j : selection :=
  if has_room sel j then
    Selection (j |: kept sel)
      (fun X => count sel X + (X \in path_to_root nodes (alpha j)))
  else sel.

(* Jobs from the most urgent to the least. *)
Definition select s : selection := foldl add_if_room nothing s.

Lemma count_inside s :
  uniq s -> forall X, X \in nodes -> count (select s) X = #|inside alpha (kept (select s)) X|.
Proof.
have kept_sub s' j : j \in kept (select s') -> j \in s'.
  elim/last_ind: s' => [|s' k IH]; first by rewrite inE.
  rewrite /select foldl_rcons /add_if_room -/(select s') mem_rcons in_cons; case: ifP => _ /=.
    by rewrite in_setU1 => /orP [->|/IH ->] //; rewrite orbT.
  by move/IH ->; rewrite orbT.
elim/last_ind: s => [|s j IH] un X Xn.
  by apply/esym/eqP; rewrite cards_eq0; apply/eqP/setP => j; rewrite !inE.
move: un; rewrite rcons_uniq => /andP [js un].
rewrite /select foldl_rcons /add_if_room -/(select s); case: ifP => _ /=; last exact: IH.
rewrite mem_path_to_root // Xn /= IH //; case: (boolP (alpha j \subset X)) => jX.
  have -> : inside alpha (j |: kept (select s)) X = j |: inside alpha (kept (select s)) X.
    by apply/setP => k; rewrite !inE andb_orl; case: eqP => [->|] //=; rewrite jX.
  by rewrite cardsU1 in_set (negbTE (contra (@kept_sub s j) js)) addnC.
rewrite addn0; congr #|pred_of_set _|; apply/setP => k; rewrite !inE andb_orl.
by case: eqP => [->|] //=; rewrite (negbTE jX) andbF.
Qed.

(* Counting along the paths keeps exactly the jobs of the definition. *)
Theorem select_greedy s : uniq s -> kept (select s) = greedy alpha s.
Proof.
elim/last_ind: s => [//|s j IH]; rewrite rcons_uniq => /andP [js un].
have counts := count_inside un.
rewrite greedy_rcons /select foldl_rcons /add_if_room -/(select s) -IH // /keep.
have lam S : laminar alpha S by move=> k l _ _; exact: laminar_nodes.
suff -> : has_room (select s) j = feasible alpha (j |: kept (select s)) by case: ifP.
have jn : j \notin kept (select s).
  by rewrite IH //; apply: contra js; exact: greedy_subset.
have fk : feasible alpha (kept (select s)) by rewrite IH //; exact: greedy_feasible.
apply/allP/idP => [room|fits X].
  have [run v e] := feasibleP _ _ fk.
  have jr : j \notin running run by rewrite e.
  have [|busy] := fits_or_tight v jr; first by rewrite e.
  have [k [_ Rk jk]] := reach_node v (lam (j |: running run)).
  have kp : alpha k \in path_to_root nodes (alpha j) by rewrite mem_path_to_root // affinity_is_node.
  have := room _ kp; rewrite counts // ltnNge -Rk -e => /negP; case.
  have busy' c : c \in reach alpha run j ->
      exists l, [/\ run c = Some l, alpha l \subset reach alpha run j & predT l].
    by move=> /busy [l rc lR]; exists l.
  apply: leq_trans (busy_tight v busy') _; apply: subset_leq_card.
  by apply/subsetP => l; rewrite inE => /andP [].
rewrite mem_path_to_root // => /andP [Xn jX]; rewrite counts // ltnNge.
by apply: contraL fits => tight; exact: tight_infeasible jX tight.
Qed.

End Counting.
