/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The core with small arrays, so that a state is a kilobyte, and its events as numbers: for programs that try very many of
 * them, compiled with sanitizers.
 */
#ifndef SW_SANITIZED_CORE_H
#define SW_SANITIZED_CORE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/base.h"

#undef SW_CPUS
#undef SW_TASKS
#undef SW_MUTEXES
#define SW_CPUS 4
/* TASKS is defined by the program that includes this; a power of two. */
#define SW_TASKS TASKS
#define SW_MUTEXES 4
/* The sizes that are known outside are those of large arrays. */
#define _Static_assert(...) struct sw_nothing

#include "../../core/core.h"
#include "../../core/mutex.h"

/* All CPUs of the platform: one fewer than there is room for. */
#define PLATFORM 7

SW_FN int sw_say(sw_u32 fact, sw_u32 i, sw_u64 now, sw_u64 value)
{
	(void)fact;
	(void)i;
	(void)now;
	(void)value;
	return 0;
}

struct world {
	struct sw_core core;
	struct sw_mutexes mutexes;
	sw_u64 now;
};

/* Says what is wrong, and ends the program. */
static void fail(const char *what, sw_u64 number)
{
	fprintf(stderr, "%s: %llu\n", what, number);
	abort();
}

/* Whether the lists of classes end, and each class that was ever used is in that of its hash or in that of free ones. */
static int are_classes_sound(struct sw_core *s)
{
	sw_u32 listed = 0, k, c, n;

	for (k = 0; k <= SW_TASKS; k++) {
		int is_free = k == SW_TASKS;

		for (c = is_free ? s->class_free : s->hash[k], n = 0; c; c = sw_class(s, c)->next, n++) {
			if (n >= SW_TASKS || c > s->class_count || is_free != !sw_class(s, c)->users)
				return 0;
			if (!is_free && sw_hash(s, sw_class(s, c)->mask) != &s->hash[k])
				return 0;
			listed++;
		}
	}
	return listed == s->class_count;
}

/* After an event: the invariants, and that each CPU with another task than @before is among those that the event named. */
static void check(struct world *w, const sw_u32 *before, sw_u64 changed)
{
	struct sw_core *s = &w->core;
	sw_u32 fault = sw_check(s), c;

	if (fault)
		fail("invariant (enum sw_fault) violated", fault);
	if (!are_classes_sound(s))
		fail("a class is in no list, or in two", 0);
	for (c = 0; c < SW_CPUS; c++)
		if (before[c] != s->runner[c] && !(changed & sw_bit(c)))
			fail("the task of a CPU changed, of which the event said nothing", c);
}

#endif
