/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a thread waits for, as the kernel has it for priority inheritance: read without the kernel's locks, from what may change or
 * be gone meanwhile.
 */
#ifndef SW_WAITED_H
#define SW_WAITED_H

/* How many threads may wait for each other in a row. */
#define SW_WAITING_MAX	8

/*
 * The thread that holds the lock for which this waiter waits, or that is the next to hold it; as a number. 0: none.
 *
 * Context: any. What it reads may have changed or be gone: the answer is a number at worst, and no thread.
 */
static __always_inline u64 holder_for(struct rt_mutex_waiter *waiter)
{
	struct rt_mutex_base *lock;
	void *node;
	u64 owner;

	if (!waiter)
		return 0;
	lock = BPF_CORE_READ(waiter, lock);
	/* The lowest bit says that there are waiters. */
	owner = (u64)BPF_CORE_READ(lock, owner) & ~1ULL;
	if (owner)
		return owner;
	node = BPF_CORE_READ(lock, waiters.rb_leftmost);
	if (!node)
		return 0;
	node -= bpf_core_field_offset(struct rt_mutex_waiter, tree.entry);
	return (u64)BPF_CORE_READ((struct rt_mutex_waiter *)node, task);
}

/*
 * Whether the waiter is among those of its lock. It is taken out a moment before its thread has the lock, or gives up: then the thread
 * waits no more, and the lock tells nothing about it.
 *
 * Context: as holder_for().
 */
static __always_inline bool is_queued(struct rt_mutex_waiter *waiter)
{
	u64 node = (u64)waiter + bpf_core_field_offset(struct rt_mutex_waiter, tree.entry);

	/* RB_EMPTY_NODE() */
	return BPF_CORE_READ(waiter, tree.entry.__rb_parent_color) != node;
}

/*
 * The thread that @p waits for and that does not wait itself, as a number; 0: none, or no end was found. @p itself: it is the first
 * waiter of a lock without a holder, so either it is about to have the lock, or another one is that is no waiter any more.
 *
 * Context: as holder_for().
 */
SW_FN u64 thread_waited_for(struct task_struct *p __arg_trusted)
{
	u64 thread = holder_for(p->pi_blocked_on), next;
	u32 k;

	bpf_for(k, 0, SW_WAITING_MAX) {
		struct rt_mutex_waiter *waiter;

		if (!thread || thread == (u64)p)
			return thread;
		waiter = BPF_CORE_READ((struct task_struct *)thread, pi_blocked_on);
		if (!waiter || !is_queued(waiter))
			return thread;
		next = holder_for(waiter);
		/* It is about to have the lock, or the waiter is gone. */
		if (!next || next == thread)
			return thread;
		thread = next;
	}
	return 0;
}

#endif
