/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The whole state of the core: one struct without pointers, all zero at the start, so that it can be
 * a BPF map, a page of shared memory or a Rust Box.
 *
 * Tasks are numbered 1 to SW_TASKS, and 0 means none; the index of a task is its number modulo SW_TASKS.
 * CPUs are numbered 0 to SW_CPUS - 1; fields that can also be "none" hold the number plus one.
 */
#ifndef SW_STATE_H
#define SW_STATE_H

#include "base.h"

enum sw_order {
	SW_EDF,
	SW_FP,
};

enum sw_state {
	SW_ABSENT,
	SW_BLOCKED,
	SW_READY,	/* on a CPU if `on` is set, else in the backlog of its mask */
	SW_THROTTLED,	/* in the timer heap until its next period */
	SW_UNRELEASED,	/* in the timer heap until its next job is released */
};

/*
 * A task. `rank` is the key of the heap that holds it: the priority or the deadline of its ready job, or
 * the instant at which its timer expires. `ready`, then the number, break ties; in the heap of timers
 * `ready` is the task's later rank, so that of several timers at one instant the most urgent is first.
 */
struct sw_task {
	sw_u64 rank;
	sw_u64 ready;
	sw_u64 mask;		/* the CPUs it may use now: that of `kept` or `narrowed` if set, else `affinity` */
	sw_u64 affinity;
	sw_u64 narrowed;	/* 0, or the CPUs to which it is restricted for now */
	sw_u64 deadline;	/* of the job, or of the server's period; 0 before the first */
	sw_s64 left;		/* remaining budget */
	sw_u64 budget;		/* per period; 0 if it is not enforced */
	sw_u64 period;		/* 0 if there is none */
	sw_u64 relative;	/* deadline, from the start of the period */
	sw_u64 end;		/* of the server's period; 0 before the first */
	sw_u64 throttled;	/* number of times */
	sw_u64 replenished;
	sw_u32 priority;
	sw_u16 class;		/* of its mask */
	sw_u16 parent, lower, upper;	/* in a heap; `lower` is at least as deep as `upper` */
	sw_u8 depth;		/* 1 + that of `upper` */
	sw_u8 state;
	sw_u8 on;		/* CPU + 1 while assigned */
	sw_u8 last;		/* CPU + 1 of the last assignment */
	sw_u8 home;		/* scratch of sw_settle() */
	sw_u8 awake;		/* its thread is runnable, throttled or not */
	sw_u8 yielded;		/* gave up the rest of its budget */
	sw_u8 follows;		/* its server follows its releases, see sw_follow() */
	sw_u8 begun;		/* and a job of it has begun */
	sw_u8 kept;		/* CPU + 1 on which it must not be preempted, nor leave it; 0: none */
	sw_u8 waits;		/* its job waits for a mutex */
	sw_u8 unused;
};

/* A distinct mask of present tasks. Numbered like tasks; found by its hash. */
struct sw_class {
	sw_u64 mask;
	sw_u32 users;		/* tasks; 0: free */
	sw_u16 next;		/* with the same hash, or free */
	sw_u16 root;		/* the most urgent waiting task, the heap's root */
	sw_u32 place;		/* 1 + index in `waiting` while a task waits */
	sw_u32 unused;
};

/* The part of a class with waiting tasks that a search reads. */
struct sw_waiting {
	sw_u64 mask;
	sw_u64 rank;		/* of `top` */
	sw_u32 top;
	sw_u32 class;
};

/*
 * Invariants between events, which sw_check() verifies:
 *
 * 1. `runner[c]` is on c, and no other task; c is in its mask and online. `idle` is the set of online
 *    CPUs without a runner. `runner_mask` and `runner_rank` are copies of the runner's fields; the mask is
 *    0 on a CPU without a runner.
 * 2. A ready task is on one CPU, or in the heap of the class of its mask. `waiting` lists exactly the
 *    classes whose heap is not empty.
 * 3. A throttled or unreleased task is in the heap of timers.
 * 4. No chain of shifts leads from a CPU of a waiting task to an idle CPU or to a less urgent runner:
 *    the strong invariant.
 */
struct sw_core {
	sw_u64 zero;		/* always 0, see SW_ZERO */
	sw_u64 online;		/* the available CPUs */
	sw_u64 idle;
	sw_u64 seen;		/* result of sw_search() */
	sw_u32 order;
	sw_u32 timers;		/* root: the task whose timer expires first */
	sw_u32 waiting_count;
	sw_u32 class_count;	/* classes used so far */
	sw_u32 class_free;	/* first of those that are free again */
	sw_u32 unused;
	sw_u64 shifts;		/* statistics, like the next one */
	sw_u64 preemptions;
	sw_u32 runner[SW_CPUS];
	sw_u64 runner_mask[SW_CPUS];
	sw_u64 runner_rank[SW_CPUS];
	sw_u64 mates[SW_CPUS];	/* the CPUs that share a cache with this one; 0 if unknown */
	sw_u64 layer[SW_CPUS];	/* scratch of searches */
	sw_u32 before[SW_CPUS];	/* scratch of sw_settle(), like the three below */
	sw_u32 placed[SW_CPUS];
	sw_s32 distance[SW_CPUS];
	sw_u32 came_from[SW_CPUS];
	sw_u16 hash[SW_TASKS];	/* first class with this hash */
	struct sw_waiting waiting[SW_TASKS];
	struct sw_class class[SW_TASKS];
	struct sw_task task[SW_TASKS];
};

_Static_assert(sizeof(struct sw_task) == 128, "a task's slot is found by a shift");
_Static_assert(sizeof(struct sw_class) == 24, "layout");
_Static_assert(sizeof(struct sw_waiting) == 24, "layout");
_Static_assert(__builtin_offsetof(struct sw_core, runner) == 72, "layout known outside");
_Static_assert(sizeof(struct sw_core) == 185672, "layout known outside");

/* Every access to an array of the state goes through one of these; they mask the index. */
SW_IN struct sw_task *sw_task(struct sw_core *s, sw_u64 number)
{
	SW_HIDE(number);
	return &s->task[number & (SW_TASKS - 1)];
}

SW_IN struct sw_class *sw_class(struct sw_core *s, sw_u64 number)
{
	SW_HIDE(number);
	return &s->class[number & (SW_TASKS - 1)];
}

SW_IN struct sw_waiting *sw_waiting(struct sw_core *s, sw_u64 place)
{
	SW_HIDE(place);
	return &s->waiting[place & (SW_TASKS - 1)];
}

#define SW_PER_CPU(type, name)						\
	SW_IN type *sw_##name(struct sw_core *s, sw_u64 cpu)		\
	{								\
		SW_HIDE(cpu);						\
		return &s->name[cpu & (SW_CPUS - 1)];			\
	}

SW_PER_CPU(sw_u32, runner)
SW_PER_CPU(sw_u64, runner_mask)
SW_PER_CPU(sw_u64, runner_rank)
SW_PER_CPU(sw_u64, mates)
SW_PER_CPU(sw_u64, layer)
SW_PER_CPU(sw_u32, before)
SW_PER_CPU(sw_u32, placed)
SW_PER_CPU(sw_s32, distance)
SW_PER_CPU(sw_u32, came_from)

#undef SW_PER_CPU

/* The CPUs that it may use now. */
SW_IN sw_u64 sw_mask_of(const struct sw_task *t)
{
	/* Where the kernel holds it elsewhere it cannot run but there. */
	if (t->kept && (!t->narrowed || t->narrowed & sw_bit(t->kept - 1)))
		return sw_bit(t->kept - 1);
	return t->narrowed ? t->narrowed : t->affinity;
}

/* Whether it is in the heap of timers. */
SW_IN int sw_is_held(const struct sw_task *t)
{
	return t->state == SW_THROTTLED || t->state == SW_UNRELEASED;
}

/*
 * The total order: smaller rank, then ready earlier, then the lower number. Never equal for two
 * tasks, so an arrival never preempts an equal that was ready before it.
 */
SW_IN int sw_precedes(struct sw_core *s, sw_u32 a, sw_u32 b)
{
	const struct sw_task *x = sw_task(s, a), *y = sw_task(s, b);

	if (x->rank != y->rank)
		return x->rank < y->rank;
	if (x->ready != y->ready)
		return x->ready < y->ready;
	return a < b;
}

#endif
