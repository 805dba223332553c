/* SPDX-License-Identifier: GPL-2.0-only */
/* The trace: a ring that user space empties. What does not fit is lost, and counted. */
#ifndef SW_TRACE_H
#define SW_TRACE_H

#include "shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

u64 events_lost;

/*
 * Writes an event into the ring; without room it is lost, and counted.
 *
 * Context: any; takes the ring's own lock for a moment.
 */
static __always_inline void emit_with(u64 flags, u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	struct sw_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		__sync_fetch_and_add(&events_lost, 1);
		return;
	}
	event->at = at;
	event->value = value;
	event->task = task;
	event->cpu = cpu;
	event->kind = kind;
	bpf_ringbuf_submit(event, flags);
}

/*
 * User space is not woken: it reads the ring regularly, so that the cost of an event is always the same.
 *
 * Context: as emit_with().
 */
static __always_inline void emit_event(u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	emit_with(BPF_RB_NO_WAKEUP, kind, at, task, cpu, value);
}

/* Whether the agent has to be woken for events that it decides on. */
u32 agent_sleeps;

/*
 * An event that an agent decides on.
 *
 * Context: as emit_with().
 */
static __always_inline void emit_for_agent(u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	emit_with(READ_ONCE(agent_sleeps) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP, kind, at, task, cpu, value);
}

/*
 * An event that user space has to answer.
 *
 * Context: as emit_with().
 */
static __always_inline void emit_and_wake(u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	emit_with(BPF_RB_FORCE_WAKEUP, kind, at, task, cpu, value);
}

#endif
