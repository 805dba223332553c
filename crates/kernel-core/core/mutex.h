/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Mutexes: which task holds each and which wait for it, and what their protocols make of the ranks of tasks. The same as the
 * mutexes of the crate `sim`, but that none lends CPUs. docs/formats.md says what the protocols are.
 *
 * A job that waits for a mutex is blocked, whether its thread sleeps or not. It continues when the mutex has passed to it, and
 * then requests it again. A job that spins keeps its CPU, and its thread reads `holder` until that is the task.
 *
 * Mutexes are numbered as tasks are: 1 to SW_MUTEXES, 0 means none.
 *
 * Tasks that take no part may hold mutexes and wait for them, too: neither they nor others are scheduled by that. So may those
 * whose threads run in another scheduling class, which the core takes for asleep.
 */
#ifndef SW_MUTEX_H
#define SW_MUTEX_H

#include "server.h"

enum sw_protocol {
	SW_MUTEX_PLAIN,
	SW_MUTEX_INHERITS,
	SW_MUTEX_CEILING,
	SW_MUTEX_NON_PREEMPTIVE,
	SW_MUTEX_SPINS,
};

/* What is said of mutexes while events are handled. */
enum sw_mutex_fact {
	SW_MUTEX_LOCKED,	/* value: the mutex, as of the next three */
	SW_MUTEX_UNLOCKED,
	SW_MUTEX_AWAITED,
	SW_MUTEX_SPUN,
	SW_MUTEX_RANKED,	/* value: the rank */
	SW_MUTEX_KEPT,		/* value: on which CPU, as a bit; 0: on none any more */
	SW_MUTEX_READY,		/* the mutex that the job waited for has passed to it */
};

/* Tells the machine, which defines this. */
SW_FN int sw_say(sw_u32 fact, sw_u32 i, sw_u64 now, sw_u64 value);

struct sw_mutex {
	sw_u64 floor;		/* the shortest relative deadline of the tasks that use it */
	sw_u64 rank;		/* that its holder has by the ceiling; SW_NEVER: none */
	sw_u32 ceiling;		/* the most urgent priority of the tasks that use it */
	sw_u16 holder;
	sw_u16 first, last;	/* of the tasks that wait, in the order of their requests */
	sw_u16 next;		/* that its holder also holds */
	sw_u8 protocol;
	sw_u8 unused[3];
};

/* What a task has of mutexes. */
struct sw_locks {
	sw_u64 own;		/* its rank without them, while it holds any or must not be preempted */
	sw_u16 held;		/* first of the list */
	sw_u16 awaited;
	sw_u16 next;		/* that waits for the same, after it */
	sw_u8 spins;
	sw_u8 unused;
};

struct sw_mutexes {
	struct sw_mutex mutex[SW_MUTEXES];
	struct sw_locks task[SW_TASKS];
	sw_u16 unlocked[SW_UNLOCKS];	/* what the event unlocks; the first is 0 if that is nothing */
};

_Static_assert(sizeof(struct sw_mutexes) == 24584, "layout known outside");

#define SW_MUTEXES_OF struct sw_mutexes *x SW_NONNULL

SW_IN struct sw_mutex *sw_mutex(struct sw_mutexes *x, sw_u64 number)
{
	SW_HIDE(number);
	return &x->mutex[number & (SW_MUTEXES - 1)];
}

SW_IN struct sw_locks *sw_locks(struct sw_mutexes *x, sw_u64 number)
{
	SW_HIDE(number);
	return &x->task[number & (SW_TASKS - 1)];
}

SW_IN sw_u16 *sw_unlocked(struct sw_mutexes *x, sw_u64 place)
{
	SW_HIDE(place);
	return &x->unlocked[place & (SW_UNLOCKS - 1)];
}

SW_IN void sw_set_mutex(struct sw_mutexes *x, sw_u32 number, sw_u32 protocol, sw_u32 ceiling, sw_u64 floor)
{
	struct sw_mutex *m = sw_mutex(x, number);

	m->protocol = protocol;
	m->ceiling = ceiling;
	m->floor = floor;
}

SW_IN int sw_is_non_preemptive(const struct sw_mutex *m)
{
	return m->protocol >= SW_MUTEX_NON_PREEMPTIVE;
}

SW_IN sw_u64 sw_rank_of_waiter(struct sw_core *s, sw_u32 i)
{
	const struct sw_task *t = sw_task(s, i);

	return t->state == SW_ABSENT ? SW_NEVER : sw_rank(s, t);
}

/* What @i is scheduled by now, by the mutexes that it holds. */
SW_FN sw_u64 sw_renew(SW_CORE, SW_MUTEXES_OF, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 rank = sw_locks(x, i)->own, other;
	sw_u32 number = sw_locks(x, i)->held, waiter, k, j;

	if (t->kept)
		rank = 0;
	SW_LOOP(k, SW_MUTEXES) {
		const struct sw_mutex *m = sw_mutex(x, number);

		if (!number)
			break;
		if (m->rank < rank)
			rank = m->rank;
		waiter = m->protocol == SW_MUTEX_INHERITS ? m->first : 0;
		SW_LOOP(j, SW_TASKS) {
			if (!waiter)
				break;
			other = sw_rank_of_waiter(s, waiter);
			if (other < rank)
				rank = other;
			waiter = sw_locks(x, waiter)->next;
		}
		number = m->next;
	}
	if (rank == sw_rank(s, t))
		return 0;
	sw_say(SW_MUTEX_RANKED, i, now, rank);
	return s->order == SW_FP ? sw_set_priority(s, i, rank) : sw_set_deadline(s, i, rank);
}

/* Its own rank is kept before anything else counts. */
SW_IN void sw_keep_rank(struct sw_core *s, struct sw_mutexes *x, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);

	if (!sw_locks(x, i)->held && !t->kept)
		sw_locks(x, i)->own = sw_rank(s, t);
}

/* The free mutex is @i's from now on. */
SW_IN void sw_acquire(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u32 number, sw_u64 now)
{
	struct sw_mutex *m = sw_mutex(x, number);
	struct sw_locks *l = sw_locks(x, i);

	sw_keep_rank(s, x, i);
	m->rank = SW_NEVER;
	if (m->protocol == SW_MUTEX_CEILING)
		m->rank = s->order == SW_FP ? m->ceiling : now + m->floor;
	m->next = l->held;
	l->held = number;
	sw_say(SW_MUTEX_LOCKED, i, now, number);
	/* Last: a thread that spins goes on. */
	*(volatile sw_u16 *)&m->holder = i;
}

/* The CPUs of @i may be others, by `kept`. */
SW_IN sw_u64 sw_remask_kept(struct sw_core *s, sw_u32 i)
{
	return sw_task(s, i)->state == SW_ABSENT ? 0 : sw_remask(s, i);
}

/* Whether the thread of @i runs though no CPU is its: it is about to lose the one that it is on. */
SW_IN int sw_lacks_cpu(const struct sw_task *t)
{
	return t->state != SW_ABSENT && t->awake && !t->on;
}

/* Others wait for the mutex than before: renews its holder, and those for whose mutexes that waits, directly or not. */
SW_IN sw_u64 sw_renew_holders(struct sw_core *s, struct sw_mutexes *x, sw_u32 number, sw_u64 now)
{
	sw_u64 changed = SW_ZERO(s), before;
	sw_u32 holder, k;

	SW_LOOP(k, SW_TASKS) {
		holder = number ? sw_mutex(x, number)->holder : 0;
		if (!holder)
			break;
		before = sw_rank(s, sw_task(s, holder));
		changed |= sw_renew(s, x, holder, now);
		if (before == sw_rank(s, sw_task(s, holder)))
			break;
		number = sw_locks(x, holder)->awaited;
	}
	return changed;
}

/*
 * The job of @i requests the mutex, or runs with it after it has passed to it. One that lacks a CPU does neither, and has to
 * request it when it has one.
 */
SW_IN sw_u64 sw_lock(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u32 number, sw_u64 now)
{
	struct sw_mutex *m = sw_mutex(x, number);
	struct sw_locks *l = sw_locks(x, i);
	struct sw_task *t = sw_task(s, i);
	sw_u32 waits = m->holder && m->holder != i, spins = waits && m->protocol == SW_MUTEX_SPINS;
	sw_u64 changed = 0;

	if (sw_lacks_cpu(t) || l->spins)
		return 0;
	if (l->awaited) {
		/* It has left and entered meanwhile. */
		t->waits = 1;
		return sw_depart(s, i);
	}
	/* Its holder was kept here, and slept: it could not come back. */
	if (spins && t->on && sw_task(s, m->holder)->kept == t->on)
		spins = 0;
	if (sw_is_non_preemptive(m) && (spins || !waits) && !t->kept && t->on) {
		sw_keep_rank(s, x, i);
		t->kept = t->on;
		sw_say(SW_MUTEX_KEPT, i, now, sw_bit(t->on - 1));
	}
	if (!m->holder)
		sw_acquire(s, x, i, number, now);
	if (waits) {
		l->awaited = number;
		l->next = 0;
		if (m->first)
			sw_locks(x, m->last)->next = i;
		else
			m->first = i;
		m->last = i;
		l->spins = spins;
		sw_say(spins ? SW_MUTEX_SPUN : SW_MUTEX_AWAITED, i, now, number);
	}
	if (!waits || spins) {
		if (l->held || t->kept)
			changed = sw_renew(s, x, i, now);
		return changed | sw_remask_kept(s, i);
	}
	t->waits = 1;
	changed = sw_depart(s, i);
	return changed | sw_renew_holders(s, x, number, now);
}

/* Takes what follows @before, which @i is, out of the list of those that wait. */
SW_IN void sw_remove_waiter(struct sw_mutexes *x, struct sw_mutex *m, sw_u32 before, sw_u32 i)
{
	if (before)
		sw_locks(x, before)->next = sw_locks(x, i)->next;
	else
		m->first = sw_locks(x, i)->next;
	if (m->last == i)
		m->last = before;
	sw_locks(x, i)->next = 0;
}

/* The mutex is free, if @i holds it. Returns whether it did. */
SW_FN sw_u32 sw_free(SW_CORE, SW_MUTEXES_OF, sw_u32 i, sw_u32 number, sw_u64 now)
{
	struct sw_mutex *m = sw_mutex(x, number);
	struct sw_locks *l = sw_locks(x, i);
	struct sw_task *t = sw_task(s, i);
	sw_u32 at = l->held, before = SW_ZERO(s), kept = SW_ZERO(s), k;

	if (!number || m->holder != i)
		return 0;
	SW_LOOP(k, SW_MUTEXES) {
		if (!at)
			break;
		if (at == number && before)
			sw_mutex(x, before)->next = m->next;
		else if (at == number)
			l->held = m->next;
		else if (sw_is_non_preemptive(sw_mutex(x, at)))
			kept = 1;
		if (at != number)
			before = at;
		at = sw_mutex(x, at)->next;
	}
	m->next = 0;
	m->holder = 0;
	sw_say(SW_MUTEX_UNLOCKED, i, now, number);
	if (t->kept && !kept) {
		sw_say(SW_MUTEX_KEPT, i, now, 0);
		t->kept = 0;
	}
	return 1;
}

/* The free mutex passes to the most urgent that waits for it; of equals to the first. */
SW_FN sw_u64 sw_pass_on(SW_CORE, SW_MUTEXES_OF, sw_u32 number, sw_u64 now)
{
	struct sw_mutex *m = sw_mutex(x, number);
	sw_u32 at = m->first, before = SW_ZERO(s), next = SW_ZERO(s), before_next = SW_ZERO(s), k;
	sw_u64 best = SW_NEVER, rank, changed;
	struct sw_task *t;

	if (!number || m->holder)
		return 0;
	SW_LOOP(k, SW_TASKS) {
		if (!at)
			break;
		rank = sw_rank_of_waiter(s, at);
		if (!next || rank < best) {
			best = rank;
			next = at;
			before_next = before;
		}
		before = at;
		at = sw_locks(x, at)->next;
	}
	if (!next)
		return 0;
	sw_remove_waiter(x, m, before_next, next);
	sw_locks(x, next)->awaited = 0;
	sw_acquire(s, x, next, number, now);
	changed = sw_renew(s, x, next, now);
	if (sw_locks(x, next)->spins) {
		sw_locks(x, next)->spins = 0;
		return changed;
	}
	t = sw_task(s, next);
	t->waits = 0;
	if (t->state == SW_BLOCKED && t->awake) {
		changed |= sw_arrive(s, next, now);
		sw_say(SW_MUTEX_READY, next, now, 0);
	}
	return changed;
}

/* The mutexes of `unlocked` are free, as far as @i holds them; sw_pass_all() follows. Returns whether it held one. */
SW_IN sw_u32 sw_free_all(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	sw_u32 freed = SW_ZERO(s), k;

	SW_LOOP(k, SW_UNLOCKS)
		freed |= sw_free(s, x, i, *sw_unlocked(x, k), now);
	return freed;
}

/* They pass to those that wait for them. */
SW_IN sw_u64 sw_pass_all(struct sw_core *s, struct sw_mutexes *x, sw_u64 now)
{
	sw_u64 changed = SW_ZERO(s);
	sw_u32 k;

	SW_LOOP(k, SW_UNLOCKS)
		changed |= sw_pass_on(s, x, *sw_unlocked(x, k), now);
	return changed;
}

/* The job of @i unlocks the mutexes of `unlocked`, and goes on. */
SW_IN sw_u64 sw_unlock(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	sw_u64 changed;

	if (!sw_free_all(s, x, i, now))
		return 0;
	/* CPUs are gained before the rank falls: a job that is lowered need not lose its CPU first. */
	changed = sw_remask_kept(s, i);
	changed |= sw_renew(s, x, i, now);
	return changed | sw_pass_all(s, x, now);
}

/*
 * The job of @i unlocks the mutexes of `unlocked`, which are all that it holds, and completes: sw_complete() follows. So it is
 * gone before anything is scheduled by its own rank.
 */
SW_IN void sw_unlock_last(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 own = sw_locks(x, i)->own;

	if (!x->unlocked[0] || !sw_free_all(s, x, i, now) || own == sw_rank(s, t))
		return;
	sw_say(SW_MUTEX_RANKED, i, now, own);
	if (s->order == SW_FP)
		t->priority = own;
	else
		t->deadline = own;
}

/* The thread of @i has ended: what it holds passes on, and it waits for nothing. */
SW_IN sw_u64 sw_end_locks(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	struct sw_locks *l = sw_locks(x, i);
	struct sw_mutex *m = sw_mutex(x, l->awaited);
	sw_u32 at = m->first, before = SW_ZERO(s), number, k;
	sw_u64 changed = SW_ZERO(s);

	SW_LOOP(k, SW_TASKS) {
		if (!l->awaited || at == i || !at)
			break;
		before = at;
		at = sw_locks(x, at)->next;
	}
	if (l->awaited && at == i) {
		sw_remove_waiter(x, m, before, i);
		changed |= sw_renew_holders(s, x, l->awaited, now);
	}
	l->awaited = 0;
	l->spins = 0;
	SW_LOOP(k, SW_MUTEXES) {
		number = l->held;
		if (!number)
			break;
		sw_free(s, x, i, number, now);
		changed |= sw_pass_on(s, x, number, now);
	}
	return changed;
}

/* The same as sw_next_job(), after sw_unlock_last(). */
SW_IN sw_u64 sw_complete(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 release, sw_u64 now)
{
	sw_u64 changed = sw_next_job(s, i, release, now);

	if (!x->unlocked[0])
		return changed;
	changed |= sw_remask_kept(s, i);
	return changed | sw_pass_all(s, x, now);
}

#endif
