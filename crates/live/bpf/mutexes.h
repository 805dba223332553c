/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mutexes of the tasks of a run. A job that waits for one is blocked in the core; its thread stays awake, and waits in its queue
 * as one whose job is not released. A job that spins reads `mutexes` from user space, where these are mapped.
 *
 * A thread that takes part no more unlocks what it holds, and takes or awaits mutexes without being scheduled by them.
 */
#ifndef SW_LIVE_MUTEXES_H
#define SW_LIVE_MUTEXES_H

#include "triggers.h"
#include "core/mutex.h"

struct sw_mutexes mutexes;

/*
 * Records what the core says of mutexes.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN int sw_say(u32 fact, u32 i, u64 now, u64 value)
{
	const struct sw_task *t = sw_task(&core, i);
	u32 kind = SW_E_READY;

	switch (fact) {
	case SW_MUTEX_LOCKED:
		kind = SW_E_LOCKED;
		break;
	case SW_MUTEX_UNLOCKED:
		kind = SW_E_UNLOCKED;
		break;
	case SW_MUTEX_AWAITED:
		kind = SW_E_AWAITS_MUTEX;
		break;
	case SW_MUTEX_SPUN:
		kind = SW_E_SPINS;
		break;
	case SW_MUTEX_RANKED:
		kind = core.order == SW_FP ? SW_E_RANK_PRIORITY : SW_E_RANK_DEADLINE;
		break;
	case SW_MUTEX_KEPT:
		/* One that may use no other CPU is where it was. */
		if (t->state == SW_ABSENT || (t->narrowed ? t->narrowed : t->affinity) == sw_bit(t->kept - 1))
			return 0;
		kind = SW_E_NARROWED;
		value = value ? value : t->narrowed;
		break;
	default:
		value = t->deadline;
	}
	emit_event(kind, now, i, SW_NO_CPU, value);
	return 0;
}

/*
 * What the job unlocks at once with the present event.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void take_unlocks_locked(struct sw_job *a)
{
	u32 k;

	/* Unrolled: what is handed over can only be read at known places. */
#pragma unroll
	for (k = 0; k < SW_UNLOCKS; k++)
		mutexes.unlocked[k] = a->unlocks[k];
}

/*
 * The protocol of a mutex.
 *
 * Context: task context, before the run begins.
 */
static __always_inline int set_mutex(struct sw_mutex_rule *a)
{
	sw_set_mutex(&mutexes, a->mutex, a->protocol, a->ceiling, a->floor);
	return 0;
}

/*
 * The calling thread's job requests a mutex, which it does again after it had to wait.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int lock_mutex(struct sw_lock *a)
{
	u32 i = a->task, number = a->mutex, cpu;
	const struct sw_mutex *m = sw_mutex(&mutexes, number);
	struct task_struct *p = bpf_get_current_task_btf();
	unsigned long flags;
	u64 now, changed;

	a->request = SW_REQUEST_AGAIN;
	if (!i || i > SW_TASKS || !number || agent_decides)
		return -EINVAL;
	bpf_local_irq_save(&flags);
	cpu = scx_bpf_task_cpu(p);
	now = core_lock_now();
	/* By now it may have been given another CPU than this, or none. */
	if (sw_task(&core, i)->on && *sw_runner(&core, cpu) != i) {
		core_unlock();
		bpf_local_irq_restore(&flags);
		return 0;
	}
	changed = sw_lock(&core, &mutexes, i, number, now);
	if (sw_lacks_cpu(sw_task(&core, i)) && !sw_locks(&mutexes, i)->awaited)
		a->request = SW_REQUEST_AGAIN;
	else if (m->holder == i)
		a->request = SW_REQUEST_HOLDS;
	else if (sw_locks(&mutexes, i)->spins)
		a->request = SW_REQUEST_SPINS;
	else
		a->request = SW_REQUEST_WAITS;
	/* It lets go of this CPU itself when the program is over: within, it could not migrate. */
	commit_unlock_and_arm(now, changed, sw_bit(cpu));
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * The calling thread's job unlocks mutexes and triggers tasks, and goes on. Also if it takes no part any more: other threads
 * count on it. @yields: the thread lets go of this CPU itself if it has to, which `held` says.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int affect(struct sw_job *a, bool yields)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u32 i = a->task, cpu;
	unsigned long flags;
	u64 now, changed = 0;

	bpf_local_irq_save(&flags);
	cpu = scx_bpf_task_cpu(p);
	now = core_lock_now();
	take_unlocks_locked(a);
	if (mutexes.unlocked[0])
		changed = sw_unlock(&core, &mutexes, i, now);
	changed |= trigger_all(a, now, 0);
	a->held = !agent_decides && *sw_runner(&core, cpu) != i;
	/* As in lock_mutex(). */
	commit_unlock_and_arm(now, changed, yields ? sw_bit(cpu) : 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * The thread of the task, which takes no part any more, has ended: what it holds passes on.
 *
 * Context: callback with the run queue's lock of the thread held, interrupts off. Takes the core's lock.
 */
static __always_inline void end_locks(u32 i)
{
	const struct sw_locks *l = sw_locks(&mutexes, i);
	u64 now;

	if (!l->held && !l->awaited)
		return;
	now = core_lock_now();
	commit_and_unlock(now, sw_end_locks(&core, &mutexes, i, now), 0);
}

#endif
