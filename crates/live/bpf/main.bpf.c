// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler in the kernel. Decisions are the core's (crates/kernel-core); here they are enacted.
 *
 * - shared.h: what user space and the programs exchange; trace.h: the ring of events
 * - lock.h, decide.h: the way of every decision; timers.h: budgets and releases
 * - managed.h: managed tasks; assigned.h: how a CPU comes by what it is to run; triggers.h: tasks that others trigger; mutexes.h: tasks
 *   that lock mutexes; excess.h: what a task does without a budget; awake.h: whether a thread wants to run, as the kernel has it;
 *   inherit.h, waited.h, loan_checks.h: what waits for a lock serves its holder
 * - queues.h, queue_ids.h: where tasks wait; background.h: ordinary work; fair.h: its order; groups.h: weights and limits of control
 *   groups; ordinary.h: how it comes to a CPU; observed.h: ordinary work that is only watched
 * - agent.h: where an agent in user space decides instead; hotplug.h: CPUs that come and go
 * - commands.h: the commands of user space; command_programs.h: the programs by which it calls them
 *
 * This file joins them.
 */
#define __SCX_ENUMS_BPF_H	/* the values of this header, known when it is compiled */
#define SW_GLOBAL
#include <scx/common.bpf.h>
#include "core/core.h"
#include "core/trigger.h"
#include "shared.h"

char _license[] SEC("license") = "GPL";

struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym;

#include "assigned.h"
#include "command_programs.h"
#include "hotplug.h"

/* Why the scheduler was unloaded; the kind is 0 as long as it is not. */
u64 exit_kind;
s64 exit_code;
char exit_reason[128], exit_message[512];

/*
 * @p wakes up: on which CPU it is to be queued.
 *
 * Context: the lock of no run queue is held.
 */
s32 BPF_STRUCT_OPS(shiftwork_select_cpu, struct task_struct *p, s32 prev_cpu, u64 flags)
{
	bool idles;
	s32 cpu;

	/* Where a managed task runs is decided when it is runnable. */
	if (number_of(p) || READ_ONCE(cpu_at(prev_cpu)->idles))
		return prev_cpu;
	/* A thread that is woken by one that is about to sleep is not kept on its CPU: it would run past what waits there. */
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, flags & ~(u64)SCX_WAKE_SYNC, &idles);
	return idles ? cpu : prev_cpu;
}

/*
 * @p waits.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_enqueue, struct task_struct *p, u64 flags)
{
	enqueue(p, number_of(p), flags);
}

/*
 * Lets @cpu run its assignment, or else ordinary work. Whether that is its assignment.
 *
 * Context: run queue's lock of @cpu held, and let go of while a task is moved here.
 */
static __always_inline bool dispatch(s32 cpu, struct task_struct *prev)
{
	u32 number = 0;
	bool limited;

	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = NULL;
	if (prev)
		number = number_of(prev);
	if (number && cpu_at(cpu)->pending & SW_PENDING_YIELD)
		on_yield(number, cpu);
	if (pull_assigned(cpu, prev, number))
		return true;
	if (cpu_at(cpu)->pending)
		settle_pending(cpu, prev);
	limited = prev && !number && !is_dying(prev) && charge_ordinary(prev, cpu);
	if (!(prev && !number && !limited && goes_on(prev, cpu)) && pull_background(cpu))
		return false;
	if (cpu_at(cpu)->until && (!prev || number)) {
		/* Nothing waits any more, and @prev is not ordinary work that goes on. */
		cpu_event(cpu, SW_WHY_BACKGROUND, false);
		if (pull_assigned(cpu, prev, number))
			return true;
	}
	if (prev && !limited && (!number || is_excess(prev, number))) {
		u32 current = READ_ONCE(cpu_at(cpu)->current);

		/* It ran as a task until now, and goes on without a callback. */
		if (number && current == number) {
			on_stop(number, cpu, true);
			on_excess_start(prev, number, cpu);
		} else if (!number && current) {
			/* It began to run as a task in the moment in which that was dismissed. */
			on_dismissed_stop(prev, current, cpu);
		}
		on_ordinary_stop(prev, cpu, false);
		on_ordinary_start(prev, cpu);
		scx_bpf_task_set_slice(prev, cpu_at(cpu)->ordinary_slice);
	}
	/* No callback follows if @prev goes on, or if the CPU idles. */
	recheck_assignment(cpu);
	return false;
}

/*
 * @cpu looks for what to run.
 *
 * Context: as dispatch().
 */
void BPF_STRUCT_OPS(shiftwork_dispatch, s32 cpu, struct task_struct *prev)
{
	u64 now;

	serve_softirqs(cpu);
	if (!agent_decides) {
		dispatch(cpu, prev);
		return;
	}
	now = bpf_ktime_get_ns();
	if (dispatch(cpu, prev))
		emit_event(SW_E_DISPATCHED, now, 0, cpu, bpf_ktime_get_ns() - now);
	/* Where the kernel has no timers nothing else checks the heartbeat. */
	check_heartbeat(now);
}

/*
 * @p woke up, or is back on a run queue.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_runnable, struct task_struct *p, u64 flags)
{
	u32 i;

	change_load(p, true);
	if (READ_ONCE(waiting))
		on_wait_over(p);
	i = number_of(p);
	if (i)
		on_wakeup(p, i);
	else if (flags & SCX_ENQ_WAKEUP)
		emit_observed(p, SW_E_WOKEN);
}

/*
 * @p runs.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u32 i = number_of(p);

	serve_softirqs(cpu);
	if (i && !is_excess(p, i)) {
		on_start(p, i, cpu);
		recheck_number(p, i, cpu);
		return;
	}
	if (i)
		on_excess_start(p, i, cpu);
	on_ordinary_start(p, cpu);
	on_observed_start(p);
	/* That of a light thread is shorter. If it was a managed task when it was moved here, it has no end. */
	if (p->scx.slice > cpu_at(cpu)->ordinary_slice)
		scx_bpf_task_set_slice(p, cpu_at(cpu)->ordinary_slice);
	/* Its group may have used up all since it was queued. */
	if (!i && limited_until(p))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	recheck_assignment(cpu);
}

/*
 * @p runs no more; @runnable: it would go on.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u32 current = READ_ONCE(cpu_at(cpu)->current);

	on_excess_stop(cpu);
	if (current && known_number(p) == current) {
		/* Where dispatch() was not called. */
		if (cpu_at(cpu)->pending & SW_PENDING_YIELD)
			on_yield(number_of(p), cpu);
		on_stop(current, cpu, runnable);
		return;
	}
	if (current)
		on_abandoned(cpu);
	on_ordinary_stop(p, cpu, runnable);
	on_observed_stop(p, cpu);
}

/*
 * @p went to sleep, or leaves its run queue for a change.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_quiescent, struct task_struct *p, u64 flags)
{
	u32 i = number_of(p);

	change_load(p, false);
	/* A change of its affinity takes a task off the queues too, and it is runnable all the time. */
	if (!(flags & SCX_DEQ_SLEEP))
		return;
	if (i) {
		managed_at(i)->outside = 0;
		if (!p->pi_blocked_on || !on_wait(p, i))
			on_block(p, i);
	} else {
		emit_observed(p, SW_E_BLOCKED);
	}
}

/*
 * @from yields.
 *
 * Context: callback with the run queue's lock of @from held, interrupts off.
 */
bool BPF_STRUCT_OPS(shiftwork_yield, struct task_struct *from, struct task_struct *to)
{
	u32 i = number_of(from);

	scx_bpf_task_set_slice(from, 0);
	cpu_at(scx_bpf_task_cpu(from))->ordinary_yields = 1;
	if (i)
		note_yield(i, scx_bpf_task_cpu(from));
	return false;
}

/*
 * A tick of the CPU that runs @p. Softirqs that it interrupts end soon, whatever waits by then: serving them takes until the next
 * tick at most. What waits is left to ksoftirqd, without a word if that has been woken before. So the CPU looks what to run after
 * these, and has them served: see serve_softirqs().
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_tick, struct task_struct *p)
{
	if (interrupts_softirqs())
		scx_bpf_task_set_slice(p, 0);
}

/*
 * The kernel lets @p use these CPUs now.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	u32 own = own_number(p);

	check_loan_to(p, own);
	if (!own)
		return;
	on_affinity_change(own, p->cpus_mask.bits[0], mask->bits[0]);
	/* A task that was held where it is, see is_held_elsewhere(), gives way to what the agent has decided. */
	if (agent_decides && scx_bpf_task_running(p))
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

/*
 * It changes to another scheduling class, or ends, which shiftwork_exit_task() handles next.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_disable, struct task_struct *p)
{
	u32 i = number_of(p);
	s32 cpu;

	if (i)
		on_class_change(p, i);
	if (READ_ONCE(waiting))
		on_wait_over(p);
	/* A task that changes to a higher class while it runs keeps its CPU without a switch. */
	if (scx_bpf_task_running(p)) {
		cpu = scx_bpf_task_cpu(p);
		cpu_event(cpu, SW_WHY_TAKEN, true);
		if (cpu == bpf_get_smp_processor_id())
			scx_bpf_reenqueue_local_from_anywhere();
	}
}

/*
 * @p ends.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	u32 own = own_number(p);

	check_loan_to(p, own);
	if (own) {
		leave(p, own);
		end_locks(own);
	}
	on_observed_exit(p);
}

/*
 * These two come too late, see set_offline(); without them the kernel would end the scheduler.
 *
 * Context: CPU hotplug, may sleep.
 */
void BPF_STRUCT_OPS(shiftwork_cpu_online, s32 cpu)
{
}

/*
 * See shiftwork_cpu_online().
 *
 * Context: CPU hotplug, may sleep.
 */
void BPF_STRUCT_OPS(shiftwork_cpu_offline, s32 cpu)
{
}

/*
 * Before a step. @target: where all steps lead.
 *
 * Context: tracepoint in the thread that takes the CPU down or up.
 */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(shiftwork_cpuhp_enter, unsigned int cpu, int target, int step, void *function)
{
	if (changes_activity(step) && target < step)
		set_offline(cpu, true);
	return 0;
}

/*
 * After a step, upwards if @state is @step; with another @result than 0 it was not taken.
 *
 * Context: tracepoint in the thread that takes the CPU down or up.
 */
SEC("tp_btf/cpuhp_exit")
int BPF_PROG(shiftwork_cpuhp_exit, unsigned int cpu, int state, int step, int result)
{
	if (changes_activity(step) && (state == step) == !result)
		set_offline(cpu, false);
	return 0;
}

/*
 * Real-time and deadline tasks, but not the kernel's stopper, which is gone before a decision could be carried out.
 *
 * Context: any.
 */
static __always_inline bool ranks_above_ext(const struct task_struct *p)
{
	return p->prio < SW_PRIO_ORDINARY && !((p->flags & PF_KTHREAD) && p->rt_priority == 99);
}

/*
 * At every switch: whether a higher class has the CPU.
 *
 * Context: tracepoint on the CPU that switches, its run queue's lock held, interrupts off. Takes the core's lock.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(shiftwork_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	bool taken = ranks_above_ext(next);
	u32 cpu = bpf_get_smp_processor_id();
	struct sw_cpu *c = cpu_at(cpu);

	if (cpu < SW_CPUS)
		c->idles = !next->pid;
	if (cpu < SW_CPUS && c->pending & SW_PENDING_HOTPLUG)
		follow_hotplug(cpu);
	/* CPUs that are not in the platform are not decided about, the agent's own among them. */
	if (cpu >= SW_CPUS || READ_ONCE(c->gone) & SW_WHY_NOT_OURS) {
		check_agent_exit(prev);
		if (cpu < SW_CPUS && taken && !ranks_above_ext(prev))
			scx_bpf_reenqueue_local_from_anywhere();
		return 0;
	}
	if (taken == !!(READ_ONCE(c->gone) & SW_WHY_TAKEN))
		return 0;
	cpu_event(cpu, SW_WHY_TAKEN, taken);
	/* The task that it preempted is at the head of the local queue, where no other CPU may take it. */
	if (taken)
		scx_bpf_reenqueue_local_from_anywhere();
	return 0;
}

/*
 * @p becomes ordinary work: it has had as much as others.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off.
 */
void BPF_STRUCT_OPS(shiftwork_enable, struct task_struct *p)
{
	/* If it has had the CPU all the time, no switch follows that says so; dispatch() does. */
	if (scx_bpf_task_running(p)) {
		__sync_fetch_and_or(&cpu_at(scx_bpf_task_cpu(p))->pending, SW_PENDING_RETURN);
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
	}
	scx_bpf_task_set_dsq_vtime(p, READ_ONCE(clock_of(ordinary_queue(p, scx_bpf_task_cpu(p)))->time));
}

/*
 * Creates all queues and starts the timers.
 *
 * Context: may sleep.
 */
s32 BPF_STRUCT_OPS_SLEEPABLE(shiftwork_init)
{
	s32 error;
	u32 k;

	bpf_for(k, 0, SW_TASKS) {
		error = scx_bpf_create_dsq(SW_QUEUE_OF_TASK(k), -1);
		if (error)
			return error;
	}
	bpf_for(k, 0, cpu_count) {
		error = scx_bpf_create_dsq(SW_QUEUE_OF_CPU(k), -1);
		if (error)
			return error;
	}
	error = scx_bpf_create_dsq(SW_QUEUE_OF_ALL, -1);
	if (error)
		return error;
	error = scx_bpf_create_dsq(SW_QUEUE_OF_EXCESS, -1);
	if (error)
		return error;
	error = scx_bpf_create_dsq(SW_QUEUE_OF_LIMITED, -1);
	if (error)
		return error;
	start_timers(cpu_count);
	arm(SW_TIMER_BACKGROUND, bpf_ktime_get_ns() + SW_CHECK_INTERVAL);
	return 0;
}

/*
 * Into the kernel's dump of a scheduler that it ends, or that sysrq-D asks for: what is known of a task, taking part or not.
 *
 * Context: interrupts off, run queue's lock of @p held.
 */
void BPF_STRUCT_OPS(shiftwork_dump_task, struct scx_dump_ctx *context, struct task_struct *p)
{
	u32 i = known_number(p);
	const struct sw_managed *m = managed_at(i);
	const struct sw_task *t = sw_task(&core, i);

	if (!i)
		return;
	scx_bpf_dump("task %u: state %u on %u awake %u queued %u demoted %u outside %u excess on %u", i, t->state,
		     t->on, t->awake, m->queued, m->demoted, m->outside, m->excess_on);
	scx_bpf_dump(" kept %u waits %u for mutex %u holds mutex %u", t->kept, t->waits, sw_locks(&mutexes, i)->awaited,
		     sw_locks(&mutexes, i)->held);
	scx_bpf_dump(" budget %llu left %lld rank %llu deadline %llu affinity %llx narrowed %llx", t->budget,
		     t->left, t->rank, t->deadline, t->affinity, t->narrowed);
}

/*
 * The scheduler is unloaded: keeps the reason for user space.
 *
 * Context: task context, no locks held.
 */
void BPF_STRUCT_OPS(shiftwork_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_reason, sizeof(exit_reason), info->reason);
	bpf_probe_read_kernel_str(exit_message, sizeof(exit_message), info->msg);
	exit_code = info->exit_code;
	exit_kind = info->kind;
}

SCX_OPS_DEFINE(shiftwork,
	       .select_cpu = (void *)shiftwork_select_cpu,
	       .enqueue = (void *)shiftwork_enqueue,
	       .dispatch = (void *)shiftwork_dispatch,
	       .runnable = (void *)shiftwork_runnable,
	       .running = (void *)shiftwork_running,
	       .stopping = (void *)shiftwork_stopping,
	       .quiescent = (void *)shiftwork_quiescent,
	       .tick = (void *)shiftwork_tick,
	       .yield = (void *)shiftwork_yield,
	       .set_cpumask = (void *)shiftwork_set_cpumask,
	       .enable = (void *)shiftwork_enable,
	       .disable = (void *)shiftwork_disable,
	       .exit_task = (void *)shiftwork_exit_task,
	       .cpu_online = (void *)shiftwork_cpu_online,
	       .cpu_offline = (void *)shiftwork_cpu_offline,
	       .dump_task = (void *)shiftwork_dump_task,
	       .init = (void *)shiftwork_init,
	       .exit = (void *)shiftwork_exit,
	       .flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED |
			SCX_OPS_ALLOW_QUEUED_WAKEUP,
	       .timeout_ms = 30000,
	       .name = "shiftwork");
