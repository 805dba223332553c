/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The kernel core: every decision of strong scheduling under EDF or fixed priorities, arbitrary masks
 * and budgets, for up to 64 CPUs and 1,024 tasks. Partitioned, global, clustered and laminar scheduling
 * are special masks.
 *
 * One source for BPF, where it decides inside the kernel, and for native code, where it is an ordinary
 * policy: a simulation runs the same code as the kernel. It is freestanding: it calls no external
 * function, reads no clock, allocates nothing, never recurses, and every loop has a constant bound. The
 * caller holds the lock that serializes the events, passes events with their instants, and carries out the
 * changes: CPU c should run `runner[c]`.
 *
 *	base.h		integer types, and means for the BPF verifier
 *	state.h		the state and its invariants
 *	heap.h		heaps of tasks
 *	backlog.h	waiting tasks
 *	place.h		assignment of tasks to CPUs
 *	settle.h	changes of several tasks at once, with the fewest shifts
 *	change.h	the events
 *	server.h	budgets
 *	mutex.h		mutexes and their protocols; used by the machine beside the core, as is the next
 *	trigger.h	triggers of one task
 *	check.h		whether the invariants hold; native only
 */
#ifndef SW_CORE_H
#define SW_CORE_H

#include "server.h"

#ifndef __bpf__
#include "check.h"
#endif

#endif
