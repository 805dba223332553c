/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Managed tasks, callback by callback.
 *
 * A managed task that wants to run and does not is in exactly one queue: its own, which holds no other task. Only the
 * CPU that it is assigned to moves it from there to the CPU's local queue, in dispatch(), just before it runs. So a
 * decision that changes while the task waits concerns no queue: it kicks the CPU that is to look. Nothing else may
 * insert a managed task into a local queue: there it would wait for a CPU that may have been given another task.
 * queues.h has the exceptions: tasks that no CPU may take for now, and throttled ones that go on as ordinary work. Of those the
 * CPU that one is assigned to next finds it in their queue.
 *
 * Two orders make sure that the CPU finds it:
 * - The kernel inserts a task after ops.enqueue() has returned, with interrupts off, and a kick leaves this CPU
 *   when they are on again: the CPU that enqueue() kicks finds the task in its queue.
 * - enqueue() sets `queued` before it reads where the task is assigned, and a decision is written before the CPU reads
 *   `queued`. So either enqueue() kicks that CPU, or the CPU sees that the task is being inserted, and looks again.
 */
#ifndef SW_MANAGED_H
#define SW_MANAGED_H

#include "timers.h"
#include "observed.h"

int set_waits_locked(u64 now, u32 i, bool waits);
int on_stop(u32 i, s32 cpu, bool goes_on);

/*
 * The task wants to run.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 on_wakeup_locked(u64 now, u32 i, u32 cpu)
{
	struct sw_managed *m = managed_at(i);
	u64 changed;

	keep_before_locked(i);
	/* Where releases are known, waking up is none. */
	if (!sw_task(&core, i)->follows) {
		emit_event(SW_E_WOKEN, now, i, cpu, 0);
		m->warned_left = m->warned_budget;
	}
	changed = sw_wake(&core, i, now);
	if (m->release && sw_task(&core, i)->state == SW_UNRELEASED)
		changed |= sw_next_job(&core, i, m->release, now);
	m->release = 0;
	emit_changes_here_locked(now, i);
	return changed;
}

/*
 * The task wants to run no more.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 on_block_locked(u64 now, u32 i, u32 cpu)
{
	u64 changed;

	emit_event(SW_E_BLOCKED, now, i, cpu, 0);
	changed = sw_sleep(&core, i);
	/* Until its release: it wakes up by itself, and no timer has to. */
	if (managed_at(i)->release && sw_task(&core, i)->state == SW_UNRELEASED)
		sw_postpone(&core, i);
	return changed;
}

/*
 * The number of the thread, which was @i a moment ago: it may have been lent or given back since.
 *
 * Context: any in which @p is trusted; under the core's lock it stays so.
 */
static __always_inline u32 number_now(struct task_struct *p, u32 i)
{
	return READ_ONCE(managed_at(i)->holder) == (u64)p ? i : number_of(p);
}

/*
 * @p woke up. Also for a task that only comes back to the queues, after a change of its affinity: it was awake.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off. Takes the core's lock.
 */
static __always_inline void on_wakeup(struct task_struct *p, u32 i)
{
	u64 now, changed, release;
	u32 on;

	if (READ_ONCE(sw_task(&core, i)->awake))
		return;
	if (agent_decides) {
		agent_on_wakeup(p, i);
		return;
	}
	now = core_lock_now();
	i = number_now(p, i);
	if (!i || sw_task(&core, i)->awake) {
		/* Its admission has seen that. */
		core_unlock();
		return;
	}
	changed = on_wakeup_locked(now, i, scx_bpf_task_cpu(p));
	on = sw_task(&core, i)->on;
	release = earlier_locked(SW_TIMER_RELEASES, sw_next_replenishment(&core));
	/* Its own CPU is kicked when it is queued, which comes next. */
	commit_and_unlock_here(now, changed, on ? sw_bit(on - 1) : 0);
	arm(SW_TIMER_RELEASES, release);
}

/*
 * @p went to sleep.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off. Takes the core's lock.
 */
static __always_inline void on_block(struct task_struct *p, u32 i)
{
	u32 cpu = scx_bpf_task_cpu(p);
	u64 now;

	if (agent_decides) {
		agent_on_block(p, i);
		return;
	}
	now = core_lock_now();
	i = number_now(p, i);
	/* One that is just being admitted may run and not be awake yet. */
	commit_and_unlock(now, i && sw_task(&core, i)->awake ? on_block_locked(now, i, cpu) : 0, 0);
}

/*
 * Whether @p goes on on @cpu whatever was decided: it can run nowhere else, or the kernel is about to move it.
 *
 * Context: as on_start().
 */
static __always_inline bool may_continue(struct task_struct *p, u32 i, u32 cpu)
{
	return is_offline(cpu) || has_no_cpu(i) || is_held_elsewhere(p, i);
}

/*
 * @p, the task @i, runs on @cpu.
 *
 * Context: running() or dispatch() of @cpu, its run queue's lock held. Does not take the core's lock.
 */
static __always_inline void on_start(struct task_struct *p, u32 i, s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 now;

	on_excess_stop(cpu);
	WRITE_ONCE(managed_at(i)->outside, 0);
	/* A snapshot that does not see this is older than the event. Full memory barrier; pairs with task_snapshot(). */
	if (agent_decides)
		__sync_lock_test_and_set(&c->current, i);
	now = bpf_ktime_get_ns();
	c->began = now;
	WRITE_ONCE(c->since, now);
	WRITE_ONCE(managed_at(i)->queued, 0);
	/* Emitted first: another CPU that finds it running may emit at once that it stops. */
	emit_event(SW_E_RUNNING, now, i, cpu, 0);
	/* Written first: who finds the task running while it is assigned here interrupts it if it may be without a timer. */
	WRITE_ONCE(c->unarmed, 1);
	/* Full memory barrier; pairs with commit_and_unlock_here(). */
	__sync_lock_test_and_set(&c->current, i);
	c->unarmed = READ_ONCE(*sw_runner(&core, cpu)) != i;
	/* Pulling a task lets go of the run queue's lock; a kick in that moment met the task that ran before. */
	if (c->unarmed && !may_continue(p, i, cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	arm_budget(cpu, now, budget_left_locked(i));
}

/*
 * After on_start(): if the number was lent or given back before that could be seen there, the thread runs as something else.
 *
 * Context: as on_start(). Takes the core's lock.
 */
static __always_inline void recheck_number(struct task_struct *p, u32 i, s32 cpu)
{
	if (number_now(p, i) == i)
		return;
	on_stop(i, cpu, true);
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * @p, which @cpu runs as ordinary work, is the task @i from now on.
 *
 * Context: dispatch() of @cpu, its run queue's lock held.
 */
SW_FN int on_promotion(struct task_struct *p __arg_trusted, u32 i, s32 cpu)
{
	on_ordinary_stop(p, cpu, false);
	on_observed_stop(p, cpu);
	on_start(p, i, cpu);
	return 0;
}

/*
 * @goes_on: it would, if the CPU did. Otherwise it goes to sleep, or only changes its affinity: then it
 * runs again at once.
 *
 * Context: stopping() or dispatch() of @cpu, its run queue's lock held. Takes the core's lock.
 */
SW_FN int on_stop(u32 i, s32 cpu, bool goes_on)
{
	struct sw_task *t = sw_task(&core, i);
	u64 now, changed = 0, ran;
	bool charged = goes_on || !t->follows;

	if (agent_decides) {
		agent_on_stop(i, cpu);
		return 0;
	}
	now = core_lock_now();
	if (cpu_at(cpu)->current != i) {
		/* It was dismissed meanwhile, and all of that is emitted. */
		core_unlock();
		return 0;
	}
	keep_before_locked(i);
	ran = take_elapsed_locked(i, cpu, now);
	clear_current_locked(i, cpu, now, ran);
	/* A task that goes to sleep within a job needs no new budget for what is over. */
	if (charged)
		changed = sw_charge(&core, i, chargeable_locked(i, ran), now);
	else
		sw_spend(&core, i, chargeable_locked(i, ran));
	emit_changes_locked(now, i);
	/* A task that is preempted before it could sleep needs a timer to be released. */
	if (charged)
		commit_unlock_and_arm(now, changed, 0);
	else
		commit_and_unlock(now, changed, 0);
	return 0;
}

/*
 * The CPU runs no managed task: the one that it began to run was dismissed in that moment.
 *
 * Context: stopping() of @cpu, its run queue's lock held. Takes the core's lock.
 */
static __always_inline void on_abandoned(s32 cpu)
{
	core_lock_now();
	cpu_at(cpu)->since = 0;
	cpu_at(cpu)->current = 0;
	core_unlock();
}

/*
 * @p, which @cpu has as the task @i, is none any more, and goes on as ordinary work.
 *
 * Context: dispatch() of @cpu, its run queue's lock held. Takes the core's lock.
 */
static __always_inline void on_dismissed_stop(struct task_struct *p, u32 i, s32 cpu)
{
	if (known_number(p) == i)
		on_stop(i, cpu, true);
	else
		on_abandoned(cpu);
}

/*
 * The task gives up what is left of its budget; a task with known releases only yields the CPU. The core knows it when the CPU
 * looks for what to run, which it does next: each program that calls the core takes its time to load.
 *
 * Context: yield() on @cpu, its run queue's lock held.
 */
static __always_inline void note_yield(u32 i, s32 cpu)
{
	/* Its jobs end by the command next_job(): yielding only lets go of the CPU. */
	if (sw_task(&core, i)->follows)
		return;
	/* A loan is not its to give up. */
	if (borrower_of(i))
		return;
	/* Here it holds nothing: throttled, it waits. */
	if (READ_ONCE(sw_task(&core, i)->state) == SW_THROTTLED)
		mark_outside(i);
	cpu_at(cpu)->yields = i;
	__sync_fetch_and_or(&cpu_at(cpu)->pending, SW_PENDING_YIELD);
}

/*
 * The task that note_yield() has noted yields, if it is @i still.
 *
 * Context: stopping() or dispatch() of @cpu, its run queue's lock held. Takes the core's lock.
 */
SW_FN int on_yield(u32 i, s32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 now, changed;

	__sync_fetch_and_and(&c->pending, ~SW_PENDING_YIELD);
	if (c->yields != i)
		return 0;
	if (agent_decides) {
		agent_on_yield(i, cpu);
		return 0;
	}
	now = core_lock_now();
	keep_before_locked(i);
	changed = sw_charge(&core, i, chargeable_locked(i, take_elapsed_locked(i, cpu, now)), now);
	emit_event(SW_E_YIELDED, now, i, cpu, 0);
	changed |= sw_yield(&core, i, now);
	managed_at(i)->warned_left = managed_at(i)->warned_budget;
	emit_changes_locked(now, i);
	/* This CPU is about to look. */
	commit_unlock_and_arm(now, changed, sw_bit(cpu));
	return 0;
}

/*
 * The CPU that runs the task does so as ordinary work from now on, whichever task has its number by
 * then. The agent gets the event when that CPU stops the task.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN int stop_running_locked(u64 now, u32 i)
{
	u32 k;

	if (agent_decides)
		return 0;
	bpf_for(k, 0, SW_CPUS) {
		u64 ran;

		if (cpu_at(k)->current != i)
			continue;
		ran = take_elapsed_locked(i, k, now);
		clear_current_locked(i, k, now, ran);
		sw_spend(&core, i, chargeable_locked(i, ran));
		/* Its slice has no end. */
		scx_bpf_kick_cpu(k, SCX_KICK_PREEMPT);
	}
	return 0;
}

/*
 * The task is ordinary work from now on.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 remove_locked(u64 now, u32 i)
{
	u64 changed = agent_decides ? stop_task_locked(i) : 0;

	set_waits_locked(now, i, false);
	return changed | sw_leave(&core, i);
}

/*
 * The CPUs that the task may use have changed. Only a wider choice, or one that was approved before,
 * takes effect here; a task that asks for anything else goes on as ordinary work until user space admits it.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 change_affinity_locked(u64 now, u32 i, u64 affinity)
{
	struct sw_managed *m = managed_at(i);
	struct sw_task *t = sw_task(&core, i);

	if (affinity == t->affinity)
		return 0;
	if (affinity == READ_ONCE(m->approved) || !(t->affinity & ~affinity)) {
		emit_for_agent(SW_E_AFFINITY, now, i, SW_NO_CPU, affinity);
		return sw_set_affinity(&core, i, affinity);
	}
	stop_running_locked(now, i);
	m->demoted = 1;
	m->asked = affinity;
	emit_and_wake(SW_E_DEMOTED, now, i, SW_NO_CPU, affinity);
	return remove_locked(now, i);
}

/*
 * @mask is what the kernel lets it use now; a single CPU where it is while it may not migrate.
 *
 * Context: callback with the run queue's lock of the task held, interrupts off. Takes the core's lock.
 */
static __always_inline void on_affinity_change(u32 i, u64 affinity, u64 mask)
{
	struct sw_managed *m = managed_at(i);
	struct sw_task *t = sw_task(&core, i);
	u64 now, changed = 0, narrowed = mask == affinity ? 0 : mask;

	now = core_lock_now();
	if (t->state != SW_ABSENT) {
		/* Moments are not reported to an agent: the kernel holds the task where it is. */
		if (!agent_decides && t->narrowed != narrowed) {
			/* One that is kept on its CPU may use no other before and after. */
			if (!t->kept)
				emit_event(SW_E_NARROWED, now, i, SW_NO_CPU, narrowed);
			changed = sw_narrow(&core, i, narrowed);
		}
		changed |= change_affinity_locked(now, i, affinity);
	} else if (m->demoted && !narrowed) {
		/* What it asks for now may be granted. */
		m->asked = affinity;
		emit_and_wake(SW_E_DEMOTED, now, i, SW_NO_CPU, affinity);
	}
	commit_and_unlock(now, changed, 0);
}

/*
 * The task takes no part any more. A task that has lost its reservation, and might have had it
 * again, leaves too.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 leave_locked(u64 now, u32 i)
{
	struct sw_managed *m = managed_at(i);

	if (sw_task(&core, i)->state == SW_ABSENT) {
		if (m->demoted)
			emit_for_agent(SW_E_LEFT, now, i, SW_NO_CPU, 0);
		m->demoted = 0;
		return 0;
	}
	stop_running_locked(now, i);
	emit_for_agent(SW_E_LEFT, now, i, SW_NO_CPU, 0);
	return remove_locked(now, i);
}

/*
 * The thread of the task changes to a higher scheduling class, or is boosted to one: it wants nothing of us until it is
 * back, and keeps its part. When it is back the callbacks of a thread that wakes up follow.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off. Takes the core's lock.
 */
static __always_inline void on_class_change(struct task_struct *p, u32 i)
{
	unsigned long flags;
	u64 now, changed = 0;

	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (known_number(p) == i && sw_task(&core, i)->awake) {
		if (agent_decides) {
			sw_task(&core, i)->awake = 0;
			emit_for_agent(SW_E_BLOCKED, now, i, scx_bpf_task_cpu(p), 0);
			changed = stop_task_locked(i);
		} else {
			stop_running_locked(now, i);
			changed = on_block_locked(now, i, scx_bpf_task_cpu(p));
		}
	}
	commit_and_unlock(now, changed, 0);
	bpf_local_irq_restore(&flags);
}

/*
 * The task of this number, of @p unless that is NULL, leaves.
 *
 * Context: any without the core's lock; takes it.
 */
SW_FN int leave(struct task_struct *p __arg_trusted __arg_nullable, u32 i)
{
	unsigned long flags;
	u64 now, changed = 0;

	bpf_local_irq_save(&flags);
	now = core_lock_now();
	/* The number may have become another task's before the lock was taken. */
	if (!p || own_number(p) == i)
		changed = leave_locked(now, i);
	commit_and_unlock(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

#endif
