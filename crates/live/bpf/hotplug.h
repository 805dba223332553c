/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How CPUs go offline and come back, step by step as the kernel takes them: noted by the thread that takes them, and known to
 * the core when they next switch or look for what to run.
 */
#ifndef SW_HOTPLUG_H
#define SW_HOTPLUG_H

#include "background.h"

/*
 * The CPU takes no tasks from here on, or takes them again. The core knows it when the thread goes to sleep, at the latest: each
 * program that calls the core takes its time to load.
 *
 * Context: a thread of the kernel that takes the CPU down or up, on that CPU; preemption is off.
 */
static __always_inline void set_offline(u32 cpu, bool offline)
{
	if (cpu >= SW_CPUS)
		return;
	if (offline)
		__sync_fetch_and_or(&cpus_offline, sw_bit(cpu));
	else
		__sync_fetch_and_and(&cpus_offline, ~sw_bit(cpu));
	__sync_fetch_and_or(&cpu_at(cpu)->pending, SW_PENDING_HOTPLUG);
	WRITE_ONCE(requeues_due, 2);
	arm(SW_TIMER_BACKGROUND, bpf_ktime_get_ns());
}

/*
 * The step of CPU hotplug in which the kernel makes a CPU active, or inactive.
 *
 * Context: any.
 */
static __always_inline bool changes_activity(int step)
{
	return step == (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE);
}

/*
 * Makes the core know what set_offline() has noted about this CPU.
 *
 * Context: as cpu_event().
 */
static __always_inline void follow_hotplug(u32 cpu)
{
	bool offline;

	__sync_fetch_and_and(&cpu_at(cpu)->pending, ~SW_PENDING_HOTPLUG);
	offline = READ_ONCE(cpus_offline) & sw_bit(cpu);
	if (offline == !(READ_ONCE(cpu_at(cpu)->gone) & SW_WHY_OFFLINE))
		cpu_event(cpu, SW_WHY_OFFLINE, offline);
}

/*
 * Makes the core know that this CPU has gone offline or come back. @returned: or that what it runs is ordinary work again. If it has an
 * assignment by that it is kicked.
 *
 * Context: dispatch() of @cpu, its run queue's lock held. Takes the core's lock.
 */
SW_FN int settle_pending(u32 cpu, bool returned)
{
	/* A yield is over by now: known, or of a task that has left. */
	u32 pending = __sync_fetch_and_and(&cpu_at(cpu)->pending, SW_PENDING_HOTPLUG);

	if (pending & SW_PENDING_HOTPLUG)
		follow_hotplug(cpu);
	if (returned && pending & SW_PENDING_RETURN && READ_ONCE(cpu_at(cpu)->gone) & SW_WHY_TAKEN)
		cpu_event(cpu, SW_WHY_TAKEN, false);
	return 0;
}

#endif
