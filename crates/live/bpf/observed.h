/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ordinary work that is observed: events say when it wakes up, for how long it runs and when it blocks, while it is
 * ordinary work. No decision depends on that. An observation has a number, as a task has, and a number is for only one of both.
 *
 * Emitted without the lock, so that only the events of one thread are in order; and without observations nothing is looked
 * up.
 */
#ifndef SW_OBSERVED_H
#define SW_OBSERVED_H

#include "decide.h"

/* How many there are. */
u32 observations;

/*
 * What is kept of a thread that is observed now; NULL of all others.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline struct sw_storage *observed(struct task_struct *p)
{
	struct sw_storage *s;

	if (!READ_ONCE(observations))
		return NULL;
	s = bpf_task_storage_get(&storage, p, 0, 0);
	if (!s || !s->observed || s->observation != READ_ONCE(managed_at(s->observed)->observation))
		return NULL;
	return s;
}

/*
 * Emits an event of an observed thread.
 *
 * Context: callback of @p; no core's lock.
 */
static __always_inline void emit_observed(struct task_struct *p, u32 kind)
{
	struct sw_storage *s = observed(p);

	if (s)
		emit_event(kind, bpf_ktime_get_ns(), s->observed, scx_bpf_task_cpu(p), 0);
}

/*
 * An observed thread runs.
 *
 * Context: running().
 */
static __always_inline void on_observed_start(struct task_struct *p)
{
	struct sw_storage *s = observed(p);

	if (s)
		s->runs_since = bpf_ktime_get_ns();
}

/*
 * An observed thread stops running.
 *
 * Context: stopping().
 */
static __always_inline void on_observed_stop(struct task_struct *p, u32 cpu)
{
	struct sw_storage *s = observed(p);
	u64 now;

	/* It may have begun to run before it was observed. */
	if (!s || !s->runs_since)
		return;
	now = bpf_ktime_get_ns();
	emit_event(SW_E_STOPPED, now, s->observed, cpu, now - s->runs_since);
	s->runs_since = 0;
}

/*
 * No thread is observed by this number any more. Whether one was.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline bool end_observing_locked(u32 i)
{
	struct sw_managed *m = managed_at(i);

	if (!m->observes)
		return false;
	m->observes = 0;
	m->observation++;
	observations--;
	return true;
}

/*
 * The thread has ended.
 *
 * Context: exit_task(). Takes the core's lock.
 */
static __always_inline void on_observed_exit(struct task_struct *p)
{
	struct sw_storage *s = observed(p);
	unsigned long flags;
	u64 now;
	u32 i;

	if (!s)
		return;
	i = s->observed;
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (s->observation == managed_at(i)->observation && end_observing_locked(i))
		emit_for_agent(SW_E_LEFT, now, i, SW_NO_CPU, 0);
	core_unlock();
	bpf_local_irq_restore(&flags);
}

/*
 * The thread is observed by this number from when it next wakes up or runs.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int observe(struct sw_admit *a)
{
	u32 i = a->task, thread = a->thread;
	struct sw_managed *m = managed_at(i);
	struct task_struct *p;
	struct sw_storage *s;
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
	core_lock_now();
	if (observed(p)) {
		error = -EBUSY;
	} else if (sw_task(&core, i)->state != SW_ABSENT || m->demoted || m->observes) {
		error = -ESRCH;
	} else {
		m->observes = 1;
		observations++;
		s->runs_since = 0;
		/* The thread that had it before has none. */
		m->thread = m->holder = 0;
		s->observation = ++m->observation;
		s->observed = i;
	}
	core_unlock();
	bpf_local_irq_restore(&flags);
	bpf_task_release(p);
	return error;
}

/*
 * The thread of this number is observed no more.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int stop_observing(struct sw_change *a)
{
	u32 i = a->task;
	unsigned long flags;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	bpf_local_irq_save(&flags);
	core_lock_now();
	end_observing_locked(i);
	core_unlock();
	bpf_local_irq_restore(&flags);
	return 0;
}

#endif
