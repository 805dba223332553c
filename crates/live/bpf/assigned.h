/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a CPU comes by its assignment: the last step of what managed.h begins.
 */
#ifndef SW_ASSIGNED_H
#define SW_ASSIGNED_H

#include "inherit.h"

/*
 * Makes @cpu look for its assignment once more if that waits for it: is in its queue, or is being inserted. For the ends
 * of dispatch(), which may have let go of the run queue's lock: a kick in that moment met the task that ran before.
 *
 * Context: dispatch() or running() of @cpu.
 */
static __always_inline void recheck_assignment(s32 cpu)
{
	u32 i = READ_ONCE(*sw_runner(&core, cpu));

	if (i && i != cpu_at(cpu)->refused && READ_ONCE(managed_at(i)->queued))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * Whether the kernel lets the task that waits in the queue run on @cpu; also if it waits there no more.
 *
 * Context: dispatch().
 */
static __always_inline bool may_run_on(u64 queue, s32 cpu)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);

	return !p || bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * Takes the task @i, which @cpu is to run, from where it waits.
 *
 * Context: as pull_assigned().
 */
static __always_inline bool pull_task(u32 i, s32 cpu)
{
	u64 queue = SW_QUEUE_OF_TASK(i);

	if (scx_bpf_dsq_move_to_local(queue, 0))
		return true;
	if (borrower_of(i) && fetch_borrower(i, cpu) && scx_bpf_dsq_move_to_local(queue, 0))
		return true;
	/* It was throttled, and has a budget again. */
	if (excess_waiting() > 0 && requeue_misplaced(SW_QUEUE_OF_EXCESS, 0) &&
	    scx_bpf_dsq_move_to_local(queue, 0))
		return true;
	if (scx_bpf_dsq_nr_queued(queue) > 0) {
		/* Inserted since. */
		if (scx_bpf_dsq_move_to_local(queue, 0))
			return true;
		/*
		 * Held on another CPU for a moment. If it has disabled migration it is narrowed to that CPU, of which the
		 * core knows. Otherwise it is being switched out there: until that is over each BPF program of that CPU
		 * disables its migration, and when it is over nothing follows. recheck_assignment() looks again.
		 *
		 * Written first, so that it does not outlive a decision that follows when the task is no longer held. Full
		 * memory barrier: the mask was written before that decision.
		 */
		__sync_lock_test_and_set(&cpu_at(cpu)->refused, i);
		if (may_run_on(queue, cpu))
			cpu_at(cpu)->refused = 0;
		/* It was queued when the agent had it assigned where it is held: see is_held_elsewhere(). */
		else if (agent_decides)
			requeue_misplaced(queue, 0);
	}
	return false;
}

/*
 * Whether @cpu runs its assignment now: @prev is it and goes on, or it comes from its queue.
 *
 * Context: dispatch() of @cpu. Its run queue's lock is held, and is released while a task is moved
 * here.
 */
static __always_inline bool pull_assigned(s32 cpu, struct task_struct *prev, u32 prev_number)
{
	u32 i = READ_ONCE(*sw_runner(&core, cpu)), current;
	bool pulled;

	if (!i)
		return false;
	if (prev_number == i) {
		scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
		current = READ_ONCE(cpu_at(cpu)->current);
		if (current == i) {
			/* It is assigned since, or again, and runs all the time. The timer's end says what is left. */
			if (cpu_at(cpu)->unarmed) {
				cpu_at(cpu)->unarmed = 0;
				arm_budget(cpu, bpf_ktime_get_ns(), 1);
			}
			return true;
		}
		/* Another task, by a loan. What ended that stops it, but may not have come that far. */
		if (current)
			on_stop(current, cpu, true);
		/* It ran as ordinary work until now, and goes on without a callback. */
		on_promotion(prev, i, cpu);
		recheck_number(prev, i, cpu);
		return true;
	}
	WRITE_ONCE(cpu_at(cpu)->pulls, 1);
	pulled = pull_task(i, cpu);
	WRITE_ONCE(cpu_at(cpu)->pulls, 0);
	return pulled;
}

#endif
