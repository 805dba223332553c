(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns what one event changes under nested affinities: the job that gives way to an arrival, and
   the job that takes the room that another leaves. *)

From mathcomp Require Import all_ssreflect.
From Shiftwork Require Import selection.state selection.reach selection.hall selection.strong.
From Shiftwork Require Import selection.laminar.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Events.

Context {job cpu : finType}.
Variable alpha : job -> {set cpu}.
Variable later : rel job.

Hypothesis laminar_jobs : forall j k, nested (alpha j) (alpha k).
Hypothesis affinity_not_empty : forall j, alpha j != set0.

(* Being due no later is transitive, as for deadlines and for priorities, with or without ties. *)
Hypothesis not_later_trans : forall j k l, ~~ later j k -> ~~ later k l -> ~~ later j l.
Hypothesis not_later_refl : forall j, ~~ later j j.

Notation state := (@state job cpu).
Notation valid := (valid alpha).
Notation feasible := (feasible alpha).
Notation inside := (inside alpha).
Notation reach := (reach alpha).

Implicit Types (run : state) (S pending : {set job}) (X Y : {set cpu}) (j k l w : job).

(* As many jobs of [S] as there are CPUs in it cannot leave [alpha k]. *)
Definition full_node S k : bool := #|inside S (alpha k)| == #|alpha k|.

(* Two affinities that contain a third are nested. *)
Lemma common_nested i j k :
  alpha i \subset alpha j -> alpha i \subset alpha k ->
  (alpha j \subset alpha k) || (alpha k \subset alpha j).
Proof.
move=> ij ik; case/or3P: (laminar_jobs j k) => [->|->|/pred0P dis] //; first by rewrite orbT.
have [c ci] := set0Pn _ (affinity_not_empty i).
by have := dis c; rewrite /= (subsetP ij) // (subsetP ik).
Qed.

(* The tight sets of waiting jobs are affinities. *)
Lemma waiting_node pending run w :
  valid run -> strong_invariant alpha later pending run ->
  w \in pending -> w \notin running run ->
  exists k, [/\ alpha w \subset alpha k, full_node (running run) k &
                forall l, l \in inside (running run) (alpha k) -> ~~ later l w].
Proof.
move=> v strong wp wn; have lam : laminar alpha (w |: running run) by move=> k l _ _.
have [k [_ Rk _]] := reach_node v lam.
have [wk tight] := strong_blocked v strong wp wn; rewrite Rk in wk tight.
exists k; split=> //.
  rewrite /full_node eqn_leq running_inside //= -tight; apply: subset_leq_card.
  by apply/subsetP => l; rewrite inE => /andP [].
have sub : [set l in inside (running run) (alpha k) | ~~ later l w] \subset
           inside (running run) (alpha k).
  by apply/subsetP => l; rewrite inE => /andP [].
have /eqP same : [set l in inside (running run) (alpha k) | ~~ later l w] ==
                 inside (running run) (alpha k).
  by rewrite eqEcard sub tight running_inside.
by move=> l; rewrite -same inE => /andP [].
Qed.

(* The invariant, from nodes that are full of jobs that are not due later. *)
Lemma strong_from_nodes pending run :
  valid run ->
  (forall w, w \in pending -> w \notin running run ->
     exists k, [/\ alpha w \subset alpha k, #|alpha k| <= #|inside (running run) (alpha k)| &
                   forall l, l \in inside (running run) (alpha k) -> ~~ later l w]) ->
  strong_invariant alpha later pending run.
Proof.
move=> v H; apply/(strong_iff_blocked _ _ v) => w wp wn; have [k [wk tight urgent]] := H w wp wn.
exists (alpha k); split=> //.
have -> : [set l in inside (running run) (alpha k) | ~~ later l w] =
          inside (running run) (alpha k).
  by apply/setP => l; rewrite in_set andb_idr //; exact: urgent.
by apply/eqP; rewrite eqn_leq tight running_inside.
Qed.

(* Arrival with room: no node around the affinity is full, and the job runs beside the others. *)
Theorem arrival_fits pending run run' j :
  valid run -> strong_invariant alpha later pending run -> j \notin running run ->
  valid run' -> running run' = j |: running run ->
  strong_invariant alpha later (j |: pending) run'.
Proof.
move=> v strong jn v' e; apply: (strong_from_nodes v') => w; rewrite e in_setU1 => wp.
rewrite in_setU1 negb_or => /andP [wj wn]; rewrite (negbTE wj) /= in wp.
have [k [wk fk urgent]] := waiting_node v strong wp wn; exists k; split=> //.
  by rewrite -(eqP fk); apply: subset_leq_card; apply: inside_subset; exact: subsetUr.
(* A full node has no room for the job that arrives. *)
move=> l; rewrite in_set in_setU1 => /andP [/orP [/eqP ->|lr] lk]; last first.
  by apply: urgent; rewrite in_set lr.
have := running_inside (alpha k) v'; rewrite e leqNgt -(eqP fk) => /negP; case.
apply: proper_card; apply/properP; split; first by apply: inside_subset; exact: subsetUr.
by exists j; rewrite in_set ?setU11 // (negbTE jn).
Qed.

(* Arrival without room: of the jobs of the smallest full node around the affinity, and the job
   that arrives, one that is due last gives way. *)
Theorem arrival_full pending run run' j k l :
  valid run -> strong_invariant alpha later pending run -> j \notin running run ->
  alpha j \subset alpha k -> full_node (running run) k ->
  (forall k', alpha j \subset alpha k' -> full_node (running run) k' ->
     alpha k \subset alpha k') ->
  l \in j |: inside (running run) (alpha k) ->
  (forall l', l' \in j |: inside (running run) (alpha k) -> ~~ later l' l) ->
  valid run' -> running run' = (j |: running run) :\ l ->
  strong_invariant alpha later (j |: pending) run'.
Proof.
move=> v strong jn jk fk least li last_l v' e.
have lk : alpha l \subset alpha k.
  by move: li; rewrite in_setU1 in_set => /orP [/eqP ->|/andP []].
have l_in : l \in j |: running run.
  by move: li; rewrite !in_setU1 in_set => /orP [->|/andP [-> _]] //; rewrite orbT.
(* What is inside a node around [alpha k], or away from [l] and [j], keeps its number. *)
have count m : (alpha k \subset alpha m) || ~~ (alpha l \subset alpha m) ->
    full_node (running run) m -> #|alpha m| <= #|inside (running run') (alpha m)|.
  move=> cases /eqP fm; rewrite -fm e; case: (boolP (alpha l \subset alpha m)) cases => lm.
    rewrite orbF => km; have jm := subset_trans jk km.
    have eq : inside ((j |: running run) :\ l) (alpha m) = (j |: inside (running run) (alpha m)) :\ l.
      apply/setP => x; rewrite in_set !in_setD1 !in_setU1 in_set.
      by case: (x =P j) => [->|_] /=; rewrite ?jm ?andbT ?andbA.
    have lin : l \in j |: inside (running run) (alpha m).
      by move: l_in; rewrite !in_setU1 in_set lm andbT.
    have := cardsD1 l (j |: inside (running run) (alpha m)).
    by rewrite lin cardsU1 in_set (negbTE jn) /= !add1n eq => -[<-].
  move=> _; apply: subset_leq_card; apply/subsetP => x; rewrite in_set => /andP [xr xm].
  by rewrite in_set in_setD1 in_setU1 xr xm orbT !andbT; apply: contraNneq lm => <-.
apply: (strong_from_nodes v') => w wp wn.
have gone : forall x, x \in inside (running run') (alpha k) -> ~~ later x l.
  move=> x; rewrite e in_set in_setD1 in_setU1 => /andP [/andP [_ xr] xk]; apply: last_l.
  by rewrite in_setU1 in_set xk andbT.
case: (w =P l) => [->|/eqP wl]; first by exists k; split=> //; apply: count; rewrite ?subxx.
have wj : w != j.
  by apply: contra wn => /eqP wj; rewrite e in_setD1 wl wj setU11.
have wr : w \notin running run.
  by apply: contra wn => wr; rewrite e in_setD1 wl in_setU1 wr orbT.
rewrite in_setU1 (negbTE wj) /= in wp.
have [m [wm fm urgent]] := waiting_node v strong wp wr.
have l_run : l != j -> l \in running run.
  by move: l_in; rewrite in_setU1 => /orP [->|].
have in_run' x : x \in inside (running run') (alpha m) ->
    [/\ x != l, alpha x \subset alpha m & x = j \/ ~~ later x w].
  rewrite e in_set in_setD1 in_setU1 => /andP [/andP [xl xr] xm]; split=> //.
  by case/orP: xr => [/eqP ->|xr]; [left | right; apply: urgent; rewrite in_set xr].
case: (boolP (alpha k \subset alpha m)) => km.
  exists m; split=> //; first by apply: count; rewrite ?km.
  move=> x /in_run' [xl xm [xj|//]]; rewrite xj in xl *.
  apply: (@not_later_trans _ l); first by apply: last_l; rewrite setU11.
  by apply: urgent; rewrite in_set l_run 1?eq_sym // (subset_trans lk km).
have jm : ~~ (alpha j \subset alpha m) by apply: contra km => jm; exact: least.
case: (boolP (alpha l \subset alpha m)) => lm; last first.
  exists m; split=> //; first by apply: count; rewrite ?lm ?orbT.
  by move=> x /in_run' [_ xm [xj|//]]; rewrite xj (negbTE jm) in xm.
have mk : alpha m \subset alpha k.
  by have := common_nested lk lm; rewrite (negbTE km).
exists k; split; [exact: subset_trans wm mk | by apply: count; rewrite ?subxx |].
move=> x xk; apply: (not_later_trans (gone x xk)); apply: urgent; rewrite in_set lm andbT.
by apply: l_run; apply: contraNneq jm => <-.
Qed.

(* All CPUs of a full node run jobs that cannot leave it. *)
Lemma full_busy run k c :
  valid run -> full_node (running run) k -> c \in alpha k ->
  exists2 l, run c = Some l & alpha l \subset alpha k.
Proof.
move=> /validP [a u] /eqP full ck.
pose B := [set d in alpha k | if run d is Some l then alpha l \subset alpha k else false].
have sub : [set Some l | l in inside (running run) (alpha k)] \subset run @: B.
  apply/subsetP => o /imsetP [l]; rewrite in_set => /andP [/runningP [d rd] lk] ->.
  by apply/imsetP; exists d => //; rewrite inE rd lk andbT (subsetP lk) ?(a d l).
have := leq_trans (subset_leq_card sub) (leq_imset_card _ _).
rewrite card_imset; last by move=> ? ? [].
rewrite full => size_B; have /eqP BE : B == alpha k.
  by rewrite eqEcard size_B andbT; apply/subsetP => d; rewrite inE => /andP [].
move: ck; rewrite -{1}BE inE => /andP [_].
by case: (run c) => // l lk; exists l.
Qed.

(* Which of the two arrivals it is; each job that may give way leaves CPUs for the others. *)
Theorem arrival_cases run j :
  valid run -> j \notin running run ->
  feasible (j |: running run) \/
  exists k, [/\ alpha j \subset alpha k, full_node (running run) k,
    forall k', alpha j \subset alpha k' -> full_node (running run) k' ->
      alpha k \subset alpha k' &
    forall l, l \in j |: inside (running run) (alpha k) -> feasible ((j |: running run) :\ l)].
Proof.
move=> v jn; have [fits|busy] := fits_or_tight v jn; first by left.
right; have lam : laminar alpha (j |: running run) by move=> ? ? _ _.
have [k [_ Rk jk]] := reach_node v lam; exists k; split=> //.
- rewrite /full_node eqn_leq running_inside //= -Rk.
  have busy' c : c \in reach run j ->
      exists x, [/\ run c = Some x, alpha x \subset reach run j & predT x].
    by move=> /busy [x rc xR]; exists x.
  apply: leq_trans (busy_tight v busy') _; apply: subset_leq_card.
  by apply/subsetP => x; rewrite inE => /andP [].
- move=> k' jk' fk'; rewrite -Rk; apply: reach_least => // c x ck' rc.
  by have [y] := full_busy v fk' ck'; rewrite rc => -[->].
move=> l; rewrite in_setU1 in_set => /orP [/eqP ->|/andP [lr lk]].
  by rewrite setU1K //; apply/feasibleP; exists run.
have /runningP [c rc] := lr; have cR : c \in reach run j.
  by rewrite Rk (subsetP lk) //; move/validP: v => [a _]; exact: a rc.
have [run' v' e] := reach_gives v jn cR; rewrite rc in e.
apply/feasibleP; exists run' => //; rewrite e; apply/setP => x.
rewrite in_setU1 !in_setD1 in_setU1; case: (x =P j) => [->|] //=.
by rewrite andbT; apply/esym; apply: contraNneq jn => ->.
Qed.

(* Departure: the job that takes the room is a waiting one that fits, and none that fits is due
   earlier; if none fits, none runs instead. *)
Theorem departure pending run run' r :
  valid run -> strong_invariant alpha later pending run -> r \in running run ->
  valid run' ->
  (running run' = running run :\ r /\
   forall w, w \in pending -> w \notin running run -> ~~ feasible (w |: (running run :\ r))) \/
  (exists b, [/\ b \in pending, b \notin running run, running run' = b |: (running run :\ r) &
     forall w, w \in pending -> w \notin running run ->
       feasible (w |: (running run :\ r)) -> ~~ later b w]) ->
  strong_invariant alpha later (pending :\ r) run'.
Proof.
move=> v strong rr v' event; apply: (strong_from_nodes v') => w; rewrite in_setD1 => /andP [wr wp] wn.
have rest_sub : running run :\ r \subset running run'.
  by case: event => [[-> _]|[b [_ _ -> _]]] //; exact: subsetUr.
have wn0 : w \notin running run.
  by apply: contra wn => wn; apply: (subsetP rest_sub); rewrite in_setD1 wr.
have [m [wm fm urgent]] := waiting_node v strong wp wn0.
set rest := running run :\ r in event rest_sub.
have [run0 v0 e0] : exists2 run0, valid run0 & running run0 = rest.
  by apply/feasibleP; apply: feasible_subset (subsetDl _ _) _; apply/feasibleP; exists run.
have grows x : #|inside rest (alpha x)| <= #|inside (running run') (alpha x)|.
  by apply: subset_leq_card; exact: inside_subset.
(* The job that takes the room, if there is one, is in no node that the others fill. *)
have taken x : x \in running run' ->
    x \in running run \/ [/\ x \notin running run, running run' = x |: rest &
      forall y, alpha x \subset alpha y -> #|alpha y| <= #|inside rest (alpha y)| -> False].
  case: event => [[-> _]|[b [_ bn e _]]]; first by rewrite in_setD1 => /andP [_ ->]; left.
  rewrite e in_setU1 => /orP [/eqP ->|]; last by rewrite in_setD1 => /andP [_ ->]; left.
  right; split=> // y by_ tight; have bn' : b \notin rest by rewrite in_setD1 (negbTE bn) andbF.
  by case/negP: (tight_infeasible bn' by_ tight); apply/feasibleP; exists run'.
have without x : inside rest (alpha x) = inside (running run) (alpha x) :\ r.
  by apply/setP => y; rewrite !in_set andbA.
case: (boolP (alpha r \subset alpha m)) => rm; last first.
  have tight : #|alpha m| <= #|inside rest (alpha m)|.
    rewrite -(eqP fm) without; apply: subset_leq_card; apply/subsetP => x xm.
    rewrite in_setD1 xm andbT; apply: contraNneq rm => <-.
    by move: xm; rewrite in_set => /andP [].
  exists m; split=> //; first exact: leq_trans tight (grows m).
  move=> x; rewrite in_set => /andP [/taken [xr|[_ _ no]] xm]; last by case: (no m).
  by apply: urgent; rewrite in_set xr.
have wrest : w \notin running run0 by rewrite e0 in_setD1 (negbTE wn0) andbF.
have [fits|busy] := fits_or_tight v0 wrest; last first.
  have lam : laminar alpha (w |: running run0) by move=> ? ? _ _.
  have [z [_ Rz wz]] := reach_node v0 lam.
  have tight : #|alpha z| <= #|inside rest (alpha z)|.
    have busy' c : c \in reach run0 w ->
        exists x, [/\ run0 c = Some x, alpha x \subset reach run0 w & predT x].
      by move=> /busy [x rc xR]; exists x.
    rewrite -Rz -e0; apply: leq_trans (busy_tight v0 busy') _; apply: subset_leq_card.
    by apply/subsetP => x; rewrite inE => /andP [].
  case/orP: (common_nested wz wm) => [zm|mz].
    exists z; split=> //; first exact: leq_trans tight (grows z).
    move=> x; rewrite in_set => /andP [/taken [xr|[_ _ no]] xz]; last by case: (no z).
    by apply: urgent; rewrite in_set xr (subset_trans xz zm).
  have := running_inside (alpha z) v; rewrite (cardsD1 r) in_set rr (subset_trans rm mz) /=.
  by rewrite -without add1n => /leq_trans /(_ tight); rewrite ltnn.
rewrite e0 in fits.
case: event => [[_ none]|[b [bp bn e urgent_first]]]; first by case/negP: (none w wp wn0).
have bw := urgent_first w wp wn0 fits.
have filled y : full_node (running run) y -> alpha r \subset alpha y -> alpha b \subset alpha y ->
    #|alpha y| <= #|inside (running run') (alpha y)|.
  move=> /eqP <- ry by_; rewrite (cardsD1 r) in_set rr ry /= -without add1n e.
  apply: proper_card; apply/properP; split; first by apply: inside_subset; exact: subsetUr.
  exists b; first by rewrite in_set setU11.
  by rewrite !in_set (negbTE bn) andbF.
have [mb [bmb fmb urgent_b]] := waiting_node v strong bp bn.
have rmb : alpha r \subset alpha mb.
  apply: contraT => rmb; have br : b \in running run' by rewrite e setU11.
  case: (taken b br) => [|[_ _ no]]; first by rewrite (negbTE bn).
  case: (no mb bmb); rewrite -(eqP fmb) without; apply: subset_leq_card; apply/subsetP => x xm.
  rewrite in_setD1 xm andbT; apply: contraNneq rmb => <-.
  by move: xm; rewrite in_set => /andP [].
have in_run' x : x \in running run' -> x = b \/ x \in running run.
  by rewrite e in_setU1 in_setD1 => /orP [/eqP ->|/andP [_ ->]]; [left | right].
case/orP: (common_nested rm rmb) => [m_mb|mb_m].
  exists mb; split; [exact: subset_trans wm m_mb | exact: filled |].
  move=> x; rewrite in_set => /andP [/in_run' [->|xr] xm] //.
  by apply: not_later_trans bw; apply: urgent_b; rewrite in_set xr.
exists m; split=> //; first by apply: filled => //; exact: subset_trans bmb mb_m.
move=> x; rewrite in_set => /andP [/in_run' [->|xr] xm] //.
by apply: urgent; rewrite in_set xr.
Qed.

End Events.
