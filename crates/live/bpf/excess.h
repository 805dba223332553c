/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task does that has used up its budget.
 *
 * A thread that is made to wait inside the kernel may hold what others need: a lock of a file system, a section that RCU
 * waits for. So a throttled task waits only for as far as its budgeting says (enum sw_budgeting), and is ordinary work
 * otherwise, for the core throttled all the same: it is charged nothing, and no event says that it runs.
 *
 * Whether it has left the kernel is known by work that the kernel does for a thread just before that returns to user
 * mode, and that is asked for whenever it begins to run as ordinary work. A kernel without such work (before 7.0)
 * never makes it wait. A thread that ends, or is killed while it waits, waits no further.
 */
#ifndef SW_EXCESS_H
#define SW_EXCESS_H

#include "decide.h"

/* Of include/linux/sched.h: the thread dumps its memory, or was ended by a signal. */
#define SW_PF_DYING (PF_EXITING | 0x00000200 | 0x00000400)
#define SW_SIGKILL 9

/*
 * Whether the thread has been killed or is ending: it has to get to its end.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline bool is_dying(struct task_struct *p)
{
	return p->flags & SW_PF_DYING || p->pending.signal.sig[0] & (1UL << (SW_SIGKILL - 1));
}

/*
 * Whether the task has used up its budget and goes on as ordinary work.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline bool is_excess(struct task_struct *p, u32 i)
{
	const struct sw_managed *m = managed_at(i);

	if (READ_ONCE(sw_task(&core, i)->state) != SW_THROTTLED)
		return false;
	/* Others wait for the lock that it holds. */
	if (borrower_of(i))
		return true;
	if (m->budgeting < SW_BUDGET_LEAVES)
		return false;
	/* Where it may not migrate it is still in the work below. */
	return !READ_ONCE(m->outside) || is_migration_disabled(p) || is_dying(p);
}

/*
 * The task is throttled, and holds nothing inside the kernel.
 *
 * Context: any.
 */
static __always_inline void mark_outside(u64 i)
{
	SW_HIDE(i);
	i &= SW_TASKS - 1;
	WRITE_ONCE(managed_at(i)->outside, 1);
	/* Full memory barrier; pairs with requeue_killed(). */
	__sync_fetch_and_or(&tasks_outside[i / 64], sw_bit(i % 64));
}

int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map__const_map,
				  bpf_task_work_callback_t callback) __ksym __weak;

struct sw_leaving {
	struct bpf_task_work work;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_TASKS);
	__type(key, u32);
	__type(value, struct sw_leaving);
} leaving SEC(".maps");

/*
 * The calling thread is about to return to user mode, and holds nothing: a throttled one is stopped here.
 *
 * It is to be stopped after this function, in which it may not migrate. So the kick's interrupt comes while preemption is
 * off; and preemption is on again while interrupts are off, where that does not reschedule.
 *
 * Context: work of a thread that returns to user mode; no locks.
 */
static int leaves_kernel(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 i = number_of(p);
	unsigned long flags;

	if (!i || READ_ONCE(sw_task(&core, i)->state) != SW_THROTTLED || managed_at(i)->budgeting != SW_BUDGET_LEAVES ||
	    borrower_of(i))
		return 0;
	mark_outside(i);
	bpf_preempt_disable();
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
	bpf_local_irq_save(&flags);
	bpf_preempt_enable();
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * @cpu runs the throttled task @i as ordinary work.
 *
 * Context: running() or dispatch() of @cpu, its run queue's lock held.
 */
SW_FN int on_excess_start(struct task_struct *p __arg_trusted, u32 i, u32 cpu)
{
	struct sw_managed *m = managed_at(i);
	struct sw_leaving *work;
	u32 key = i & (SW_TASKS - 1);

	cpu_at(cpu)->excess = i;
	m->outside = 0;
	/* Full memory barrier; pairs with kick_excess(). */
	__sync_lock_test_and_set(&m->excess_on, cpu + 1);
	if (READ_ONCE(sw_task(&core, i)->state) != SW_THROTTLED) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return 0;
	}
	if (m->budgeting != SW_BUDGET_LEAVES || borrower_of(i) || !bpf_ksym_exists(bpf_task_work_schedule_resume))
		return 0;
	work = bpf_map_lookup_elem(&leaving, &key);
	/* It may be on its way already. */
	if (work)
		bpf_task_work_schedule_resume(p, &work->work, &leaving, leaves_kernel);
	return 0;
}

/*
 * @cpu no longer runs what it ran as ordinary work, or runs it as a task from now on.
 *
 * Context: stopping(), running() or dispatch() of @cpu, its run queue's lock held.
 */
static __always_inline void on_excess_stop(u32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);

	if (!c->excess)
		return;
	WRITE_ONCE(managed_at(c->excess)->excess_on, 0);
	c->excess = 0;
}

/*
 * The task has a budget again: the CPU that runs it as ordinary work looks anew.
 *
 * Context: any without the core's lock, after it was released, which is a full memory barrier.
 */
static __always_inline void kick_excess(u32 i)
{
	u32 on = READ_ONCE(managed_at(i)->excess_on);

	if (on)
		scx_bpf_kick_cpu(on - 1, SCX_KICK_PREEMPT);
}

#endif
