/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues, and in which of them a task waits. Each task that waits is in exactly one, which queue_for() names.
 *
 * What that depends on may change while the task waits: it is admitted or dismissed, or a CPU goes offline or comes back.
 * requeue_misplaced() then moves it.
 *
 * A CPU on its way offline first becomes inactive: the kernel calls ops.dispatch() for it no more, moves away each task that
 * runs there, waits for all RCU readers, and only then calls ops.cpu_offline(). A reader that waited in one of our queues
 * for that CPU would wait for ever. So the CPU counts as offline from the step before (shiftwork_cpuhp_enter()), and tasks of
 * its run queue wait in its local queue, from which the kernel moves them on.
 */
#ifndef SW_QUEUES_H
#define SW_QUEUES_H

#include "ordinary.h"

/* CPUs that take no tasks: from before the kernel makes them inactive until they are active again. Written under the lock. */
u64 cpus_offline;
/* How often all queues are still to be checked: at once after a change, and once more when all callbacks that began before are over. */
u32 requeues_due;

/*
 * Whether the CPU takes no tasks.
 *
 * Context: any.
 */
static __always_inline bool is_offline(u32 cpu)
{
	return READ_ONCE(cpus_offline) & sw_bit(cpu);
}

/*
 * Whether all CPUs that a managed task may use are offline, or the one on which it is kept: then it goes on as ordinary work,
 * where the kernel lets it.
 *
 * Context: any.
 */
static __always_inline bool has_no_cpu(u32 i)
{
	u64 offline = READ_ONCE(cpus_offline);
	u32 kept;

	if (!offline)
		return false;
	kept = READ_ONCE(sw_task(&core, i)->kept);
	return !((kept ? sw_bit(kept - 1) : READ_ONCE(sw_task(&core, i)->affinity)) & ~offline);
}

/*
 * Whether the kernel holds @p where it is for a moment, and the agent, to which such moments are not reported, has assigned
 * it elsewhere. Until that moment is over the task goes on as what is bound there. The core knows, and assigns it there or
 * not at all.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline bool is_held_elsewhere(struct task_struct *p, u32 i)
{
	return agent_decides && is_migration_disabled(p) &&
	       READ_ONCE(sw_task(&core, i)->on) != scx_bpf_task_cpu(p) + 1;
}

/*
 * In which queue @p waits. @i: its number if it takes part, or 0; @cpu: where it is.
 *
 * Context: run queue's lock of @p held, or @p in a queue that is iterated.
 */
static __always_inline u64 queue_for(struct task_struct *p, u32 i, s32 cpu)
{
	if (is_offline(cpu))
		return SCX_DSQ_LOCAL_ON | cpu;
	if (i && !has_no_cpu(i) && !is_held_elsewhere(p, i))
		return is_excess(p, i) ? SW_QUEUE_OF_EXCESS : SW_QUEUE_OF_TASK(i);
	if (!i && limited_until(p))
		return SW_QUEUE_OF_LIMITED;
	return ordinary_queue(p, cpu);
}

/*
 * Whether the queue is one of ordinary work, in the order of virtual time.
 *
 * Context: any.
 */
static __always_inline bool is_by_virtual_time(u64 queue)
{
	return queue >= SW_QUEUE_OF_CPU(0) && queue <= SW_QUEUE_OF_ALL;
}

/*
 * Whether the CPU that the task is assigned to looks for it in this queue.
 *
 * Context: any.
 */
static __always_inline bool is_looked_for_in(u64 queue, u32 i)
{
	return i && (queue == SW_QUEUE_OF_TASK(i) || queue == SW_QUEUE_OF_EXCESS);
}

/*
 * Makes a CPU look that is to take @p from the queue.
 *
 * Context: any; the queue has @p, or will have it before interrupts are on again.
 */
static __always_inline void kick_cpu_for(struct task_struct *p, u32 i, u64 queue)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u32 on;

	if (is_looked_for_in(queue, i)) {
		on = READ_ONCE(sw_task(&core, i)->on);
		if (on) {
			cpu_at(on - 1)->refused = 0;
			scx_bpf_kick_cpu(on - 1, SCX_KICK_PREEMPT);
			return;
		}
		if (queue != SW_QUEUE_OF_EXCESS)
			return;
	}
	if (queue == SW_QUEUE_OF_ALL || (queue == SW_QUEUE_OF_EXCESS && !is_migration_disabled(p)))
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* So many of those that wait for a period are queued at a time, in an interrupt; the rest after this, ns. */
#define SW_RELEASED_MAX 64
#define SW_RELEASE_INTERVAL 100000ULL

/* Timers of the machine, see timers.h. */
enum { SW_TIMER_RELEASES, SW_TIMER_BACKGROUND, SW_TIMER_LOANS, SW_TIMERS };

/*
 * When they have to end at the latest; SW_NEVER if that does not matter: for the first release, for the first of the threads that
 * wait for a period of their control groups, and for what has become of loans. As many as a mask of arm() has, a power of two.
 */
u64 armed[4] = { SW_NEVER, SW_NEVER, SW_NEVER, SW_NEVER };

int arm(u32 which, u64 at);
int awaken_soon(u32 i, u32 pid);

/*
 * Notes that such a thread may go on then. Whether that is before all others.
 *
 * Context: any; without a lock.
 */
static __always_inline bool note_period(u64 at)
{
	u32 k;

	for (k = 0; k < 4; k++) {
		u64 before = READ_ONCE(armed[SW_TIMER_BACKGROUND]);

		if (at >= before)
			return false;
		if (__sync_val_compare_and_swap(&armed[SW_TIMER_BACKGROUND], before, at) == before)
			break;
	}
	return true;
}

/*
 * Ordinary work, which its control groups allow no more for now, waits in the queue for that.
 *
 * Context: as enqueue().
 */
static __always_inline void wait_for_period(struct task_struct *p, s32 cpu, u64 flags)
{
	u64 until = limited_until(p);

	/* A period that has just begun. The kernel queues it only when this callback is over. */
	if (!until)
		until = bpf_ktime_get_ns() + SW_RELEASE_INTERVAL;
	take_stopped(p, cpu);
	scx_bpf_dsq_insert_vtime(p, SW_QUEUE_OF_LIMITED, SW_SLICE, until, flags);
	if (note_period(until))
		arm(SW_TIMER_BACKGROUND, until);
}

/*
 * ops.enqueue(): @p waits, as the task @i if that is not 0.
 *
 * Context: the run queue's lock of @p held, interrupts off. The core's lock is not needed.
 */
static __always_inline void enqueue(struct task_struct *p, u32 i, u64 flags)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u64 queue = queue_for(p, i, cpu), own;

	if (queue & SCX_DSQ_FLAG_BUILTIN) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SW_SLICE, flags);
		return;
	}
	/* Full memory barrier; pairs with pull_assigned(). */
	if (is_looked_for_in(queue, i))
		__sync_lock_test_and_set(&managed_at(i)->queued, 1);
	if (i && queue == SW_QUEUE_OF_TASK(i)) {
		scx_bpf_dsq_insert(p, queue, SCX_SLICE_INF, flags);
		if (!agent_decides && !READ_ONCE(sw_task(&core, i)->awake))
			awaken_soon(i, p->pid);
	} else if (queue == SW_QUEUE_OF_LIMITED) {
		wait_for_period(p, cpu, flags);
		return;
	} else if (queue == SW_QUEUE_OF_EXCESS) {
		note_use(&excess_used);
		scx_bpf_dsq_insert(p, queue, SW_SLICE, flags);
		if (take_stopped(p, cpu))
			scx_bpf_task_set_dsq_vtime(p, cpu_at(cpu)->ordinary_time);
	} else {
		own = take_stopped(p, cpu) ? cpu_at(cpu)->ordinary_time : virtual_time(p, queue);
		if (takes_cpu(queue, cpu, own, flags)) {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SW_SLICE, flags | SCX_ENQ_PREEMPT);
			return;
		}
		note_ordinary(queue);
		scx_bpf_dsq_insert_vtime(p, queue, SW_SLICE, queued_time(queue, own), flags);
		kick_cpu_for_ordinary(p, queue, cpu, flags);
		return;
	}
	kick_cpu_for(p, i, queue);
}

/*
 * The thread with this PID, which takes part as the task @i, was moved to this queue while it waits.
 *
 * A global function: the loop that calls it would have twice as many states.
 *
 * Context: no run queue's lock held.
 */
SW_FN int on_moved(u32 i, u64 to, u32 pid)
{
	/* Full memory barrier; pairs with pull_assigned(). */
	__sync_lock_test_and_set(&managed_at(i)->queued, is_looked_for_in(to, i));
	if (to == SW_QUEUE_OF_TASK(i) && !agent_decides && !READ_ONCE(sw_task(&core, i)->awake))
		awaken_soon(i, pid);
	return 0;
}

/*
 * Moves the tasks of a queue that belong to another, 0: all of them, or only this thread. Whether one moved.
 *
 * A global function: the verifier follows it once for each program, not wherever it is called.
 *
 * Context: no run queue's lock held.
 */
SW_FN int requeue_misplaced(u64 queue, u32 thread)
{
	struct task_struct *p;
	bool moved = false;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0) {
		bool own;
		u64 to;
		u32 i;

		if (thread && p->pid != thread)
			continue;
		i = number_of(p);
		to = queue_for(p, i, scx_bpf_task_cpu(p));
		/* What its control group no longer allows is stopped as soon as it runs. */
		if (to == queue || to == SW_QUEUE_OF_LIMITED)
			continue;
		own = i && to == SW_QUEUE_OF_TASK(i);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, own ? SCX_SLICE_INF : SW_SLICE);
		if (is_by_virtual_time(to)) {
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, queued_time(to, virtual_time(p, to)));
			if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0))
				continue;
			note_ordinary(to);
		} else {
			if (to == SW_QUEUE_OF_EXCESS)
				note_use(&excess_used);
			if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, to, 0))
				continue;
		}
		moved = true;
		if (i)
			on_moved(i, to, p->pid);
		kick_cpu_for(p, i, to);
	}
	bpf_rcu_read_unlock();
	return moved;
}

/*
 * Moves the thread, if it waits, to the queue where it belongs: that of its task, which is @i, or one of ordinary work if it takes
 * no part any more. Whether it moved.
 *
 * Context: as requeue_misplaced().
 */
static __always_inline bool requeue_thread(struct task_struct *p, u32 i)
{
	return requeue_misplaced(SW_QUEUE_OF_TASK(i), p->pid) || requeue_misplaced(SW_QUEUE_OF_ALL, p->pid) ||
	       requeue_misplaced(SW_QUEUE_OF_EXCESS, p->pid) || requeue_misplaced(SW_QUEUE_OF_LIMITED, p->pid) ||
	       requeue_misplaced(SW_QUEUE_OF_CPU(scx_bpf_task_cpu(p)), p->pid);
}

/*
 * Moves each task that waits to the queue where it belongs.
 *
 * Context: timer or tick(), no locks held.
 */
static __always_inline void requeue_all_misplaced(void)
{
	u32 k;

	if (requeues_due)
		requeues_due--;
	bpf_for(k, 0, READ_ONCE(numbers_end))
		if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_TASK(k)) > 0)
			requeue_misplaced(SW_QUEUE_OF_TASK(k), 0);
	bpf_for(k, 0, cpu_count)
		if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_CPU(k)) > 0)
			requeue_misplaced(SW_QUEUE_OF_CPU(k), 0);
	requeue_misplaced(SW_QUEUE_OF_ALL, 0);
	requeue_misplaced(SW_QUEUE_OF_EXCESS, 0);
	requeue_misplaced(SW_QUEUE_OF_LIMITED, 0);
}

/* How many were, by this call: the verifier follows a loop in which it knows a number once for each. */
u32 released;

/*
 * Queues ordinary work that waited for a period of its control groups, as what has had as much as others. Returns when to come back.
 *
 * Context: timer or tick(), no locks held.
 */
SW_FN u64 release_limited(u64 now)
{
	u64 next = SW_NEVER, first = READ_ONCE(armed[SW_TIMER_BACKGROUND]);
	struct task_struct *p;
	bool misplaced = false;

	WRITE_ONCE(released, 0);
	/* A later instant stays: its thread may not be in the queue yet. */
	if (first <= now)
		__sync_val_compare_and_swap(&armed[SW_TIMER_BACKGROUND], first, SW_NEVER);
	if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_LIMITED) <= 0)
		return next;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, SW_QUEUE_OF_LIMITED, 0) {
		u64 until = p->scx.dsq_vtime, to;
		u32 i;

		if (until > now || READ_ONCE(released) >= SW_RELEASED_MAX) {
			next = until > now ? until : now + SW_RELEASE_INTERVAL;
			break;
		}
		WRITE_ONCE(released, READ_ONCE(released) + 1);
		i = number_of(p);
		to = queue_for(p, i, scx_bpf_task_cpu(p));
		if (to == SW_QUEUE_OF_LIMITED) {
			until = limited_until(p);
			if (until < next)
				next = until;
			scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, until);
			scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0);
			continue;
		}
		if (!is_by_virtual_time(to)) {
			misplaced = true;
			continue;
		}
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, SW_SLICE);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, queued_time(to, READ_ONCE(clock_of(to)->time)));
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, to, 0)) {
			note_ordinary(to);
			kick_cpu_for(p, i, to);
		}
	}
	bpf_rcu_read_unlock();
	if (misplaced)
		requeue_misplaced(SW_QUEUE_OF_LIMITED, 0);
	note_period(next);
	return next;
}

/*
 * Lets go on what was killed while it waited throttled.
 *
 * Context: timer or tick(), no locks held.
 */
static __always_inline void requeue_killed(void)
{
	u32 word;

	bpf_for(word, 0, SW_TASKS / 64) {
		u64 left = READ_ONCE(tasks_outside[word]);

		/* Full memory barrier; pairs with mark_outside(): a task that it marks after this keeps its bit. */
		if (left)
			left = __sync_lock_test_and_set(&tasks_outside[word], 0);
		while (left && can_loop) {
			u32 bit = sw_lowest(left), i = word * 64 + bit;

			left &= left - 1;
			if (!READ_ONCE(managed_at(i)->outside))
				continue;
			__sync_fetch_and_or(&tasks_outside[word], sw_bit(bit));
			requeue_misplaced(SW_QUEUE_OF_TASK(i), 0);
		}
	}
}

#endif
