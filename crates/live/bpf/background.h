/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ordinary work: everything that is not managed. It runs where no managed task is assigned: from a
 * queue of the CPU's own if it is pinned there, otherwise from one that all CPUs share.
 *
 * On a CPU that managed tasks keep busy it waits. After SW_PATIENCE the CPU leaves the core's set for
 * as long as the reserve says, or until nothing waits any more.
 */
#ifndef SW_BACKGROUND_H
#define SW_BACKGROUND_H

#include "agent.h"

#define SW_QUEUE_OF_TASK(i)	(0x10000ULL + (i))
#define SW_QUEUE_OF_CPU(cpu)	(0x20000ULL + (cpu))
#define SW_QUEUE_OF_ALL		0x30000ULL

#define SW_SLICE	5000000ULL
#define SW_PATIENCE	1000000000ULL
/* Interval between checks for waiting background work, ns: no count is kept where work is queued. */
#define SW_LOOK		100000000ULL
/* For how long a CPU that takes no tasks is not tried again, ns. */
#define SW_REFUSAL	1000000ULL

/* CPUs of the machine. */
const volatile u32 cpu_count = 1;
/* What waiting background work gets of each second, ns; 0: nothing. */
u64 reserve_ns;
/* How often a CPU was found not to run its assignment although that waited; a fault of ours. */
u64 assignments_neglected;

/* Since when a queue waits, judging by how often it was served since the last look. */
struct sw_patience {
	u64 since;
	u32 served, seen;
};

struct sw_patience pinned_patience[SW_CPUS], shared_patience;
/* Which CPU makes way when work that is not pinned has waited. */
u32 shared_turn;

static __always_inline struct sw_patience *patience_of(u64 cpu)
{
	SW_HIDE(cpu);
	return &pinned_patience[cpu & (SW_CPUS - 1)];
}

/* Whether the queue has waited for too long. */
static __always_inline bool is_at_end(struct sw_patience *p, u64 queue, u64 now)
{
	u32 served = READ_ONCE(p->served);

	if (scx_bpf_dsq_nr_queued(queue) <= 0) {
		p->since = 0;
	} else if (!p->since || served != p->seen) {
		p->since = now;
		p->seen = served;
	} else if (now - p->since >= SW_PATIENCE) {
		p->since = 0;
		return true;
	}
	return false;
}

/* The CPU is background work's for a while, or no more. */
static __always_inline void give_cpu(u32 cpu, bool to_background)
{
	struct sw_cpu *c = cpu_at(cpu);
	unsigned long flags;
	u64 now, changed;

	bpf_local_irq_save(&flags);
	now = begin();
	if (to_background) {
		c->until = now + reserve_ns;
		changed = lose_cpu(now, cpu, SW_WHY_BACKGROUND);
	} else {
		c->until = 0;
		changed = regain_cpu(now, cpu, SW_WHY_BACKGROUND);
	}
	conclude(now, changed, 0);
	bpf_local_irq_restore(&flags);
}

/*
 * The kernel lets no task in on the CPU, or may again. One that goes offline does not for as long as all RCU readers take,
 * before ops.cpu_offline() is called; one that comes back, for a moment after ops.cpu_online(). A reader that waits for such
 * a CPU would wait for ever.
 */
static __always_inline void set_refusing(u32 cpu, bool refuses)
{
	struct sw_cpu *c = cpu_at(cpu);
	unsigned long flags;
	u64 now, changed;

	bpf_local_irq_save(&flags);
	now = begin();
	if (refuses) {
		c->refuses_until = now + SW_REFUSAL;
		changed = lose_cpu(now, cpu, SW_WHY_REFUSING);
	} else {
		c->refuses_until = 0;
		changed = regain_cpu(now, cpu, SW_WHY_REFUSING);
	}
	conclude(now, changed, 0);
	bpf_local_irq_restore(&flags);
}

/* Tries CPUs again that took no tasks. Returns when to do that next, at @next at the latest. */
static __always_inline u64 retry_refusing(u64 now, u64 next)
{
	u32 k;

	bpf_for(k, 0, cpu_count) {
		struct sw_cpu *c = cpu_at(k);

		if (c->refuses_until && c->refuses_until <= now)
			set_refusing(k, false);
		if (c->refuses_until && c->refuses_until < next)
			next = c->refuses_until;
	}
	return next;
}

/*
 * Moves a thread, 0: the first, from one of the queues into another. Rare, so the queue may be searched.
 * The CPU where it may run can be idle, and nothing else would make it look.
 *
 * Context: dispatch() of a CPU; or no lock held and interrupts on.
 */
static __always_inline bool requeue(u64 from, u64 to, u32 thread, u64 slice)
{
	struct task_struct *p;
	bool moved = false;
	s32 cpu;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, from, 0) {
		if (thread && p->pid != thread)
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice);
		moved = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, to, 0);
		if (to == SW_QUEUE_OF_ALL) {
			cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
			scx_bpf_kick_cpu(cpu >= 0 ? cpu : scx_bpf_task_cpu(p), SCX_KICK_IDLE);
		}
		break;
	}
	bpf_rcu_read_unlock();
	return moved;
}

/* Whether a task may use none of the CPUs that there are for tasks now. */
static __always_inline bool has_no_cpu(u32 i)
{
	return !(READ_ONCE(sw_task(&core, i)->affinity) & READ_ONCE(core.online));
}

/*
 * Tasks that have no CPU any more wait as ordinary work, for any CPU that the kernel lets them use: one of them may be what
 * the kernel waits for before it lets the CPU go, and before it says so.
 *
 * Context: dispatch() of a CPU that takes no tasks.
 */
static __always_inline void let_waiting_go(void)
{
	u32 k;

	bpf_for(k, 1, SW_TASKS)
		if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_TASK(k)) > 0 && has_no_cpu(k))
			requeue(SW_QUEUE_OF_TASK(k), SW_QUEUE_OF_ALL, 0, SW_SLICE);
}

/*
 * Whether @cpu has not run its assignment since the last call although that waits in its queue. By construction it never is
 * so (managed.h); it is counted, and the CPU looks again, so that a fault of ours costs no task its life.
 */
static __always_inline bool neglects_assignment(u32 cpu)
{
	u32 assigned = READ_ONCE(*sw_runner(&core, cpu));
	struct sw_cpu *c = cpu_at(cpu);
	u64 began = c->began;
	bool again;

	if (!assigned || c->current == assigned || READ_ONCE(c->gone) ||
	    scx_bpf_dsq_nr_queued(SW_QUEUE_OF_TASK(assigned & (SW_TASKS - 1))) <= 0) {
		c->awaited = 0;
		return false;
	}
	again = c->awaited == assigned && c->awaited_since == began;
	c->awaited = assigned;
	c->awaited_since = began;
	return again;
}

/* A CPU that fell idle in the very moment in which ordinary work was queued may not have seen it, nor was it kicked. */
static __always_inline void remind_cpus(void)
{
	bool shared = scx_bpf_dsq_nr_queued(SW_QUEUE_OF_ALL) > 0;
	u32 k;

	bpf_for(k, 0, cpu_count) {
		if (neglects_assignment(k)) {
			assignments_neglected++;
			scx_bpf_kick_cpu(k, SCX_KICK_PREEMPT);
		} else if (shared || scx_bpf_dsq_nr_queued(SW_QUEUE_OF_CPU(k)) > 0) {
			scx_bpf_kick_cpu(k, SCX_KICK_IDLE);
		}
	}
}

/* Looks who waits. Returns when to look again. */
static __always_inline u64 serve_background(void)
{
	u64 now = bpf_ktime_get_ns(), next = now + (agent_decides ? SW_LISTEN : SW_LOOK);
	bool shared;
	u32 k;

	listen_to_agent(now);
	remind_cpus();
	next = retry_refusing(now, next);
	if (!reserve_ns)
		return next;
	shared = is_at_end(&shared_patience, SW_QUEUE_OF_ALL, now);
	if (shared)
		shared_turn = shared_turn + 1 < cpu_count ? shared_turn + 1 : 0;
	bpf_for(k, 0, cpu_count) {
		struct sw_cpu *c = cpu_at(k);
		bool pinned = is_at_end(patience_of(k), SW_QUEUE_OF_CPU(k), now);

		if (c->until && c->until <= now)
			give_cpu(k, false);
		else if (!c->until && (pinned || (shared && k == shared_turn)))
			give_cpu(k, true);
		if (c->until && c->until < next)
			next = c->until;
	}
	return next;
}

/* Queues a task that is not managed. */
static __always_inline void queue_background(struct task_struct *p, u64 flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	if (p->nr_cpus_allowed == 1 || is_migration_disabled(p)) {
		scx_bpf_dsq_insert(p, SW_QUEUE_OF_CPU(cpu), SW_SLICE, flags);
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}
	scx_bpf_dsq_insert(p, SW_QUEUE_OF_ALL, SW_SLICE, flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Lets @cpu run background work. Whether there is any. */
static __always_inline bool take_background(s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	bool pinned_first = c->turn++ & 1;

	/* In turns, so that neither queue can keep the other waiting. */
	if (pinned_first && scx_bpf_dsq_move_to_local(SW_QUEUE_OF_CPU(cpu), 0)) {
		patience_of(cpu)->served++;
		return true;
	}
	if (cpu + 1 != agent_cpu && scx_bpf_dsq_move_to_local(SW_QUEUE_OF_ALL, 0)) {
		__sync_fetch_and_add(&shared_patience.served, 1);
		return true;
	}
	if (!pinned_first && scx_bpf_dsq_move_to_local(SW_QUEUE_OF_CPU(cpu), 0)) {
		patience_of(cpu)->served++;
		return true;
	}
	return false;
}

#endif
