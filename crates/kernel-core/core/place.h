/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Assignment of tasks to CPUs: strong scheduling under arbitrary masks (Cerqueira et al., RTSS 2014; Def. II.2 of
 * Bonifaci et al., ECRTS 2016). The scheduled tasks are exactly the greedy set: most urgent first, keep
 * a task if the kept set still fits on the CPUs. Each event moves as few of them as possible.
 *
 * Everything is a search for a chain of shifts. A task may displace the runner of a CPU in its mask,
 * that one the runner of a CPU in its own, and so on:
 *
 *	task -> CPU 3 (runs B) -> CPU 1 (runs C) -> CPU 0 (idle, or given up)
 *	        layer 0           layer 1           layer 2
 *
 * Functions return the set of CPUs whose assignment may have changed.
 */
#ifndef SW_PLACE_H
#define SW_PLACE_H

#include "backlog.h"

/* Assigns @i to a CPU. The caller handles the previous runner. */
SW_IN void sw_put(struct sw_core *s, sw_u32 i, sw_u32 cpu)
{
	struct sw_task *t = sw_task(s, i);

	*sw_runner(s, cpu) = i;
	*sw_runner_mask(s, cpu) = t->mask;
	*sw_runner_rank(s, cpu) = t->rank;
	s->idle &= ~sw_bit(cpu);
	t->on = cpu + 1;
	t->last = cpu + 1;
}

/* Makes the CPU idle. */
SW_IN void sw_vacate(struct sw_core *s, sw_u32 cpu)
{
	*sw_runner(s, cpu) = 0;
	*sw_runner_mask(s, cpu) = 0;
	s->idle |= sw_bit(cpu);
}

/* Of these CPUs the one that @i used last, else one that shares a cache with that, else the lowest. */
SW_IN sw_u32 sw_choose(struct sw_core *s, sw_u64 among, sw_u32 i)
{
	sw_u32 last = sw_task(s, i)->last;

	if (last) {
		sw_u64 mates = *sw_mates(s, last - 1) & among;

		if (among & sw_bit(last - 1))
			return last - 1;
		if (mates)
			return sw_lowest(mates);
	}
	return sw_lowest(among);
}

/*
 * Sorts CPUs into layers by the number of shifts from @front, until a layer meets @goal. Returns
 * 1 + the number of that layer, or 0 if no chain leads to @goal; then `seen` is the set of all CPUs that
 * chains lead to.
 */
SW_FN sw_u32 sw_search(SW_CORE, sw_u64 front, sw_u64 goal)
{
	sw_u64 seen = front, todo = front, next = SW_ZERO(s);
	sw_u32 depth = SW_ZERO(s), k;

	*sw_layer(s, 0) = front;
	if (front & goal)
		return 1;
	SW_LOOP(k, 2 * SW_CPUS) {	/* a round per CPU and one per layer */
		if (todo) {
			next |= *sw_runner_mask(s, sw_lowest(todo));
			todo &= todo - 1;
			if (s->online & ~(seen | next))
				continue;
			todo = 0;	/* nothing is left to be reached */
		}
		next &= s->online & ~seen;
		if (!next || depth >= SW_CPUS - 1)
			break;
		depth++;
		*sw_layer(s, depth) = next;
		if (next & goal)
			return depth + 1;
		seen |= next;
		todo = next;
		next = SW_ZERO(s);
	}
	s->seen = seen;
	return 0;
}

/* Reduces each layer before @depth to the CPUs from which a chain through the later layers leads to @goal. */
SW_FN sw_u32 sw_trim(SW_CORE, sw_u64 goal, sw_u32 depth)
{
	sw_u64 after, todo, kept = SW_ZERO(s);
	sw_u32 k;

	after = *sw_layer(s, depth) & goal;
	*sw_layer(s, depth) = after;
	todo = depth ? *sw_layer(s, depth - 1) : SW_ZERO(s);
	SW_LOOP(k, 2 * SW_CPUS) {
		if (!depth)
			break;
		if (todo) {
			sw_u32 cpu = sw_lowest(todo);

			if (*sw_runner_mask(s, cpu) & after)
				kept |= sw_bit(cpu);
			todo &= todo - 1;
			continue;
		}
		depth--;
		*sw_layer(s, depth) = kept;
		after = kept;
		kept = SW_ZERO(s);
		todo = depth ? *sw_layer(s, depth - 1) : SW_ZERO(s);
	}
	return 0;
}

/*
 * Places @i along a shortest of the chains that sw_search() found to @goal in layer @depth. The caller
 * handles the runner at the end of the chain.
 */
SW_FN sw_u64 sw_shift(SW_CORE, sw_u32 i, sw_u64 goal, sw_u32 depth)
{
	sw_u64 changed = SW_ZERO(s);
	sw_u32 k;

	sw_trim(s, goal, depth);
	SW_LOOP(k, SW_CPUS) {
		sw_u64 among = *sw_layer(s, k) & sw_task(s, i)->mask;
		sw_u32 cpu, displaced;

		if (!among)
			break;		/* never: each layer leads on */
		cpu = sw_choose(s, among, i);
		displaced = *sw_runner(s, cpu);
		sw_put(s, i, cpu);
		changed |= sw_bit(cpu);
		if (k >= depth)
			break;
		s->shifts++;
		i = displaced;
	}
	return changed;
}

/* 1 + the CPU of these with the least urgent runner, if that is less urgent than @i; else 0. */
SW_FN sw_u32 sw_victim(SW_CORE, sw_u64 among, sw_u32 i)
{
	sw_u64 rank = sw_task(s, i)->rank;
	sw_u32 found = SW_ZERO(s), k;

	SW_LOOP(k, SW_CPUS) {
		sw_u32 cpu, runner;
		sw_u64 other;

		if (!among)
			break;
		cpu = sw_lowest(among);
		among &= among - 1;
		other = *sw_runner_rank(s, cpu);
		if (other < rank)
			continue;
		runner = *sw_runner(s, cpu);
		if (other == rank && sw_precedes(s, runner, i))
			continue;
		rank = other;
		i = runner;
		found = cpu + 1;
	}
	return found;
}

/*
 * Ready task @i, on no CPU and in no heap, gets a CPU or waits: along a shortest chain to an idle CPU,
 * else to that of the least urgent runner that chains lead to.
 */
SW_FN sw_u64 sw_place(SW_CORE, sw_u32 i)
{
	sw_u64 front = sw_task(s, i)->mask & s->online, goal, changed;
	sw_u32 depth, cpu, victim, k;

	if (front & s->idle) {
		cpu = sw_choose(s, front & s->idle, i);
		sw_put(s, i, cpu);
		return sw_bit(cpu);
	}
	depth = sw_search(s, front, s->idle);
	if (depth)
		return sw_shift(s, i, s->idle, depth - 1);
	victim = sw_victim(s, s->seen, i);
	if (!victim) {
		sw_wait(s, i);
		return 0;
	}
	goal = sw_bit(victim - 1);
	victim = *sw_runner(s, victim - 1);
	depth = SW_ZERO(s);
	SW_LOOP(k, SW_CPUS) {
		depth = k;
		if (*sw_layer(s, k) & goal)
			break;
	}
	changed = sw_shift(s, i, goal, depth);
	sw_task(s, victim)->on = 0;
	sw_wait(s, victim);
	s->preemptions++;
	return changed;
}

/* The CPUs, among these, from which a chain of shifts leads to @cpu, and @cpu itself. */
SW_FN sw_u64 sw_reaching(SW_CORE, sw_u32 cpu, sw_u64 among)
{
	sw_u64 found = sw_bit(cpu), todo = among & ~found, last = found;
	sw_u32 k;

	SW_LOOP(k, SW_CPUS * (SW_CPUS + 1)) {
		sw_u32 c;

		if (!todo) {
			if (found == last)
				break;
			last = found;
			todo = among & ~found;
			continue;
		}
		c = sw_lowest(todo);
		todo &= todo - 1;
		if (*sw_runner_mask(s, c) & found)
			found |= sw_bit(c);
	}
	return found;
}

/*
 * The most urgent waiting task that may use one of @cpus, if it precedes @old; 0 if there is none. With
 * @old 0 any waiting task qualifies.
 */
SW_IN sw_u32 sw_successor(struct sw_core *s, sw_u64 cpus, sw_u32 old)
{
	sw_u32 best = sw_best(s, cpus);

	return best && old && sw_precedes(s, old, best) ? 0 : best;
}

/*
 * The most urgent waiting task from which a chain of shifts leads to @cpu, if it precedes @old; 0 if
 * there is none. Leaves the layers of its search, and in @depth 1 + the number of the last.
 *
 * Usually the most urgent waiting task reaches the CPU, or else the most urgent one outside of the CPUs
 * that the first one reaches. Only after two failures the set of all CPUs from which chains lead to @cpu is
 * computed.
 */
SW_IN sw_u32 sw_next_for(struct sw_core *s, sw_u32 cpu, sw_u32 old, sw_u32 *depth)
{
	sw_u64 goal = sw_bit(cpu), open = s->online;
	sw_u32 best, k;

	SW_ROLLED
	for (k = 0; k < 3; k++) {
		best = sw_successor(s, k < 2 ? open : sw_reaching(s, cpu, open & ~s->idle), old);
		if (!best)
			return 0;
		*depth = sw_search(s, sw_task(s, best)->mask & open, goal);
		if (*depth)
			return best;
		/* No chain leads from the CPUs that it reached to @cpu. */
		open &= ~s->seen;
	}
	return 0;
}

/*
 * A CPU is free (@old is 0), or its runner @old has become less urgent. The most urgent waiting task that
 * reaches the CPU is placed if it precedes @old, which then waits.
 */
SW_FN sw_u64 sw_fill(SW_CORE, sw_u32 cpu, sw_u32 old)
{
	sw_u64 goal = sw_bit(cpu), changed;
	sw_u32 depth = SW_ZERO(s), next = SW_ZERO(s);

	if (s->waiting_count)
		next = sw_next_for(s, cpu, old, &depth);
	if (!next) {
		if (old)
			return 0;
		sw_vacate(s, cpu);
		return goal;
	}
	sw_unwait(s, next);
	changed = sw_shift(s, next, goal, depth - 1);
	if (old) {
		sw_task(s, old)->on = 0;
		sw_wait(s, old);
		s->preemptions++;
	}
	return changed;
}

/* Ready task @i enters @state, in which it is not ready. */
SW_FN sw_u64 sw_remove(SW_CORE, sw_u32 i, sw_u32 state)
{
	struct sw_task *t = sw_task(s, i);
	sw_u32 on = t->on;

	t->state = state;
	if (!on) {
		sw_unwait(s, i);
		return 0;
	}
	t->on = 0;
	return sw_fill(s, on - 1, 0);
}

#endif
