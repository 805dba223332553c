/* SPDX-License-Identifier: GPL-2.0-only */
/* One event of the core as plain numbers, for BPF and for native code; probe.rs has the same layout. */
#ifndef PROBE_H
#define PROBE_H

#include "core.h"

enum probe_event {
	PROBE_INIT,
	PROBE_ENTER,
	PROBE_LEAVE,
	PROBE_SET_SERVER,
	PROBE_FOLLOW,
	PROBE_NEXT_JOB,
	PROBE_WAKE,
	PROBE_SLEEP,
	PROBE_SPEND,
	PROBE_CHARGE,
	PROBE_YIELD,
	PROBE_REPLENISH,
	PROBE_SET_AFFINITY,
	PROBE_NARROW,
	PROBE_CPU_LEAVE,
	PROBE_CPU_JOIN,
	PROBE_SET_PRIORITY,
	PROBE_SET_DEADLINE,
	PROBE_ARRIVE,
	PROBE_DEPART,
	PROBE_ASK,
};

struct probe {
	sw_u32 event, task, cpu, priority;
	sw_u64 now, span, mask;
};

/* Memory that a BPF object shares with the program that loaded it. */
struct probe_shared {
	struct probe probe;
	sw_u64 result;
	struct sw_core core;
};

/* A job with given deadline and priority, as under the policies. */
SW_IN sw_u64 probe_arrive(struct sw_core *s, const struct probe *p)
{
	struct sw_task *t = sw_task(s, p->task);

	if (t->state != SW_BLOCKED)
		return 0;
	t->deadline = p->span;
	t->priority = p->priority;
	return sw_arrive(s, p->task, p->now);
}

SW_IN sw_u64 probe_apply(struct sw_core *s, const struct probe *p)
{
	switch (p->event) {
	case PROBE_INIT:
		sw_init(s, p->priority, p->mask);
		return 0;
	case PROBE_ENTER:
		return sw_enter(s, p->task, p->mask, p->cpu);
	case PROBE_LEAVE:
		return sw_leave(s, p->task);
	case PROBE_SET_SERVER:
		return sw_set_server(s, p->task, p->span, p->now, p->mask);
	case PROBE_FOLLOW:
		sw_follow(s, p->task);
		return 0;
	case PROBE_NEXT_JOB:
		return sw_next_job(s, p->task, p->span, p->now);
	case PROBE_WAKE:
		return sw_wake(s, p->task, p->now);
	case PROBE_SLEEP:
		return sw_sleep(s, p->task);
	case PROBE_SPEND:
		sw_spend(s, p->task, p->span);
		return 0;
	case PROBE_CHARGE:
		return sw_charge(s, p->task, p->span, p->now);
	case PROBE_YIELD:
		return sw_yield(s, p->task, p->now);
	case PROBE_REPLENISH:
		return sw_replenish_next(s, p->now);
	case PROBE_SET_AFFINITY:
		return sw_set_affinity(s, p->task, p->mask);
	case PROBE_NARROW:
		return sw_narrow(s, p->task, p->mask);
	case PROBE_CPU_LEAVE:
		return sw_cpu_leave(s, p->cpu);
	case PROBE_CPU_JOIN:
		return sw_cpu_join(s, p->cpu);
	case PROBE_SET_PRIORITY:
		return sw_set_priority(s, p->task, p->priority);
	case PROBE_SET_DEADLINE:
		return sw_set_deadline(s, p->task, p->now);
	case PROBE_ARRIVE:
		return probe_arrive(s, p);
	case PROBE_DEPART:
		return sw_depart(s, p->task);
	default:
		return sw_next_replenishment(s) ^ sw_budget_end(s, p->task, p->now);
	}
}

#endif
