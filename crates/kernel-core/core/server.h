/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Budgets: a hard constant-bandwidth server per task, by one of two rules.
 *
 * For most programs only their blocking and yielding is known. Their servers go by the rules of
 * SCHED_DEADLINE (Tang et al. 2021, Fig. 1; constrained deadlines as in Linux): the remaining budget
 * `left` may be used until `deadline`, and the next period begins at the `end` of this one. A
 * server that has used up its budget, or has yielded, is throttled until then, or continues at once with
 * a later deadline if that instant is past. A deadline of 0 means that the server has not served yet.
 *
 * A server that has overdrawn its budget, because it was stopped late, waits for as many further periods as pay
 * that back. One that goes by wake-ups waits for SW_DEBT_WAIT_MAX at most, and what is not paid back by then is
 * dropped: after a standstill of the machine, or a change to a smaller budget, it would wait for hours.
 *
 * If releases are known, the server follows them: sw_follow() and sw_next_job(). Each job is scheduled
 * by its own deadline as long as none executes for longer than the budget: a release at or after the
 * `end` of the server's period starts a new period exactly there. Only after an overrun are jobs
 * restricted to the server's periods and its remaining budget. A suspension within a job keeps budget and
 * deadline. `Server` of the crate `machine` follows the same rule in simulations.
 *
 * Nothing here reads a clock: the caller passes @now, which must not decrease. Under fixed priorities
 * servers work in the same way, but deadlines do not affect the rank.
 */
#ifndef SW_SERVER_H
#define SW_SERVER_H

#include "change.h"

/* Longer spans are refused, so that no sum of an instant and a span can wrap. */
#define SW_SPAN_MAX (1ULL << 60)
/* For how long a server that goes by wake-ups waits at most, beyond its period, to pay back an overdraft, ns. */
#define SW_DEBT_WAIT_MAX 1000000000ULL
/* The same of one that follows releases: no sum can wrap. */
#define SW_FOLLOWER_WAIT_MAX (1ULL << 61)

/*
 * Gives @i @budget in each @period, to be used within @relative. Budget 0 is not enforced; period 0 means
 * that jobs end only by blocking. The present period keeps its deadline and its end, so that no sequence of changes gives
 * more than one budget in it, and what is left is at most the new budget; a server that follows releases is limited
 * when its next job begins. Returns 0; unless budget <= relative <= period it returns 1 and changes nothing. The deadline
 * of a server that follows releases may be longer than the period.
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
	if (!t->follows && t->left > (sw_s64)budget)
		t->left = budget;
	return 0;
}

SW_IN void sw_new_period(struct sw_task *t, sw_u64 now)
{
	t->deadline = now + t->relative;
	t->end = now + t->period;
	t->left = t->budget;
}

/*
 * Begins the next period with a full budget, less the overdraft. If even the next deadline is past, the
 * period begins at @now instead; but where releases are followed, periods follow each other without gaps, however late
 * this call is.
 */
SW_FN sw_u32 sw_replenish(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 periods = 1, most = 1;

	if (t->yielded && t->left > 0)
		t->left = 0;
	t->yielded = 0;
	t->replenished++;
	if (t->budget && t->left <= 0)
		periods += (sw_u64)-t->left / t->budget;
	if (t->period)
		most += (t->follows ? SW_FOLLOWER_WAIT_MAX : SW_DEBT_WAIT_MAX) / t->period;
	if (periods > most) {
		periods = most;
		t->left = t->budget;
	} else {
		t->left += periods * t->budget;
	}
	t->end += periods * t->period;
	t->deadline = t->end - t->period + t->relative;
	if (!t->follows && t->deadline < now)
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

/*
 * Puts blocked task @i into @state until its timer expires at @until. It will then be ranked by @deadline
 * or by its priority: of several timers that expire at one instant that of the most urgent task is first.
 */
SW_IN void sw_hold(struct sw_core *s, sw_u32 i, sw_u32 state, sw_u64 until, sw_u64 deadline)
{
	struct sw_task *t = sw_task(s, i);

	t->state = state;
	t->rank = until;
	t->ready = s->order == SW_FP ? t->priority : deadline;
	s->timers = sw_heap_add(s, s->timers, i);
}

/* Throttles blocked task @i until its next period. */
SW_IN void sw_throttle(struct sw_core *s, sw_u32 i, sw_u64 until)
{
	struct sw_task *t = sw_task(s, i);

	t->throttled++;
	sw_hold(s, i, SW_THROTTLED, until, until + t->relative);
}

/* Effect of a wake-up on a server. */
enum sw_waking {
	SW_KEEPS,	/* budget and deadline are kept */
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
		return constrained && now < t->end ? SW_HELD : SW_RENEWS;
	/* left / (deadline - now) > budget / relative: using it would take more than its share. */
	if (t->left <= 0 ||
	    !sw_product_exceeds(t->left, t->relative, t->budget, t->deadline - now))
		return SW_KEEPS;
	return constrained ? SW_SHRINKS : SW_RENEWS;
}

/*
 * The rank of @i, or the one that it would have if it woke up at @now; SW_NEVER if it could not run then. For servers that go by
 * wake-ups. A budget that shrinks to nothing counts as one.
 */
SW_FN sw_u64 sw_rank_if_awake(SW_CORE, sw_u32 i, sw_u64 now)
{
	const struct sw_task *t = sw_task(s, i);
	sw_u32 waking;

	if (t->state == SW_READY)
		return t->rank;
	if (t->state != SW_BLOCKED)
		return SW_NEVER;
	waking = sw_waking(t, now);
	if (waking == SW_HELD)
		return SW_NEVER;
	if (s->order == SW_FP)
		return t->priority;
	return waking == SW_RENEWS ? now + t->relative : t->deadline;
}

/*
 * Whether @a goes before @b, or would if those of them that are blocked woke up at @now: a strict order, which does not depend on when
 * they became ready.
 */
SW_IN sw_u32 sw_would_precede(struct sw_core *s, sw_u32 a, sw_u32 b, sw_u64 now)
{
	sw_u64 x = sw_rank_if_awake(s, a, now), y = sw_rank_if_awake(s, b, now);

	return x != y ? x < y : a < b;
}

/*
 * Whether the job of @i, whose server follows releases, may continue: with the remaining budget, or with a
 * new one if the period is over. If not, it has to wait for the end of the period.
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

/* Begins the first incomplete job of @i, released at @release. Returns whether it may run. */
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
	/* After a change of parameters, the rest of the old budget may exceed the new budget. */
	if (t->left > (sw_s64)t->budget)
		t->left = t->budget;
	return sw_resume(s, i, now);
}

/*
 * Makes the server of @i follow the releases given to sw_next_job(), until @i enters again. A current
 * period continues. For tasks with a server.
 */
SW_IN void sw_follow(struct sw_core *s, sw_u32 i)
{
	struct sw_task *t = sw_task(s, i);

	if (t->state == SW_ABSENT || t->follows)
		return;
	t->follows = 1;
	t->begun = t->deadline != 0;
}

/*
 * Completes the current job of @i, if it has one, whose execution has been spent. The next job is released
 * at @release, past or future. Until the release, and until the budget allows it, a timer holds the job;
 * sw_replenish_next() starts it. If the job may run at once, it keeps its CPU as far as its rank allows:
 * this is one event. SW_NEVER means that the release is not known yet; a later call may supply it.
 *
 * The job of a task that is not awake begins suspended: sw_wake() makes it ready.
 */
SW_FN sw_u64 sw_next_job(SW_CORE, sw_u32 i, sw_u64 release, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 changed = SW_ZERO(s), deadline, ready = now;

	if (t->state == SW_ABSENT || !t->follows)
		return 0;
	/* The previous job completed in time; only the call with the release is late. */
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

/*
 * As sw_next_job() with SW_NEVER, of a task that is not awake and that a timer holds until its next job is released: a later call
 * supplies the release.
 */
SW_FN sw_u32 sw_postpone(SW_CORE, sw_u32 i)
{
	s->timers = sw_heap_remove(s, s->timers, i);
	sw_hold(s, i, SW_UNRELEASED, SW_NEVER, SW_NEVER);
	return 0;
}

/* Task @i wakes. */
SW_FN sw_u64 sw_wake(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u32 waking;

	if (t->state == SW_ABSENT)
		return 0;
	t->awake = 1;
	if (t->state != SW_BLOCKED || t->waits || (t->follows && !t->begun))
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
		sw_throttle(s, i, t->end);
		return 0;
	}
	return sw_arrive(s, i, now);
}

/* Task @i blocks. Its execution has been charged or spent. */
SW_IN sw_u64 sw_sleep(struct sw_core *s, sw_u32 i)
{
	sw_task(s, i)->awake = 0;
	return sw_depart(s, i);
}

/* The budget of ready task @i is used up, or given up. */
SW_FN sw_u64 sw_end(SW_CORE, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);
	sw_u64 changed;

	if (t->end > now) {
		changed = sw_remove(s, i, SW_BLOCKED);
		sw_throttle(s, i, t->end);
		return changed;
	}
	sw_replenish(s, i, now);
	return sw_rerank(s, i, t->ready);
}

/*
 * Charges @ran to @i, whose job completes or suspends itself: the event for that follows. A budget used up
 * at that instant has no consequence.
 */
SW_IN void sw_spend(struct sw_core *s, sw_u32 i, sw_u64 ran)
{
	struct sw_task *t = sw_task(s, i);

	if (t->budget && t->state != SW_ABSENT)
		t->left -= ran;
}

/* Charges @ran to @i, which would continue to run. */
SW_IN sw_u64 sw_charge(struct sw_core *s, sw_u32 i, sw_u64 ran, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	sw_spend(s, i, ran);
	if (!t->budget)
		return 0;
	return t->left <= 0 && t->state == SW_READY ? sw_end(s, i, now) : 0;
}

/*
 * Completes the job of @i, whose execution has been charged; the next one begins with the next period.
 * Does nothing for a server that follows releases: there sw_next_job() completes jobs.
 */
SW_IN sw_u64 sw_yield(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	struct sw_task *t = sw_task(s, i);

	if (!t->period || t->follows || t->state != SW_READY)
		return 0;
	t->yielded = 1;
	return sw_end(s, i, now);
}

/* The instant at which sw_replenish_next() is due; SW_NEVER if no timer is set. */
SW_IN sw_u64 sw_next_replenishment(struct sw_core *s)
{
	return s->timers ? sw_task(s, s->timers)->rank : SW_NEVER;
}

/* The end of the budget of @i if it runs from @now on; SW_NEVER if the budget is not enforced. */
SW_IN sw_u64 sw_budget_end(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	const struct sw_task *t = sw_task(s, i);

	if (!t->budget)
		return SW_NEVER;
	return t->left > 0 ? now + t->left : now;
}

/*
 * Expires the first timer that is due: replenishes a throttled task, whose next period has begun, or
 * begins a released job. One per call, to bound the time under a lock: to be called until
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
