// SPDX-License-Identifier: GPL-2.0-only
/* All of the core as one BPF program, to see that it compiles: a step of whatever is written to `what`. */
#include "core.h"

#define SEC(name) __attribute__((section(name), used))

char _license[] SEC("license") = "GPL";

struct sw_core core;

struct {
	sw_u32 event, task, cpu, priority;
	sw_u64 now, span, mask;
} what;

sw_u64 changed;

SEC("syscall")
int step(void *context)
{
	struct sw_core *s = &core;

	(void)context;
	switch (what.event) {
	case 0:
		sw_init(s, what.priority, what.mask);
		break;
	case 1:
		changed = sw_enter(s, what.task, what.mask, what.cpu);
		break;
	case 2:
		changed = sw_leave(s, what.task);
		break;
	case 3:
		changed = sw_set_server(s, what.task, what.span, what.now, what.mask);
		break;
	case 4:
		changed = sw_wake(s, what.task, what.now);
		break;
	case 5:
		changed = sw_sleep(s, what.task);
		break;
	case 6:
		changed = sw_charge(s, what.task, what.span, what.now);
		break;
	case 7:
		changed = sw_yield(s, what.task, what.now);
		break;
	case 8:
		changed = sw_replenish_next(s, what.now);
		break;
	case 9:
		changed = sw_set_affinity(s, what.task, what.mask);
		break;
	case 10:
		changed = sw_narrow(s, what.task, what.mask);
		break;
	case 11:
		changed = sw_cpu_leave(s, what.cpu);
		break;
	case 12:
		changed = sw_cpu_join(s, what.cpu);
		break;
	case 13:
		changed = sw_set_priority(s, what.task, what.priority);
		break;
	case 14:
		changed = sw_set_deadline(s, what.task, what.now);
		break;
	case 15:
		what.now = sw_next_replenishment(s);
		break;
	case 16:
		what.now = sw_budget_end(s, what.task, what.now);
		break;
	}
	return 0;
}
