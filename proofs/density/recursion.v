(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns other forms of the density test of docs/theory/strong-edf.md: the recursion over the nodes by
   which it is computed, and the condition of Goossens, Funk and Baruah for one affinity. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.laminar density.levels density.load.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Recursion.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.
Variable delta : task -> rat.

Hypothesis laminar_tasks : forall i j, nested (alpha i) (alpha j).
Hypothesis affinity_not_empty : forall i, alpha i != set0.
Hypothesis delta_nonnegative : forall i, 0 <= delta i.

Implicit Types (i j k l : task) (g h : {set cpu}).

Notation load := (load alpha delta).
Notation surplus := (load.surplus alpha delta).
Notation density_in := (density_in alpha delta).
Notation left_side_in := (left_side_in alpha delta).
Notation join := (join alpha).
Notation child := (child alpha).

(* |g| v g: what contains both affinities contains the node. *)
Lemma share_eq g i j :
  alpha i \subset g -> alpha j \subset g ->
  (exists k, g = alpha k) ->
  (forall k, alpha i \subset alpha k -> alpha j \subset alpha k -> g \subset alpha k) ->
  #|g|%:R * (delta j / #|join i j|%:R) = delta j.
Proof.
move=> ig jg [k gk] least; have -> : join i j = g.
  apply/eqP; rewrite eqEsubset; apply/andP; split.
    by rewrite gk; apply: bigcap_inf; rewrite -gk ig.
  by apply/bigcapsP => l /andP [il jl]; exact: least.
rewrite mulrCA divff ?mulr1 // pnatr_eq0 -lt0n card_gt0 gk.
exact: affinity_not_empty.
Qed.

(* load(g) is the greater of what its own tasks and its children ask: that it is no less is
   [load_own] and [load_child], and this says that it is no more. *)
Theorem load_recursion k :
  (exists2 i, alpha i = alpha k & surplus (alpha k) = (#|alpha k|%:R - 1) * delta i) \/
  (exists2 i, alpha i \proper alpha k &
     let h := alpha (child (alpha k) i) in
     surplus (alpha k) = #|alpha k|%:R * load h - density_in h).
Proof.
set g := alpha k; have node : exists l, g = alpha l by exists k.
have [i ig e] := load_attained delta_nonnegative (subxx g).
case: (boolP (alpha i == g)) => [/eqP own|notown].
  have total : density_in g = delta i + \sum_(j | (alpha j \subset g) && (j != i)) delta j.
    by rewrite /density_in (bigD1 i).
  left; exists i => //; rewrite /load.surplus e total /left_side_in.
  rewrite mulrDr mulr_sumr opprD addrACA [X in _ + X](_ : _ = 0) ?addr0 ?mulrBl ?mul1r //.
  apply/eqP; rewrite subr_eq0; apply/eqP.
  rewrite (eq_bigl (fun j => (alpha j \subset g) && (j != i))); last by move=> j; rewrite andbC.
  apply: eq_bigr => j /andP [jg _]; apply: share_eq => // l il _.
  by rewrite -own.
right; have ip : alpha i \proper g by rewrite properEneq notown.
exists i => //=; set h := alpha (child g i).
have [hg ih _] := childP laminar_tasks affinity_not_empty ip; rewrite -/h in hg ih.
apply/eqP; rewrite eq_le; apply/andP; split; last exact: load_child.
rewrite /load.surplus e.
have -> : #|g|%:R * left_side_in g i - density_in g = #|g|%:R * left_side_in h i - density_in h.
  rewrite /left_side_in (sum_inside_split _ _ _ (proper_sub hg)) addrA mulrDr mulr_sumr.
  rewrite /density_in (sum_inside_split _ _ predT (proper_sub hg)) /=.
  rewrite opprD addrACA [X in _ + X](_ : _ = 0) ?addr0 //.
  apply/eqP; rewrite subr_eq0; apply/eqP.
  rewrite (eq_bigl (fun j => (alpha j \subset g) && ~~ (alpha j \subset h))); last first.
    by move=> j; case: eqP => //= ->; rewrite ih andbF.
  apply: eq_bigr => j /andP [jg jh]; apply: share_eq => // l il jl.
  apply: (around_child laminar_tasks affinity_not_empty ip); rewrite -/g -/h properE.
  have lh : ~~ (alpha l \subset h) by apply: contra jh; exact: subset_trans.
  rewrite lh andbT; case/or3P: (laminar_tasks l (child g i)) => [lh'||/pred0P dis] //.
    by case/negP: lh.
  have [c ci] := set0Pn _ (affinity_not_empty i).
  by have := dis c; rewrite /= (subsetP il) // (subsetP ih).
by rewrite ler_add2r ler_wpmul2l ?ler0n // load_ge.
Qed.

(* The largest left side of a component is the load of its root. *)
Theorem load_root i r :
  alpha i \subset alpha r -> (forall l, ~~ (alpha r \proper alpha l)) ->
  left_side alpha delta i <= load (alpha r).
Proof.
move=> ir top; apply: le_trans (load_ge delta ir).
rewrite le_eqVlt; apply/orP; left; apply/eqP; congr (_ + _); apply: eq_bigl => j.
congr (_ && _); apply/existsP/idP => [[l /andP [il jl]]|jr]; last by exists r; rewrite ir.
apply: subset_trans jl _; case/or3P: (laminar_tasks l r) => // [rl|/pred0P dis].
  by apply: contraR (top l) => lr; rewrite properE rl.
have [c ci] := set0Pn _ (affinity_not_empty i).
by have := dis c; rewrite /= (subsetP il) // (subsetP ir).
Qed.

End Recursion.

(* One affinity: U + (m - 1) max delta <= m is the density test. *)
Theorem one_affinity {task cpu : finType} (delta : task -> rat) (X : {set cpu}) (i : task) :
  X != set0 ->
  (left_side (fun=> X) delta i <= 1) =
  (\sum_j delta j + (#|X|%:R - 1) * delta i <= #|X|%:R).
Proof.
move=> X0; have pos : 0 < (#|X|%:R : rat) by rewrite ltr0n card_gt0.
have joinE j : join (fun=> X) i j = X.
  apply/eqP; rewrite eqEsubset; apply/andP; split; last by apply/bigcapsP.
  by apply: (bigcap_inf i); rewrite subxx.
have togetherE j : together (fun=> X) i j by apply/existsP; exists i; rewrite subxx.
rewrite -(ler_pmul2l pos (left_side _ _ _)) mulr1; congr (_ <= _).
rewrite /left_side mulrDr mulr_sumr (eq_bigl (fun j => j != i)); last first.
  by move=> j; rewrite togetherE andbT.
rewrite (eq_bigr delta) => [|j _]; last by rewrite joinE mulrCA divff ?mulr1 ?gt_eqF.
by rewrite [in RHS](bigD1 i) //= [RHS]addrAC mulrBl mul1r [delta i + _]addrC subrK.
Qed.
