(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the definition that all placements with the strong invariant share: most urgent first, keep
   a job if the kept set with it is still feasible. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach selection.hall selection.strong.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Greedy.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).
Notation reach := (reach alpha).

Implicit Types (run : state) (S : {set job}) (X : {set cpu}) (j k : job) (s t : seq job).

Definition keep S j : {set job} := if feasible (j |: S) then j |: S else S.

(* Jobs from the most urgent to the least. *)
Definition greedy s : {set job} := foldl keep set0 s.

(* The place in the order is the urgency. *)
Definition after s : rel job := fun k j => index j s < index k s.

Lemma greedy_rcons s j : greedy (rcons s j) = keep (greedy s) j.
Proof. by rewrite /greedy foldl_rcons. Qed.

Theorem greedy_feasible s : feasible (greedy s).
Proof.
elim/last_ind: s => [|s j IH]; first exact: feasible0.
by rewrite greedy_rcons /keep; case: ifP.
Qed.

Theorem greedy_subset s j : j \in greedy s -> j \in s.
Proof.
elim/last_ind: s j => [|s k IH] j; first by rewrite inE.
rewrite greedy_rcons /keep mem_rcons in_cons; case: ifP => _; last by move/IH ->; rewrite orbT.
by rewrite in_setU1 => /orP [->|/IH ->] //; rewrite orbT.
Qed.

(* Later jobs do not change what is kept of earlier ones. *)
Lemma greedy_prefix s t : uniq (s ++ t) -> greedy s = [set j in greedy (s ++ t) | j \in s].
Proof.
elim/last_ind: t => [|t k IH] un.
  rewrite cats0; apply/setP => j; rewrite in_set andbC.
  by case: (boolP (j \in s)) => // js; apply/negP => /greedy_subset; apply/negP.
move: un; rewrite -rcons_cat rcons_uniq => /andP [kn un].
rewrite (IH un); apply/setP => j; rewrite !in_set greedy_rcons /keep; case: ifP => // _.
rewrite in_setU1; case: eqP => // ->.
move: kn; rewrite mem_cat negb_or => /andP [/negbTE -> _].
by rewrite !andbF.
Qed.

(* Among the jobs of a prefix, the strong invariant keeps what the definition keeps. *)
Lemma strong_prefix s t run :
  uniq (s ++ t) -> valid run -> running run \subset [set j in s ++ t] ->
  strong_invariant alpha (after (s ++ t)) [set j in s ++ t] run ->
  greedy s = [set j in running run | j \in s].
Proof.
elim/last_ind: s t => [|s j IH] t un v sub strong.
  by apply/setP => j; rewrite !inE andbF.
rewrite cat_rcons in un sub strong.
rewrite greedy_rcons (IH _ un v sub strong) /keep.
set K := [set k in running run | k \in s].
have js : j \notin s.
  by move: un; rewrite cat_uniq => /and3P [_ /norP []].
have Kj : [set k in running run | k \in rcons s j] =
          if j \in running run then j |: K else K.
  apply/setP => k; rewrite in_set mem_rcons in_cons.
  case: (boolP (j \in running run)) => jr.
    by rewrite in_setU1 in_set; case: eqP => [->|]; rewrite ?jr.
  by rewrite in_set; case: eqP => [->|] //; rewrite (negbTE jr).
rewrite Kj; case: (boolP (j \in running run)) => jr.
  suff -> : feasible (j |: K) by [].
  apply: (@feasible_subset _ _ alpha (running run)); last by apply/feasibleP; exists run.
  by apply/subsetP => k; rewrite in_setU1 in_set => /orP [/eqP ->|/andP []].
have jp : j \in [set k in s ++ j :: t] by rewrite in_set mem_cat mem_head orbT.
have [jX tight] := strong_blocked v strong jp jr.
rewrite ifN //; apply: (tight_infeasible (X := reach run j)) => //.
  by rewrite in_set (negbTE js) andbF.
rewrite -tight; apply: subset_leq_card; apply/subsetP => k; rewrite !in_set.
case/andP => /andP [kr ->]; rewrite kr /= andbT /after -leqNgt.
have kp : k \in s ++ j :: t by have := subsetP sub _ kr; rewrite in_set.
rewrite !index_cat (negbTE js) /= eqxx addn0; case: ifP => // _.
rewrite -{2}(addn0 (size s)) leq_add2l leqn0.
by case: (j =P k) => [jk|//]; case/negP: jr; rewrite jk.
Qed.

(* The running jobs satisfy the strong invariant exactly if they are those of the definition. *)
Theorem strong_iff_greedy s run :
  uniq s -> valid run -> running run \subset [set j in s] ->
  (strong_invariant alpha (after s) [set j in s] run <-> running run = greedy s).
Proof.
move=> un v sub; split=> [strong|e].
  have := @strong_prefix s [::] run; rewrite !cats0 => -> //.
  by apply/setP => j; rewrite in_set andb_idr // => /(subsetP sub); rewrite in_set.
apply/(strong_iff_blocked _ _ v) => j; rewrite in_set => js jn.
(* The jobs that were kept before [j] do not fit beside it, so a set of CPUs is tight. *)
have [p [q es]] : exists p q, s = p ++ j :: q.
  by case/splitPr: js => p q; exists p, q.
have jp : j \notin p by move: un; rewrite es cat_uniq => /and3P [_ /norP []].
have nf : ~~ feasible (j |: greedy p).
  apply: contra jn => f; rewrite e.
  have un' : uniq (rcons p j ++ q) by rewrite cat_rcons -es.
  have : j \in greedy (rcons p j) by rewrite greedy_rcons /keep f setU11.
  by rewrite (greedy_prefix un') in_set cat_rcons -es => /andP [].
have [run1 v1 e1] := feasibleP _ _ (greedy_feasible p).
have jn1 : j \notin running run1.
  by rewrite e1; apply: contra jp => /greedy_subset.
have [|busy] := fits_or_tight v1 jn1; first by rewrite e1 (negbTE nf).
exists (reach run1 j); split; first exact: reach_base.
apply/eqP; rewrite eqn_leq; apply/andP; split.
  apply: leq_trans (running_inside (reach run1 j) v); apply: subset_leq_card.
  by apply/subsetP => k; rewrite inE => /andP [].
have busy' c : c \in reach run1 j ->
    exists k, [/\ run1 c = Some k, alpha k \subset reach run1 j & predT k].
  by move=> /busy [k rc kR]; exists k.
apply: leq_trans (busy_tight v1 busy') _; apply: subset_leq_card.
apply/subsetP => k; rewrite !in_set => /andP [/andP [+ ->] _].
have un' : uniq (p ++ j :: q) by rewrite -es.
rewrite e1 (greedy_prefix un') in_set -es -e => /andP [-> kp] /=.
rewrite /after -leqNgt es !index_cat kp (negbTE jp) /= eqxx addn0.
by rewrite ltnW // index_mem.
Qed.

(* A job that the definition does not keep has a tight set: as many kept jobs, all more urgent, as
   there are CPUs in it. *)
Theorem rejected_blocked s j :
  uniq s -> j \in s -> j \notin greedy s ->
  exists2 X : {set cpu}, alpha j \subset X &
    #|[set k in inside (greedy s) X | index k s < index j s]| = #|X|.
Proof.
move=> un js jn; have [run v e] := feasibleP _ _ (greedy_feasible s).
have sub : running run \subset [set k in s].
  by rewrite e; apply/subsetP => k /greedy_subset; rewrite in_set.
have [_ /(_ e) strong] := strong_iff_greedy un v sub.
have jp : j \in [set k in s] by rewrite in_set.
have jr : j \notin running run by rewrite e.
have [jX tight] := strong_blocked v strong jp jr.
exists (reach run j) => //; rewrite -tight e; congr #|pred_of_set _|.
apply/setP => k; rewrite !in_set; case: (boolP (k \in greedy s)) => //= kg.
congr (_ && _); rewrite /after -leqNgt [RHS]leq_eqVlt; case: eqP => //= ij.
have ks := greedy_subset kg.
have kj : k = j by rewrite -(nth_index j ks) ij nth_index.
by case/negP: jn; rewrite -kj.
Qed.

End Greedy.
