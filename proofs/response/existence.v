(* SPDX-License-Identifier: MIT OR Apache-2.0 *)
(* Owns the existence of the schedules of which Theorem 3 speaks: whatever the tasks release, and
   for any affinities, some schedule decides at releases and completions alone, runs the tasks that
   the greedy definition keeps, and goes on for ever. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Shiftwork Require Import selection.state selection.strong selection.greedy.
From Shiftwork Require Import response.schedule.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Existence.

Context {R : realFieldType} {task cpu : finType}.

Variable alpha : task -> {set cpu}.
Variable release cost : task -> nat -> R.
Variable wcet period deadline : task -> R.

Hypothesis model : sporadic release cost wcet period.

(* Releases do not accumulate. *)
Hypothesis release_unbounded : forall i t, exists k, t < release i k.

(* There is a task, and a time before the first release. *)
Variable first : task.
Variable start : R.
Hypothesis start_first : forall i, start <= release i 0.

Implicit Types (i j : task) (k n : nat) (t : R) (s : {ffun task -> R}).

Notation cost_of_first := (cost_of_first cost).

(* How many jobs are released at [t] or before. *)
Definition released_by i t : nat := ex_minn (release_unbounded i t).

Lemma lt_released_by i t k : (k < released_by i t)%N = (release i k <= t).
Proof.
rewrite /released_by; case: ex_minnP => n lt least; apply/idP/idP => [kn|kt].
  by rewrite leNgt; apply/negP => /least; rewrite leqNgt kn.
rewrite ltnNge; apply/negP => /(release_mono model i) /(lt_le_trans lt).
by rewrite ltNge kt.
Qed.

Lemma next_release i t : t < release i (released_by i t).
Proof. by rewrite /released_by; case: ex_minnP. Qed.

Lemma released_by_mono i t t' : t <= t' -> (released_by i t <= released_by i t')%N.
Proof.
move=> le; rewrite leqNgt lt_released_by; apply/negP => le'.
by have := lt_le_trans (next_release i t') (le_trans le' le); rewrite ltxx.
Qed.

(* What is decided at [t] if the tasks have executed [s] before. *)
Definition pending_at t s : {set task} :=
  [set i | s i < cost_of_first i (released_by i t)].

Definition current_at t s i : nat :=
  find (fun k => ~~ (cost_of_first i k.+1 <= s i)) (iota 0 (released_by i t)).

Definition queue_at t s : seq task :=
  sort (fun i j => release i (current_at t s i) + deadline i <=
                   release j (current_at t s j) + deadline j) (enum (pending_at t s)).

Definition idle : @state task cpu := [ffun=> None].

Definition serve t s : @state task cpu :=
  odflt idle [pick x | valid alpha x && (running x == greedy alpha (queue_at t s))].

Lemma serve_greedy t s :
  valid alpha (serve t s) /\ running (serve t s) = greedy alpha (queue_at t s).
Proof.
rewrite /serve; case: pickP => [x /andP [v /eqP e] //|none].
have /feasibleP [x v e] := greedy_feasible alpha (queue_at t s).
by have := none x; rewrite v e eqxx.
Qed.

Lemma mem_queue t s i : (i \in queue_at t s) = (i \in pending_at t s).
Proof. by rewrite mem_sort mem_enum. Qed.

Lemma serve_pending t s : running (serve t s) \subset pending_at t s.
Proof.
have [_ ->] := serve_greedy t s; apply/subsetP => i /greedy_subset.
by rewrite mem_queue.
Qed.

(* The next release of a task, or the completion of its job if it runs. *)
Definition event_time t s (e : task * bool) : R :=
  if e.2 then release e.1 (released_by e.1 t)
  else t + (cost_of_first e.1 (current_at t s e.1).+1 - s e.1).

Definition event t s : pred (task * bool) := fun e => e.2 || (e.1 \in running (serve t s)).

Definition next_event t s : task * bool :=
  [arg min_(e < (first, true) | event t s e) event_time t s e]%O.

Definition next t s : R := event_time t s (next_event t s).

Lemma next_eventP t s :
  event t s (next_event t s) /\ forall e, event t s e -> next t s <= event_time t s e.
Proof.
rewrite /next /next_event; have ev : event t s (first, true) by [].
by case: (Order.TotalTheory.arg_minP (event_time t s) ev) => e ee least; split.
Qed.

(* The instant and what has been executed before it. *)
Fixpoint history n : R * {ffun task -> R} :=
  if n is m.+1 then
    let: (t, s) := history m in
    (next t s, [ffun i => s i + (next t s - t) * (i \in running (serve t s))%:R])
  else (start, [ffun=> 0]).

Definition instant n : R := (history n).1.
Definition run n : @state task cpu := serve (history n).1 (history n).2.
Definition released i n : nat := released_by i (instant n).

Notation executed n := ((history n).2).

Lemma instant_step n : instant n.+1 = next (instant n) (executed n).
Proof. by rewrite /instant /=; case: (history n). Qed.

Lemma service_executed i n : service instant run i n = executed n i.
Proof.
elim: n => [|n IH]; first by rewrite service_start ffunE.
rewrite service_step IH /length instant_step /run /instant /=.
by case: (history n) => t s /=; rewrite ffunE.
Qed.

Lemma pending_executed n :
  pending cost instant run released n = pending_at (instant n) (executed n).
Proof. by apply/setP => i; rewrite !inE service_executed. Qed.

Lemma current_executed i n :
  current cost instant run released i n = current_at (instant n) (executed n) i.
Proof. by apply: eq_find => k; rewrite /finished service_executed. Qed.

Lemma run_pending n : running (run n) \subset pending cost instant run released n.
Proof. by rewrite pending_executed; exact: serve_pending. Qed.

Lemma current_at_unfinished t s i :
  0 <= s i -> i \in pending_at t s ->
  (current_at t s i < released_by i t)%N /\ s i < cost_of_first i (current_at t s i).+1.
Proof.
rewrite inE => s0 pend; set p := fun k => ~~ (cost_of_first i k.+1 <= s i).
have has_one : has p (iota 0 (released_by i t)).
  case r: (released_by i t) pend => [|k] pend.
    by move: pend; rewrite /cost_of_first big_geq // ltNge s0.
  by apply/hasP; exists k; [rewrite mem_iota add0n ltnSn | rewrite /p -ltNge].
have lt : (find p (iota 0 (released_by i t)) < released_by i t)%N.
  by move: has_one; rewrite has_find size_iota.
by split=> //; have /= := nth_find 0%N has_one; rewrite nth_iota // add0n /p -ltNge.
Qed.

(* The next event is later. *)
Lemma next_later t s : (forall i, 0 <= s i) -> t < next t s.
Proof.
move=> s0; have [ee _] := next_eventP t s; rewrite /next.
move: (next_event t s) ee => -[i []] /= ee; rewrite /event_time /=; first exact: next_release.
rewrite ltr_addl subr_gt0; have [|] := @current_at_unfinished t s i (s0 i) => //.
exact: (subsetP (serve_pending t s)).
Qed.

Lemma executed_nonnegative n i : 0 <= executed n i.
Proof.
elim: n i => [|n IH] i /=; first by rewrite ffunE.
move: IH; case: (history n) => t s /= s0; rewrite ffunE addr_ge0 // mulr_ge0 ?ler0n //.
by rewrite subr_ge0 ltW // next_later.
Qed.

Lemma instant_later n : instant n < instant n.+1.
Proof. by rewrite instant_step; apply: next_later => i; exact: executed_nonnegative. Qed.

Lemma completion n i :
  i \in running (run n) ->
  service instant run i n.+1 <= cost_of_first i (current cost instant run released i n).+1.
Proof.
move=> ir; rewrite service_step ir mulr1 service_executed current_executed /length instant_step.
have [_ /(_ (i, false))] := next_eventP (instant n) (executed n).
rewrite /event /= => /(_ ir); rewrite /event_time /= -ler_subl_addl.
by rewrite ler_subr_addl.
Qed.

(* The order of the queue is that of the deadlines. *)
Lemma queue_order n :
  {in pending cost instant run released n &, forall i j,
     due_later release cost deadline instant run released n i j ->
     after (queue_at (instant n) (executed n)) i j}.
Proof.
move=> i j ip jp; rewrite /due_later /current_deadline !current_executed.
rewrite pending_executed in ip jp.
pose key i := release i (current_at (instant n) (executed n) i) + deadline i.
rewrite /after ltnNge => lt; apply: contraL lt => le; rewrite -leNgt.
have tr : transitive (fun i j => key i <= key j) by move=> x y z; exact: le_trans.
have sorted_queue : sorted (fun i j => key i <= key j) (queue_at (instant n) (executed n)).
  by apply: sort_sorted => x y; exact: le_total.
have := sorted_leq_index tr (fun x => lexx (key x)) sorted_queue.
by move/(_ i j); rewrite !mem_queue; exact.
Qed.

Lemma schedule_strong : strong_edf release cost deadline instant run released alpha.
Proof.
move=> n; have [v e] := serve_greedy (instant n) (executed n).
split; [exact: v | exact: run_pending |].
have un : uniq (queue_at (instant n) (executed n)) by rewrite sort_uniq enum_uniq.
have pend : pending cost instant run released n = [set i in queue_at (instant n) (executed n)].
  by rewrite pending_executed; apply/setP => i; rewrite [RHS]inE mem_queue.
have sub := run_pending n; apply: strong_weaken (@queue_order n) _ => //.
by rewrite pend; apply/(strong_iff_greedy un v) => //; rewrite -pend.
Qed.

(* Every instant after the first is a release or the completion of a job, and up to a time there are
   finitely many of both. *)
Section Progress.

Variable horizon : R.

Definition events i n : nat :=
  (released i n + #|[set k : 'I_(released_by i horizon) | finished cost instant run i n k]|)%N.

Lemma finished_mono i n k :
  finished cost instant run i n k -> finished cost instant run i n.+1 k.
Proof.
move/le_trans; apply; rewrite service_step ler_addl mulr_ge0 ?ler0n //.
by rewrite subr_ge0 ltW // instant_later.
Qed.

Lemma released_grows i n : (released i n <= released i n.+1)%N.
Proof. by apply: released_by_mono; rewrite ltW // instant_later. Qed.

Lemma finished_grows i n :
  [set k : 'I_(released_by i horizon) | finished cost instant run i n k] \subset
  [set k : 'I_(released_by i horizon) | finished cost instant run i n.+1 k].
Proof. by apply/subsetP => k; rewrite !inE; exact: finished_mono. Qed.

Lemma events_grow i n : (events i n <= events i n.+1)%N.
Proof. by rewrite leq_add ?released_grows // subset_leq_card // finished_grows. Qed.

Lemma event_happens n :
  instant n <= horizon -> exists i, (events i n < events i n.+1)%N.
Proof.
move=> before; set e := next_event (instant n) (executed n).
have [ee _] := next_eventP (instant n) (executed n); rewrite -/e in ee.
have now : instant n.+1 = event_time (instant n) (executed n) e by rewrite instant_step.
exists e.1; move: ee now; case: e => i [] /= ee now.
  rewrite /events -addSn leq_add ?subset_leq_card ?finished_grows //.
  by rewrite /released lt_released_by now.
rewrite /events -addnS leq_add ?released_grows // proper_card // properEneq finished_grows andbT.
have ir : i \in running (run n) by [].
have ip := subsetP (serve_pending (instant n) (executed n)) _ ir.
have [lt short] := current_at_unfinished (executed_nonnegative n i) ip.
set k := current_at _ _ _ in lt short.
have kh : (k < released_by i horizon)%N by apply: leq_trans lt (released_by_mono i before).
apply/eqP => /setP /(_ (Ordinal kh)); rewrite !inE /finished /= service_executed leNgt short /=.
rewrite service_step ir mulr1 service_executed /length now /event_time /=.
by rewrite addrAC subrr add0r addrC subrK lexx.
Qed.

Lemma events_total n :
  (forall m, (m < n)%N -> instant m <= horizon) -> (n <= \sum_i events i n)%N.
Proof.
elim: n => // n IH before; have [i lt] := event_happens (before n (ltnSn n)).
have := IH (fun m mn => before m (ltnW mn)) => le; apply: (leq_ltn_trans le).
rewrite (bigD1 i) //= [X in (_ < X)%N](bigD1 i) //= -addSn leq_add //.
by apply: leq_sum => j _; exact: events_grow.
Qed.

Lemma horizon_passed : exists n, horizon < instant n.
Proof.
pose most := (\sum_i (released_by i horizon).*2)%N; exists most.+1.
rewrite ltNge; apply/negP => late.
have before m : (m < most.+2)%N -> instant m <= horizon.
  rewrite ltnS => le; apply: le_trans late; elim: most.+1 le => [|n IH].
    by rewrite leqn0 => /eqP ->.
  rewrite leq_eqVlt => /orP [/eqP -> //|]; rewrite ltnS => /IH le.
  by apply: le_trans le (ltW (instant_later n)).
have := events_total (n := most.+1) (fun m mn => before m (ltnW mn)).
rewrite leqNgt ltnS => /negP; apply; apply: leq_sum => i _.
rewrite /events -addnn leq_add //; first by apply: released_by_mono; exact: late.
by apply: leq_trans (max_card _) _; rewrite card_ord.
Qed.

End Progress.

Lemma schedule_timeline : timeline release cost instant run released.
Proof.
split.
- by move=> n; rewrite ltW // instant_later.
- exact: horizon_passed.
- by move=> i k; apply: le_trans (start_first i) (release_mono model i (leq0n k)).
- by move=> i k n; exact: lt_released_by.
- move=> i k n; case: (ltnP k (released i n)) => [|ge]; first by rewrite lt_released_by; left.
  right; apply: le_trans (release_mono model i ge); rewrite instant_step.
  by have [_ /(_ (i, true))] := next_eventP (instant n) (executed n); apply.
- by move=> i n; exact: completion.
Qed.

End Existence.

(* In an Archimedean field, such as the rational or the real numbers, releases do not accumulate. *)
Lemma archimedean_unbounded {R : archiFieldType} {task : finType} (release cost : task -> nat -> R)
    (wcet period : task -> R) :
  sporadic release cost wcet period -> forall i t, exists k, t < release i k.
Proof.
move=> model i t; have Ti := period_positive model i.
have far k : release i 0%N + k%:R * period i <= release i k.
  elim: k => [|k IH]; first by rewrite mul0r addr0.
  apply: le_trans (release_apart model i k); rewrite -addn1 natrD mulrDl mul1r addrA.
  by rewrite ler_add2r.
pose x := `|t - release i 0%N| / period i; exists (Num.bound x).
apply: lt_le_trans (far _); rewrite -ltr_subl_addl -ltr_pdivr_mulr //.
have x0 : 0 <= x by rewrite divr_ge0 // ltW.
apply: le_lt_trans (archi_boundP x0); rewrite ler_pmul2r ?invr_gt0 //.
exact: ler_norm.
Qed.

(* For all tasks, of which there is one at least, and all affinities there is a schedule of which
   Theorem 3 speaks. *)
Theorem strong_exists {R : archiFieldType} {task cpu : finType} (alpha : task -> {set cpu})
    (release cost : task -> nat -> R) (wcet period deadline : task -> R) (first : task) :
  sporadic release cost wcet period ->
  exists instant run released,
    timeline release cost instant run released /\
    strong_edf release cost deadline instant run released alpha.
Proof.
move=> model; have unbounded := archimedean_unbounded model.
pose start : R := - \sum_i `|release i 0%N|.
have start_first i : start <= release i 0%N.
  apply: (@le_trans _ _ (- `|release i 0%N|)); last by rewrite ler_oppl -normrN ler_norm.
  by rewrite ler_opp2 (bigD1 i) //= ler_addl sumr_ge0.
exists (instant alpha cost deadline unbounded first start).
exists (run alpha cost deadline unbounded first start).
exists (released alpha cost deadline unbounded first start).
split; first exact: (schedule_timeline alpha deadline model unbounded first start_first).
exact: schedule_strong.
Qed.
