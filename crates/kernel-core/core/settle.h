/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The assignment with the fewest shifts after an event that moves more than one task: the set of
 * scheduled tasks does not change; tasks that may return to their previous CPUs do.
 *
 * Tasks keep their previous CPU, their home, if they may; the others, at most two (the task whose mask
 * changed and one that was newly placed), are added one by one along cheapest augmenting paths, which keeps
 * the cost minimal at every step (successive shortest paths).
 */
#ifndef SW_SETTLE_H
#define SW_SETTLE_H

#include "place.h"

/*
 * The cost of placing a task away from its home. Placing a task without a home away from the CPU that it
 * used last costs 1, and there are fewer CPUs than this.
 */
#define SW_SHIFT_COST 4096
#define SW_FAR (1 << 30)

/* Saves the assignment before the event. */
SW_FN sw_u32 sw_remember(SW_CORE)
{
	sw_u32 k;

	SW_LOOP(k, SW_CPUS)
		*sw_before(s, k) = *sw_runner(s, k);
	return 0;
}

/* Determines the homes of all scheduled tasks and places them there. Returns whether any task moved. */
SW_FN sw_u32 sw_go_home(SW_CORE)
{
	sw_u32 moved = SW_ZERO(s), k;

	SW_LOOP(k, SW_CPUS) {
		sw_u32 runner = *sw_runner(s, k);

		if (runner)
			sw_task(s, runner)->home = 0;
	}
	SW_LOOP(k, SW_CPUS) {
		sw_u32 i = *sw_before(s, k);
		struct sw_task *t = sw_task(s, i);

		*sw_placed(s, k) = 0;
		if (!i || !t->on || !(t->mask & sw_bit(k)))
			continue;
		t->home = k + 1;
		*sw_placed(s, k) = i;
		moved |= t->on != k + 1;
	}
	return moved;
}

SW_IN sw_s32 sw_cost(const struct sw_task *t, sw_u32 cpu)
{
	if (t->home)
		return t->home == cpu + 1 ? 0 : SW_SHIFT_COST;
	return t->last == cpu + 1 ? 0 : 1;
}

/* Relaxes the distances of @cpus by the costs of placing @i there. Returns the CPUs whose distance fell. */
SW_FN sw_u64 sw_relax(SW_CORE, sw_u32 i, sw_u64 cpus, sw_s32 left, sw_u32 from)
{
	const struct sw_task *t = sw_task(s, i);
	sw_u64 fell = SW_ZERO(s);
	sw_u32 k;

	SW_LOOP(k, SW_CPUS) {
		sw_u32 cpu;
		sw_s32 reached;

		if (!cpus)
			break;
		cpu = sw_lowest(cpus);
		cpus &= cpus - 1;
		reached = left + sw_cost(t, cpu);
		if (reached >= *sw_distance(s, cpu))
			continue;
		*sw_distance(s, cpu) = reached;
		*sw_came_from(s, cpu) = from;
		fell |= sw_bit(cpu);
	}
	return fell;
}

/*
 * The distance of every CPU from @i (Bellman and Ford: the cost is negative where a task returns to its
 * home). Each round visits CPUs in increasing order and skips those whose distance has not changed.
 */
SW_FN sw_u32 sw_measure(SW_CORE, sw_u32 i)
{
	sw_u64 todo, later = SW_ZERO(s);
	sw_u32 k;

	SW_LOOP(k, SW_CPUS) {
		*sw_distance(s, k) = SW_FAR;
		*sw_came_from(s, k) = 0;
	}
	todo = sw_relax(s, i, sw_task(s, i)->mask & s->online, 0, 0);
	SW_LOOP(k, SW_CPUS * (SW_CPUS + 1)) {
		sw_u32 cpu, runner;
		sw_u64 fell, mask;
		sw_s32 left;

		if (!todo) {
			if (!later)
				break;
			todo = later;
			later = SW_ZERO(s);
			continue;
		}
		cpu = sw_lowest(todo);
		todo &= todo - 1;
		runner = *sw_placed(s, cpu);
		if (!runner)
			continue;
		left = *sw_distance(s, cpu) - sw_cost(sw_task(s, runner), cpu);
		mask = sw_task(s, runner)->mask & s->online & ~sw_bit(cpu);
		fell = sw_relax(s, runner, mask, left, cpu + 1);
		/* CPUs above this one are visited in this round, the others in the next. */
		todo |= fell & ~(sw_bit(cpu) | (sw_bit(cpu) - 1));
		later |= fell & (sw_bit(cpu) - 1);
	}
	return 0;
}

/* Places @i, which has no home, along the cheapest path to a CPU without a placed task. */
SW_FN sw_u32 sw_augment(SW_CORE, sw_u32 i)
{
	sw_s32 nearest = SW_FAR;
	sw_u32 cpu = SW_ZERO(s), k;

	sw_measure(s, i);
	SW_LOOP(k, SW_CPUS) {
		if (*sw_placed(s, k) || *sw_distance(s, k) >= nearest)
			continue;
		nearest = *sw_distance(s, k);
		cpu = k;
	}
	if (nearest == SW_FAR)
		return 0;	/* never: the scheduled tasks fit */
	SW_LOOP(k, SW_CPUS) {
		sw_u32 from = *sw_came_from(s, cpu);

		if (!from)
			break;
		*sw_placed(s, cpu) = *sw_placed(s, from - 1);
		cpu = from - 1;
	}
	*sw_placed(s, cpu) = i;
	return 0;
}

/* Assigns the placed tasks. Returns the CPUs whose assignment changes. */
SW_FN sw_u64 sw_carry_out(SW_CORE)
{
	sw_u64 changed = SW_ZERO(s);
	sw_u32 k;

	SW_LOOP(k, SW_CPUS) {
		if (*sw_placed(s, k) == *sw_runner(s, k))
			continue;
		changed |= sw_bit(k);
		if (*sw_placed(s, k))
			sw_put(s, *sw_placed(s, k), k);
		else
			sw_vacate(s, k);
	}
	return changed;
}

/* Undoes unnecessary shifts since sw_remember(). */
SW_FN sw_u64 sw_settle(SW_CORE)
{
	sw_u32 low = SW_ZERO(s), high = SW_ZERO(s), k;

	if (!sw_go_home(s))
		return 0;
	SW_LOOP(k, SW_CPUS) {
		sw_u32 runner = *sw_runner(s, k);

		if (!runner || sw_task(s, runner)->home)
			continue;
		if (!low) {
			low = runner;
		} else if (runner < low) {
			high = low;
			low = runner;
		} else {
			high = runner;
		}
	}
	if (low)
		sw_augment(s, low);
	if (high)
		sw_augment(s, high);
	return sw_carry_out(s);
}

#endif
