/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ordinary work: everything that is not managed, and what excess.h adds. It runs where no managed task is assigned: at
 * once where a CPU idles (ordinary.h), or from a queue of the CPU's own if it is pinned there, otherwise from one that all CPUs share.
 *
 * On a CPU that managed tasks keep busy it waits. After SW_STARVATION_LIMIT the CPU leaves the core's set for
 * as long as the reserve says, or until nothing waits any more.
 */
#ifndef SW_BACKGROUND_H
#define SW_BACKGROUND_H

#include "agent.h"
#include "queues.h"

#define SW_STARVATION_LIMIT	1000000000ULL
/* Interval between checks for waiting background work, ns: no count is kept where work is queued. */
#define SW_CHECK_INTERVAL		100000000ULL

/* What waiting background work gets of each second, ns; 0: nothing. */
u64 reserve_ns;
/* How often a CPU was found not to run its assignment although that waited; a fault of ours. */
u64 assignments_neglected;

/* Since when a queue waits, judging by how often it was served since the last look. */
struct sw_starvation {
	u64 since;
	u32 served, seen;
};

struct sw_starvation pinned_starvation[SW_CPUS], shared_starvation;
/* Which CPU makes way when work that is not pinned has waited. */
u32 shared_turn;

/*
 * The counters of the queue of this CPU.
 *
 * Context: any.
 */
static __always_inline struct sw_starvation *starvation_of(u64 cpu)
{
	SW_HIDE(cpu);
	return &pinned_starvation[cpu & (SW_CPUS - 1)];
}

/*
 * Whether the queue, in which so many wait, has waited for too long.
 *
 * Context: timer or tick().
 */
static __always_inline bool has_starved(struct sw_starvation *p, s32 waiting, u64 now)
{
	u32 served = READ_ONCE(p->served);

	if (waiting <= 0) {
		p->since = 0;
	} else if (!p->since || served != p->seen) {
		p->since = now;
		p->seen = served;
	} else if (now - p->since >= SW_STARVATION_LIMIT) {
		p->since = 0;
		return true;
	}
	return false;
}

/*
 * A CPU is gone for this reason, or the reason is over. For the reason SW_WHY_BACKGROUND it is ordinary work's for as long as the
 * reserve says.
 *
 * Context: any without the core's lock; takes it.
 */
SW_FN int cpu_event(s32 cpu, u32 why, bool lost)
{
	unsigned long flags;
	u64 now, changed;

	if (cpu < 0 || cpu >= SW_CPUS)
		return 0;
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (why == SW_WHY_BACKGROUND)
		cpu_at(cpu)->until = lost ? now + reserve_ns : 0;
	changed = lost ? lose_cpu_locked(now, cpu, why) : regain_cpu_locked(now, cpu, why);
	commit_and_unlock(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * Whether @cpu has not run its assignment for SW_CHECK_INTERVAL although that waits in its queue. By construction it never is
 * so (managed.h); it is counted, and the CPU looks again, so that a fault of ours costs no task its life.
 *
 * Context: timer or tick(). Reads without the lock: a wrong answer costs a kick.
 */
static __always_inline bool neglects_assignment(u32 cpu, u64 now)
{
	u32 assigned = READ_ONCE(*sw_runner(&core, cpu));
	struct sw_cpu *c = cpu_at(cpu);
	u64 began = c->began;

	if (!assigned || c->current == assigned || READ_ONCE(c->gone) ||
	    scx_bpf_dsq_nr_queued(SW_QUEUE_OF_TASK(assigned & (SW_TASKS - 1))) <= 0) {
		c->awaited = 0;
		return false;
	}
	if (c->awaited != assigned || c->awaited_since != began) {
		c->awaited = assigned;
		c->awaited_since = began;
		c->awaited_at = now;
		return false;
	}
	if (now - c->awaited_at < SW_CHECK_INTERVAL)
		return false;
	c->awaited_at = now;
	return true;
}

/*
 * A CPU that fell idle in the very moment in which ordinary work was queued may not have seen it, nor was it kicked.
 *
 * Context: timer or tick(), no locks held.
 */
static __always_inline void kick_waiting_cpus(u64 now)
{
	bool shared = scx_bpf_dsq_nr_queued(SW_QUEUE_OF_ALL) > 0 ||
		      excess_waiting() > 0;
	u32 k;

	bpf_for(k, 0, cpu_count) {
		if (neglects_assignment(k, now)) {
			assignments_neglected++;
			scx_bpf_kick_cpu(k, SCX_KICK_PREEMPT);
		} else if (shared || scx_bpf_dsq_nr_queued(SW_QUEUE_OF_CPU(k)) > 0) {
			scx_bpf_kick_cpu(k, SCX_KICK_IDLE);
		}
	}
}

/*
 * Serves ordinary work that has waited too long. Returns when to check again, ns.
 *
 * Context: timer or tick(), no locks held.
 */
SW_FN u64 serve_background(void)
{
	u64 now = bpf_ktime_get_ns(), next = now + (agent_decides ? SW_HEARTBEAT_INTERVAL : SW_CHECK_INTERVAL), limited;
	bool shared;
	u32 k;

	check_heartbeat(now);
	if (requeues_due || cpus_offline)
		requeue_all_misplaced();
	requeue_killed();
	kick_waiting_cpus(now);
	forget_use(&excess_used, SW_QUEUE_OF_EXCESS);
	forget_use(&shared_used, SW_QUEUE_OF_ALL);
	survey_groups(now);
	limited = release_limited(now);
	if (limited < next)
		next = limited;
	shared = has_starved(&shared_starvation, limit_wait(SW_QUEUE_OF_ALL, now), now);
	if (shared)
		shared_turn = shared_turn + 1 < cpu_count ? shared_turn + 1 : 0;
	bpf_for(k, 0, cpu_count) {
		struct sw_cpu *c = cpu_at(k);
		bool pinned = has_starved(starvation_of(k), limit_wait(SW_QUEUE_OF_CPU(k), now), now);

		if (!reserve_ns)
			continue;
		if (c->until && c->until <= now)
			cpu_event(k, SW_WHY_BACKGROUND, false);
		else if (!c->until && (pinned || (shared && k == shared_turn)))
			cpu_event(k, SW_WHY_BACKGROUND, true);
		if (c->until && c->until < next)
			next = c->until;
	}
	return next;
}

/*
 * Lets @cpu run a throttled task as ordinary work. Whether there is one.
 *
 * Context: dispatch() of @cpu: its run queue's lock is held, and let go of while a task is moved here.
 */
static __always_inline bool pull_excess(s32 cpu)
{
	/* Those that have a budget again wait for their turn as tasks. */
	requeue_misplaced(SW_QUEUE_OF_EXCESS, 0);
	return scx_bpf_dsq_move_to_local(SW_QUEUE_OF_EXCESS, 0);
}

/*
 * Whether it is the turn of throttled tasks: they get as much of ordinary work's time as if they were part of its queues.
 *
 * Context: dispatch() of @cpu.
 */
static __always_inline bool is_turn_of_excess(s32 cpu)
{
	s32 excess = excess_waiting(), others;
	struct sw_cpu *c = cpu_at(cpu);

	if (excess <= 0)
		return false;
	others = scx_bpf_dsq_nr_queued(SW_QUEUE_OF_CPU(cpu)) + scx_bpf_dsq_nr_queued(SW_QUEUE_OF_ALL);
	c->excess_turn += excess;
	if (c->excess_turn < excess + others)
		return false;
	c->excess_turn = 0;
	return true;
}

/*
 * How far the first thread of the CPU's own queue is after its clock, ns; the most that can be if none waits.
 *
 * Context: dispatch() of @cpu, its run queue's lock held: nothing is queued there meanwhile but what is moved from other queues.
 */
static __always_inline s64 pinned_lag(s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	s64 lag;

	if (!c->pinned_waits)
		return SW_LAG_MAX;
	/* Full memory barrier; pairs with note_ordinary(). */
	__sync_lock_test_and_set(&c->pinned_waits, 0);
	lag = first_lag(SW_QUEUE_OF_CPU(cpu), pinned_clocks[cpu & (SW_CPUS - 1)].time);
	if (lag != SW_LAG_MAX)
		c->pinned_waits = 1;
	return lag;
}

/*
 * The same of the queue that all CPUs share, as far as @cpu is to look there.
 *
 * Context: any.
 */
static __always_inline s64 shared_lag(s32 cpu)
{
	return READ_ONCE(shared_used) && cpu + 1 != agent_cpu ? first_lag(SW_QUEUE_OF_ALL, shared_clock.time) : SW_LAG_MAX;
}

/*
 * How much more a thread of the CPU's own queue has had than one of the queue that all CPUs share, ns: how much further the clock of
 * the one has come than that of the other. No more counts than what a thread may be ahead, as when one of them was empty for long.
 *
 * Context: as pinned_lag().
 */
SW_FN s64 pinned_ahead(s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	s64 before = pinned_clocks[cpu & (SW_CPUS - 1)].time - READ_ONCE(shared_clock.time), ahead = before - c->pinned_base;

	if (ahead > (s64)SW_AHEAD_MAX)
		ahead = SW_AHEAD_MAX;
	else if (ahead < -(s64)SW_AHEAD_MAX)
		ahead = -(s64)SW_AHEAD_MAX;
	c->pinned_base = before - ahead;
	return ahead;
}

/*
 * Whether the ordinary work @p that @cpu runs goes on: it has had less than what waits.
 *
 * Context: as pinned_lag().
 */
static __always_inline bool goes_on(struct task_struct *p, s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	s64 own, pinned, shared;

	if (!c->ordinary_since || c->ordinary_yields || excess_waiting() > 0)
		return false;
	own = lag_of_running(cpu, scx_bpf_now());
	pinned = pinned_lag(cpu);
	shared = shared_lag(cpu);
	if (is_pinned(p))
		return own < pinned && (shared == SW_LAG_MAX || own + pinned_ahead(cpu) < shared);
	return own < shared && (pinned == SW_LAG_MAX || own < pinned + pinned_ahead(cpu));
}

/*
 * Lets @cpu run what is pinned to it. Whether something is.
 *
 * Context: as pull_background().
 */
static __always_inline bool pull_pinned(s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);

	if (!c->pinned_waits)
		return false;
	/* Full memory barrier; pairs with note_ordinary(). */
	__sync_lock_test_and_set(&c->pinned_waits, 0);
	if (!scx_bpf_dsq_move_to_local(SW_QUEUE_OF_CPU(cpu), 0)) {
		/* What may not run here now waits on. */
		if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_CPU(cpu)) > 0)
			c->pinned_waits = 1;
		return false;
	}
	c->pinned_waits = 1;
	starvation_of(cpu)->served++;
	return true;
}

/*
 * Lets @cpu run ordinary work. Whether there is any. Its own queue comes before that of all where the first thread has had less,
 * with what all of its queue have had; in every eighth turn it is otherwise, so that threads that sleep much, however many, keep neither queue waiting.
 *
 * Context: dispatch() of @cpu: its run queue's lock is held, and let go of while a task is moved here.
 */
SW_FN bool pull_background(s32 cpu)
{
	s64 shared = shared_lag(cpu), pinned;
	bool pinned_first = true;

	if (is_turn_of_excess(cpu) && pull_excess(cpu))
		return true;
	if (shared != SW_LAG_MAX && cpu_at(cpu)->pinned_waits) {
		pinned = pinned_lag(cpu);
		pinned_first = (pinned != SW_LAG_MAX && pinned + pinned_ahead(cpu) <= shared) == ((cpu_at(cpu)->turn++ & 7) != 7);
	}
	if (pinned_first && pull_pinned(cpu))
		return true;
	if (shared != SW_LAG_MAX && scx_bpf_dsq_move_to_local(SW_QUEUE_OF_ALL, 0)) {
		__sync_fetch_and_add(&shared_starvation.served, 1);
		return true;
	}
	if (excess_waiting() > 0 && pull_excess(cpu))
		return true;
	/* Also for what was queued while the lock was let go of: it sent no kick. */
	return pull_pinned(cpu);
}

#endif
