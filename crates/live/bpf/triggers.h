/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks whose jobs are released by jobs of other tasks. A task without a job waits for its trigger in the core as one that is
 * not released; its thread sleeps meanwhile, and is woken before it is triggered.
 *
 * A thread that is about to sleep must not miss that. Each trigger is announced to it once, by a word in user space, and executed
 * here once; it sleeps only as long as all that were announced have been executed when its job ended.
 */
#ifndef SW_LIVE_TRIGGERS_H
#define SW_LIVE_TRIGGERS_H

#include "managed.h"

#define SW_AT_COMPLETION (1ULL << SW_TRIGGER_AT_COMPLETION_SHIFT)

struct sw_triggers triggers[SW_TASKS];

/*
 * The triggers of a task; any number is in range.
 *
 * Context: any.
 */
static __always_inline struct sw_triggers *triggers_of(u64 number)
{
	SW_HIDE(number);
	return &triggers[number & (SW_TASKS - 1)];
}

/*
 * When the next job of a triggered task is released: at the arrival of one that waits, or SW_NEVER, until a trigger.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 next_triggered_locked(u32 i)
{
	u64 release = sw_next_arrival(triggers_of(i));

	managed_at(i)->awaits_trigger = release == SW_NEVER;
	return release;
}

/*
 * The task is triggered. @by is the value of the event but for what became of the trigger. Returns the CPUs whose assignment
 * may have changed.
 *
 * Context: core's lock held, or where an agent decides only interrupts off.
 */
SW_FN u64 trigger_one(u32 i, u32 place, u64 now, u64 by)
{
	struct sw_managed *m = managed_at(i);
	u32 taken = SW_TRIGGER_LOST;
	u64 changed;

	if (agent_decides) {
		emit_for_agent(SW_E_TRIGGERED, now, i, SW_NO_CPU, by);
		/* Last: what is counted has been emitted. */
		__sync_fetch_and_add(&m->triggers, 1);
		return 0;
	}
	m->triggers++;
	if (sw_task(&core, i)->state != SW_ABSENT)
		taken = sw_take_trigger(triggers_of(i), place, m->awaits_trigger, now);
	emit_event(SW_E_TRIGGERED, now, i, SW_NO_CPU, by | (u64)taken << SW_TRIGGER_TAKEN_SHIFT);
	if (taken != SW_TRIGGER_RELEASES || !m->awaits_trigger)
		return 0;
	keep_before_locked(i);
	changed = sw_next_job(&core, i, next_triggered_locked(i), now);
	emit_changes_locked(now, i);
	return changed;
}

/*
 * Triggers of before are none of the task that takes part from now on.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void forget_triggers_locked(u32 i)
{
	struct sw_triggers *q = triggers_of(i);

	sw_init_triggers(q, q->places, q->limit);
}

/*
 * Triggers all tasks of the call. Returns the CPUs whose assignment may have changed.
 *
 * Context: as trigger_one().
 */
static __always_inline u64 trigger_all(struct sw_job *a, u64 now, u64 by)
{
	u64 changed = 0;
	u32 k;

	/* Unrolled: what is handed over can only be read at known places. */
#pragma unroll
	for (k = 0; k < SW_SOURCES; k++)
		if (a->targets[k])
			changed |= trigger_one(a->targets[k], a->places[k], now, by | a->task);
	return changed;
}

/*
 * By what rule the task is triggered, before its first job.
 *
 * Context: task context, before the run begins.
 */
static __always_inline int set_triggers(struct sw_trigger_rule *a)
{
	u32 i = a->task;

	if (!i || i > SW_TASKS)
		return -ERANGE;
	sw_init_triggers(triggers_of(i), a->places, a->limit);
	return 0;
}

#endif
