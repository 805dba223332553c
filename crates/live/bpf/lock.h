/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock around the core. A ticket lock of our own: global functions, which make the core cheap to
 * verify, may not be called under a bpf_spin_lock. It is fair, and taken with interrupts off
 * everywhere: callbacks of the scheduler have them off, commands and timers switch them off.
 *
 * A function whose name ends in _locked is called with this lock held, and leaves it held; one that releases it says `unlock`.
 */
#ifndef SW_LOCK_H
#define SW_LOCK_H

void bpf_local_irq_save(unsigned long *flags) __ksym;
void bpf_local_irq_restore(unsigned long *flags) __ksym;

struct {
	u32 next;
	u32 pad[15];
	u32 owner;		/* on a cache line of its own: waiting CPUs read only this */
	u32 pad2[15];
} ticket __attribute__((aligned(64)));

/*
 * Far longer than any section can take, also where CPUs are threads of a busy host, which stops the next CPU for a
 * time slice: something is broken then. A loop has 2^23 rounds at most, so each of them looks several times.
 */
#define SW_ROUNDS_MAX (1 << 23)
#define SW_READS_PER_ROUND 16

/*
 * Takes the next ticket and waits for its turn.
 *
 * Context: interrupts off. Spins; may not sleep.
 */
SW_FN int core_lock(void)
{
	u32 mine = __sync_fetch_and_add(&ticket.next, 1), round, k;

	/* As a rule; an iterator is three calls of the kernel. */
	if (READ_ONCE(ticket.owner) == mine)
		return 0;
	bpf_for(round, 0, SW_ROUNDS_MAX)
		for (k = 0; k < SW_READS_PER_ROUND; k++)
			if (READ_ONCE(ticket.owner) == mine)
				return 0;
	scx_bpf_error("the core's lock is stuck");
	return 0;
}

/*
 * Ends the turn.
 *
 * Context: core's lock held, interrupts off. Releases the lock.
 */
static __always_inline void core_unlock(void)
{
	/* A locked instruction: what was written is seen before the lock is seen to be free. */
	__sync_fetch_and_add(&ticket.owner, 1);
}

#endif
