/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The kernel core: every decision of strong scheduling under EDF or fixed priorities, arbitrary masks
 * and budgets, for up to 64 CPUs and 1,024 tasks. Partitioned, global, clustered and laminar scheduling
 * are special masks.
 *
 * One source for BPF, where it decides inside the kernel, and for native code, where it is a policy
 * like any other: what is simulated is what the kernel runs. It is freestanding: it calls nobody, reads
 * no clock, allocates nothing, never recurses, and every loop has a constant bound. The caller holds
 * whatever lock there is, says what happened and when, and carries out what has changed: `runner[c]`
 * is what CPU c should run.
 *
 *	base.h		words, and what the BPF verifier wants
 *	state.h		the state and its invariants
 *	heap.h		heaps of tasks
 *	backlog.h	who waits
 *	place.h		who runs where
 *	settle.h	changes of several tasks at once, with the fewest shifts
 *	change.h	the events
 *	server.h	budgets
 *	check.h		whether the invariants hold; native only
 */
#ifndef SW_CORE_H
#define SW_CORE_H

#include "server.h"

#ifndef __bpf__
#include "check.h"
#endif

#endif
