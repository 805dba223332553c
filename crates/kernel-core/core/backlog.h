/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Waiting tasks: one heap per distinct mask, and a dense list of the non-empty heaps with their most
 * urgent tasks. A search reads only that list.
 */
#ifndef SW_BACKLOG_H
#define SW_BACKLOG_H

#include "heap.h"

/* Updates the list of waiting classes after the root of the heap of class @c has become @root. */
SW_FN sw_u32 sw_class_update(SW_CORE, sw_u32 c, sw_u32 root)
{
	struct sw_class *class = sw_class(s, c);
	struct sw_waiting *entry;

	class->root = root;
	if (!root) {
		sw_u32 place = class->place, end = s->waiting_count;

		/* The last entry fills the gap. */
		*sw_waiting(s, place - 1) = *sw_waiting(s, end - 1);
		sw_class(s, sw_waiting(s, place - 1)->class)->place = place;
		class->place = 0;
		s->waiting_count = end - 1;
		return 0;
	}
	if (!class->place) {
		class->place = ++s->waiting_count;
		entry = sw_waiting(s, class->place - 1);
		entry->mask = class->mask;
		entry->class = c;
	}
	entry = sw_waiting(s, class->place - 1);
	entry->top = root;
	entry->rank = sw_task(s, root)->rank;
	return 0;
}

/* Adds ready task @i to the waiting tasks. */
SW_IN void sw_wait(struct sw_core *s, sw_u32 i)
{
	sw_u32 c = sw_task(s, i)->class;

	sw_class_update(s, c, sw_heap_add(s, sw_class(s, c)->root, i));
}

/* Removes @i from the waiting tasks. */
SW_IN void sw_unwait(struct sw_core *s, sw_u32 i)
{
	sw_u32 c = sw_task(s, i)->class;

	sw_class_update(s, c, sw_heap_remove(s, sw_class(s, c)->root, i));
}

/* The most urgent waiting task that may use one of @cpus; 0 if there is none. O(waiting classes) */
SW_FN sw_u32 sw_best(SW_CORE, sw_u64 cpus)
{
	sw_u64 rank = SW_NEVER;
	sw_u32 best = SW_ZERO(s), k;

	SW_LOOP(k, SW_TASKS) {
		const struct sw_waiting *entry;

		if (k >= s->waiting_count)
			break;
		entry = sw_waiting(s, k);
		if (!(entry->mask & cpus) || entry->rank > rank)
			continue;
		if (best && entry->rank == rank && sw_precedes(s, best, entry->top))
			continue;
		best = entry->top;
		rank = entry->rank;
	}
	return best;
}

SW_IN sw_u16 *sw_hash(struct sw_core *s, sw_u64 mask)
{
	/* Knuth's multiplicative hash; the upper bits depend on all of the mask. */
	sw_u64 place = (mask * 0x9e3779b97f4a7c15ULL) >> 54;

	SW_HIDE(place);
	return &s->hash[place & (SW_TASKS - 1)];
}

/*
 * The class of a mask, found or made, with one user more. There are as many classes as tasks and a
 * task leaves its class before it joins another, so there always is one.
 */
SW_FN sw_u32 sw_class_join(SW_CORE, sw_u64 mask)
{
	sw_u16 *head = sw_hash(s, mask);
	sw_u32 c = *head, k;
	struct sw_class *class;

	SW_LOOP(k, SW_TASKS) {
		if (!c)
			break;
		class = sw_class(s, c);
		if (class->mask == mask) {
			class->users++;
			return c;
		}
		c = class->next;
	}
	c = s->class_free;
	if (c)
		s->class_free = sw_class(s, c)->next;
	else
		c = ++s->class_count;
	class = sw_class(s, c);
	class->mask = mask;
	class->users = 1;
	class->next = *head;
	*head = c;
	return c;
}

/* Removes a user; a class without users is free for another mask. */
SW_FN sw_u32 sw_class_leave(SW_CORE, sw_u32 c)
{
	struct sw_class *class = sw_class(s, c);
	sw_u16 *link = sw_hash(s, class->mask);
	sw_u32 k, other;

	if (--class->users)
		return 0;
	other = *link;
	if (other == c) {
		*link = class->next;
	} else {
		SW_LOOP(k, SW_TASKS) {
			struct sw_class *before = sw_class(s, other);

			if (!other)
				break;	/* never: @c is in the list of its hash */
			other = before->next;
			if (other == c) {
				before->next = class->next;
				break;
			}
		}
	}
	class->next = s->class_free;
	s->class_free = c;
	return 0;
}

#endif
