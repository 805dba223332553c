/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Checks the invariants of state.h, in a running core or in a copy of one. The contents of the state are
 * not trusted: links and counts are followed only as far as they can be valid.
 */
#ifndef SW_CHECK_H
#define SW_CHECK_H

#include "server.h"

/* The first violated invariant. */
enum sw_fault {
	SW_SOUND,
	SW_RUNNER_WRONG,	/* a CPU and its runner disagree */
	SW_IDLE_WRONG,		/* `idle` is not what is online and free */
	SW_TASK_WRONG,		/* a task on a CPU that does not run it, or not ready there */
	SW_CLASS_WRONG,		/* a mask and its class disagree */
	SW_HEAP_WRONG,		/* a heap is not a heap, or holds the wrong tasks */
	SW_WAITING_WRONG,	/* the list of waiting classes */
	SW_TIMERS_WRONG,	/* the heap of timers */
	SW_NOT_STRONG,		/* the strong invariant is violated */
};

SW_IN sw_u32 sw_check_runners(struct sw_core *s)
{
	sw_u32 c;

	for (c = 0; c < SW_CPUS; c++) {
		sw_u32 i = s->runner[c];
		const struct sw_task *t = sw_task(s, i);
		sw_u64 bit = sw_bit(c);

		if (!(s->idle & bit) != !(s->online & bit && !i))
			return SW_IDLE_WRONG;
		if (!i) {
			if (s->runner_mask[c])
				return SW_RUNNER_WRONG;
			continue;
		}
		if (i > SW_TASKS || t->on != c + 1 || t->state != SW_READY ||
		    !(t->mask & s->online & bit) || s->runner_mask[c] != t->mask ||
		    s->runner_rank[c] != t->rank)
			return SW_RUNNER_WRONG;
	}
	return SW_SOUND;
}

/* Whether @i is in the heap that holds @t: of waiting tasks of one class, or of timers. */
SW_IN sw_u32 sw_shares_heap(struct sw_core *s, const struct sw_task *t, sw_u32 i)
{
	const struct sw_task *other = sw_task(s, i);

	if (i > SW_TASKS)
		return 0;
	if (sw_is_held(t))
		return sw_is_held(other);
	return other->state == SW_READY && !other->on && other->class == t->class;
}

/* Whether the links around @i are those of a leftist heap with this root. */
SW_IN sw_u32 sw_check_node(struct sw_core *s, sw_u32 i, sw_u32 root)
{
	const struct sw_task *t = sw_task(s, i), *above = sw_task(s, t->parent);
	sw_u32 lower = sw_depth(s, t->lower), upper = sw_depth(s, t->upper);

	if (lower < upper || t->depth != upper + 1)
		return 0;
	if (t->lower && (t->lower == t->upper || !sw_shares_heap(s, t, t->lower) || sw_task(s, t->lower)->parent != i))
		return 0;
	if (t->upper && (!sw_shares_heap(s, t, t->upper) || sw_task(s, t->upper)->parent != i))
		return 0;
	if (!t->parent)
		return i == root;
	/* Each parent precedes its child: paths upwards have no cycle and end at the only root. */
	return sw_shares_heap(s, t, t->parent) && (above->lower == i || above->upper == i) && sw_precedes(s, t->parent, i);
}

SW_IN sw_u32 sw_check_task(struct sw_core *s, sw_u32 i)
{
	const struct sw_task *t = sw_task(s, i);
	const struct sw_class *class = sw_class(s, t->class);

	if (t->on && (t->state != SW_READY || s->runner[(t->on - 1) & (SW_CPUS - 1)] != i))
		return SW_TASK_WRONG;
	if (t->state == SW_ABSENT)
		return t->class ? SW_CLASS_WRONG : SW_SOUND;
	if (t->mask != sw_mask_of(t) || !t->class ||
	    class->mask != t->mask || !class->users)
		return SW_CLASS_WRONG;
	if (t->state == SW_READY && !t->on && !sw_check_node(s, i, class->root))
		return SW_HEAP_WRONG;
	if (sw_is_held(t) && !sw_check_node(s, i, s->timers))
		return SW_TIMERS_WRONG;
	return SW_SOUND;
}

SW_IN sw_u32 sw_check_waiting(struct sw_core *s)
{
	sw_u32 k, listed = 0, users = 0, present = 0;

	if (s->waiting_count > SW_TASKS || s->class_count > SW_TASKS)
		return SW_WAITING_WRONG;
	for (k = 1; k <= SW_TASKS; k++) {
		const struct sw_class *class = sw_class(s, k);
		const struct sw_task *top = sw_task(s, class->root);
		const struct sw_waiting *entry = sw_waiting(s, class->place - 1);

		present += sw_task(s, k)->state != SW_ABSENT;
		users += class->users;
		listed += class->place != 0;
		if (!class->root != !class->place)
			return SW_WAITING_WRONG;
		if (!class->root)
			continue;
		if (class->place > s->waiting_count || entry->class != k ||
		    entry->mask != class->mask || entry->top != class->root ||
		    entry->rank != top->rank)
			return SW_WAITING_WRONG;
		if (class->root > SW_TASKS || top->parent || top->class != k || top->on ||
		    top->state != SW_READY)
			return SW_HEAP_WRONG;
	}
	if (users != present)
		return SW_CLASS_WRONG;
	return listed == s->waiting_count ? SW_SOUND : SW_WAITING_WRONG;
}

/* Whether a chain leads from @i, the most urgent waiting task of its mask, to a CPU that it should have. */
SW_IN sw_u32 sw_check_strong(struct sw_core *s, sw_u32 i)
{
	sw_u64 seen = 0, todo = sw_task(s, i)->mask & s->online;

	while (todo) {
		sw_u32 c = sw_lowest(todo);

		seen |= sw_bit(c);
		if (!s->runner[c] || sw_precedes(s, i, s->runner[c]))
			return SW_NOT_STRONG;
		todo = (todo | (s->runner_mask[c] & s->online)) & ~seen;
	}
	return SW_SOUND;
}

/* Returns 0 or the first fault. */
static sw_u32 sw_check(struct sw_core *s)
{
	sw_u32 fault = sw_check_runners(s), k;

	for (k = 1; k <= SW_TASKS && !fault; k++)
		fault = sw_check_task(s, k);
	if (!fault)
		fault = sw_check_waiting(s);
	if (!fault && s->timers && !sw_is_held(sw_task(s, s->timers)))
		fault = SW_TIMERS_WRONG;
	for (k = 0; k < s->waiting_count && !fault; k++)
		fault = sw_check_strong(s, s->waiting[k & (SW_TASKS - 1)].top);
	return fault;
}

#endif
