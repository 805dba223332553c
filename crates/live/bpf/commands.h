/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of user space: configuration, admission and dismissal of tasks, and the end of jobs, which the
 * threads that `run` starts call themselves. Each returns 0, or a negative error number.
 */
#ifndef SW_COMMANDS_H
#define SW_COMMANDS_H

#include "inherit.h"
#include "observed.h"
#include "mutexes.h"

/*
 * Whether the core may use the CPU; if not, notes why: it is none of the scheduler's (not @ours), or not @online.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline bool init_cpu_locked(u64 now, u32 cpu, bool ours, bool online)
{
	if (!ours) {
		cpu_at(cpu)->gone |= SW_WHY_NOT_OURS;
		return false;
	}
	if (!online) {
		cpus_offline |= sw_bit(cpu);
		lose_cpu_locked(now, cpu, SW_WHY_OFFLINE);
	}
	return !cpu_at(cpu)->gone;
}

/*
 * Which CPUs the core decides about, and by which order. Called once, before tasks are admitted.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int configure(struct sw_configure *a)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	u64 cpus = a->cpus, there = 0, now;
	unsigned long flags;
	u32 order = a->order, k;

	bpf_local_irq_save(&flags);
	now = core_lock_now();
	bpf_for(k, 0, SW_CPUS)
		if (init_cpu_locked(now, k, cpus & sw_bit(k), k < cpu_count && bpf_cpumask_test_cpu(k, online)))
			there |= sw_bit(k);
	sw_init(&core, order, there);
	core_unlock();
	bpf_local_irq_restore(&flags);
	scx_bpf_put_cpumask(online);
	return 0;
}

/*
 * Which CPUs share a cache with one.
 *
 * Context: task context, before tasks are admitted.
 */
static __always_inline int set_cache(struct sw_cache *a)
{
	u32 cpu = a->cpu;

	if (cpu >= SW_CPUS)
		return -ERANGE;
	*sw_mates(&core, cpu) = a->mates;
	return 0;
}

/* Of a task: include/linux/sched.h. */
#define SW_TASK_RUNNING	0
#define SW_TASK_WAKING	0x200

/*
 * It is awake, and not on its way to sleep, which its callbacks have handled already.
 *
 * Context: as is_awake().
 */
static __always_inline bool stays_awake(struct task_struct *p)
{
	u32 state = p->__state;

	return is_awake(p) && (state == SW_TASK_RUNNING || state == SW_TASK_WAKING);
}

/*
 * Whether the thread may come in so: the task is not in already, nor an observation, and if it lost its reservation by asking for
 * other CPUs, this is its thread and these are what it asked for last. An answer that comes late would bind it
 * to where it cannot run.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline bool may_enter_locked(struct task_struct *p, u32 i, u64 affinity)
{
	const struct sw_managed *m = managed_at(i);

	if (sw_task(&core, i)->state != SW_ABSENT || m->observes)
		return false;
	return !m->demoted || (m->asked == affinity && own_number(p) == i);
}

/* What is written before is seen by others before anything is read after. */
u32 fence;

/*
 * The task is what its thread is by now: awake or asleep, and bound as it is.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 sync_thread_state_locked(u64 now, struct task_struct *p, u32 i)
{
	bool slept = sw_task(&core, i)->awake && !is_awake(p);
	u64 changed = 0;

	if (slept) {
		changed = on_block_locked(now, i, SW_NO_CPU);
		/* If it has just woken up, its callback may have taken it for awake and emitted nothing. */
		__sync_lock_test_and_set(&fence, 1);
	}
	/* One that has woken up since may be on its way to sleep again: of that its callbacks wait for the lock. */
	if (!sw_task(&core, i)->awake && (slept ? is_awake(p) : stays_awake(p)))
		changed |= on_wakeup_locked(now, i, SW_NO_CPU);
	return changed | change_affinity_locked(now, i, p->cpus_mask.bits[0]);
}

/*
 * Moves the thread of @i to the queue of its task, and replays the callbacks that it missed as ordinary work.
 *
 * Context: task context, no locks held. Takes the core's lock.
 */
SW_FN int replay_missed_callbacks(struct task_struct *p __arg_trusted, u32 i)
{
	unsigned long flags;
	u64 now, changed = 0;
	u32 on;

	/* Before a CPU is assigned: the caller may be preempted here for long, and that CPU would look for the thread in vain. */
	requeue_thread(p, i);
	bpf_local_irq_save(&flags);
	if (!agent_decides) {
		now = core_lock_now();
		/* May end its part: it may be bound to other CPUs by now. */
		if (number_of(p) == i)
			changed = sync_thread_state_locked(now, p, i);
		commit_unlock_and_arm(now, changed, 0);
	}
	on = READ_ONCE(sw_task(&core, i)->on);
	if (on)
		scx_bpf_kick_cpu(on - 1, SCX_KICK_PREEMPT);
	/* A thread that runs as ordinary work is stopped, to wait for its turn. */
	if (scx_bpf_task_running(p) && cpu_at(scx_bpf_task_cpu(p))->current != i)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
	bpf_local_irq_restore(&flags);
	if (number_of(p) != i)
		requeue_misplaced(SW_QUEUE_OF_TASK(i), 0);
	return 0;
}

/*
 * Whether the thread has another number: one that takes part, or might again.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline bool has_other_number_locked(struct task_struct *p, u32 i)
{
	u32 known = own_number(p);

	return known && known != i &&
	       (sw_task(&core, known)->state != SW_ABSENT || managed_at(known)->demoted);
}

/*
 * A thread becomes the managed task of this number. -ESRCH: no such thread, or another one is meant; -EBUSY: it has
 * another number; -EALREADY: it takes part already; -EINVAL: budget, period or deadline are none.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int admit(struct sw_admit *a)
{
	u32 i = a->task, thread = a->thread, priority = a->priority, start = a->start;
	u64 affinity = a->affinity, now, changed;
	u64 budget = a->budget, period = a->period, deadline = a->deadline;
	u32 budgeting = a->budgeting, borrowed;
	bool follows = a->follows, warned = budgeting == SW_BUDGET_WARNED;
	struct sw_managed *m = managed_at(i);
	struct sw_storage *s;
	struct task_struct *p;
	unsigned long flags;
	int error = 0;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	p = bpf_task_from_vpid(thread);
	if (!p)
		return -ESRCH;
	s = bpf_task_storage_get(&storage, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s) {
		bpf_task_release(p);
		return -ENOMEM;
	}
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (has_other_number_locked(p, i))
		error = -EBUSY;
	else if (own_number(p) == i && sw_task(&core, i)->state != SW_ABSENT)
		error = -EALREADY;
	else if (!may_enter_locked(p, i, affinity))
		error = -ESRCH;
	if (error) {
		core_unlock();
		bpf_local_irq_restore(&flags);
		bpf_task_release(p);
		return error;
	}
	/* Before the thread can be queued as this task. */
	m->queued = 0;
	if (i >= numbers_end)
		WRITE_ONCE(numbers_end, i + 1);
	if (m->demoted)
		changed = sw_enter_again(&core, i, affinity, start);
	else
		changed = sw_enter(&core, i, affinity, start);
	if (follows)
		sw_follow(&core, i);
	if (sw_set_server(&core, i, warned ? 0 : budget, period, deadline)) {
		changed |= sw_leave(&core, i);
		error = -EINVAL;
	} else {
		emit_event(SW_E_ENTERED, now, i, SW_NO_CPU, affinity);
		sw_task(&core, i)->priority = priority;
		m->approved = affinity;
		m->warned_budget = warned ? budget : 0;
		m->warned_left = m->warned_budget;
		m->budgeting = budgeting;
		m->outside = m->excess_on = 0;
		m->narrowed = 0;
		m->demoted = 0;
		m->release = 0;
		m->awaits_trigger = 0;
		forget_triggers_locked(i);
		borrowed = known_number(p);
		/* Its own of before is none that is lent to it. */
		if (borrowed == s->number)
			borrowed = 0;
		s->number = i;
		m->pid = p->pid;
		m->thread = (u64)p;
		WRITE_ONCE(m->holder, borrowed ? 0 : (u64)p);
		m->borrows = borrowed != 0;
		if (borrowed) {
			managed_at(borrowed)->lends_to = i;
			mark_loan(i);
		}
		if (agent_decides) {
			a->awake = sw_task(&core, i)->awake = is_awake(p);
			m->ran = m->stops = m->finished = 0;
		}
	}
	commit_unlock_and_arm(now, changed, 0);
	bpf_local_irq_restore(&flags);
	if (!error)
		replay_missed_callbacks(p, i);
	bpf_task_release(p);
	return error;
}

/*
 * The second half of an admission, when all is over that the kernel was doing with the thread before its
 * callbacks could know its number.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int settle(struct sw_admit *a)
{
	u32 i = a->task, thread = a->thread;
	struct task_struct *p;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	p = bpf_task_from_vpid(thread);
	if (!p)
		return -ESRCH;
	/* Its part may have ended meanwhile: then it may still be in the queue of its task. */
	if (known_number(p) == i)
		replay_missed_callbacks(p, i);
	bpf_task_release(p);
	return 0;
}

/*
 * The calling thread's job is finished.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int next_job(struct sw_job *a)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 i = a->task, cpu;
	u64 release = a->release, now, changed;
	bool sleeps = a->sleeps && release < SW_ON_TRIGGER;
	struct sw_managed *m = managed_at(i);
	unsigned long flags;

	a->held = 0;
	a->triggers = 0;
	if (!i || number_of(p) != i) {
		/* The triggers have been announced to the threads of their tasks, so they have to be executed. */
		affect(a, false);
		return -ESRCH;
	}
	bpf_local_irq_save(&flags);
	cpu = scx_bpf_task_cpu(p);
	if (agent_decides && release != SW_NEVER) {
		/* Before: the agent then sees those that are counted before the end of the job. */
		a->triggers = READ_ONCE(m->triggers);
		agent_next_job(i, cpu, release);
		trigger_all(a, bpf_ktime_get_ns(), SW_AT_COMPLETION);
		bpf_local_irq_restore(&flags);
		/* It waits until the agent decides that it may go on. */
		a->held = 1;
		return 0;
	}
	now = core_lock_now();
	keep_before_locked(i);
	sw_spend(&core, i, chargeable_locked(i, take_elapsed_locked(i, cpu, now)));
	take_unlocks_locked(a);
	sw_unlock_last(&core, &mutexes, i, now);
	if (release == SW_NEVER) {
		emit_for_agent(SW_E_LAST_JOB, now, i, cpu, 0);
		changed = leave_locked(now, i);
		changed |= sw_pass_all(&core, &mutexes, now);
	} else {
		emit_event(SW_E_NEXT_JOB, now, i, cpu, release);
		m->warned_left = m->warned_budget;
		m->release = sleeps ? release : 0;
		if (release == SW_ON_TRIGGER) {
			release = next_triggered_locked(i);
			a->sleeps = release == SW_NEVER;
			a->triggers = m->triggers;
		}
		changed = sw_complete(&core, &mutexes, i, release, now);
		task_before.state = SW_BLOCKED;
		emit_changes_locked(now, i);
	}
	changed |= trigger_all(a, now, SW_AT_COMPLETION);
	a->held = a->release != SW_NEVER && *sw_runner(&core, cpu) != i;
	/* It lets go of this CPU itself when the program is over: within, it could not migrate. */
	if (sleeps)
		commit_and_unlock(now, changed, sw_bit(cpu));
	else
		commit_unlock_and_arm(now, changed, sw_bit(cpu));
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * The first job of a task that is not running yet.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int first_job(struct sw_job *a)
{
	u32 i = a->task;
	u64 release = a->release, now, changed;
	unsigned long flags;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (release == SW_ON_TRIGGER)
		release = next_triggered_locked(i);
	keep_before_locked(i);
	changed = sw_next_job(&core, i, release, now);
	emit_changes_locked(now, i);
	commit_unlock_and_arm(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * The task takes no part any more and goes on in the background. A thread that was just being queued for the last time
 * as this task is found by calling again when that is over.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int dismiss(struct sw_change *a)
{
	u32 i = a->task;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	leave(NULL, i);
	requeue_misplaced(SW_QUEUE_OF_TASK(i), 0);
	requeue_misplaced(SW_QUEUE_OF_EXCESS, 0);
	return 0;
}

/*
 * The task may ask for these CPUs.
 *
 * Context: task context, no locks held (BPF_PROG_RUN), and not beside admit() of the same task. Does not need the core's lock: it
 * stores one word, so change_affinity_locked() reads the old or the new set, both of which were approved. User space binds the thread
 * after this, and what it asks for by that reads the new one.
 */
static __always_inline int approve(struct sw_change *a)
{
	u32 i = a->task;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	WRITE_ONCE(managed_at(i)->approved, a->value);
	return 0;
}

/*
 * The task has this priority from now on.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int set_priority(struct sw_change *a)
{
	u32 i = a->task, priority = a->value;
	unsigned long flags;
	u64 now, changed;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	emit_event(SW_E_PRIORITY, now, i, SW_NO_CPU, priority);
	changed = sw_set_priority(&core, i, priority);
	commit_and_unlock(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * Budget, period and relative deadline of the jobs to come.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int set_server(struct sw_admit *a)
{
	u32 i = a->task;
	u64 budget = a->budget, period = a->period, deadline = a->deadline;
	u32 budgeting = a->budgeting;
	bool warned = budgeting == SW_BUDGET_WARNED;
	unsigned long flags;
	int error = 0;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	bpf_local_irq_save(&flags);
	core_lock_now();
	if (sw_set_server(&core, i, warned ? 0 : budget, period, deadline)) {
		error = -EINVAL;
	} else {
		managed_at(i)->warned_budget = warned ? budget : 0;
		managed_at(i)->budgeting = budgeting;
	}
	core_unlock();
	bpf_local_irq_restore(&flags);
	return error;
}

/*
 * Where the kernel has no timers: does all that is due, and says when to call again. A task may wait for what this does, and it may run on
 * that task's CPU.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int tick(struct sw_tick *a)
{
	static u64 background_at, loans_at;
	u64 next, now;
	u32 k;

	WRITE_ONCE(due, SW_NEVER);
	next = release_all();
	now = bpf_ktime_get_ns();
	/* Full memory barrier; pairs with arm(). */
	if (__sync_lock_test_and_set(&background_asked, 0) || now >= background_at ||
	    now >= READ_ONCE(armed[SW_TIMER_BACKGROUND]))
		background_at = serve_background();
	if (background_at < next)
		next = background_at;
	/* A thread may wait for it that was not in its queue yet. */
	if (READ_ONCE(armed[SW_TIMER_BACKGROUND]) < next)
		next = READ_ONCE(armed[SW_TIMER_BACKGROUND]);
	if (now >= loans_at || now >= READ_ONCE(armed[SW_TIMER_LOANS]))
		loans_at = check_loans();
	if (loans_at < next)
		next = loans_at;
	bpf_for(k, 0, cpu_count) {
		s64 left = READ_ONCE(cpu_at(k)->current) ? check_budget(k) : 0;

		if (!left)
			left = turn_left(k);
		if (!left)
			continue;
		now = bpf_ktime_get_ns();
		if (now + left < next)
			next = now + left;
	}
	WRITE_ONCE(due, next);
	a->next = next;
	return 0;
}

#endif
