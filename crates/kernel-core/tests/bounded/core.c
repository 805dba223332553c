// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * The core under the bounded model checker CBMC: from any state that satisfies the invariants any event leads to a state that
 * does, without undefined behaviour, and each loop ends within the bound that .ci/bounded names. One event per run:
 * -DEVENT=sw_event_wake, and so on. -DCPUS and -DTASKS, powers of two, are the sizes of the arrays.
 *
 * The invariants are those of check.h, and below those of classes and of what callers keep.
 */
#include "../../core/base.h"

#undef SW_CPUS
#undef SW_TASKS
#define SW_CPUS CPUS
#define SW_TASKS TASKS
#define _Static_assert(...) struct sw_nothing
#define ALL (SW_CPUS == 64 ? ~0ULL : (1ULL << (SW_CPUS & 63)) - 1)

#include "../../core/core.h"

void __CPROVER_assume(_Bool);
void __CPROVER_assert(_Bool, const char *);
#define assume(x) __CPROVER_assume(x)

sw_u64 nondet_u64(void);
sw_u32 nondet_u32(void);
struct sw_core nondet_core(void);

/* Instants and spans: 146 years, and a year. */
#define INSTANT_MAX (1ULL << 62)
#define SPAN_MAX (1ULL << 55)

static struct sw_core s;

/* Whether class @c is in the list that begins with @first. */
static _Bool is_listed(sw_u32 first, sw_u32 c)
{
	sw_u32 k, at = first;

	for (k = 0; k < SW_TASKS && at; k++) {
		if (at == c)
			return 1;
		at = sw_class(&s, at)->next;
	}
	return 0;
}

/* Lists of classes end, and each class that was ever used is in that of its hash or in that of free ones. */
static _Bool are_classes_sound(void)
{
	sw_u32 c, k, at;

	for (k = 0; k < SW_TASKS; k++) {
		sw_u32 n;

		at = s.hash[k];
		for (n = 0; n <= SW_TASKS && at; n++) {
			const struct sw_class *class = sw_class(&s, at);

			if (n == SW_TASKS || at > s.class_count || !class->users || sw_hash(&s, class->mask) != &s.hash[k])
				return 0;
			at = class->next;
		}
	}
	at = s.class_free;
	for (k = 0; k <= SW_TASKS && at; k++) {
		if (k == SW_TASKS || at > s.class_count || sw_class(&s, at)->users)
			return 0;
		at = sw_class(&s, at)->next;
	}
	for (c = 1; c <= SW_TASKS; c++) {
		const struct sw_class *class = sw_class(&s, c);
		sw_u32 users = 0, other;

		if (c > s.class_count) {
			if (class->users || class->root || class->place)
				return 0;
			continue;
		}
		for (k = 1; k <= SW_TASKS; k++)
			users += sw_task(&s, k)->class == c && sw_task(&s, k)->state != SW_ABSENT;
		if (users != class->users)
			return 0;
		if (!class->users) {
			if (class->root || class->place || !is_listed(s.class_free, c))
				return 0;
			continue;
		}
		if (!is_listed(*sw_hash(&s, class->mask), c))
			return 0;
		for (other = 1; other < c; other++)
			if (sw_class(&s, other)->users && sw_class(&s, other)->mask == class->mask)
				return 0;
	}
	return 1;
}

/* What the caller keeps: nothing wraps, and tasks may use CPUs that there are. */
static _Bool is_task_sound(const struct sw_task *t)
{
	if (t->state > SW_UNRELEASED || t->on > SW_CPUS || t->last > SW_CPUS || t->kept > SW_CPUS || t->class > SW_TASKS)
		return 0;
	if (t->state == SW_ABSENT)
		return 1;
	return t->affinity && t->affinity <= ALL && t->narrowed <= ALL && t->deadline <= INSTANT_MAX && t->end <= INSTANT_MAX &&
	       t->budget <= t->relative && t->relative <= SPAN_MAX && t->period <= SPAN_MAX && !t->period == !t->relative &&
	       t->left <= (sw_s64)SPAN_MAX && t->left >= -(sw_s64)SPAN_MAX && t->awake <= 1 && t->waits <= 1 &&
	       t->follows <= 1 && t->begun <= 1 && t->yielded <= 1;
}

static _Bool is_sound(void)
{
	sw_u32 k;

	if (s.zero || s.order > SW_FP || s.online & ~ALL || s.timers > SW_TASKS)
		return 0;
	for (k = 1; k <= SW_TASKS; k++)
		if (!is_task_sound(sw_task(&s, k)))
			return 0;
	return are_classes_sound() && sw_check(&s) == SW_SOUND;
}

static sw_u64 sw_event_arrive(sw_u32 i, sw_u64 now) { return sw_arrive(&s, i, now); }
static sw_u64 sw_event_depart(sw_u32 i, sw_u64 now) { (void)now; return sw_depart(&s, i); }
static sw_u64 sw_event_cpu_leave(sw_u32 i, sw_u64 now) { (void)now; return sw_cpu_leave(&s, i & (SW_CPUS - 1)); }
static sw_u64 sw_event_cpu_join(sw_u32 i, sw_u64 now) { (void)now; return sw_cpu_join(&s, i & (SW_CPUS - 1)); }
static sw_u64 sw_event_leave(sw_u32 i, sw_u64 now) { (void)now; return sw_leave(&s, i); }
static sw_u64 sw_event_wake(sw_u32 i, sw_u64 now) { return sw_wake(&s, i, now); }
static sw_u64 sw_event_sleep(sw_u32 i, sw_u64 now) { (void)now; return sw_sleep(&s, i); }
static sw_u64 sw_event_set_priority(sw_u32 i, sw_u64 now) { (void)now; return sw_set_priority(&s, i, nondet_u32()); }
static sw_u64 sw_event_yield(sw_u32 i, sw_u64 now) { return sw_yield(&s, i, now); }
static sw_u64 sw_event_replenish(sw_u32 i, sw_u64 now) { (void)i; return sw_replenish_next(&s, now); }

static sw_u64 sw_event_charge(sw_u32 i, sw_u64 now)
{
	sw_u64 ran = nondet_u64();

	assume(ran <= SPAN_MAX / 2);
	assume(sw_task(&s, i)->left >= -(sw_s64)(SPAN_MAX / 2));
	return sw_charge(&s, i, ran, now);
}

static sw_u64 sw_event_narrow(sw_u32 i, sw_u64 now)
{
	(void)now;
	return sw_narrow(&s, i, nondet_u64() & ALL);
}

static sw_u64 sw_event_set_affinity(sw_u32 i, sw_u64 now)
{
	sw_u64 affinity = nondet_u64();

	(void)now;
	assume(affinity && affinity <= ALL);
	return sw_set_affinity(&s, i, affinity);
}

static sw_u64 sw_event_enter(sw_u32 i, sw_u64 now)
{
	sw_u64 affinity = nondet_u64();
	sw_u32 start = nondet_u32();

	(void)now;
	assume(affinity && affinity <= ALL && start <= SW_CPUS);
	return sw_enter(&s, i, affinity, start);
}

static sw_u64 sw_event_next_job(sw_u32 i, sw_u64 now)
{
	sw_u64 release = nondet_u64();

	assume(release <= INSTANT_MAX / 2 || release == SW_NEVER);
	return sw_next_job(&s, i, release, now);
}

int main(void)
{
	sw_u32 before[SW_CPUS], i = nondet_u32(), k;
	sw_u64 now = nondet_u64(), changed;

	s = nondet_core();
	assume(is_sound());
	assume(i >= 1 && i <= SW_TASKS && now <= INSTANT_MAX / 2);
	for (k = 0; k < SW_CPUS; k++)
		before[k] = s.runner[k];
	changed = EVENT(i, now);
	__CPROVER_assert(sw_check(&s) == SW_SOUND, "the invariants hold");
	__CPROVER_assert(are_classes_sound(), "the classes are sound");
	for (k = 0; k < SW_CPUS; k++)
		__CPROVER_assert(before[k] == s.runner[k] || changed & sw_bit(k), "a CPU with another task is named");
	return 0;
}
