/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The order of ordinary work: by virtual time. That of a thread grows by the time that it runs, divided by its weight,
 * which follows from its nice value and its control group (groups.h); the thread that has had least is next. The clock of a queue is the virtual time at
 * which the last of its threads began to run. What a thread has had before it came to a queue, or while it slept, counts for no
 * more than a slice before that clock, so that a thread that mostly sleeps runs at once, and none can save time; nor
 * for more than SW_AHEAD_MAX after it, or in a control group SW_AHEAD_SUM_MAX, and less where many wait: none waits for more than some seconds, far from
 * the kernel's watchdog, whatever the weights. For the same end no thread has more weight than nice -10 gives.
 *
 * Where a CPU is left little time, those that come later could still be before one that waits, for minutes if they are hundreds. So a queue in
 * which some thread has waited for SW_WAIT_MAX becomes first come, first served, with short turns, until all have been served that waited then.
 */
#ifndef SW_FAIR_H
#define SW_FAIR_H

#include "groups.h"
#include "queue_ids.h"

/* Time slice of ordinary work, ns; that of a thread with less than the default weight is shorter, and at least the second. */
#define SW_SLICE	5000000ULL
#define SW_SLICE_MIN	500000ULL
/* What a slice counts for at most where it may be so short, ns: half of what a thread may be ahead. */
#define SW_SLICE_COUNTS_MAX	25000000ULL
/* A thread that wakes up and has had less than this less, ns, lets the one that runs go on. */
#define SW_PREEMPTION_LAG	500000ULL
/* How far a thread is at most after the clock of its queue, ns, and the sum of that over all that wait. */
#define SW_AHEAD_MAX		50000000ULL
#define SW_AHEAD_SUM_MAX	500000000ULL

/*
 * For how long some thread of a queue may wait in the order of virtual times, ns, and how much CPU time those that wait then take at most
 * until each has been served, as long as a turn need not be shorter than the third: at the least part of a CPU that the reserve leaves, and twice in
 * a row, far less than the 30 s after which the kernel's watchdog ends the scheduler.
 */
#define SW_WAIT_MAX	4000000000ULL
#define SW_ROUND_MAX	250000000ULL
#define SW_TURN_MIN	100000ULL

/* How far nothing is after a clock, ns. */
#define SW_LAG_MAX		((s64)(~0ULL >> 1))

/* What the order of a queue follows from. Written by CPUs that run or queue its threads, without a lock: what is late matters little. */
struct sw_clock {
	u64 time;	/* virtual time at which the last of its threads began to run */
	u64 last;	/* no thread waits by a later virtual time, unless by less than a slice after `time` */
	u64 floor;	/* threads are queued by no earlier virtual time, behind all that waited at `marked`; 0: by their own */
	u64 mark;	/* no thread that waited at `marked` does so by a later virtual time */
	u64 marked;	/* ns */
};

struct sw_clock pinned_clocks[SW_CPUS], shared_clock;

/*
 * Whether the thread can run on its CPU only.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline bool is_pinned(struct task_struct *p)
{
	return p->nr_cpus_allowed == 1 || is_migration_disabled(p);
}

/*
 * The queue of ordinary work in which @p waits, which is on @cpu.
 *
 * Context: run queue's lock of @p held, or @p in a queue that is iterated.
 */
static __always_inline u64 ordinary_queue(struct task_struct *p, u32 cpu)
{
	return is_pinned(p) ? SW_QUEUE_OF_CPU(cpu) : SW_QUEUE_OF_ALL;
}

/*
 * The clock of a queue of ordinary work.
 *
 * Context: any.
 */
static __always_inline struct sw_clock *clock_of(u64 queue)
{
	if (queue == SW_QUEUE_OF_ALL)
		return &shared_clock;
	SW_HIDE(queue);
	return &pinned_clocks[queue & (SW_CPUS - 1)];
}

/*
 * How far a thread may be after the clock of this queue. One in a control group may weigh next to nothing; how long it waits does
 * not depend on how many do, but on the weights of all.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline u64 ahead_max(struct task_struct *p, u64 queue)
{
	bool in_group = group_of(p);
	s64 waiting = in_group ? READ_ONCE(crowd) : scx_bpf_dsq_nr_queued(queue);
	u64 most = SW_AHEAD_SUM_MAX / (waiting > 0 ? waiting + 1 : 1);

	if (!in_group && most > SW_AHEAD_MAX)
		return SW_AHEAD_MAX;
	return most < SW_SLICE ? SW_SLICE : most;
}

/*
 * The virtual time of the thread in this queue.
 *
 * Context: as ordinary_queue().
 */
static __always_inline u64 virtual_time(struct task_struct *p, u64 queue)
{
	u64 clock = READ_ONCE(clock_of(queue)->time), own = p->scx.dsq_vtime, most;
	s64 ahead = own - clock;

	if (ahead < -(s64)SW_SLICE)
		return clock - SW_SLICE;
	if (ahead <= (s64)SW_SLICE)
		return own;
	most = ahead_max(p, queue);
	return ahead > (s64)most ? clock + most : own;
}

/*
 * The virtual time by which a thread, of which it is this, waits in the queue.
 *
 * Context: as ordinary_queue().
 */
SW_FN u64 queued_time(u64 queue, u64 own)
{
	struct sw_clock *clock = clock_of(queue);
	u64 floor = READ_ONCE(clock->floor);

	if (floor && (s64)(own - floor) < 0)
		return floor;
	if ((s64)(own - READ_ONCE(clock->time)) > (s64)SW_SLICE && (s64)(own - READ_ONCE(clock->last)) > 0)
		WRITE_ONCE(clock->last, own);
	return own;
}

/*
 * Sees to it that none of the threads that wait in the queue does so for long. Returns their number.
 *
 * Context: timer or tick().
 */
SW_FN s32 limit_wait(u64 queue, u64 now)
{
	s32 waiting = scx_bpf_dsq_nr_queued(queue);
	struct sw_clock *clock = clock_of(queue);
	u64 time = READ_ONCE(clock->time), last;

	if (waiting <= 0 || (s64)(time - clock->mark) > 0) {
		WRITE_ONCE(clock->floor, 0);
		/* What is queued in this moment is before the next mark. */
		last = READ_ONCE(clock->last);
		time += SW_SLICE;
		clock->mark = (s64)(last - time) > 0 ? last : time;
		clock->marked = now;
	} else if (now - clock->marked >= SW_WAIT_MAX) {
		WRITE_ONCE(clock->floor, clock->mark + 1);
	}
	return waiting;
}

/*
 * How long a turn is at most in a queue that is first come, first served, ns.
 *
 * Context: any.
 */
static __always_inline u64 turn_max(u64 queue)
{
	s32 waiting = scx_bpf_dsq_nr_queued(queue);
	u64 turn = SW_ROUND_MAX / (u32)(waiting > 0 ? waiting : 1);

	return turn > SW_TURN_MIN ? turn : SW_TURN_MIN;
}

/*
 * The weight of the thread.
 *
 * Context: any in which @p is trusted.
 */
static __always_inline u32 weight_of(struct task_struct *p)
{
	u32 weight = p->scx.weight;

	if (!weight)
		return 1;
	return weight < SW_WEIGHT_MAX ? weight : SW_WEIGHT_MAX;
}

/*
 * For how long the thread may run at once, ns. @inverse: see inverse_of().
 *
 * Context: as weight_of().
 */
static __always_inline u64 slice_of(struct task_struct *p, u64 inverse)
{
	u64 slice = SW_SLICE * weight_of(p) / SW_WEIGHT_DEFAULT, most = (SW_SLICE_COUNTS_MAX << SW_INVERSE_SHIFT) / inverse;

	if (slice > most)
		slice = most;
	if (slice > SW_SLICE)
		return SW_SLICE;
	return slice > SW_SLICE_MIN ? slice : SW_SLICE_MIN;
}

/*
 * The time that a thread has run, as it counts. @inverse: see inverse_of().
 *
 * Context: any.
 */
static __always_inline u64 weighted(u64 ran, u64 inverse)
{
	return ran * inverse >> SW_INVERSE_SHIFT;
}

/*
 * The default weight by the weight of the thread, as a binary fraction: where a thread stops, a task may wait for the CPU, and
 * a division takes long.
 *
 * Context: as weight_of(), run queue's lock of @p held.
 */
static __always_inline u64 inverse_of(struct task_struct *p)
{
	u64 inverse = ((u64)SW_WEIGHT_DEFAULT << SW_INVERSE_SHIFT) / weight_of(p);

	if (!group_of(p))
		return inverse;
	inverse = walk_groups(p, 0, inverse);
	return inverse > SW_INVERSE_MIN ? inverse : SW_INVERSE_MIN;
}

/* Defined with the timers. */
int arm_budget(u32 cpu, u64 now, s64 left);

/*
 * @cpu runs the thread as ordinary work.
 *
 * Context: running() or dispatch() of @cpu, its run queue's lock held.
 */
SW_FN int on_ordinary_start(struct task_struct *p __arg_trusted, u32 cpu)
{
	u64 queue = ordinary_queue(p, cpu), own = virtual_time(p, queue), turn;
	struct sw_clock *clock = clock_of(queue);
	struct sw_cpu *c = cpu_at(cpu);

	c->ordinary_time = own;
	c->ordinary_lag = own - READ_ONCE(clock->time);
	if (c->ordinary_lag > 0) {
		WRITE_ONCE(clock->time, own);
		c->ordinary_lag = 0;
	}
	c->ordinary_inverse = inverse_of(p);
	c->ordinary_slice = slice_of(p, c->ordinary_inverse);
	c->ordinary_timed = 0;
	if (READ_ONCE(clock->floor)) {
		turn = turn_max(queue);
		if (c->ordinary_slice > turn)
			c->ordinary_slice = turn;
		c->ordinary_timed = 1;
		arm_budget(cpu, bpf_ktime_get_ns(), c->ordinary_slice);
	}
	/* Only the time of light threads runs so fast that a slice may be too long where many wait. */
	c->ordinary_max = clock->time + (c->ordinary_inverse > 1 << SW_INVERSE_SHIFT ? ahead_max(p, queue) : SW_AHEAD_MAX);
	c->ordinary_ran = p->se.sum_exec_runtime;
	c->ordinary_charged = c->ordinary_ran;
	c->ordinary_stopped = 0;
	c->ordinary_yields = 0;
	WRITE_ONCE(c->ordinary_since, scx_bpf_now());
	return 0;
}

/*
 * Charges the thread's control groups with what it has run since that was done last. Returns until when they allow no more; 0: they do.
 *
 * Context: stopping() or dispatch() of @cpu, its run queue's lock held.
 */
static __always_inline u64 charge_ordinary(struct task_struct *p, u32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 ran = p->se.sum_exec_runtime;

	if (!has_limit(group_of(p)) || !c->ordinary_since)
		return 0;
	ran -= c->ordinary_charged;
	c->ordinary_charged += ran;
	return charge_groups(p, ran);
}

/*
 * @cpu runs the thread no more. @preempted: it goes on. The kernel has just counted for how long it ran, so that no clock is
 * read, and if its slice is over it is queued at once: then the time is stored there. A task may wait for the CPU.
 *
 * Context: stopping() or dispatch() of @cpu, its run queue's lock held.
 */
static __always_inline void on_ordinary_stop(struct task_struct *p, u32 cpu, bool preempted)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 own, clock;

	if (!c->ordinary_since)
		return;
	charge_ordinary(p, cpu);
	WRITE_ONCE(c->ordinary_since, 0);
	own = c->ordinary_time + weighted(p->se.sum_exec_runtime - c->ordinary_ran, c->ordinary_inverse);
	if ((s64)(own - c->ordinary_max) > 0)
		own = c->ordinary_max;
	if (c->ordinary_yields) {
		/* Those that have waited since the clock's time are before it. */
		clock = READ_ONCE(clock_of(ordinary_queue(p, cpu))->time);
		if ((s64)(own - clock) < 1)
			own = clock + 1;
	}
	c->ordinary_time = own;
	if (preempted && !p->scx.slice)
		c->ordinary_stopped = p->pid;
	else
		scx_bpf_task_set_dsq_vtime(p, own);
}

/*
 * Whether @p has just stopped on @cpu and its virtual time is `ordinary_time` there, stored nowhere else. Once: later it may have
 * run elsewhere.
 *
 * Context: enqueue(), run queue's lock of @p held.
 */
static __always_inline bool take_stopped(struct task_struct *p, u32 cpu)
{
	struct sw_cpu *c = cpu_at(cpu);

	if (c->ordinary_stopped != p->pid)
		return false;
	c->ordinary_stopped = 0;
	return true;
}

/*
 * How far the thread that @cpu runs as ordinary work is after the clock of its queue by now.
 *
 * Context: any; without the run queue's lock the answer may be old.
 */
static __always_inline s64 lag_of_running(u32 cpu, u64 now)
{
	struct sw_cpu *c = cpu_at(cpu);
	u64 since = READ_ONCE(c->ordinary_since);

	return c->ordinary_lag + (now > since ? weighted(now - since, c->ordinary_inverse) : 0);
}

/*
 * How far the first thread of the queue is after its clock, ns; the most that can be if none waits.
 *
 * Context: dispatch().
 */
static __always_inline s64 first_lag(u64 queue, u64 clock)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(queue);

	return p ? (s64)(p->scx.dsq_vtime - clock) : SW_LAG_MAX;
}

/*
 * Whether a thread that has woken up and lags so far behind takes the CPU from the ordinary work there. What is itself behind goes
 * on: where threads that mostly sleep wake each other, they would otherwise interrupt each other all the time.
 *
 * Context: any. Reads without a lock: a wrong answer costs a kick.
 */
static __always_inline bool preempts_ordinary(s64 lag, u32 cpu, u64 now)
{
	s64 running;

	if (!READ_ONCE(cpu_at(cpu)->ordinary_since))
		return false;
	running = lag_of_running(cpu, now);
	return running > 0 && lag + (s64)SW_PREEMPTION_LAG < running;
}

#endif
