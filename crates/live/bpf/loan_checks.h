/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which loans are to be checked, and when: what callbacks and the check itself, in inherit.h, leave for the next one.
 */
#ifndef SW_LOAN_CHECKS_H
#define SW_LOAN_CHECKS_H

#include "awake.h"

/* How soon loans are checked once more after a change, ns: longer than any callback that knew another number takes. */
#define SW_LOAN_SETTLES	100000ULL
/* When they are checked again without a change, ns: after so long for each task that waits, and once more. */
#define SW_LOAN_CHECK	1000000ULL
/*
 * Bounds the interrupt in which loans are checked: it ends after the word of `loans_checked` in which it reaches this number, so with
 * 31 + 64 at most, and goes on after SW_LOAN_SETTLES.
 */
#define SW_LOANS_AT_ONCE 32

/* How many tasks wait for a lock. Written under the core's lock. */
u32 waiting;
/* Tasks to check: those that wait, and those that were in a loan a moment ago, a bit each. */
u64 loans_checked[SW_TASKS / 64];
/* How often a number was lent, and when a loan last began or ended, ns. */
u64 loans_made, loans_changed_at;
/* Which word of these is checked first, and how many tasks have been by this check: the verifier follows a loop in which it knows a number
 * once for each. */
u32 loans_turn, loans_count;

/*
 * The task's loan is to be checked.
 *
 * Context: any.
 */
static __always_inline void mark_loan(u64 i)
{
	SW_HIDE(i);
	i &= SW_TASKS - 1;
	__sync_fetch_and_or(&loans_checked[i / 64], sw_bit(i % 64));
}

/*
 * A loan began or ended, a task was awakened by a check, or it is not known yet to which thread its number is to be lent: loans are
 * checked once more when all that was under way is over.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline void note_change_locked(u64 now)
{
	WRITE_ONCE(loans_changed_at, now);
}

/*
 * Whether a callback may still be under way that does not know of the last change. @began: when the check did.
 *
 * Context: any.
 */
static __always_inline bool is_unsettled(u64 began)
{
	return READ_ONCE(loans_changed_at) + SW_LOAN_SETTLES > began;
}

/*
 * Loans that are marked are checked at once. A check that is under way may have passed them, and does not set the timer to later.
 *
 * Context: any without the core's lock, interrupts off.
 */
static __always_inline void check_loans_soon(void)
{
	u64 now = bpf_ktime_get_ns();

	/* Full memory barrier; pairs with check_loans(). */
	__sync_lock_test_and_set(&armed[SW_TIMER_LOANS], now);
	arm(SW_TIMER_LOANS, now);
}

/*
 * A thread waits for a CPU as a task that sleeps: when it woke up it had another number. @pid: its own in the kernel, which may have
 * changed since it was admitted. Its task is to be awake.
 *
 * Context: enqueue(), interrupts off.
 */
SW_FN int awaken_soon(u32 i, u32 pid)
{
	/* With a loan it is the borrower that waits. */
	if (!borrower_of(i))
		WRITE_ONCE(managed_at(i)->pid, pid);
	mark_loan(i);
	check_loans_soon();
	return 0;
}

/*
 * If the thread, whose own number is this, has another one by a loan, that is to be checked.
 *
 * Context: callback of @p, interrupts off.
 */
static __always_inline void check_loan_to(struct task_struct *p, u32 own)
{
	u32 i = known_number(p);

	if (!i || i == own)
		return;
	mark_loan(i);
	check_loans_soon();
}

#endif
