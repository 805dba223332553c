/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way every decision goes: core_lock_now() takes the lock and reads the clock, the core decides,
 * commit_and_unlock() emits what was decided, kicks the CPUs that should now run something else and releases the lock.
 *
 * In this folder "decided" is what the core says, `runner` of a CPU in the core; "done" is what a CPU really does, `current` of a CPU
 * here.
 */
#ifndef SW_DECIDE_H
#define SW_DECIDE_H

#include "lock.h"
#include "trace.h"

/* Priorities of the kernel below this are those of real-time and deadline threads: include/linux/sched/prio.h. */
#define SW_PRIO_ORDINARY 100

struct sw_core core;

/*
 * Whether an agent in user space decides. Then the core decides nothing: its tables only say what the
 * agent decided, `runner` of a CPU and `on` of a task, and which tasks take part. See agent.h.
 */
const volatile bool agent_decides;
/* For how long a task may be throttled, ns. */
const volatile u64 throttled_max = 1000000000;

/* What dispatch() of a CPU makes the core know. */
enum sw_pending {
	SW_PENDING_HOTPLUG = 1,	/* the CPU may have gone offline, or come back */
	SW_PENDING_RETURN = 2,	/* what it runs is ordinary work again, without a switch */
	SW_PENDING_YIELD = 4,	/* what it runs has called sched_yield() */
};

struct sw_cpu {
	u64 since;		/* when its current task was last charged; 0 if it has none */
	u64 began;		/* when it began to run that task */
	u64 until;		/* when background work has to give it back; 0 unless it has it */
	u64 ordinary_since;	/* when it began to run ordinary work; 0 if it does not */
	u64 ordinary_time;	/* virtual time of its thread at `ordinary_since`; once the thread has stopped, at that moment */
	s64 ordinary_lag;	/* `ordinary_time` at the start less the clock of the queue; 0 at most */
	u64 ordinary_max;	/* the most that `ordinary_time` may be when the thread stops */
	u64 ordinary_ran;	/* CPU time of the thread at `ordinary_since`, ns */
	u64 ordinary_inverse;	/* of the thread's weight, see inverse_of() */
	u64 ordinary_slice;	/* for how long the thread may run at once, ns */
	u64 ordinary_charged;	/* CPU time of the thread when its control groups were last charged, ns */
	u32 ordinary_stopped;	/* PID of a preempted thread that is about to be queued by `ordinary_time`; 0: none */
	u32 ordinary_timed;	/* the thread's turn ends by a timer, not by the kernel's next tick after its slice */
	u32 ordinary_yields;	/* it has called sched_yield(), and is to let others run */
	u32 current;		/* managed task that it runs */
	u32 emitted;		/* assignment that was last emitted */
	u32 gone;		/* enum sw_why, or-ed: why the core may not use it; 0 in the core's set */
	u32 turn;		/* which background queue is first */
	u32 excess_turn;	/* what throttled tasks have saved for their turn, see is_turn_of_excess() */
	u32 pending;		/* enum sw_pending, or-ed: what the core does not know yet */
	u32 yields;		/* task that called sched_yield() */
	u32 refused;		/* assignment that is in its queue but may not run here now */
	u32 excess;		/* throttled task that it runs as ordinary work */
	u32 idles;		/* it runs nothing, and nothing is on its way to it past the queues */
	u32 unarmed;		/* no timer may end the budget of `current`: it began, or its timer ended, while it was not assigned to this CPU */
	u32 pulls;		/* it takes its assignment from a queue, and lets go of its run queue's lock meanwhile */
	u32 pinned_waits;	/* its queue of ordinary work is not known to be empty */
	u32 awaited;		/* assignment that waits since a check, see neglects_assignment() */
	s64 pinned_base;	/* what the clock of its queue was before that of all when neither was ahead, see pinned_ahead() */
	u64 awaited_since;	/* `began` at that check */
	u64 awaited_at;		/* when that was */
} cpus[SW_CPUS];

/* What is known of a task beside what the core knows. */
struct sw_managed {
	u64 approved;		/* the CPUs that it may ask for without being asked back */
	u64 release;		/* of the job that it sleeps for; 0: none */
	u64 warned_budget;	/* of a job, of a task that is only warned; 0: none */
	s64 warned_left;	/* what the present job has left of `warned_budget` */
	u64 thread;		/* address of the thread that was admitted by the number last; its PID may change */
	u64 holder;		/* address of the thread that runs as the task: `thread`, or one to which the number is lent; 0: none now */
	u32 pid;		/* PID of `thread` */
	u32 borrower_pid;	/* PID of the thread to which the number was lent last */
	u32 observation;	/* grows with each: by which one the number is observed, see observed.h */
	u32 demoted;		/* it lost its reservation, until it is admitted again */
	u64 asked;		/* the CPUs that it asked for last, if it is `demoted` */
	u64 ran;		/* for how long it ran, ns; only where an agent decides */
	u32 stops;		/* how often it emptied its slot; only where an agent decides */
	u32 finished;		/* how many jobs it has finished, by next_job(); only where an agent decides */
	u32 observes;		/* the number is that of an observation, see observed.h */
	u32 queued;		/* it is in its queue or that of excess, or will be in a moment; until it runs */
	u32 budgeting;		/* enum sw_budgeting */
	u32 excess_on;		/* CPU + 1 that runs it as ordinary work while it is throttled */
	u32 awaits_trigger;	/* it has no job, and the next one is released by a trigger */
	u32 triggers;		/* how often it was triggered, with effect or not */
	u32 waits;		/* its thread waits for a lock with priority inheritance, see inherit.h */
	u32 borrows;		/* its thread has another number by a loan, or had until it is checked */
	u32 lends_to;		/* number of the borrower's own; 0: it has none */
	u32 narrowed;		/* its affinity may be narrowed to the CPUs that its borrower may use */
	u32 outside;		/* throttled, it yielded or was about to return to user mode; until it runs or sleeps */
} managed[SW_TASKS];

/*
 * The tasks that may be `outside`, a bit each, so that a timer need not look at all. Set after `outside` is; the timer
 * clears the bits of those that are not.
 */
u64 tasks_outside[SW_TASKS / 64];
/* One more than the highest number that a task has had. Written under the lock. */
u32 numbers_end;

struct sw_storage {
	u32 number;		/* of the core, by which it was admitted last; 0 for background work */
	u32 borrowed;		/* the number that it had by a loan last */
	u32 observed;		/* the number by which it is observed; 0 if it is not */
	u32 observation;	/* by which observation it has that */
	u64 runs_since;		/* while it runs and is observed; else 0 */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sw_storage);
} storage SEC(".maps");

/*
 * What is known of a CPU; any number is in range.
 *
 * Context: any.
 */
static __always_inline struct sw_cpu *cpu_at(u64 cpu)
{
	SW_HIDE(cpu);
	return &cpus[cpu & (SW_CPUS - 1)];
}

/*
 * What is known of a task beside what the core knows; any number is in range.
 *
 * Context: any.
 */
static __always_inline struct sw_managed *managed_at(u64 number)
{
	SW_HIDE(number);
	return &managed[number & (SW_TASKS - 1)];
}

/*
 * The number by which the thread was admitted, taking part or not; 0: none. A number is used again once its
 * task has left: the thread that had it before, and may still live, has none.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline u32 own_number(struct task_struct *p)
{
	struct sw_storage *s;

	if (!p->bpf_storage)
		return 0;
	s = bpf_task_storage_get(&storage, p, 0, 0);
	return s && s->number && READ_ONCE(managed_at(s->number)->thread) == (u64)p ? s->number : 0;
}

/*
 * The number of the managed task as which the thread runs, taking part or not: its own, or one that is lent to it. 0 for
 * background work.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline u32 known_number(struct task_struct *p)
{
	struct sw_storage *s;

	/* Of most threads nothing is kept. A task may wait for the CPU of one of these, and the look-up takes longer. */
	if (!p->bpf_storage)
		return 0;
	s = bpf_task_storage_get(&storage, p, 0, 0);
	if (!s)
		return 0;
	if (s->number && READ_ONCE(managed_at(s->number)->holder) == (u64)p)
		return s->number;
	return s->borrowed && READ_ONCE(managed_at(s->borrowed)->holder) == (u64)p ? s->borrowed : 0;
}

/*
 * The thread to which the task's number is lent; 0: none.
 *
 * Context: any.
 */
static __always_inline u64 borrower_of(u32 i)
{
	const struct sw_managed *m = managed_at(i);
	u64 holder = READ_ONCE(m->holder);

	return holder != READ_ONCE(m->thread) ? holder : 0;
}

/*
 * The number of a task that takes part; 0 for all that runs in the background.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline u32 number_of(struct task_struct *p)
{
	u32 i = known_number(p);

	return i && READ_ONCE(sw_task(&core, i)->state) != SW_ABSENT ? i : 0;
}

/*
 * Takes the core's lock. Returns the instant, read under the lock, so that instants of events never go back.
 *
 * Context: interrupts off, no spinning lock of BPF held.
 */
static __always_inline u64 core_lock_now(void)
{
	core_lock();
	return bpf_ktime_get_ns();
}

/* What the present decision may change of its task, as it was before. Under the core's lock. */
struct sw_task_before {
	u64 throttled, replenished;
	u32 state;
} task_before;

/*
 * Keeps what the decision that follows may change of a task, for emit_changes_locked().
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void keep_before_locked(u32 i)
{
	const struct sw_task *t = sw_task(&core, i);

	task_before.throttled = t->throttled;
	task_before.replenished = t->replenished;
	task_before.state = t->state;
}

/*
 * Emits what the decision has changed of the task since keep_before_locked().
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void emit_changes_here_locked(u64 now, u32 i)
{
	const struct sw_task *t = sw_task(&core, i);

	if (t->replenished != task_before.replenished)
		emit_event(SW_E_REPLENISHED, now, i, SW_NO_CPU, t->deadline);
	if (t->throttled != task_before.throttled && managed_at(i)->budgeting == SW_BUDGET_SIGNALS)
		emit_and_wake(SW_E_SPENT, now, i, SW_NO_CPU, 0);
	else if (t->throttled != task_before.throttled)
		emit_event(SW_E_SPENT, now, i, SW_NO_CPU, 0);
	if (t->state == SW_READY && task_before.state != SW_READY)
		write_here(BPF_RB_NO_WAKEUP, SW_E_READY, now, i, SW_NO_CPU, t->deadline);
}

/*
 * emit_changes_here_locked(), once for all decisions but the most frequent one.
 *
 * Context: as emit_changes_here_locked().
 */
SW_FN int emit_changes_locked(u64 now, u32 i)
{
	emit_changes_here_locked(now, i);
	return 0;
}

/*
 * Ends what core_lock_now() began. @except are CPUs that look for their assignment anyway.
 *
 * Context: core's lock held, interrupts off. Releases the lock.
 */
static __always_inline void commit_and_unlock_here(u64 now, u64 changed, u64 except)
{
	while (changed && can_loop) {
		struct sw_cpu *c;
		u32 cpu, runner;

		cpu = sw_lowest(changed);
		changed &= changed - 1;
		c = cpu_at(cpu);
		runner = *sw_runner(&core, cpu);
		if (c->emitted != runner) {
			/* Full memory barrier: `runner` is written, `current` is read below; pairs with on_start(). */
			__sync_lock_test_and_set(&c->emitted, runner);
			c->refused = 0;
			if (!agent_decides)
				write_here(BPF_RB_NO_WAKEUP, SW_E_ASSIGNED, now, runner, cpu, 0);
		}
		/* One that is not armed runs on, but has to look what it has left: see pull_assigned(). */
		if ((c->current != runner || c->unarmed) && !(except & sw_bit(cpu)))
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	core_unlock();
}

/*
 * commit_and_unlock_here(), once for all decisions but the most frequent one.
 *
 * Context: as commit_and_unlock_here().
 */
SW_FN int commit_and_unlock(u64 now, u64 changed, u64 except)
{
	commit_and_unlock_here(now, changed, except);
	return 0;
}

/*
 * The time since the current task of @cpu was last charged is charged once, by the first
 * caller under the lock. Returns that time.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN u64 take_elapsed_locked(u32 i, u32 cpu, u64 now)
{
	struct sw_cpu *c = cpu_at(cpu);
	struct sw_managed *m = managed_at(i);
	u64 ran = 0;

	if (c->current == i && c->since && now > c->since)
		ran = now - c->since;
	c->since = now;
	if (m->warned_budget && m->warned_left > 0) {
		m->warned_left -= ran;
		if (m->warned_left <= 0)
			emit_for_agent(SW_E_OVERRUN, now, i, cpu, 0);
	}
	return ran;
}

/*
 * How much of that is charged. A task that overdraws its budget waits for as many periods as make that good; but after a
 * standstill of the machine that must not take so long that the kernel's watchdog ends the scheduler.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN u64 chargeable_locked(u32 i, u64 ran)
{
	const struct sw_task *t = sw_task(&core, i);
	u64 periods;
	s64 most;

	if (!t->budget || !t->period)
		return ran;
	periods = throttled_max / t->period;
	most = t->left + (s64)((periods ? periods - 1 : 0) * t->budget);
	if (most < 0)
		return 0;
	return ran > most ? most : ran;
}

/*
 * The CPU runs the task no more.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void clear_current_locked(u32 i, u32 cpu, u64 now, u64 ran)
{
	struct sw_cpu *c = cpu_at(cpu);

	c->since = 0;
	c->current = 0;
	/* It may have begun while the lock was waited for. */
	if (now < c->began)
		now = c->began;
	/* What was charged before has been emitted to an agent. */
	if (!agent_decides)
		ran = now - c->began;
	emit_event(SW_E_STOPPED, now, i, cpu, ran);
}

/*
 * Where an agent decides: the CPU has no task until the agent says otherwise. Returns it if it had one.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 empty_slot_locked(u32 cpu)
{
	u32 i = *sw_runner(&core, cpu);

	if (!i)
		return 0;
	*sw_runner(&core, cpu) = 0;
	sw_task(&core, i)->on = 0;
	return sw_bit(cpu);
}

/*
 * A CPU is gone or back. An agent has to know at once; otherwise user space is not woken for what passes by itself:
 * threads of interrupts take CPUs thousands of times in a second.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void emit_cpu_event_locked(u32 kind, u64 now, u32 cpu, u32 why)
{
	if (agent_decides || why == SW_WHY_OFFLINE)
		emit_for_agent(kind, now, 0, cpu, why);
	else
		emit_event(kind, now, 0, cpu, why);
}

/*
 * The core may not use the CPU from now on, for a reason.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 lose_cpu_locked(u64 now, u32 cpu, u32 why)
{
	struct sw_cpu *c = cpu_at(cpu);
	u32 was = c->gone;

	if (was & why)
		return 0;
	c->gone = was | why;
	emit_cpu_event_locked(SW_E_CPU_LOST, now, cpu, why);
	if (agent_decides)
		return empty_slot_locked(cpu);
	return was ? 0 : sw_cpu_leave(&core, cpu);
}

/*
 * The reason is no more. The core may use the CPU again if there is no other.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 regain_cpu_locked(u64 now, u32 cpu, u32 why)
{
	struct sw_cpu *c = cpu_at(cpu);

	if (!(c->gone & why))
		return 0;
	c->gone &= ~why;
	emit_cpu_event_locked(SW_E_CPU_BACK, now, cpu, why);
	if (agent_decides)
		return 0;
	return c->gone ? 0 : sw_cpu_join(&core, cpu);
}

#endif
