/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time: one timer per CPU for the budget or turn of what it runs, one for the first replenishment or release,
 * one for background work that waits, one for numbers that are lent. Where the kernel knows no such timers (PREEMPT_RT) user space
 * sleeps until `due` and calls tick(), and is woken through `alarms` when `due` comes closer.
 *
 * Callbacks take the lock anew and look at what is due then: a timer may be late, or belong to what is
 * long over.
 */
#ifndef SW_TIMERS_H
#define SW_TIMERS_H

#include "background.h"

const volatile bool has_timers = true;

struct sw_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_CPUS);
	__type(key, u32);
	__type(value, struct sw_timer);
} budget_timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SW_TIMERS);
	__type(key, u32);
	__type(value, struct sw_timer);
} timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} alarms SEC(".maps");

/* The softirqs of each CPU that wait, where the kernel says so (x86, since 6.15). */
extern const u16 __softirq_pending __ksym __weak;

/* What each CPU is in: interrupts, softirqs. Where the kernel says so, as above. */
extern const int __preempt_count __ksym __weak;

/* Of __preempt_count, while the CPU serves softirqs: SOFTIRQ_OFFSET. */
#define SW_SERVES_SOFTIRQS 0x100

static int loans_due(void *map, u32 *key, struct sw_timer *t);

/* Without timers: when tick() is due, and whether it is to serve the background, whenever that is due otherwise. */
u64 due = SW_NEVER;
u32 background_asked;

/*
 * User space is to call tick() at this instant, and may not know yet.
 *
 * Context: any; does not sleep.
 */
static __always_inline void alarm(u64 at)
{
	u64 *message;

	if (at >= READ_ONCE(due))
		return;
	WRITE_ONCE(due, at);
	message = bpf_ringbuf_reserve(&alarms, sizeof(*message), 0);
	/* If there is no room it has been woken already. */
	if (!message)
		return;
	*message = at;
	bpf_ringbuf_submit(message, BPF_RB_FORCE_WAKEUP);
}

/*
 * Does this timer have to end earlier? 0 if not.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 earlier_locked(u32 which, u64 at)
{
	if (at >= armed[which & 3])
		return 0;
	armed[which & 3] = at;
	return at;
}

/*
 * Where interrupts are off, kernels of 2026 take memory for what they do to a timer later on, and may refuse for want of
 * it, which has not been seen yet; and where a CPU is a thread of another machine, its timers are late. What is missed for that,
 * background_due() makes good.
 *
 * Context: any without the core's lock.
 */
static __always_inline void start_timer(struct sw_timer *t, u64 at, u64 flags)
{
	u32 k;

	/* As a rule; an iterator is three calls of the kernel. */
	if (!bpf_timer_start(&t->timer, at, flags))
		return;
	bpf_for(k, 0, 16)
		if (!bpf_timer_start(&t->timer, at, flags))
			break;
}

/*
 * Has this CPU serve its softirqs that wait, timers among them, before its thread goes on. The kernel leaves those to its
 * thread ksoftirqd that come while it serves others and the CPU is to be rescheduled; and ksoftirqd is ordinary work, which
 * managed tasks precede: without this, the timer that ends the budget of one could wait for it, up to the next tick.
 * A kick that is for a CPU that idles is an interrupt for one that does not, and softirqs are served when an interrupt ends.
 *
 * Context: dispatch() or running() of @cpu, its run queue's lock held.
 */
static __always_inline void serve_softirqs(s32 cpu)
{
	const u16 *pending;

	/* PREEMPT_RT, where there are none, leaves all softirqs to threads: an interrupt would be for nothing. */
	if (!has_timers || !&__softirq_pending)
		return;
	pending = bpf_this_cpu_ptr(&__softirq_pending);
	if (*pending)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * Whether this CPU's softirqs are interrupted by what calls this.
 *
 * Context: hard interrupt.
 */
static __always_inline bool interrupts_softirqs(void)
{
	const int *count;

	if (!has_timers || !&__preempt_count)
		return false;
	count = bpf_this_cpu_ptr(&__preempt_count);
	return *count & SW_SERVES_SOFTIRQS;
}

/*
 * Without the lock: makes the timer end then. 0: leaves it.
 *
 * Context: any without the core's lock.
 */
SW_FN int arm(u32 which, u64 at)
{
	struct sw_timer *t;
	u32 k;

	if (!at || at == SW_NEVER)
		return 0;
	if (!has_timers) {
		if (which == SW_TIMER_BACKGROUND)
			/* Full memory barrier; pairs with tick(). */
			__sync_lock_test_and_set(&background_asked, 1);
		alarm(at);
		return 0;
	}
	t = bpf_map_lookup_elem(&timers, &which);
	if (!t)
		return 0;
	/* Another CPU may set an earlier instant, and this one overwrite it: look again. */
	bpf_for(k, 0, 8) {
		u64 latest;

		start_timer(t, at, BPF_F_TIMER_ABS);
		latest = READ_ONCE(armed[which & 3]);
		if (latest >= at)
			break;
		at = latest;
	}
	return 0;
}

/*
 * commit_and_unlock(), and makes sure that the next release comes. With interrupts off to the end: a task that was
 * preempted in between could be waiting for that very release.
 *
 * Context: core's lock held, interrupts off. Releases the lock.
 */
static __always_inline void commit_unlock_and_arm(u64 now, u64 changed, u64 except)
{
	u64 release = earlier_locked(SW_TIMER_RELEASES, sw_next_replenishment(&core));

	commit_and_unlock(now, changed, except);
	arm(SW_TIMER_RELEASES, release);
}

/*
 * When the budget of @i, which runs now, has to be looked at; 0 if never.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline s64 budget_left_locked(u32 i)
{
	const struct sw_task *t = sw_task(&core, i);
	const struct sw_managed *m = managed_at(i);

	if (t->budget)
		return t->left > 0 ? t->left : 1;
	if (m->warned_budget && m->warned_left > 0)
		return m->warned_left;
	return 0;
}

/* Context: any without the core's lock. */
SW_FN int arm_budget(u32 cpu, u64 now, s64 left)
{
	struct sw_timer *t;

	if (!left)
		return 0;
	if (!has_timers) {
		alarm(now + left);
		return 0;
	}
	t = bpf_map_lookup_elem(&budget_timers, &cpu);
	if (t)
		start_timer(t, left, BPF_F_TIMER_CPU_PIN);
	return 0;
}

/*
 * Charges what @cpu runs. Returns what is left of the budget, 0 if that need not be looked at.
 *
 * Context: timer or tick(). Takes the core's lock.
 */
SW_FN s64 check_budget(u32 cpu)
{
	unsigned long flags;
	u64 now, changed = 0;
	s64 left = 0;
	u32 i;

	bpf_local_irq_save(&flags);
	now = core_lock_now();
	i = cpu_at(cpu)->current;
	if (i && budget_left_locked(i)) {
		keep_before_locked(i);
		changed = sw_charge(&core, i, chargeable_locked(i, take_elapsed_locked(i, cpu, now)), now);
		emit_changes_locked(now, i);
		if (*sw_runner(&core, cpu) == i)
			left = budget_left_locked(i);
		else
			cpu_at(cpu)->unarmed = 1;
	}
	commit_unlock_and_arm(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return left;
}

/*
 * check_budget(), and the timer of @cpu again. If @cpu has begun to run a task meanwhile, that has set the timer for itself, and
 * this may have replaced it: looks again.
 *
 * Context: timer. Takes the core's lock.
 */
static __always_inline void check_and_arm_budget(u32 cpu)
{
	u32 k;

	bpf_for(k, 0, 8) {
		u64 began = READ_ONCE(cpu_at(cpu)->began);

		arm_budget(cpu, bpf_ktime_get_ns(), check_budget(cpu));
		if (READ_ONCE(cpu_at(cpu)->began) == began)
			break;
	}
}

/*
 * How much is left of the turn of the ordinary work that @cpu runs, ns, if a timer ends it; 0 else. Ends it if nothing is left.
 *
 * Context: timer or tick().
 */
static __always_inline s64 turn_left(u32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 since = READ_ONCE(c->ordinary_since);
	s64 left;

	if (!since || !READ_ONCE(c->ordinary_timed))
		return 0;
	left = since + READ_ONCE(c->ordinary_slice) - scx_bpf_now();
	if (left > 0)
		return left;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/*
 * The budget of what a CPU runs may be used up, or its turn.
 *
 * Context: timer, interrupts on.
 */
static int budget_ended(void *map, u32 *key, struct sw_timer *t)
{
	arm_budget(*key, bpf_ktime_get_ns(), turn_left(*key));
	/* Last: a task may have begun to run meanwhile, and its budget is what counts. */
	check_and_arm_budget(*key);
	return 0;
}

/*
 * Starts one job that is released or replenished. Returns when the next is due.
 *
 * Context: timer or tick(). Takes the core's lock.
 */
static __always_inline u64 release_next(u64 *at)
{
	unsigned long flags;
	u64 changed, next;
	u32 i;

	bpf_local_irq_save(&flags);
	*at = core_lock_now();
	i = core.timers;
	if (i) {
		keep_before_locked(i);
		changed = sw_replenish_next(&core, *at);
		emit_changes_locked(*at, i);
	} else {
		changed = 0;
	}
	next = sw_next_replenishment(&core);
	armed[SW_TIMER_RELEASES] = next;
	commit_and_unlock(*at, changed, 0);
	kick_excess(i);
	bpf_local_irq_restore(&flags);
	return next;
}

/*
 * Starts all that is due. One per critical section, to keep those short.
 *
 * Context: timer or tick(), no locks held.
 */
static __always_inline u64 release_all(void)
{
	u64 next = SW_NEVER, now;
	u32 k;

	bpf_for(k, 0, SW_TASKS) {
		next = release_next(&now);
		if (next > now)
			break;
	}
	return next;
}

/*
 * A release or replenishment may be due.
 *
 * Context: timer, interrupts on.
 */
static int releases_due(void *map, u32 *key, struct sw_timer *t)
{
	arm(SW_TIMER_RELEASES, release_all());
	return 0;
}

/*
 * Interrupts are on here, so that this timer starts again whatever others did.
 *
 * Context: timer, interrupts on.
 */
static int background_due(void *map, u32 *key, struct sw_timer *t)
{
	u64 now = bpf_ktime_get_ns();
	u32 k;

	if (READ_ONCE(armed[SW_TIMER_RELEASES]) < now)
		arm(SW_TIMER_RELEASES, release_all());
	bpf_for(k, 0, cpu_count)
		if (!agent_decides && READ_ONCE(cpu_at(k)->current))
			check_and_arm_budget(k);
	arm(SW_TIMER_BACKGROUND, serve_background());
	return 0;
}

/*
 * Makes all timers known to the kernel; none is armed.
 *
 * Context: init(), may sleep.
 */
static __always_inline void start_timers(u32 cpu_count)
{
	struct sw_timer *t;
	u32 k, which;

	if (!has_timers)
		return;
	bpf_for(k, 0, cpu_count) {
		which = k;
		t = bpf_map_lookup_elem(&budget_timers, &which);
		if (!t)
			continue;
		bpf_timer_init(&t->timer, &budget_timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&t->timer, budget_ended);
	}
	which = SW_TIMER_RELEASES;
	t = bpf_map_lookup_elem(&timers, &which);
	if (t) {
		bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&t->timer, releases_due);
	}
	which = SW_TIMER_BACKGROUND;
	t = bpf_map_lookup_elem(&timers, &which);
	if (t) {
		bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&t->timer, background_due);
	}
	which = SW_TIMER_LOANS;
	t = bpf_map_lookup_elem(&timers, &which);
	if (t) {
		bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&t->timer, loans_due);
	}
}

#endif
