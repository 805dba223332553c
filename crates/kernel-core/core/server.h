/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Budgets: a hard constant-bandwidth server per task, by one of two rules.
 *
 * Of most programs only is known when they block and when they yield. Their servers go by the rules of
 * SCHED_DEADLINE (Tang et al. 2021, Fig. 1; deadlines shorter than periods as Linux has them): `left` of
 * the budget is for use until `deadline`, and the next period begins at deadline - relative + period. A
 * server that has used up its budget, or has yielded, is throttled until then, or goes on at once with
 * a later deadline if that instant is past. A deadline of 0 says that it never served.
 *
 * Where releases are known the server follows them: sw_follow() and sw_next_job(). Each job is scheduled
 * by its own deadline as long as none runs for longer than the budget: a release at or after the `end`
 * of the server's period starts a new one exactly there. Only after an overrun are jobs held to the
 * server's periods, with what is left of the budget. A suspension within a job keeps budget and
 * deadline. It is what `Server` of the crate `machine` does, and so every simulated server.
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
 * Returns 0, or 1 and changes nothing unless budget <= relative <= period; where releases are followed
 * deadlines may be longer than periods.
 */
SW_FN sw_u32 sw_set_server(SW_CORE, sw_u32 i, sw_u64 budget, sw_u64 period, sw_u64 relative)
{
	struct sw_task *t = sw_task(s, i);

	if (budget > relative || relative > SW_SPAN_MAX || period > SW_SPAN_MAX ||
	    (relative > period && !t->follows) || !period != !relative)
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
	t->end = now + t->period;
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
	if (t->follows) {
		/* However late, its periods follow each other as if it were not. */
		t->end += periods * t->period;
		t->deadline = t->end - t->period + t->relative;
	} else if (t->deadline < now) {
		sw_new_period(t, now);
	}
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

/*
 * Blocked task @i is in @state until its timer ends, and will then be ranked by @deadline or by its
 * priority: of several timers that end at one instant that of the most urgent task comes first.
 */
SW_IN void sw_hold(struct sw_core *s, sw_u32 i, sw_u32 state, sw_u64 until, sw_u64 deadline)
{
	struct sw_task *t = sw_task(s, i);

	t->state = state;
	t->rank = until;
	t->ready = s->order == SW_FP ? t->priority : deadline;
	s->timers = sw_heap_add(s, s->timers, i);
}

/* Blocked task @i waits for its next period. */
SW_IN void sw_throttle(struct sw_core *s, sw_u32 i, sw_u64 until)
{
	struct sw_task *t = sw_task(s, i);

	t->throttled++;
	sw_hold(s, i, SW_THROTTLED, until, until + t->relative);
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

/*
 * Whether the job of @i, which follows its releases, may go on with what is left of the budget; with a
 * new one if the period is over. If not it has to wait for the end of the period.
 */
SW_IN sw_u32 sw_resume(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	if (!t->budget || t->left > 0)
		return 1;
	if (now < t->end)
		return 0;
	sw_replenish(s, i, now);
	return 1;
}

/* A job of @i, released at @release and the first that is not finished, begins. Whether it may run. */
SW_IN sw_u32 sw_begin(struct sw_core *s, sw_u32 i, sw_u64 release, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	t->begun = 1;
	if (!t->budget) {
		t->deadline = release + t->relative;
		return 1;
	}
	if (!t->end || release >= t->end) {
		sw_new_period(t, release);
		return 1;
	}
	/* After a change of parameters, what is left of the old budget may exceed the new one. */
	if (t->left > (sw_s64)t->budget)
		t->left = t->budget;
	return sw_resume(s, i, now);
}

/*
 * From now on the server of @i follows its releases, which sw_next_job() tells, until it enters anew. A
 * period that its server is in goes on. For tasks with a server.
 */
SW_IN void sw_follow(struct sw_core *s, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);

	if (t->state == SW_ABSENT || t->follows)
		return;
	t->follows = 1;
	t->begun = t->deadline != 0;
	t->end = t->begun ? sw_next_period(t) : 0;
}

/*
 * The job of @i is finished, if it has one, and what it ran has been spent; the next is released at
 * @release, past or future. Until then, and until its budget allows, it is held back, and
 * sw_replenish_next() starts it. If it may run at once it keeps its CPU as far as its rank allows: this
 * is one event. SW_NEVER says that the release is not known yet; that may be made good at any time.
 *
 * A task that is not awake gets its job, which is suspended to begin with: sw_wake() makes it ready.
 */
SW_FN sw_u64 sw_next_job(SW_CORE, sw_u32 i, sw_u64 release, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 changed = SW_ZERO(s), deadline, ready = now;

	if (t->state == SW_ABSENT || !t->follows)
		return 0;
	/* The job before was finished in time, and only the word of the release is late. */
	if (t->state == SW_UNRELEASED && release < now)
		ready = release;
	if (sw_is_held(t)) {
		s->timers = sw_heap_remove(s, s->timers, i);
		t->state = SW_BLOCKED;
	}
	if (release <= now && sw_begin(s, i, release, now)) {
		if (t->state == SW_READY)
			return sw_rerank(s, i, now);
		return t->awake ? sw_arrive(s, i, ready) : 0;
	}
	if (t->state == SW_READY)
		changed = sw_remove(s, i, SW_BLOCKED);
	if (release <= now) {
		sw_throttle(s, i, t->end);
		return changed;
	}
	deadline = t->budget && release < t->end ? t->deadline : release + t->relative;
	sw_hold(s, i, SW_UNRELEASED, release, deadline);
	return changed;
}

/* Task @i wants to run. */
SW_FN sw_u64 sw_wake(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u32 waking;

	if (t->state == SW_ABSENT)
		return 0;
	t->awake = 1;
	if (t->state != SW_BLOCKED || (t->follows && !t->begun))
		return 0;
	if (t->follows) {
		if (sw_resume(s, i, now))
			return sw_arrive(s, i, now);
		sw_throttle(s, i, t->end);
		return 0;
	}
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

/* Task @i wants to run no more. What it ran has been charged, or spent. */
SW_IN sw_u64 sw_sleep(struct sw_core *s, sw_u32 i)
{
	sw_task(s, i)->awake = 0;
	return sw_depart(s, i);
}

/* The budget of ready task @i is used up, or given up. */
SW_FN sw_u64 sw_end(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 next = t->follows ? t->end : sw_next_period(t), changed;

	if (next > now) {
		changed = sw_remove(s, i, SW_BLOCKED);
		sw_throttle(s, i, next);
		return changed;
	}
	sw_replenish(s, i, now);
	return sw_rerank(s, i, t->ready);
}

/*
 * @i has run for @ran since it was last charged, and its job is finished or suspends itself: the event
 * that says so follows. A budget that is used up just then is not missed by anybody.
 */
SW_IN void sw_spend(struct sw_core *s, sw_u32 i, sw_u64 ran)
{
	struct sw_task *t = sw_task(s, i);

	if (t->budget && t->state != SW_ABSENT)
		t->left -= ran;
}

/* @i has run for @ran since it was last charged, and would go on. */
SW_IN sw_u64 sw_charge(struct sw_core *s, sw_u32 i, sw_u64 ran, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	sw_spend(s, i, ran);
	if (!t->budget)
		return 0;
	return t->left <= 0 && t->state == SW_READY ? sw_end(s, i, now) : 0;
}

/*
 * The job of @i is finished, and the next one begins with its next period. What it ran has been charged.
 * Where releases are followed this says nothing: sw_next_job() does.
 */
SW_IN sw_u64 sw_yield(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	if (!t->period || t->follows || t->state != SW_READY)
		return 0;
	t->yielded = 1;
	return sw_end(s, i, now);
}

/* When sw_replenish_next() is due; SW_NEVER if nobody is held back. */
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
 * Ends the first timer that is due: replenishes a throttled task, whose next period has begun, or lets
 * the job begin that is released. One per call, to bound the time under a lock: to be called until
 * sw_next_replenishment() is later than @now.
 */
SW_FN sw_u64 sw_replenish_next(SW_CORE, sw_u64 now)
{
	sw_u32 i = s->timers;
	struct sw_task *t = sw_task(s, i);
	sw_u64 due = t->rank;

	if (!i || due > now)
		return 0;
	s->timers = sw_heap_remove(s, i, i);
	if (t->state == SW_THROTTLED) {
		sw_replenish(s, i, now);
	} else if (!sw_begin(s, i, due, due)) {
		sw_throttle(s, i, t->end);
		return 0;
	}
	t->state = SW_BLOCKED;
	return t->awake ? sw_arrive(s, i, due) : 0;
}

#endif
