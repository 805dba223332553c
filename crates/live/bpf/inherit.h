/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority inheritance: what is reserved for a thread serves the one that it waits for.
 *
 * A managed thread that waits for a lock of which the kernel knows the holder (a futex by PTHREAD_PRIO_INHERIT, or an rt_mutex,
 * which on PREEMPT_RT most locks are) lends its number to the thread that holds it, or that this one waits for in turn. The borrower
 * then is the task: it runs where and when the task is assigned, is charged to its budget, and for the core the task is awake. When
 * the waiting thread wakes up it takes its number back. So nothing is computed anew for a loan: to the rest it is as if one thread
 * had been dismissed and another admitted, with what is left of the budget.
 *
 * A thread has one number at a time. If several wait for it, the most urgent one lends; if it has a number of its own, only one that
 * is more urgent than its own is, or would be if it woke up now, or any while its own is throttled; its own sleeps until the loan is
 * over. What waits and lends nothing is blocked.
 *
 * The callbacks only say that a thread waits, and take its number back; the rest is done by check_loans(), in a timer that
 * is due at once. Who holds a lock is read there without the kernel's locks, so it may be old: of another thread no more than its
 * number is used, which is looked up anew, and while threads wait all is checked again, after two milliseconds where one does. A
 * borrower may also have been in the middle of a callback when it had another number: after each change one more check comes soon,
 * and a thread that is queued as a task that sleeps asks for one.
 *
 * Not where an agent decides, nor for tasks whose releases are known: their jobs do not end by sleeping. The borrower runs on
 * CPUs of both threads' affinities only; if there is none nothing is lent.
 */
#ifndef SW_INHERIT_H
#define SW_INHERIT_H

#include "loan_checks.h"
#include "waited.h"

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;

/*
 * The task has its number back if it was lent. What follows for the borrower, check_loan() does.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN int take_number_back_locked(u64 now, u32 i)
{
	struct sw_managed *m = managed_at(i), *own = managed_at(m->lends_to);
	u64 borrower = borrower_of(i);

	if (!borrower)
		return 0;
	/* Full memory barrier: what runs is read later. */
	__sync_lock_test_and_set(&m->holder, m->thread);
	if (m->lends_to && own->thread == borrower && !own->holder)
		WRITE_ONCE(own->holder, borrower);
	m->lends_to = 0;
	note_change_locked(now);
	stop_running_locked(now, i);
	mark_loan(i);
	return 0;
}

/*
 * The thread of the task waits for a lock, or does so no more, and has its number again.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN int set_waits_locked(u64 now, u32 i, bool waits)
{
	struct sw_managed *m = managed_at(i);

	if (m->waits == waits)
		return 0;
	m->waits = waits;
	if (waits) {
		waiting++;
	} else {
		waiting--;
		take_number_back_locked(now, i);
	}
	mark_loan(i);
	return 0;
}

/*
 * @p, which runs as the task @i, goes to sleep, to wait for a lock. Whether the task stays awake until it is known what it
 * waits for.
 *
 * Context: quiescent() of @p, its run queue's lock held, interrupts off. Takes the core's lock.
 */
static __always_inline bool on_wait(struct task_struct *p, u32 i)
{
	u32 own = own_number(p);
	u64 now;

	if (agent_decides || sw_task(&core, i)->follows)
		return false;
	if (own && !sw_task(&core, own)->follows) {
		now = core_lock_now();
		if (own_number(p) == own && sw_task(&core, own)->state != SW_ABSENT) {
			/* It may have changed when the thread executed another program. */
			managed_at(own)->pid = p->pid;
			set_waits_locked(now, own, true);
		}
		core_unlock();
	}
	/* What it has by a loan goes on to the thread that it waits for. */
	mark_loan(i);
	check_loans_soon();
	return true;
}

/*
 * @p, which may have waited for a lock, woke up, or is none of ours now.
 *
 * Context: runnable() or disable() of @p, its run queue's lock held, interrupts off. Takes the core's lock.
 */
static __always_inline void on_wait_over(struct task_struct *p)
{
	u32 own = own_number(p);
	u64 now;

	if (own && READ_ONCE(managed_at(own)->waits)) {
		now = core_lock_now();
		set_waits_locked(now, own, false);
		core_unlock();
	} else if (!p->pi_blocked_on) {
		return;
	}
	/* The locks may have another holder. */
	check_loans_soon();
}

/*
 * The CPUs of the task on which the thread may run.
 *
 * Context: any in which @b is trusted.
 */
static __always_inline u64 common_cpus(u32 i, struct task_struct *b)
{
	return sw_task(&core, i)->affinity & b->cpus_ptr->bits[0];
}

/*
 * Whether the task lends its number to this thread.
 *
 * Context: core's lock held, interrupts off.
 */
SW_FN bool may_lend_locked(u64 now, u32 i, struct task_struct *b __arg_trusted)
{
	u32 other = known_number(b);
	const struct sw_task *t;

	/* A thread of a higher class needs no loan. */
	if (b->prio < SW_PRIO_ORDINARY || !common_cpus(i, b))
		return false;
	/* As which task it would run otherwise. */
	if (!other || other == i)
		other = own_number(b);
	t = sw_task(&core, other);
	if (!other || t->state == SW_ABSENT)
		return true;
	if (t->follows)
		return false;
	return t->state == SW_THROTTLED || sw_would_precede(&core, i, other, now);
}

/*
 * The task, whose thread has another number or had a loan of it, sleeps meanwhile. Returns what changes.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 suspend_locked(u64 now, u32 i)
{
	if (!i)
		return 0;
	take_number_back_locked(now, i);
	stop_running_locked(now, i);
	return sw_task(&core, i)->awake ? on_block_locked(now, i, SW_NO_CPU) : 0;
}

/*
 * The borrower has the number of the task from now on. Returns what changes.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 begin_loan_locked(u64 now, u32 i, struct task_struct *b, struct sw_storage *s)
{
	struct sw_managed *m = managed_at(i);
	u32 own = own_number(b), other = known_number(b);
	u64 changed;

	/* That of another thread that waits for it, and is less urgent; or its own is lent, and it is about to wake up. */
	take_number_back_locked(now, other);
	take_number_back_locked(now, own);
	s->borrowed = i;
	m->borrower_pid = b->pid;
	m->lends_to = own;
	if (own) {
		WRITE_ONCE(managed_at(own)->holder, 0);
		managed_at(own)->borrows = 1;
		mark_loan(own);
	}
	loans_made++;
	note_change_locked(now);
	/* Full memory barrier: what the borrower runs as, and whether it is awake, is read after it. */
	__sync_lock_test_and_set(&m->holder, (u64)b);
	/* Its own as well: for a moment it had that. */
	changed = suspend_locked(now, own);
	if (other != own)
		changed |= suspend_locked(now, other);
	return changed;
}

/*
 * The task is awake or asleep as the thread that has its number. One that is on its way to sleep, and has said so, counts as awake
 * until it is there, and one that wakes up meanwhile finds its task awake: what is changed here is checked once more.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 sync_loan_locked(u64 now, struct task_struct *p, u32 i)
{
	bool was_awake = sw_task(&core, i)->awake;
	u64 changed = sync_awake_locked(now, p, i);

	if (was_awake != !!sw_task(&core, i)->awake) {
		note_change_locked(now);
		mark_loan(i);
	}
	return changed;
}

/*
 * @p has its own number, @i, and may have had none or another one until a moment ago. Returns what changes.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 have_own_again_locked(u64 now, u32 i, struct task_struct *p)
{
	struct sw_managed *m = managed_at(i);
	u64 changed = 0;

	if (m->borrows) {
		m->borrows = 0;
		/* It may be in the middle of a callback. */
		note_change_locked(now);
		mark_loan(i);
	}
	if (m->narrowed) {
		m->narrowed = 0;
		emit_event(SW_E_NARROWED, now, i, SW_NO_CPU, 0);
		changed = sw_narrow(&core, i, 0);
	}
	return changed | sync_loan_locked(now, p, i);
}

/*
 * Lends the number of task @i, whose thread is @p, to @b if @p waits for that, or takes it back. Returns what changes.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 update_loan_locked(u64 now, u32 i, struct task_struct *p, struct task_struct *b,
					      struct sw_storage *s)
{
	struct sw_managed *m = managed_at(i);
	const struct sw_task *t = sw_task(&core, i);
	u64 changed = 0, common, narrowed;

	if (!m->waits)
		return known_number(p) == i ? have_own_again_locked(now, i, p) : 0;
	if (!b || !s || !may_lend_locked(now, i, b)) {
		take_number_back_locked(now, i);
		return t->awake ? on_block_locked(now, i, SW_NO_CPU) : 0;
	}
	if (m->holder != (u64)b) {
		/* What @p has by a loan goes on by a check of that, or @p would have both numbers when it gets this one back. */
		if (m->borrows && known_number(p) != i)
			take_number_back_locked(now, known_number(p));
		take_number_back_locked(now, i);
		changed = begin_loan_locked(now, i, b, s);
	}
	common = common_cpus(i, b);
	narrowed = common == t->affinity ? 0 : common;
	if (t->narrowed != narrowed) {
		m->narrowed = 1;
		emit_event(SW_E_NARROWED, now, i, SW_NO_CPU, narrowed);
		changed |= sw_narrow(&core, i, narrowed);
	}
	return changed | sync_loan_locked(now, b, i);
}

/*
 * Makes the CPU look that runs the thread, or that is to run it as the task.
 *
 * Context: any without the core's lock.
 */
static __always_inline void kick_for_loan(struct task_struct *b, u32 i)
{
	s32 cpu = scx_bpf_task_cpu(b);
	u32 on = READ_ONCE(sw_task(&core, i)->on);

	if (borrower_of(i) != (u64)b)
		return;
	if (scx_bpf_task_running(b)) {
		if (READ_ONCE(cpu_at(cpu)->current) != i)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	} else if (on && READ_ONCE(cpu_at(on - 1)->current) != i) {
		scx_bpf_kick_cpu(on - 1, SCX_KICK_PREEMPT);
	}
}

/*
 * Does with the task's number as is right now.
 *
 * Context: timer or tick(), no locks held. Takes the core's lock.
 */
SW_FN int check_loan(u32 i)
{
	struct sw_managed *m = managed_at(i);
	struct task_struct *p, *b = NULL;
	struct sw_storage *s = NULL;
	unsigned long flags;
	u64 owner, found, now, changed = 0;
	bool is_known;

	p = bpf_task_from_pid(READ_ONCE(m->pid));
	if (!p) {
		WRITE_ONCE(m->borrows, 0);
		return 0;
	}
	owner = READ_ONCE(m->waits) ? thread_waited_for(p) : 0;
	is_known = owner != (u64)p;
	if (owner && is_known)
		b = bpf_task_from_pid(BPF_CORE_READ((struct task_struct *)owner, pid));
	if (b)
		s = bpf_task_storage_get(&storage, b, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* Hidden, or the compiler may use the number in place of the thread. */
	found = (u64)b;
	SW_HIDE(found);
	bpf_local_irq_save(&flags);
	now = core_lock_now();
	if (!is_known)
		note_change_locked(now);
	/* Another thread than was read is none that @p waits for. */
	if (own_number(p) == i && sw_task(&core, i)->state != SW_ABSENT)
		changed = update_loan_locked(now, i, p, found == owner ? b : NULL, s);
	else
		m->borrows = 0;
	commit_unlock_and_arm(now, changed, 0);
	bpf_local_irq_restore(&flags);
	if (b) {
		kick_for_loan(b, i);
		bpf_task_release(b);
	}
	bpf_task_release(p);
	/* One that had the number a moment ago. */
	if (scx_bpf_dsq_nr_queued(SW_QUEUE_OF_TASK(i)) > 0)
		requeue_misplaced(SW_QUEUE_OF_TASK(i), 0);
	return 0;
}

/*
 * Checks loans: those in turn. Returns when to check again; the more threads wait, the later, so that all of them together cost
 * no more than one.
 *
 * Context: timer or tick(), no locks held.
 */
static __always_inline u64 check_loans(void)
{
	u64 began = bpf_ktime_get_ns(), again = 0;
	u32 k, word;

	/* Full memory barrier; pairs with check_loans_soon(). */
	__sync_lock_test_and_set(&armed[SW_TIMER_LOANS], SW_NEVER);
	WRITE_ONCE(loans_count, 0);
	bpf_for(k, 0, SW_TASKS / 64) {
		u64 left;

		word = READ_ONCE(loans_turn) & (SW_TASKS / 64 - 1);
		left = READ_ONCE(loans_checked[word]);

		while (left && can_loop) {
			u32 bit = sw_lowest(left), i = word * 64 + bit;

			left &= left - 1;
			/* Full memory barrier: what changes after what is read here sets it again. */
			__sync_fetch_and_and(&loans_checked[word], ~sw_bit(bit));
			if (READ_ONCE(managed_at(i)->waits) || READ_ONCE(managed_at(i)->borrows) || is_unsettled(began))
				mark_loan(i);
			check_loan(i);
			WRITE_ONCE(loans_count, READ_ONCE(loans_count) + 1);
		}
		again |= READ_ONCE(loans_checked[word]);
		WRITE_ONCE(loans_turn, word + 1);
		if (READ_ONCE(loans_count) >= SW_LOANS_AT_ONCE)
			return bpf_ktime_get_ns() + SW_LOAN_SETTLES;
	}
	if (!again)
		return SW_NEVER;
	if (is_unsettled(began))
		return bpf_ktime_get_ns() + SW_LOAN_SETTLES;
	return bpf_ktime_get_ns() + SW_LOAN_CHECK * (READ_ONCE(waiting) + 1);
}

/*
 * Numbers are lent, or have been a moment ago.
 *
 * Context: timer, interrupts on.
 */
static int loans_due(void *map, u32 *key, struct sw_timer *t)
{
	arm(SW_TIMER_LOANS, check_loans());
	return 0;
}

/*
 * Makes the borrower of the task's number wait in the task's queue. Whether it does now.
 *
 * Context: dispatch() of @cpu, to which the task is assigned; its run queue's lock is held.
 */
SW_FN bool fetch_borrower(u32 i, s32 cpu)
{
	struct task_struct *b = bpf_task_from_pid(READ_ONCE(managed_at(i)->borrower_pid));
	bool fetched = false;
	u32 own;

	if (!b)
		return false;
	if (known_number(b) != i) {
		bpf_task_release(b);
		return false;
	}
	if (scx_bpf_task_running(b)) {
		/* On another CPU, as what it was before. */
		scx_bpf_kick_cpu(scx_bpf_task_cpu(b), SCX_KICK_PREEMPT);
	} else {
		own = own_number(b);
		fetched = requeue_thread(b, i) || (own && requeue_misplaced(SW_QUEUE_OF_TASK(own), b->pid));
		/* It is about to be queued, or to run where it was sent before. */
		if (!fetched && is_awake(b))
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	bpf_task_release(b);
	return fetched;
}

#endif
