/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The events: jobs arrive, depart and change their rank; tasks enter, leave and change their masks; CPUs
 * leave and join. Events that contradict the state (waking a ready task) change nothing.
 *
 * Functions return the set of CPUs whose assignment may have changed.
 */
#ifndef SW_CHANGE_H
#define SW_CHANGE_H

#include "settle.h"

SW_IN sw_u64 sw_rank(struct sw_core *s, const struct sw_task *t)
{
	return s->order == SW_FP ? t->priority : t->deadline;
}

/* A job of @i is ready, since the instant @ready. */
SW_FN sw_u64 sw_arrive(SW_CORE, sw_u32 i, sw_u64 ready)
{
	struct sw_task *t = sw_task(s, i);

	if (t->state != SW_BLOCKED)
		return 0;
	t->state = SW_READY;
	t->ready = ready;
	t->rank = sw_rank(s, t);
	return sw_place(s, i);
}

/* The job of @i is no longer ready: it has completed or suspended itself. */
SW_FN sw_u64 sw_depart(SW_CORE, sw_u32 i)
{
	if (sw_task(s, i)->state != SW_READY)
		return 0;
	return sw_remove(s, i, SW_BLOCKED);
}

/* The rank of @i has changed; it counts as ready since @ready. */
SW_FN sw_u64 sw_rerank(SW_CORE, sw_u32 i, sw_u64 ready)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 rank = sw_rank(s, t);

	if (t->state != SW_READY || (rank == t->rank && ready == t->ready))
		return 0;
	if (!t->on) {
		sw_unwait(s, i);
		t->rank = rank;
		t->ready = ready;
		return sw_place(s, i);
	}
	t->rank = rank;
	t->ready = ready;
	*sw_runner_rank(s, t->on - 1) = rank;
	/* Only the task that would be placed if @i departed can be more urgent now. */
	return sw_fill(s, t->on - 1, i);
}

SW_IN sw_u64 sw_set_priority(struct sw_core *s, sw_u32 i, sw_u32 priority)
{
	struct sw_task *t = sw_task(s, i);

	t->priority = priority;
	if (s->order == SW_FP && sw_is_held(t)) {
		s->timers = sw_heap_remove(s, s->timers, i);
		t->ready = priority;
		s->timers = sw_heap_add(s, s->timers, i);
	}
	return sw_rerank(s, i, t->ready);
}

SW_IN sw_u64 sw_set_deadline(struct sw_core *s, sw_u32 i, sw_u64 deadline)
{
	struct sw_task *t = sw_task(s, i);

	t->deadline = deadline;
	return sw_rerank(s, i, t->ready);
}

SW_IN void sw_mask_is(struct sw_core *s, sw_u32 i, sw_u64 mask)
{
	struct sw_task *t = sw_task(s, i);

	if (t->class)
		sw_class_leave(s, t->class);
	t->class = sw_class_join(s, mask);
	t->mask = mask;
}

/*
 * The CPUs that @i may use have changed: one event, after which the scheduled tasks are those of the
 * new mask, placed with the fewest shifts from where they were before it.
 *
 * Departing and arriving again selects the right tasks, but may move some twice or there and back, which
 * sw_settle() undoes.
 */
SW_FN sw_u64 sw_remask(SW_CORE, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 mask = sw_mask_of(t), changed;

	if (t->class && t->mask == mask)
		return 0;
	if (t->state != SW_READY) {
		sw_mask_is(s, i, mask);
		return 0;
	}
	if (!t->on) {
		sw_unwait(s, i);
		sw_mask_is(s, i, mask);
		return sw_place(s, i);
	}
	if (!(mask & s->online & ~t->mask) && (mask & sw_bit(t->on - 1))) {
		/* It stays on its CPU, and the new mask offers no chain of shifts that the old one did not. */
		sw_mask_is(s, i, mask);
		*sw_runner_mask(s, t->on - 1) = mask;
		return 0;
	}
	sw_remember(s);
	changed = sw_remove(s, i, SW_READY);
	sw_mask_is(s, i, mask);
	changed |= sw_place(s, i);
	return changed | sw_settle(s);
}

SW_IN sw_u64 sw_set_affinity(struct sw_core *s, sw_u32 i, sw_u64 affinity)
{
	if (sw_task(s, i)->state == SW_ABSENT)
		return 0;
	sw_task(s, i)->affinity = affinity;
	if (sw_task(s, i)->kept && !(affinity & sw_bit(sw_task(s, i)->kept - 1)))
		sw_task(s, i)->kept = 0;
	return sw_remask(s, i);
}

/*
 * Restricts @i to these CPUs, independent of its affinity: to its current CPU, while it must not
 * migrate. 0 ends the restriction.
 */
SW_IN sw_u64 sw_narrow(struct sw_core *s, sw_u32 i, sw_u64 cpus)
{
	if (sw_task(s, i)->state == SW_ABSENT)
		return 0;
	sw_task(s, i)->narrowed = cpus;
	return sw_remask(s, i);
}

/* @i leaves. */
SW_FN sw_u64 sw_leave(SW_CORE, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 changed = 0;

	if (t->state == SW_READY)
		changed = sw_remove(s, i, SW_ABSENT);
	else if (sw_is_held(t))
		s->timers = sw_heap_remove(s, s->timers, i);
	t->state = SW_ABSENT;
	t->awake = 0;
	if (t->class)
		sw_class_leave(s, t->class);
	t->class = 0;
	return changed;
}

/*
 * @i enters, with no ready job and no server. @start is 1 + the CPU where its thread is, or 0 for no
 * preference. A task that is present leaves first.
 */
SW_IN sw_u64 sw_enter(struct sw_core *s, sw_u32 i, sw_u64 affinity, sw_u32 start)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 changed = sw_leave(s, i);

	t->state = SW_BLOCKED;
	t->affinity = affinity;
	t->narrowed = 0;
	t->last = start;
	t->deadline = 0;
	t->left = 0;
	t->budget = t->period = t->relative = 0;
	t->throttled = t->replenished = 0;
	t->yielded = 0;
	t->follows = t->begun = 0;
	t->kept = t->waits = 0;
	t->end = 0;
	sw_remask(s, i);
	return changed;
}

/*
 * The same for a task that was present before: the state of its server is kept. Otherwise a task could
 * get a full budget each time it leaves and enters again.
 */
SW_IN sw_u64 sw_enter_again(struct sw_core *s, sw_u32 i, sw_u64 affinity, sw_u32 start)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 deadline = t->deadline, end = t->end, changed;
	sw_u64 budget = t->budget, period = t->period, relative = t->relative;
	sw_s64 left = t->left;

	changed = sw_enter(s, i, affinity, start);
	t->deadline = deadline;
	t->end = end;
	t->left = left;
	t->budget = budget;
	t->period = period;
	t->relative = relative;
	return changed;
}

/*
 * The CPU is no longer available: it is offline, or another scheduling class uses it. The other tasks
 * are still placed by the definition, so that it suffices to place the CPU's runner again.
 */
SW_FN sw_u64 sw_cpu_leave(SW_CORE, sw_u32 cpu)
{
	sw_u32 i = *sw_runner(s, cpu);

	if (!(s->online & sw_bit(cpu)))
		return 0;
	sw_vacate(s, cpu);
	s->online &= ~sw_bit(cpu);
	s->idle &= ~sw_bit(cpu);
	if (!i)
		return 0;
	sw_task(s, i)->on = 0;
	return sw_bit(cpu) | sw_place(s, i);
}

/* The CPU is available again. */
SW_FN sw_u64 sw_cpu_join(SW_CORE, sw_u32 cpu)
{
	sw_u64 changed;

	if (s->online & sw_bit(cpu))
		return 0;
	s->online |= sw_bit(cpu);
	s->idle |= sw_bit(cpu);
	changed = sw_fill(s, cpu, 0);
	return *sw_runner(s, cpu) ? changed : 0;
}

/* Initializes a state that is all zero. CPUs join one by one, or all at once before any task enters. */
SW_IN void sw_init(struct sw_core *s, sw_u32 order, sw_u64 online)
{
	s->order = order;
	s->online = online;
	s->idle = online;
}

#endif
