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

/* Flags of the ring above the kind of an event: a function has five arguments at most. */
#define SW_FLAGS_SHIFT 16

/*
 * Writes an event into the ring; without room it is lost, and counted.
 *
 * Context: any; takes the ring's own lock for a moment.
 */
static __always_inline void write_here(u32 flags, u32 kind, u64 at, u32 task, u32 cpu, u64 value)
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
 * write_here(), once for most events: each program has a copy of all functions that it calls, and the kernel takes time for each
 * instruction. What a task that wakes up waits for is inlined.
 *
 * Context: as write_here().
 */
SW_FN int write_event(u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	write_here(kind >> SW_FLAGS_SHIFT, kind, at, task, cpu, value);
	return 0;
}

/*
 * write_event(), with flags of the ring.
 *
 * Context: as write_here().
 */
static __always_inline void emit_with(u32 flags, u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	write_event(flags << SW_FLAGS_SHIFT | kind, at, task, cpu, value);
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
 * An event that an agent decides on. If the agent has gone to sleep meanwhile, without having seen the event, another one
 * wakes it, which says nothing.
 *
 * Context: as emit_with().
 */
static __always_inline void emit_for_agent(u32 kind, u64 at, u32 task, u32 cpu, u64 value)
{
	bool sleeps = READ_ONCE(agent_sleeps);

	emit_with(sleeps ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP, kind, at, task, cpu, value);
	/* bpf_ringbuf_submit() is a full memory barrier; pairs with set_sleeping(). */
	if (!sleeps && READ_ONCE(agent_sleeps))
		emit_with(BPF_RB_FORCE_WAKEUP, SW_E_PROBE, at, 0, SW_NO_CPU, 0);
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
