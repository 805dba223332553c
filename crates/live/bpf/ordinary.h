/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How ordinary work that is queued comes to a CPU: at once where one idles or runs what gives way, otherwise through a queue
 * (queues.h) and, where that is not looked into anyway, by a kick. What all CPUs read says which queues are in use, so that none is
 * looked up in vain.
 */
#ifndef SW_ORDINARY_H
#define SW_ORDINARY_H

#include "fair.h"

/* Since when these two are in use, about; 0: they have been empty for some time. See note_use(). */
u64 excess_used, shared_used;
/*
 * For how long a use counts, ns: far longer than the callback that notes it takes to queue the thread. A queue that is used now and then
 * keeps its word, which all CPUs would read anew after each change; that a use is noted again after a quarter of it is for the same end.
 */
#define SW_USE_TIMEOUT	1000000000ULL
#define SW_USE_NOTED	250000000ULL

/*
 * A thread is queued there, or will be in a moment, after which a CPU is kicked that looks. Rarely written, since all CPUs read it.
 *
 * Context: any.
 */
static __always_inline void note_use(u64 *used)
{
	u64 now = scx_bpf_now();

	if (now - READ_ONCE(*used) > SW_USE_NOTED)
		WRITE_ONCE(*used, now);
}

/*
 * Lets no CPU look into the queue any more if it has not been used for some time. What was about to be queued at its last use
 * is queued by now.
 *
 * Context: timer or tick().
 */
static __always_inline void forget_use(u64 *used, u64 queue)
{
	u64 at = READ_ONCE(*used);

	if (at && (s64)(scx_bpf_now() - at) > (s64)SW_USE_TIMEOUT && scx_bpf_dsq_nr_queued(queue) <= 0)
		__sync_val_compare_and_swap(used, at, 0);
}

/*
 * How many throttled tasks wait as ordinary work. Where there are none, as on most machines, no queue is looked up.
 *
 * Context: any.
 */
static __always_inline s32 excess_waiting(void)
{
	return READ_ONCE(excess_used) ? scx_bpf_dsq_nr_queued(SW_QUEUE_OF_EXCESS) : 0;
}

/*
 * A thread waits in this queue of ordinary work, or will before the run queue's lock is released, after which a CPU is kicked.
 *
 * Context: run queue's lock of the thread held, or after it was moved there.
 */
static __always_inline void note_ordinary(u64 queue)
{
	if (queue == SW_QUEUE_OF_ALL)
		note_use(&shared_used);
	else
		/* Full memory barrier; pairs with pinned_lag() and pull_pinned(). */
		__sync_lock_test_and_set(&cpu_at((u32)(queue - SW_QUEUE_OF_CPU(0)))->pinned_waits, 1);
}

/*
 * How many CPUs a thread that wakes up looks at beside its own for ordinary work that it preempts. Each is a cache line of another CPU,
 * in a callback that a task may wait for, so the number does not grow with that of the CPUs. Where none of these is found, the next of
 * its CPUs that looks for ordinary work takes the thread, after a slice (SW_SLICE). The value is chosen, not measured.
 */
#define SW_PREEMPTION_LOOKS 8

/*
 * The CPU that is to look for the thread, which has woken up and found none idle; or -1.
 *
 * Context: as ordinary_queue().
 */
SW_FN s32 preempted_by(struct task_struct *p __arg_trusted)
{
	u32 own = scx_bpf_task_cpu(p), cpu = own, k;
	u64 now = scx_bpf_now();
	s64 lag = virtual_time(p, SW_QUEUE_OF_ALL) - READ_ONCE(shared_clock.time);

	bpf_for(k, 0, SW_PREEMPTION_LOOKS) {
		cpu = cpu + 1 < cpu_count ? cpu + 1 : 0;
		if (cpu == own)
			break;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && !READ_ONCE(*sw_runner(&core, cpu)) &&
		    preempts_ordinary(lag, cpu, now))
			return cpu;
	}
	return -1;
}

/*
 * Whether ordinary work with this virtual time has its CPU at once, past its queue: that idles, or runs what gives way to a thread
 * that wakes up. It must not be before a task in the local queue, where no other CPU finds that.
 *
 * Should a task be assigned to the CPU in this very moment, its kick finds this work there, and running() looks again.
 *
 * Context: as enqueue().
 */
static __always_inline bool takes_cpu(u64 queue, s32 cpu, u64 own, u64 flags)
{
	struct sw_cpu *c = cpu_at(cpu);

	if (READ_ONCE(*sw_runner(&core, cpu)) || READ_ONCE(c->pulls) || (queue == SW_QUEUE_OF_ALL && cpu + 1 == agent_cpu))
		return false;
	if (c->idles) {
		c->idles = 0;
		return true;
	}
	return flags & SCX_ENQ_WAKEUP && !agent_decides &&
	       preempts_ordinary(own - READ_ONCE(clock_of(queue)->time), cpu, scx_bpf_now());
}

/*
 * Makes a CPU look that is to take ordinary work which is about to be in the queue, where takes_cpu() said no.
 *
 * Context: as enqueue().
 */
static __always_inline void kick_cpu_for_ordinary(struct task_struct *p, u64 queue, s32 cpu, u64 flags)
{
	struct sw_cpu *c = cpu_at(cpu);
	s32 other = -1;

	if (queue == SW_QUEUE_OF_ALL) {
		other = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (other >= 0) {
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
			return;
		}
		/* Its own CPU has a task. Where an agent decides its answer may be under way, and the interrupt would delay it. */
		if (flags & SCX_ENQ_WAKEUP && !agent_decides && !c->ordinary_since)
			other = preempted_by(p);
		if (other >= 0)
			scx_bpf_kick_cpu(other, SCX_KICK_PREEMPT);
	} else if (c->idles || flags & SCX_ENQ_LAST) {
		/*
		 * A CPU that runs something looks by itself after that; a kick would only interrupt it. One that would idle, although a
		 * task is preempted here, says SCX_ENQ_LAST.
		 */
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
}

#endif
