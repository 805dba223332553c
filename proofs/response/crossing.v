(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the argument about the first of finitely many linear functions that becomes positive. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import response.field.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Crossing.

Context {R : realFieldType} {index : finType}.

Add Field operations : (field_operations R).

Implicit Types (h : R) (i : index).

(* The functions are [start i + h * slope i] for [h] from 0 to 1. *)
Variable considered : pred index.
Variables start slope : index -> R.

Definition value h i : R := start i + h * slope i.

Lemma value_between h i : value h i = (1 - h) * value 0 i + h * value 1 i.
Proof. by rewrite /value; by_ring R. Qed.

(* If both ends are not positive, nothing between is. *)
Lemma value_le0 h i :
  0 <= h <= 1 -> value 0 i <= 0 -> value 1 i <= 0 -> value h i <= 0.
Proof.
move=> /andP [h0 h1] v0 v1; rewrite value_between -[X in _ <= X]addr0.
by apply: ler_add; apply: mulr_ge0_le0; rewrite ?subr_ge0 //.
Qed.

(* None becomes positive if those that are 0 while none is positive do not rise. *)
Lemma no_crossing :
  (forall i, considered i -> start i <= 0) ->
  (forall h i, 0 <= h < 1 -> (forall j, considered j -> value h j <= 0) ->
     considered i -> value h i = 0 -> slope i <= 0) ->
  forall h i, 0 <= h <= 1 -> considered i -> value h i <= 0.
Proof.
move=> le0 tight h i hb ci; have v0 j : value 0 j = start j by rewrite /value mul0r addr0.
have v1 j : value 1 j = start j + slope j by rewrite /value mul1r.
suff end0 j : considered j -> value 1 j <= 0.
  by apply: value_le0 => //; [rewrite v0; exact: le0 | exact: end0].
move=> {h i hb ci} cj; rewrite leNgt; apply/negP => jpos.
pose crossing i := - start i / slope i.
have rises i : considered i -> 0 < value 1 i -> 0 < slope i.
  by move=> ci; rewrite v1 => /lt_le_trans /(_ _); apply; rewrite ger_addr; exact: le0.
pose P := [pred i | considered i && (0 < value 1 i)].
have Pj : P j by rewrite /= cj.
case: (Order.TotalTheory.arg_minP crossing Pj) => i /andP [ci ipos] first.
have si := rises i ci ipos; set h := crossing i.
have h0 : 0 <= h by rewrite divr_ge0 ?oppr_ge0 ?le0 // ltW.
have h1 : h < 1 by rewrite ltr_pdivr_mulr // mul1r ltr_oppl -subr_gt0 opprK -v1.
have zero : value h i = 0.
  by rewrite /value /h /crossing divfK ?subrr // gt_eqF.
suff : slope i <= 0 by rewrite leNgt si.
apply: (tight h) => //; first by rewrite h0.
move=> k ck; case: (lerP (value 1 k) 0) => [kend|kpos].
  by apply: value_le0; rewrite ?v0 ?le0 // h0 ltW.
have sk := rises k ck kpos; have /= := first k; rewrite ck kpos => /(_ isT).
by rewrite -/h ler_pdivl_mulr // /value => hk; rewrite -ler_subr_addl sub0r.
Qed.

End Crossing.
