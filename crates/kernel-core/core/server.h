/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Budgets: a hard constant-bandwidth server per task, by the rules of SCHED_DEADLINE (Tang et al. 2021,
 * Fig. 1; deadlines shorter than periods as Linux has them).
 *
 * A server has `left` of its budget until `deadline`. Its next period begins at deadline - relative +
 * period; a server that has used up its budget, or has yielded, is throttled until then, or goes on at
 * once with a later deadline if that instant is past. A deadline of 0 says that it never served.
 *
 * Nothing here reads a clock: @now is what the caller says, and must never go back. Under fixed
 * priorities servers do the same, but their deadlines rank nobody.
 */
#ifndef SW_SERVER_H
#define SW_SERVER_H

#include "change.h"

/* Longer spans are refused, so that no sum of an instant and a span can wrap. */
#define SW_SPAN_MAX (1ULL << 60)

/*
 * From now on @i has @budget in each @period, to be used within @relative; budget 0 is not enforced,
 * period 0 says that its jobs end only by blocking. What is left and the deadline stay as they are.
 * Returns 0, or 1 and changes nothing unless budget <= relative <= period.
 */
SW_FN sw_u32 sw_set_server(SW_CORE, sw_u32 i, sw_u64 budget, sw_u64 period, sw_u64 relative)
{
	struct sw_task *t = sw_task(s, i);

	if (budget > relative || relative > period || period > SW_SPAN_MAX || (period && !relative))
		return 1;
	t->budget = budget;
	t->period = period;
	t->relative = relative;
	return 0;
}

SW_IN sw_u64 sw_next_period(const struct sw_task *t)
{
	return t->deadline - t->relative + t->period;
}

SW_IN void sw_new_period(struct sw_task *t, sw_u64 now)
{
	t->deadline = now + t->relative;
	t->left = t->budget;
}

/*
 * The next period begins: the budget is full again, less what was overdrawn. A server that is so late
 * that even the next deadline is past begins anew.
 */
SW_FN sw_u32 sw_replenish(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 periods = 1;

	if (t->yielded && t->left > 0)
		t->left = 0;
	t->yielded = 0;
	t->replenished++;
	if (t->budget && t->left <= 0)
		periods = (sw_u64)-t->left / t->budget + 1;
	/* So far overdrawn that the products below could wrap: nothing is gained by holding it to that. */
	if (periods > (1ULL << 62) / (t->period ? t->period : 1)) {
		sw_new_period(t, now);
		return 0;
	}
	t->left += periods * t->budget;
	t->deadline += periods * t->period;
	if (t->deadline < now)
		sw_new_period(t, now);
	return 0;
}

/* floor(a * b / c) for c > 0 where that fits a word. There is no wider division in BPF. */
SW_FN sw_u64 sw_scale(SW_CORE, sw_u64 a, sw_u64 b, sw_u64 c)
{
	struct sw_wide product = sw_multiply(a, b);
	sw_u64 rest = product.high, low = product.low, quotient = SW_ZERO(s);
	sw_u32 k;

	SW_LOOP(k, 64) {
		sw_u64 carry = rest >> 63;

		rest = rest << 1 | low >> 63;
		low <<= 1;
		quotient <<= 1;
		if (carry || rest >= c) {
			rest -= c;
			quotient |= 1;
		}
	}
	return quotient;
}

/* @i waits for its next period. It has been taken off its CPU or out of its heap. */
SW_IN void sw_throttle(struct sw_core *s, sw_u32 i, sw_u64 until)
{
	struct sw_task *t = sw_task(s, i);

	t->state = SW_THROTTLED;
	t->rank = until;
	t->ready = 0;
	t->throttled++;
	s->timers = sw_heap_add(s, s->timers, i);
}

/* How a server wakes. */
enum sw_waking {
	SW_KEEPS,	/* budget and deadline stay */
	SW_RENEWS,	/* a period begins now */
	SW_SHRINKS,	/* the deadline stays, and the budget is what it allows */
	SW_HELD,	/* not before the next period */
};

SW_IN sw_u32 sw_waking(const struct sw_task *t, sw_u64 now)
{
	sw_u32 constrained = t->relative < t->period;

	if (!t->budget || !t->deadline)
		return SW_RENEWS;
	if (now >= t->deadline)
		return constrained && now < sw_next_period(t) ? SW_HELD : SW_RENEWS;
	/* left / (deadline - now) > budget / relative: using it would take more than its share. */
	if (t->left <= 0 ||
	    !sw_product_exceeds(t->left, t->relative, t->budget, t->deadline - now))
		return SW_KEEPS;
	return constrained ? SW_SHRINKS : SW_RENEWS;
}

/* Task @i wants to run. */
SW_FN sw_u64 sw_wake(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u32 waking;

	if (t->state == SW_ABSENT)
		return 0;
	t->awake = 1;
	if (t->state != SW_BLOCKED)
		return 0;
	waking = sw_waking(t, now);
	if (waking == SW_RENEWS)
		sw_new_period(t, now);
	if (waking == SW_SHRINKS)
		t->left = sw_scale(s, t->budget, t->deadline - now, t->relative);
	if (waking == SW_HELD || (waking == SW_SHRINKS && !t->left)) {
		t->left = 0;
		sw_throttle(s, i, sw_next_period(t));
		return 0;
	}
	return sw_arrive(s, i, now);
}

/* Task @i wants to run no more. What it ran has been charged. */
SW_IN sw_u64 sw_sleep(struct sw_core *s, sw_u32 i)
{
	sw_task(s, i)->awake = 0;
	return sw_depart(s, i);
}

/* The budget of ready task @i is used up, or given up. */
SW_FN sw_u64 sw_end(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 next = sw_next_period(t), changed;

	if (next > now) {
		changed = sw_remove(s, i, SW_BLOCKED);
		sw_throttle(s, i, next);
		return changed;
	}
	sw_replenish(s, i, now);
	return sw_rerank(s, i);
}

/* @i has run for @ran since it was last charged. */
SW_IN sw_u64 sw_charge(struct sw_core *s, sw_u32 i, sw_u64 ran, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	if (!t->budget || t->state == SW_ABSENT)
		return 0;
	t->left -= ran;
	return t->left <= 0 && t->state == SW_READY ? sw_end(s, i, now) : 0;
}

/* The job of @i is finished, and the next one begins with its next period. What it ran has been charged. */
SW_IN sw_u64 sw_yield(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	if (!t->period || t->state != SW_READY)
		return 0;
	t->yielded = 1;
	return sw_end(s, i, now);
}

/* When sw_replenish_next() is due; SW_NEVER if nobody is throttled. */
SW_IN sw_u64 sw_next_replenishment(struct sw_core *s)
{
	return s->timers ? sw_task(s, s->timers)->rank : SW_NEVER;
}

/* When the budget of @i is used up if it runs from @now on; SW_NEVER if that is not enforced. */
SW_IN sw_u64 sw_budget_end(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	const struct sw_task *t = sw_task(s, i);

	if (!t->budget)
		return SW_NEVER;
	return t->left > 0 ? now + t->left : now;
}

/*
 * Replenishes the first throttled task whose next period has begun. One per call, to bound the time
 * under a lock: to be called until sw_next_replenishment() is later than @now.
 */
SW_FN sw_u64 sw_replenish_next(SW_CORE, sw_u64 now)
{
	sw_u32 i = s->timers;
	struct sw_task *t = sw_task(s, i);
	sw_u64 due = t->rank;

	if (!i || due > now)
		return 0;
	s->timers = sw_heap_remove(s, i, i);
	sw_replenish(s, i, now);
	t->state = SW_BLOCKED;
	return t->awake ? sw_arrive(s, i, due) : 0;
}

#endif
