/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups, for ordinary work: their weights (`cpu.weight`, `cpu.shares`) and limits (`cpu.max`). The kernel keeps both in its
 * `struct task_group` whatever schedules, and they are read from there whenever they are needed.
 *
 * Weights: a thread has that part of its group's weight which its own weight is of the load of the group, and so on for
 * the group in its parent. The load of a group is the sum of the weights of its runnable threads and of the groups in it that have
 * any. Managed threads count as long as they are runnable, for a part of their time.
 *
 * Limits: what threads run as ordinary work is taken from what their group, and each around it, has left in its period. Where
 * nothing is left they wait (queues.h) for the end of the period. What a group has overdrawn by then it has less in
 * the next. What managed tasks run by their budgets is not counted, as the time of SCHED_DEADLINE is not.
 *
 * The root, groups further down than SW_DEPTH, and those that are given a number from SW_GROUPS on have neither.
 */
#ifndef SW_GROUPS_H
#define SW_GROUPS_H

#include "excess.h"

#define SW_GROUPS 4096
#define SW_DEPTH 16
/* Weights of nice values 0 and -10, and of groups on the same scale. */
#define SW_WEIGHT_DEFAULT 100
#define SW_WEIGHT_MAX 932
/* Bits by which `shares` of the kernel, 1024 << 10 for the default weight, are more than weights, once these are multiplied. */
#define SW_SHARES_SHIFT 20
/* `quota` of the kernel for a group without a limit. */
#define SW_NO_QUOTA (~0ULL)
/* The least that the kernel takes for a period, ns. */
#define SW_PERIOD_MIN 1000000ULL
/* A group that nothing ran in for so many periods has what it may save. */
#define SW_PERIODS_MAX 64
/* How often `long_ago` is renewed, ns: whatever waits does so for at most twice as long. */
#define SW_PATIENCE 5000000000ULL
/* The most that an inverse weight can be, and the least: that of SW_WEIGHT_MAX. Bits after the point: SW_INVERSE_SHIFT. */
#define SW_INVERSE_SHIFT 16
#define SW_INVERSE_MAX (1ULL << 40)
#define SW_INVERSE_MIN (((u64)SW_WEIGHT_DEFAULT << SW_INVERSE_SHIFT) / SW_WEIGHT_MAX)

/* A group, by the number that the kernel gives its controller. All are changed by atomic instructions. */
struct sw_group {
	s64 load;
	s64 given;		/* its part of its parent's load */
	s64 left;		/* what its threads may run in this period, ns; negative: overdrawn */
	u64 ends;		/* when the period ends */
} groups[SW_GROUPS];

/* CPUs of the machine. */
const volatile u32 cpu_count = 1;
/* The load of the root, by the CPUs on which it changed. */
s64 root_loads[SW_CPUS];
/* Their sum as of late, in threads of default weight for each CPU. */
s64 crowd;
/* The kernel's jiffies, some seconds ago: whatever has waited since before that runs in spite of limits. */
u64 long_ago;

/*
 * The group whose weight and limit apply to its threads, or NULL for the root.
 *
 * Context: run queue's lock of a thread of the group held, or RCU.
 */
static __always_inline struct task_group *not_root(struct task_group *group)
{
	return group && group->parent && group->css.id > 1 && group->css.id < SW_GROUPS ? group : NULL;
}

/*
 * The group that the thread is in, or NULL for the root.
 *
 * Context: run queue's lock of @p held, or @p in a queue that is iterated.
 */
static __always_inline struct task_group *group_of(struct task_struct *p)
{
	return bpf_core_field_exists(p->sched_task_group) ? not_root(p->sched_task_group) : NULL;
}

/*
 * What is known of the group.
 *
 * Context: as not_root().
 */
static __always_inline struct sw_group *known_group(struct task_group *group)
{
	u64 id = group->css.id;

	SW_HIDE(id);
	return &groups[id & (SW_GROUPS - 1)];
}

/*
 * The weight of the group.
 *
 * Context: as not_root().
 */
static __always_inline s64 group_weight(struct task_group *group)
{
	s64 weight = SW_WEIGHT_DEFAULT;

	if (bpf_core_field_exists(group->shares))
		weight = group->shares * SW_WEIGHT_DEFAULT >> SW_SHARES_SHIFT;
	return weight > 0 ? weight : 1;
}

/*
 * Adds to the load of the thread's group, and to those around it what follows from that. Returns the inverse weight @inverse
 * of the thread within its group as one among all threads; with 0 it is not asked for.
 *
 * A group gives its weight to its parent as long as it has load. Of two CPUs that change this at once the last to exchange
 * `given` looks at the load after that.
 *
 * Context: run queue's lock of @p held, interrupts off.
 */
SW_FN u64 walk_groups(struct task_struct *p __arg_trusted, s64 change, u64 inverse)
{
	struct task_group *group = group_of(p);
	u32 level, k;

	bpf_for(level, 0, SW_DEPTH) {
		struct sw_group *known;
		s64 weight, load;

		if (!group || !(change || inverse))
			break;
		known = known_group(group);
		weight = group_weight(group);
		if (change)
			__sync_fetch_and_add(&known->load, change);
		change = 0;
		SW_ROLLED
		for (k = 0; k < 3; k++) {
			s64 gives = READ_ONCE(known->load) > 0 ? weight : 0;

			if (READ_ONCE(known->given) == gives)
				break;
			/* Full memory barrier. */
			change += gives - __sync_lock_test_and_set(&known->given, gives);
		}
		load = READ_ONCE(known->load);
		if (inverse && load > 0) {
			inverse = inverse * (u64)load / (u64)weight;
			if (inverse > SW_INVERSE_MAX)
				inverse = SW_INVERSE_MAX;
		}
		group = not_root(group->parent);
	}
	if (change)
		root_loads[bpf_get_smp_processor_id() & (SW_CPUS - 1)] += change;
	return inverse;
}

/*
 * The thread is one of the runnable ones from now on, or no more: the kernel pairs these calls, and changes neither its group nor its
 * weight in between.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
static __always_inline void change_load(struct task_struct *p, bool is_runnable)
{
	s64 weight = p->scx.weight;

	if (!is_runnable)
		weight = -weight;
	if (group_of(p))
		walk_groups(p, weight, 0);
	else
		root_loads[bpf_get_smp_processor_id() & (SW_CPUS - 1)] += weight;
}

/*
 * Whether the group or one around it has a limit, as the kernel keeps it with each.
 *
 * Context: as not_root().
 */
static __always_inline bool has_limit(struct task_group *group)
{
	return group && bpf_core_field_exists(group->cfs_bandwidth) &&
	       group->cfs_bandwidth.hierarchical_quota != (s64)SW_NO_QUOTA;
}

/*
 * Begins the group's next period if this one is over.
 *
 * Context: as not_root().
 */
static __always_inline void begin_period(struct sw_group *known, struct task_group *group, s64 quota, u64 now)
{
	u64 ends = READ_ONCE(known->ends), period = group->cfs_bandwidth.period, periods;
	s64 left, full, wanted;

	if ((s64)(now - ends) < 0)
		return;
	if (period < SW_PERIOD_MIN)
		period = SW_PERIOD_MIN;
	periods = (now - ends) / period + 1;
	if (__sync_val_compare_and_swap(&known->ends, ends, ends + periods * period) != ends)
		return;
	full = quota;
	if (bpf_core_field_exists(group->cfs_bandwidth.burst))
		full += group->cfs_bandwidth.burst;
	left = READ_ONCE(known->left);
	wanted = periods < SW_PERIODS_MAX ? left + (s64)periods * quota : full;
	if (wanted > full)
		wanted = full;
	__sync_fetch_and_add(&known->left, wanted - left);
}

/*
 * Takes @ran, ns, from what the groups around the thread have left. When all of them have something left again, on the monotonic
 * clock, if one has not; otherwise 0. For a thread with a limit.
 *
 * Context: run queue's lock of @p held, or @p in a queue that is iterated.
 */
SW_FN u64 charge_groups(struct task_struct *p __arg_trusted, u64 ran)
{
	struct task_group *group = group_of(p);
	u64 until = 0, now = 0;
	u32 level;

	bpf_for(level, 0, SW_DEPTH) {
		struct sw_group *known;
		u64 quota;

		if (!group)
			break;
		quota = group->cfs_bandwidth.quota;
		if (quota != SW_NO_QUOTA) {
			known = known_group(group);
			if (!now)
				now = bpf_ktime_get_ns();
			begin_period(known, group, quota, now);
			if (ran)
				__sync_fetch_and_sub(&known->left, ran);
			if (READ_ONCE(known->left) <= 0 && READ_ONCE(known->ends) > until)
				until = READ_ONCE(known->ends);
		}
		group = not_root(group->parent);
	}
	return until;
}

/*
 * Until when the thread, which waits, may not run as ordinary work; 0: it may. One that ends may, and one that has waited for
 * so long that the kernel would end the scheduler before long.
 *
 * Context: run queue's lock of @p held, or @p in a queue that is iterated.
 */
static __always_inline u64 limited_until(struct task_struct *p)
{
	if (!has_limit(group_of(p)) || is_dying(p) || (s64)(p->scx.runnable_at - READ_ONCE(long_ago)) < 0)
		return 0;
	return charge_groups(p, 0);
}

/*
 * Sums the load of the root. @remembers: once in some seconds, see `long_ago`.
 *
 * Context: timer or tick().
 */
static __always_inline void survey_groups(u64 now)
{
	static u64 remembered, remembered_at;
	s64 sum = 0;
	u32 k;

	bpf_for(k, 0, cpu_count)
		sum += READ_ONCE(root_loads[k & (SW_CPUS - 1)]);
	WRITE_ONCE(crowd, sum > 0 ? (u64)sum / (SW_WEIGHT_DEFAULT * cpu_count) : 0);
	if (now - remembered_at < SW_PATIENCE)
		return;
	WRITE_ONCE(long_ago, remembered);
	remembered = bpf_jiffies64();
	remembered_at = now;
}

#endif
