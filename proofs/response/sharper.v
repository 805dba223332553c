(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the sharper form of Theorem 3 of docs/theory/strong-edf.md: a set function with a number for
   each pair of tasks, of which Theorem 3 is the case of one number. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong.
From Shiftwork Require Import response.field response.schedule response.potential.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Sharper.

Context {R : realFieldType} {task cpu : finType}.

Add Field operations : (field_operations R).

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> R.
Variable wcet period deadline : task -> R.
Variable instant : nat -> R.
Variable run : nat -> @state task cpu.
Variable released : task -> nat -> nat.

Implicit Types (i j l : task) (k n : nat) (S : {set task}) (B : {set cpu}).

Notation finished := (finished cost instant run).
Notation u := (utilization wcet period).

Hypothesis model : sporadic release cost wcet period.
Hypothesis time : timeline release cost instant run released.
Hypothesis scheduler : strong_edf release cost deadline instant run released alpha.

(* A component: the affinities of its tasks overlap with those of no others. That it is the smallest
   such set is not needed. *)
Variable part : {set task}.
Hypothesis separate : forall i j, i \in part -> j \notin part -> [disjoint alpha i & alpha j].

(* The demand fits. *)
Hypothesis utilization_le1 : forall i, i \in part -> u i <= 1.
Hypothesis demand_fits : forall B, \sum_(i in inside alpha part B) u i <= #|B|%:R.

Let u_positive i : 0 < u i := utilization_positive model i.

Variable b : task -> task -> R.
Hypothesis b_symmetric : forall i j, b i j = b j i.

(* M_i of the document. *)
Definition others i : R := \sum_(l in part :\ i) u l * b i l.

Hypothesis b_pairs : forall i j, i \in part -> j \in part -> i != j ->
  period i + period j + \sum_(l in part :\ i :\ j) u l * `|b i l - b j l| <= (u i + u j) * b i j.

(* At least the maximum of the document. *)
Variable most : R.
Hypothesis most_ge : forall j, j \in part -> (period j + others j) / 2%:R - deadline j <= most.

Definition weight i : R := most + (period i + others i) / 2%:R.

Definition pairs S : R := \sum_(i in S) \sum_(l in S :\ i) u i * u l * b i l.

Definition bound S : R := \sum_(i in S) u i * weight i - pairs S / 2%:R.

Lemma pairs_step S j :
  j \notin S -> pairs (j |: S) = pairs S + 2%:R * (u j * \sum_(l in S) u l * b j l).
Proof.
move=> jS; rewrite /pairs big_setU1 //= setU1K //.
have row i : i \in S -> \sum_(l in (j |: S) :\ i) u i * u l * b i l =
    u j * (u i * b j i) + \sum_(l in S :\ i) u i * u l * b i l.
  move=> iS; have ij : i != j by apply: contraNneq jS => <-.
  have -> : (j |: S) :\ i = j |: S :\ i.
    by apply/setP => l; rewrite !inE; case: eqP => // ->; rewrite (negbTE ij).
  rewrite big_setU1 /=; last by rewrite !inE negb_and jS orbT.
  by rewrite b_symmetric; congr (_ + _); by_ring R.
rewrite (eq_bigr _ row) big_split /= -mulr_sumr.
have -> : \sum_(l in S) u j * u l * b j l = u j * \sum_(l in S) u l * b j l.
  by rewrite mulr_sumr; apply: eq_bigr => l _; rewrite mulrA.
by rewrite addrA addrC mulr2n mulrDl mul1r.
Qed.

Lemma bound_step S j :
  j \notin S -> bound (j |: S) - bound S = u j * (weight j - \sum_(l in S) u l * b j l).
Proof.
move=> jS; rewrite /bound pairs_step // big_setU1 //=.
by by_halves R.
Qed.

Lemma b_nonnegative i j : i \in part -> j \in part -> i != j -> 0 <= b i j.
Proof.
move=> ip jp ij; rewrite -(pmulr_rge0 _ (addr_gt0 (u_positive i) (u_positive j))).
apply: le_trans (b_pairs ip jp ij); rewrite !addr_ge0 //.
- by rewrite ltW // (period_positive model).
- by rewrite ltW // (period_positive model).
- by apply: sumr_ge0 => l _; rewrite mulr_ge0 // ltW.
Qed.

Lemma bound_enter S j :
  S \subset part -> j \in part -> j \notin S ->
  u j * (period j - deadline j) <= bound (j |: S) - bound S.
Proof.
move=> sub jp jS; rewrite bound_step // ler_pmul2l //.
apply: (@le_trans _ _ (weight j - others j)); last first.
  rewrite ler_add2l ler_opp2 /others [X in _ <= X](big_setID S) /=.
  have -> : (part :\ j) :&: S = S.
    apply/setP => l; rewrite !inE andbC; case: (boolP (l \in S)) => //= lS.
    by rewrite (subsetP sub) // andbT; apply: contraNneq jS => <-.
  rewrite ler_addl; apply: sumr_ge0 => l; rewrite !inE => /and3P [_ lj lp].
  by apply: mulr_ge0; [exact: ltW | apply: b_nonnegative => //; rewrite eq_sym].
by apply: le_difference (most_ge jp); rewrite /weight; by_halves R.
Qed.

(* What two tasks share with the others. *)
Lemma others_split i j :
  j \in part -> i != j -> others i = u j * b i j + \sum_(l in part :\ i :\ j) u l * b i l.
Proof. by move=> jp ij; rewrite /others (big_setD1 j) //= !inE eq_sym ij. Qed.

Lemma bound_order S i j :
  S \subset part -> i \in S -> j \in part -> j \notin S ->
  (bound (j |: S) - bound S) / u j <= (bound S - bound (S :\ i)) / u i - period i.
Proof.
move=> sub iS jp jS; have ip := subsetP sub _ iS.
have ij : i != j by apply: contraNneq jS => <-.
have stepi := bound_step (negbT (setD11 i S)); rewrite setD1K // in stepi.
rewrite bound_step // stepi mulrC mulKf ?gt_eqF // mulrC mulKf ?gt_eqF //.
(* The tasks of the set but [i] add at most half of the sum of all differences. *)
set rest := part :\ i :\ j; pose d l := b i l - b j l.
have sub' : S :\ i \subset rest.
  apply/subsetP => l; rewrite !inE => /andP [li lS].
  by rewrite li (subsetP sub) // !andbT; apply: contraNneq jS => <-.
have half l : u l * d l <= u l * (`|d l| + d l) / 2%:R.
  rewrite -mulrA ler_pmul2l // ler_pdivl_mulr ?ltr0n // mulr2n mulrDr mulr1 ler_add2r.
  exact: ler_norm.
have part_sum : \sum_(l in S :\ i) u l * d l <= (\sum_(l in rest) u l * (`|d l| + d l)) / 2%:R.
  rewrite mulr_suml; apply: (@le_trans _ _ (\sum_(l in S :\ i) u l * (`|d l| + d l) / 2%:R)).
    by apply: ler_sum => l _; exact: half.
  rewrite [X in _ <= X](big_setID (S :\ i)) /= (setIidPr sub') ler_addl.
  apply: sumr_ge0 => l _; rewrite divr_ge0 ?ler0n // mulr_ge0 ?(ltW (u_positive l)) //.
  by rewrite -ler_subl_addr sub0r -normrN ler_norm.
have sumD (F G : task -> R) : \sum_(l in rest) u l * (F l + G l) =
    \sum_(l in rest) u l * F l + \sum_(l in rest) u l * G l.
  by rewrite -big_split; apply: eq_bigr => l _; rewrite mulrDr.
have rest_sum : \sum_(l in rest) u l * d l =
    \sum_(l in rest) u l * b i l - \sum_(l in rest) u l * b j l.
  by rewrite -sumrB; apply: eq_bigr => l _; rewrite mulrBr.
have S_sum : \sum_(l in S :\ i) u l * d l =
    \sum_(l in S :\ i) u l * b i l - \sum_(l in S :\ i) u l * b j l.
  by rewrite -sumrB; apply: eq_bigr => l _; rewrite mulrBr.
move: part_sum; rewrite sumD rest_sum S_sum (big_setD1 i iS) /= [b j i]b_symmetric.
move: (b_pairs ip jp ij); rewrite /weight (others_split jp ij).
have -> : others j = u i * b i j + \sum_(l in rest) u l * b j l.
  rewrite (others_split ip) 1?eq_sym // b_symmetric; congr (_ + _).
  by apply: eq_bigl => l; rewrite !inE andbCA.
rewrite -/rest; set N := \sum_(l in rest) u l * `|_|.
set A := \sum_(l in rest) u l * b i l; set A' := \sum_(l in rest) u l * b j l.
set E := \sum_(l in S :\ i) u l * b i l; set E' := \sum_(l in S :\ i) u l * b j l.
move=> p q; rewrite -subr_ge0 in p; rewrite -subr_ge0 in q.
apply: le_difference (addr_ge0 q (divr_ge0 p (ler0n R 2))).
by by_halves R.
Qed.

Lemma bound_single i : bound [set i] = u i * weight i.
Proof.
rewrite /bound /pairs !big_set1 setDv big_set0.
by rewrite mul0r subr0.
Qed.

(* The sharper form of Theorem 3. *)
Theorem sharper_response_time i k :
  i \in part ->
  exists2 n, instant n <= release i k + (deadline i + (period i + others i) / 2%:R + most) &
             finished i n k.
Proof.
move=> ip; have empty : 0 <= bound set0 by rewrite /bound /pairs !big_set0 mul0r subr0.
have := response_bounded model time scheduler separate utilization_le1 demand_fits
  empty bound_enter bound_order k ip.
rewrite /response_bound bound_single mulrC mulKf ?gt_eqF // /weight.
by rewrite [most + _]addrC !addrA.
Qed.

End Sharper.
