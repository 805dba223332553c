// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * All states that the core can reach with three CPUs and four tasks, breadth first, each once: the invariants hold in each, and
 * nothing is undefined on the way. Deadlines are two, or ranks are priorities; the instants at which jobs became ready are
 * numbered by their order, so that the number of states is finite. Budgets have no part in it.
 *
 * usage: explore MASKS SEED SETS STATES
 *
 * SETS sets of four affinities are drawn; of each at most STATES states are seen, of a kilobyte each. The last line says how
 * many sets were seen whole, and to which number of events the others were. MASKS 0: affinities stay as they are; 1: tasks may not migrate for moments; 2: affinities change, too.
 */
#define TASKS 4
#include "core.h"

#include <stdint.h>

/* Ranks of jobs. */
#define RANKS 2

struct queue {
	struct sw_core *state;
	uint32_t count, limit;
	uint32_t *slot;		/* of a hash table: 1 + the place of a state; 0: free */
	uint32_t mask;
};

static uint64_t random_state;

/* xorshift64*: it wraps */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)((random_state * 0x2545f4914f6cdd1dULL) >> 33) % below;
}

static uint64_t hash_of(const struct sw_core *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t k;

	for (k = 0; k + 8 <= sizeof(*s); k += 8) {
		uint64_t word;

		memcpy(&word, bytes + k, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

/* The same state whenever it behaves the same: statistics, scratch and instants are as small as they can be. */
static void normalize(struct sw_core *s)
{
	sw_u64 ready[SW_TASKS];
	sw_u32 i, j;

	s->shifts = s->preemptions = s->seen = 0;
	memset(s->layer, 0, sizeof(s->layer));
	memset(s->before, 0, sizeof(s->before));
	memset(s->placed, 0, sizeof(s->placed));
	memset(s->distance, 0, sizeof(s->distance));
	memset(s->came_from, 0, sizeof(s->came_from));
	memset(s->waiting + s->waiting_count, 0, sizeof(s->waiting[0]) * (SW_TASKS - s->waiting_count));
	for (i = 0; i < SW_TASKS; i++) {
		struct sw_task *t = &s->task[i];

		t->home = 0;
		if (t->state != SW_READY)
			t->rank = t->ready = t->deadline = 0;
		if (t->state != SW_READY || t->on)
			t->parent = t->lower = t->upper = t->depth = 0;
		ready[i] = 0;
		for (j = 0; j < SW_TASKS; j++)
			ready[i] += t->state == SW_READY && s->task[j].state == SW_READY && s->task[j].ready <= t->ready;
	}
	for (i = 0; i < SW_TASKS; i++)
		s->task[i].ready = ready[i];
}

static void add(struct queue *q, struct sw_core *s)
{
	uint32_t at;

	normalize(s);
	for (at = hash_of(s) & q->mask; q->slot[at]; at = (at + 1) & q->mask)
		if (!memcmp(&q->state[q->slot[at] - 1], s, sizeof(*s)))
			return;
	if (q->count == q->limit)
		return;
	q->state[q->count++] = *s;
	q->slot[at] = q->count;
}

/* The events of one task. Returns 0 if there are no more. */
static int event(struct sw_core *s, sw_u32 i, sw_u32 what, sw_u32 masks, sw_u64 *changed)
{
	struct sw_task *t = sw_task(s, i);

	*changed = 0;
	if (what < RANKS) {
		if (t->state == SW_BLOCKED) {
			t->deadline = 1 + what;
			t->priority = 1 + what;
			*changed = sw_arrive(s, i, SW_TASKS + 1);
		} else if (s->order == SW_FP) {
			*changed = sw_set_priority(s, i, 1 + what);
		} else {
			*changed = sw_set_deadline(s, i, 1 + what);
		}
		return 1;
	}
	what -= RANKS;
	if (what == 0) {
		*changed = sw_depart(s, i);
		return 1;
	}
	if (masks && what <= 2) {
		/* It may not migrate for a moment: where it is, or where it was last. */
		sw_u32 cpu = t->on ? t->on : t->last;

		*changed = sw_narrow(s, i, what == 1 && cpu ? sw_bit(cpu - 1) : 0);
		return 1;
	}
	if (masks == 2 && what >= 3 && what - 3 < PLATFORM) {
		*changed = sw_set_affinity(s, i, what - 2);
		return 1;
	}
	return 0;
}

/* All that may follow a state. */
static void follow(struct queue *q, uint32_t place, sw_u32 masks)
{
	struct world w;
	sw_u32 before[SW_CPUS], i, what, c;

	for (i = 1; i <= SW_TASKS; i++) {
		for (what = 0;; what++) {
			sw_u64 changed;

			w.core = q->state[place];
			memcpy(before, w.core.runner, sizeof(before));
			if (!event(&w.core, i, what, masks, &changed))
				break;
			check(&w, before, changed);
			add(q, &w.core);
		}
	}
	for (c = 0; c < 3; c++) {
		sw_u64 changed;

		w.core = q->state[place];
		memcpy(before, w.core.runner, sizeof(before));
		changed = w.core.online & sw_bit(c) ? sw_cpu_leave(&w.core, c) : sw_cpu_join(&w.core, c);
		check(&w, before, changed);
		add(q, &w.core);
	}
}

static uint32_t number_of(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

int main(int count, char **arguments)
{
	struct queue q = { 0 };
	uint32_t masks, sets, set, whole = 0, least = UINT32_MAX;
	uint64_t states = 0;

	if (count != 5) {
		fprintf(stderr, "usage: %s MASKS SEED SETS STATES\n", arguments[0]);
		return 2;
	}
	masks = number_of(arguments[1]);
	random_state = 1ULL + number_of(arguments[2]);
	sets = number_of(arguments[3]);
	q.limit = number_of(arguments[4]);
	for (q.mask = 1; q.mask < 2 * q.limit; q.mask *= 2)
		;
	q.slot = malloc(q.mask * sizeof(*q.slot));
	q.state = malloc(q.limit * sizeof(*q.state));
	if (!q.slot || !q.state)
		fail("no memory for so many states", q.limit);
	q.mask--;
	for (set = 0; set < sets; set++) {
		struct sw_core s;
		uint32_t i, place, depth = 0, level = 1;

		memset(&s, 0, sizeof(s));
		sw_init(&s, draw(2) ? SW_FP : SW_EDF, PLATFORM);
		fprintf(stderr, "set %u:", set);
		for (i = 1; i <= SW_TASKS; i++) {
			sw_u64 affinity = 1 + draw(PLATFORM);

			fprintf(stderr, " %llu", affinity);
			sw_enter(&s, i, affinity, draw(4));
		}
		memset(q.slot, 0, (q.mask + 1) * sizeof(*q.slot));
		q.count = 0;
		add(&q, &s);
		for (place = 0; place < q.count; place++) {
			if (place == level) {
				/* All states that so many events lead to are there, unless there was no more room. */
				level = q.count;
				depth += q.count < q.limit;
			}
			follow(&q, place, masks);
		}
		fprintf(stderr, ", %u states%s, %u events\n", q.count, q.count == q.limit ? " and more" : "", depth);
		if (q.count == q.limit && depth < least)
			least = depth;
		states += q.count;
		whole += q.count < q.limit;
	}
	printf("core: %llu states of %u sets, %u of these whole", (unsigned long long)states, sets, whole);
	if (whole < sets)
		printf(", the others to %u events", least);
	printf(": all invariants hold\n");
	free(q.slot);
	free(q.state);
	return 0;
}
