/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Leftist heaps of tasks, linked by number: each node precedes both children, and its `lower` child is
 * at least as deep as its `upper` one, so that the path of `upper` links has at most log2(n + 1) nodes.
 * Insertion, removal of any task and the first task cost O(log n), O(log n) and O(1).
 */
#ifndef SW_HEAP_H
#define SW_HEAP_H

#include "state.h"

/* Longer than two merged paths of `upper` links. */
#define SW_SPINE 32

SW_IN sw_u32 sw_depth(struct sw_core *s, sw_u32 node)
{
	return node ? sw_task(s, node)->depth : 0;
}

/*
 * Repairs the depths from @node upwards: to the root if @all, else as far as a depth changes. Depths
 * change at no more than a logarithmic number of nodes, however long the path to the root is.
 */
SW_FN sw_u32 sw_heap_mend(SW_CORE, sw_u32 node, sw_u32 all)
{
	sw_u32 k;

	SW_LOOP(k, SW_TASKS) {
		struct sw_task *t;
		sw_u32 lower, upper;

		if (!node)
			break;
		t = sw_task(s, node);
		lower = sw_depth(s, t->lower);
		upper = sw_depth(s, t->upper);
		if (lower < upper) {
			sw_u16 swapped = t->lower;

			t->lower = t->upper;
			t->upper = swapped;
			upper = lower;
		}
		if (t->depth == upper + 1 && !all)
			break;
		t->depth = upper + 1;
		node = t->parent;
	}
	return 0;
}

/* Merges two heaps; returns the root. */
SW_FN sw_u32 sw_heap_merge(SW_CORE, sw_u32 a, sw_u32 b)
{
	sw_u32 root, node, k;

	if (!a || !b)
		return a ? a : b;
	if (sw_precedes(s, b, a)) {
		node = a;
		a = b;
		b = node;
	}
	root = node = a;
	sw_task(s, root)->parent = 0;
	/* @b is merged into the subtree of the `upper` link of @node. */
	SW_LOOP(k, SW_SPINE) {
		struct sw_task *t = sw_task(s, node);
		sw_u32 upper = t->upper;

		if (!upper || sw_precedes(s, b, upper)) {
			t->upper = b;
			sw_task(s, b)->parent = node;
			if (!upper)
				break;
			node = b;
			b = upper;
		} else {
			node = upper;
		}
	}
	sw_heap_mend(s, node, 1);
	return root;
}

/* Adds a task that is in no heap, by its rank; returns the new root. */
SW_IN sw_u32 sw_heap_add(struct sw_core *s, sw_u32 root, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);

	t->lower = t->upper = t->parent = 0;
	t->depth = 1;
	return sw_heap_merge(s, root, i);
}

/* Takes a task out of the heap that holds it; returns the new root. */
SW_FN sw_u32 sw_heap_remove(SW_CORE, sw_u32 root, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);
	sw_u32 parent = t->parent;
	sw_u32 rest = sw_heap_merge(s, t->lower, t->upper);

	if (rest)
		sw_task(s, rest)->parent = parent;
	if (!parent)
		return rest;
	if (sw_task(s, parent)->lower == i)
		sw_task(s, parent)->lower = rest;
	else
		sw_task(s, parent)->upper = rest;
	sw_heap_mend(s, parent, 0);
	return root;
}

#endif
