(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the tactics [ring] and [field] for ordered fields of mathcomp, in which operations have many
   forms that are equal only by computation: [by_ring] and [by_halves] give them one form first. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Export Ring Field_theory Field.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Operations.

Variable R : realFieldType.

Implicit Types a b : R.

Definition zero : R := 0.
Definition one : R := 1.
Definition add a b : R := a + b.
Definition opposite a : R := - a.
Definition subtract a b : R := a - b.
Definition multiply a b : R := a * b.
Definition inverse a : R := a^-1.
Definition divide a b : R := a / b.

Lemma field_operations :
  field_theory zero one add multiply subtract opposite divide inverse (@eq R).
Proof.
split=> // [|/eqP|a /eqP a0]; last exact: mulVf; last by rewrite oner_eq0.
split=> //; [exact: add0r | exact: addrC | exact: addrA | exact: mul1r | exact: mulrC
            | exact: mulrA | exact: mulrDl | exact: subrr].
Qed.

Lemma two_nonzero : add one one <> zero.
Proof. by apply/eqP; rewrite (_ : add one one = 2%:R) ?pnatr_eq0. Qed.

Lemma le_difference a b a' b' : b - a = b' - a' -> a <= b -> a' <= b'.
Proof. by move=> same; rewrite -subr_ge0 same subr_ge0. Qed.

End Operations.

Ltac in_operations R t :=
  lazymatch t with
  | GRing.add ?a ?b =>
      let a' := in_operations R a in let b' := in_operations R b in constr:(@add R a' b')
  | GRing.mul ?a ?b =>
      let a' := in_operations R a in let b' := in_operations R b in constr:(@multiply R a' b')
  | GRing.opp ?a => let a' := in_operations R a in constr:(@opposite R a')
  | GRing.inv ?a => let a' := in_operations R a in constr:(@inverse R a')
  | GRing.natmul ?a 2 => let a' := in_operations R a in constr:(@add R a' a')
  | GRing.zero _ => constr:(@zero R)
  | GRing.one _ => constr:(@one R)
  | _ => constr:(t)
  end.

Ltac equation_in_operations R :=
  lazymatch goal with
  | |- @eq _ ?a ?b =>
      let a' := in_operations R a in
      let b' := in_operations R b in
      change (@eq (Num.RealField.sort R) a' b')
  end.

Ltac by_ring R := equation_in_operations R; ring.
(* For equations whose only denominator is 2. *)
Ltac by_halves R := equation_in_operations R; field; exact (@two_nonzero R).
