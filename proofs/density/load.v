(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the left side of the density test (Theorem 1 of docs/theory/strong-edf.md) and the loads of
   nodes that it gives. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.laminar.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma bigmax_ge (I : eqType) (r : seq I) (P : pred I) (F : I -> rat) i :
  i \in r -> P i -> F i <= \big[Num.max/0]_(k <- r | P k) F k.
Proof.
elim: r => // k r IH; rewrite in_cons big_cons => /orP [/eqP <- ->|ir Pi].
  by rewrite le_maxr lexx.
by case: ifP => _; rewrite ?le_maxr IH // orbT.
Qed.

Section Load.

Context {task cpu : finType}.
Variable alpha : task -> {set cpu}.
Variable delta : task -> rat.

Hypothesis affinity_not_empty : forall i, alpha i != set0.
Hypothesis delta_nonnegative : forall i, 0 <= delta i.

Implicit Types (i j k : task) (g h : {set cpu}).

(* An affinity contains both affinities: for nested affinities, the tasks are of one component. *)
Definition together i j : bool :=
  [exists k, (alpha i \subset alpha k) && (alpha j \subset alpha k)].

(* Of nested affinities, a chain of overlapping ones leads from one to another exactly if one
   affinity contains both. *)
Theorem together_component i j :
  (forall k l, nested (alpha k) (alpha l)) ->
  together i j = connect (fun k l => ~~ [disjoint alpha k & alpha l]) i j.
Proof.
move=> lam; set overlap : rel task := fun k l => ~~ [disjoint alpha k & alpha l].
have meet k l : alpha k \subset alpha l -> overlap k l && overlap l k.
  move=> kl; have [c ck] := set0Pn _ (affinity_not_empty k); have cl : c \in alpha l := subsetP kl c ck.
  by apply/andP; split; apply/pred0Pn; exists c; rewrite /= ck cl.
apply/existsP/connectP => [[k /andP [ik jk]]|[p pp ->]].
  have /andP [ok _] := meet _ _ ik; have /andP [_ oj] := meet _ _ jk.
  by exists [:: k; j] => //=; rewrite ok oj.
elim/last_ind: p pp => [_|p l IH]; first by exists i; rewrite subxx.
rewrite rcons_path last_rcons => /andP [/IH [k /andP [ik jk]] /pred0Pn [c /andP [cj cl]]].
have ck : c \in alpha k := subsetP jk c cj; have {}cl : c \in alpha l := cl.
case/or3P: (lam k l) => [kl|lk|/pred0P dis]; last by have := dis c; rewrite /= ck cl.
  by exists l; rewrite subxx (subset_trans ik kl).
by exists k; rewrite ik lk.
Qed.

(* The smallest node that contains both affinities, i v j, if there is one. *)
Definition join i j : {set cpu} :=
  \bigcap_(k | (alpha i \subset alpha k) && (alpha j \subset alpha k)) alpha k.

(* The left side of the test for task [i]. *)
Definition left_side i : rat :=
  delta i + \sum_(j | (j != i) && together i j) delta j / #|join i j|%:R.

(* The same with the tasks inside [g] alone. *)
Definition left_side_in g i : rat :=
  delta i + \sum_(j | (j != i) && (alpha j \subset g)) delta j / #|join i j|%:R.

Definition density_in g : rat := \sum_(i | alpha i \subset g) delta i.

Definition load g : rat := \big[Num.max/0]_(i | alpha i \subset g) left_side_in g i.

Lemma load_ge g i : alpha i \subset g -> left_side_in g i <= load g.
Proof. by move=> ig; apply: bigmax_ge; rewrite ?mem_index_enum. Qed.

Lemma left_side_nonnegative g i : 0 <= left_side_in g i.
Proof.
by apply: addr_ge0 => //; apply: sumr_ge0 => j _; rewrite divr_ge0 ?ler0n.
Qed.

Lemma load_attained g i :
  alpha i \subset g -> exists2 k, alpha k \subset g & load g = left_side_in g k.
Proof.
move=> ig; suff : load g = 0 \/ exists2 k, alpha k \subset g & load g = left_side_in g k.
  case=> // z; exists i => //; rewrite z; apply/eqP.
  by rewrite eq_le left_side_nonnegative -z load_ge.
rewrite /load; apply: (big_ind (fun x => x = 0 \/
    exists2 k, alpha k \subset g & x = left_side_in g k)); first by left.
  by move=> x y hx hy; case: (leP x y).
by move=> k kg; right; exists k.
Qed.

Lemma share_ge g i j k :
  g = alpha k -> alpha i \subset g -> alpha j \subset g ->
  delta j <= #|g|%:R * (delta j / #|join i j|%:R).
Proof.
move=> gk ig jg; have sub : join i j \subset g.
  by rewrite gk; apply: bigcap_inf; rewrite -gk ig.
have pos : 0 < (#|join i j|%:R : rat).
  rewrite ltr0n card_gt0; have [c ci] := set0Pn _ (affinity_not_empty i).
  by apply/set0Pn; exists c; apply/bigcapP => l /andP [/subsetP il _]; exact: il.
rewrite mulrCA; apply: ler_pemulr => //.
by rewrite ler_pdivl_mulr // mul1r ler_nat subset_leq_card.
Qed.

(* What the induction over the levels asks of loads. *)
Definition surplus g : rat := #|g|%:R * load g - density_in g.

Theorem load_own i : (#|alpha i|%:R - 1) * delta i <= surplus (alpha i).
Proof.
set g := alpha i; rewrite ler_subr_addr mulrBl mul1r /density_in (bigD1 i) //= addrA subrK.
apply: (@le_trans _ _ (#|g|%:R * left_side_in g i)); last first.
  by apply: ler_wpmul2l; rewrite ?ler0n // load_ge.
rewrite /left_side_in mulrDr ler_add2l mulr_sumr.
rewrite (eq_bigl (fun j => (j != i) && (alpha j \subset g))); last by move=> j; rewrite andbC.
by apply: ler_sum => j /andP [_ jg]; exact: (share_ge (k := i)).
Qed.

(* The tasks inside a node are those inside a smaller one and the rest. *)
Lemma sum_inside_split (F : task -> rat) (P : pred task) g h :
  h \subset g ->
  \sum_(j | P j && (alpha j \subset g)) F j =
  \sum_(j | P j && (alpha j \subset h)) F j +
  \sum_(j | P j && ((alpha j \subset g) && ~~ (alpha j \subset h))) F j.
Proof.
move=> hg; rewrite (bigID (fun j => alpha j \subset h)) /=; congr (_ + _); apply: eq_bigl => j.
  by case: (boolP (alpha j \subset h)) => [/subset_trans ->|]; rewrite ?andbT ?andbF.
by rewrite andbA.
Qed.

Theorem load_child i k :
  alpha i \proper alpha k ->
  #|alpha k|%:R * load (alpha i) - density_in (alpha i) <= surplus (alpha k).
Proof.
move=> ik; set h := alpha i; set g := alpha k; have hg : h \subset g := proper_sub ik.
have [l lh ->] := load_attained (subxx h); have lg := subset_trans lh hg.
apply: (@le_trans _ _ (#|g|%:R * left_side_in g l - density_in g)); last first.
  by rewrite ler_add2r; apply: ler_wpmul2l; rewrite ?ler0n // load_ge.
have split F P := sum_inside_split F P hg.
have -> : left_side_in g l = left_side_in h l +
    \sum_(j | (j != l) && ((alpha j \subset g) && ~~ (alpha j \subset h)))
      delta j / #|join l j|%:R.
  by rewrite /left_side_in split addrA.
rewrite [_ * (left_side_in h l + _)]mulrDr -addrA ler_add2l /density_in (split _ predT) /=.
rewrite opprD addrCA ler_addl subr_ge0 mulr_sumr.
rewrite [X in _ <= X](eq_bigl
  (fun j => (alpha j \subset g) && ~~ (alpha j \subset h))); last first.
  move=> j; case: eqP => //= ->; by rewrite lh andbF.
by apply: ler_sum => j /andP [jg _]; exact: (share_ge (k := k)).
Qed.

(* Inside a node all tasks are of one component. *)
Theorem load_fits k (bound : rat) :
  (forall i, left_side i <= bound) -> load (alpha k) <= bound.
Proof.
move=> fits; have [i ik ->] := load_attained (subxx (alpha k)).
apply: le_trans (fits i); rewrite ler_add2l.
rewrite [X in _ <= X](bigID (fun j => alpha j \subset alpha k)) /=.
rewrite [X in X <= _](eq_bigl
  (fun j => ((j != i) && together i j) && (alpha j \subset alpha k))); last first.
  move=> j; case: eqP => //= _; case: (boolP (alpha j \subset alpha k)) => jk; last by rewrite andbF.
  by rewrite andbT; apply/esym/existsP; exists k; rewrite ik jk.
rewrite ler_addl; apply: sumr_ge0 => j _.
by rewrite divr_ge0 ?ler0n.
Qed.

End Load.
