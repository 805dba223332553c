// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/* The core as a native library: each function calls its namesake in the headers. */
#include "core.h"
#include "mutex.h"
#include "trigger.h"

void sw_native_init(struct sw_core *s, sw_u32 order, sw_u64 online)
{
	sw_init(s, order, online);
}

void sw_native_set_mates(struct sw_core *s, sw_u32 cpu, sw_u64 mates)
{
	*sw_mates(s, cpu) = mates;
}

sw_u64 sw_native_enter(struct sw_core *s, sw_u32 i, sw_u64 affinity, sw_u32 start)
{
	return sw_enter(s, i, affinity, start);
}

sw_u64 sw_native_enter_again(struct sw_core *s, sw_u32 i, sw_u64 affinity, sw_u32 start)
{
	return sw_enter_again(s, i, affinity, start);
}

sw_u64 sw_native_leave(struct sw_core *s, sw_u32 i)
{
	return sw_leave(s, i);
}

/* A job becomes ready, ranked by the caller's deadline and priority, without regard to a server. */
sw_u64 sw_native_arrive(struct sw_core *s, sw_u32 i, sw_u64 ready, sw_u64 deadline, sw_u32 priority)
{
	struct sw_task *t = sw_task(s, i);

	if (t->state != SW_BLOCKED)
		return 0;
	t->deadline = deadline;
	t->priority = priority;
	return sw_arrive(s, i, ready);
}

sw_u64 sw_native_depart(struct sw_core *s, sw_u32 i)
{
	return sw_depart(s, i);
}

sw_u64 sw_native_set_affinity(struct sw_core *s, sw_u32 i, sw_u64 affinity)
{
	return sw_set_affinity(s, i, affinity);
}

sw_u64 sw_native_narrow(struct sw_core *s, sw_u32 i, sw_u64 cpus)
{
	return sw_narrow(s, i, cpus);
}

sw_u64 sw_native_set_priority(struct sw_core *s, sw_u32 i, sw_u32 priority)
{
	return sw_set_priority(s, i, priority);
}

sw_u64 sw_native_set_deadline(struct sw_core *s, sw_u32 i, sw_u64 deadline)
{
	return sw_set_deadline(s, i, deadline);
}

sw_u64 sw_native_cpu_leave(struct sw_core *s, sw_u32 cpu)
{
	return sw_cpu_leave(s, cpu);
}

sw_u64 sw_native_cpu_join(struct sw_core *s, sw_u32 cpu)
{
	return sw_cpu_join(s, cpu);
}

sw_u32 sw_native_set_server(struct sw_core *s, sw_u32 i, sw_u64 budget, sw_u64 period,
			    sw_u64 relative)
{
	return sw_set_server(s, i, budget, period, relative);
}

void sw_native_follow(struct sw_core *s, sw_u32 i)
{
	sw_follow(s, i);
}

sw_u64 sw_native_next_job(struct sw_core *s, sw_u32 i, sw_u64 release, sw_u64 now)
{
	return sw_next_job(s, i, release, now);
}

sw_u64 sw_native_wake(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	return sw_wake(s, i, now);
}

sw_u64 sw_native_sleep(struct sw_core *s, sw_u32 i)
{
	return sw_sleep(s, i);
}

sw_u64 sw_native_charge(struct sw_core *s, sw_u32 i, sw_u64 ran, sw_u64 now)
{
	return sw_charge(s, i, ran, now);
}

void sw_native_spend(struct sw_core *s, sw_u32 i, sw_u64 ran)
{
	sw_spend(s, i, ran);
}

sw_u64 sw_native_yield(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	return sw_yield(s, i, now);
}

sw_u64 sw_native_replenish_next(struct sw_core *s, sw_u64 now)
{
	return sw_replenish_next(s, now);
}

sw_u64 sw_native_next_replenishment(struct sw_core *s)
{
	return sw_next_replenishment(s);
}

sw_u64 sw_native_budget_end(struct sw_core *s, sw_u32 i, sw_u64 now)
{
	return sw_budget_end(s, i, now);
}

sw_u32 sw_native_would_precede(struct sw_core *s, sw_u32 a, sw_u32 b, sw_u64 now)
{
	return sw_would_precede(s, a, b, now);
}

sw_u32 sw_native_check(struct sw_core *s)
{
	return sw_check(s);
}

/* The state of a task for callers outside the core. */
struct sw_view {
	sw_u64 mask, deadline;
	sw_s64 left;
	sw_u64 throttled, replenished;
	sw_u32 priority;
	sw_u8 state, on, last, awake;
};

_Static_assert(sizeof(struct sw_view) == 48, "layout known outside");

void sw_native_view(struct sw_core *s, sw_u32 i, struct sw_view *view)
{
	const struct sw_task *t = sw_task(s, i);

	*view = (struct sw_view) {
		.mask = t->mask,
		.deadline = t->deadline,
		.left = t->left,
		.throttled = t->throttled,
		.replenished = t->replenished,
		.priority = t->priority,
		.state = t->state,
		.on = t->on,
		.last = t->last,
		.awake = t->awake,
	};
}

void sw_native_init_triggers(struct sw_triggers *q, sw_u32 places, sw_u32 limit)
{
	sw_init_triggers(q, places, limit);
}

sw_u32 sw_native_take_trigger(struct sw_triggers *q, sw_u32 place, sw_u32 is_idle, sw_u64 now)
{
	return sw_take_trigger(q, place, is_idle, now);
}

sw_u64 sw_native_next_arrival(struct sw_triggers *q)
{
	return sw_next_arrival(q);
}

_Static_assert(sizeof(struct sw_triggers) == 304, "layout known outside");

/* A native core records nothing. */
SW_FN int sw_say(sw_u32 fact, sw_u32 i, sw_u64 now, sw_u64 value)
{
	(void)fact;
	(void)i;
	(void)now;
	(void)value;
	return 0;
}

void sw_native_set_mutex(struct sw_mutexes *x, sw_u32 number, sw_u32 protocol, sw_u32 ceiling, sw_u64 floor)
{
	sw_set_mutex(x, number, protocol, ceiling, floor);
}

sw_u64 sw_native_lock(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u32 number, sw_u64 now)
{
	return sw_lock(s, x, i, number, now);
}

sw_u64 sw_native_unlock(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	return sw_unlock(s, x, i, now);
}

sw_u64 sw_native_end_locks(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 now)
{
	return sw_end_locks(s, x, i, now);
}

sw_u64 sw_native_complete(struct sw_core *s, struct sw_mutexes *x, sw_u32 i, sw_u64 release, sw_u64 now)
{
	sw_unlock_last(s, x, i, now);
	return sw_complete(s, x, i, release, now);
}

/* The layout for this compiler: the sizes of the state and of a view, the offset of the runners. */
void sw_native_layout(sw_u64 layout[3])
{
	layout[0] = sizeof(struct sw_core);
	layout[1] = sizeof(struct sw_view);
	layout[2] = __builtin_offsetof(struct sw_core, runner);
}
