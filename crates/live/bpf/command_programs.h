/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs by which user space calls the commands of commands.h: one for all of them but tick(). Each program has a copy of all
 * that it calls, and most commands call the core, which the kernel would verify once for each program.
 */
#ifndef SW_COMMAND_PROGRAMS_H
#define SW_COMMAND_PROGRAMS_H

#include "commands.h"

/*
 * Calls the command of that number with its arguments, into which it writes its answers. Returns what the command does.
 *
 * Context: task context, no locks held (BPF_PROG_RUN).
 */
SEC("syscall")
int command(struct sw_command *c)
{
	switch (c->number) {
	case SW_COMMAND_CONFIGURE:
		return configure(&c->configure);
	case SW_COMMAND_SET_CACHE:
		return set_cache(&c->cache);
	case SW_COMMAND_ADMIT:
		return admit(&c->admit);
	case SW_COMMAND_SETTLE:
		return settle(&c->admit);
	case SW_COMMAND_FIRST_JOB:
		return first_job(&c->job);
	case SW_COMMAND_NEXT_JOB:
		return next_job(&c->job);
	case SW_COMMAND_AFFECT:
		return affect(&c->job, true);
	case SW_COMMAND_SET_TRIGGERS:
		return set_triggers(&c->rule);
	case SW_COMMAND_LOCK:
		return lock_mutex(&c->lock);
	case SW_COMMAND_SET_MUTEX:
		return set_mutex(&c->mutex);
	case SW_COMMAND_DISMISS:
		return dismiss(&c->change);
	case SW_COMMAND_APPROVE:
		return approve(&c->change);
	case SW_COMMAND_SET_PRIORITY:
		return set_priority(&c->change);
	case SW_COMMAND_SET_SERVER:
		return set_server(&c->admit);
	case SW_COMMAND_ASSIGN:
		return assign(&c->slots);
	case SW_COMMAND_HEARTBEAT:
		return heartbeat(&c->tick);
	case SW_COMMAND_SET_SLEEPING:
		return set_sleeping(&c->tick);
	case SW_COMMAND_PROBE_RECORDS:
		return probe_records(&c->tick);
	case SW_COMMAND_TASK_SNAPSHOT:
		return task_snapshot(&c->snapshot);
	case SW_COMMAND_OBSERVE:
		return observe(&c->admit);
	case SW_COMMAND_STOP_OBSERVING:
		return stop_observing(&c->change);
	}
	return -EINVAL;
}

/*
 * The same for SW_COMMAND_TICK alone, loaded only where the kernel has no timers: what it calls is in their callbacks otherwise.
 *
 * Context: task context, no locks held (BPF_PROG_RUN).
 */
SEC("syscall")
int tick_command(struct sw_command *c)
{
	return tick(&c->tick);
}

#endif
