/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a thread wants to run, as the kernel has it: for threads that become tasks, or have another number, while they run,
 * wait or sleep, and of which no callback says what happened before.
 */
#ifndef SW_AWAKE_H
#define SW_AWAKE_H

#include "managed.h"

/*
 * Whether it is on a run queue, or on its way to one. The field is an int in Linux 7.0 and a byte in 7.2, whose
 * values are the same; a read of either as it stands does not fit the other.
 *
 * Context: any. Without the run queue's lock the answer may be old.
 */
static __always_inline bool is_on_run_queue(struct task_struct *p)
{
	__u8 on_rq = 0;

	bpf_core_read(&on_rq, sizeof(on_rq), &p->on_rq);
	return on_rq;
}

/*
 * A thread that moves from one run queue to another is in no queue for a moment, without a callback; one that wakes up is
 * queued before it is on a run queue. One of a higher scheduling class is asleep to us, see on_class_change().
 *
 * Context: any. Without the run queue's lock the answer may be old.
 */
static __always_inline bool is_awake(struct task_struct *p)
{
	return p->prio >= SW_PRIO_ORDINARY &&
	       (READ_ONCE(p->scx.flags) & SCX_TASK_QUEUED || is_on_run_queue(p));
}

/*
 * The task is awake or asleep as the thread that has its number by now, which may have had another one until a moment ago. If a
 * callback is under way that began with that, the answer is wrong, and has to be asked for again a moment later.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 sync_awake_locked(u64 now, struct task_struct *p, u32 i)
{
	bool awake = is_awake(p);

	if (awake == !!sw_task(&core, i)->awake)
		return 0;
	return awake ? on_wakeup_locked(now, i, SW_NO_CPU) : on_block_locked(now, i, SW_NO_CPU);
}

#endif
