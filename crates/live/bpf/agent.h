/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where an agent in user space decides. What happens is reported to it through the ring; it answers with
 * assign(), which fills slots: what each CPU is to run. A task that finishes a job, or goes to sleep,
 * empties its slot itself and counts that as a stop. A slot is only filled with a task that has not stopped
 * since the agent decided: counters that only grow, so that nothing can race.
 *
 * An agent without a heartbeat for SW_HEARTBEAT_TIMEOUT counts as dead: the scheduler ends, and all tasks are the kernel's own again.
 * So they are at once when it dies: some of them may have to run just to end with it.
 */
#ifndef SW_AGENT_H
#define SW_AGENT_H

#include "decide.h"

#define SW_HEARTBEAT_TIMEOUT 150000000ULL
#define SW_HEARTBEAT_INTERVAL 50000000ULL

/* Where the agent lives, plus one: ordinary work that may go elsewhere does. */
const volatile u32 agent_cpu;

/* Last heartbeat or command of the agent; 0 before the first. */
u64 last_heartbeat;
/* Its thread; 0 if it has not begun, or has said that it ends. */
u32 agent_thread;

/* Context: any; takes no lock. */
static __always_inline void check_heartbeat(u64 now)
{
	u64 last = READ_ONCE(last_heartbeat);

	if (agent_decides && last && now > last && now - last > SW_HEARTBEAT_TIMEOUT)
		scx_bpf_error("the agent sent no heartbeat for %llu ms", (now - last) / 1000000);
}

/*
 * At a switch away from @prev.
 *
 * Context: at a switch, run queue's lock held, interrupts off.
 */
static __always_inline void check_agent_exit(const struct task_struct *prev)
{
	if (agent_decides && prev->flags & PF_EXITING && prev->pid == READ_ONCE(agent_thread))
		scx_bpf_error("the agent has ended");
}

/*
 * The task runs no further without a new decision. Returns its CPU if it had one.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 stop_task_locked(u32 i)
{
	u32 on = sw_task(&core, i)->on;

	managed_at(i)->stops++;
	return on ? empty_slot_locked(on - 1) : 0;
}

/*
 * @p woke up: the agent decides.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off. Takes the core's lock.
 */
static __always_inline void agent_on_wakeup(struct task_struct *p, u32 i)
{
	u64 now = core_lock_now();

	sw_task(&core, i)->awake = 1;
	emit_for_agent(SW_E_WOKEN, now, i, scx_bpf_task_cpu(p), 0);
	commit_and_unlock(now, 0, 0);
}

/*
 * @p went to sleep: its slot is emptied and the agent decides.
 *
 * Context: callback with the run queue's lock of @p held, interrupts off. Takes the core's lock.
 */
static __always_inline void agent_on_block(struct task_struct *p, u32 i)
{
	u32 cpu = scx_bpf_task_cpu(p);
	u64 now = core_lock_now(), changed;

	sw_task(&core, i)->awake = 0;
	emit_for_agent(SW_E_BLOCKED, now, i, cpu, 0);
	changed = stop_task_locked(i);
	/* The CPU that it leaves looks for another by itself. */
	commit_and_unlock(now, changed, sw_bit(cpu));
}

/*
 * @cpu runs the task no more.
 *
 * Context: callback with the run queue's lock of the task held, interrupts off. Takes the core's lock.
 */
static __always_inline void agent_on_stop(u32 i, u32 cpu)
{
	u64 now = core_lock_now(), ran = take_elapsed_locked(i, cpu, now);

	managed_at(i)->ran += ran;
	clear_current_locked(i, cpu, now, ran);
	commit_and_unlock(now, 0, 0);
}

/*
 * The task gives up what is left of its budget.
 *
 * Context: callback with the run queue's lock of the task held, interrupts off. Takes the core's lock.
 */
static __always_inline void agent_on_yield(u32 i, u32 cpu)
{
	u64 now = core_lock_now(), ran = take_elapsed_locked(i, cpu, now), changed;

	managed_at(i)->ran += ran;
	emit_event(SW_E_RAN, now, i, cpu, ran);
	emit_for_agent(SW_E_YIELDED, now, i, cpu, 0);
	changed = stop_task_locked(i);
	commit_and_unlock(now, changed, sw_bit(cpu));
}

/*
 * The calling thread's job is finished; with interrupts off.
 *
 * Context: interrupts off. Takes the core's lock.
 */
static __always_inline void agent_next_job(u32 i, u32 cpu, u64 release)
{
	struct sw_managed *m = managed_at(i);
	u64 now = core_lock_now(), ran = take_elapsed_locked(i, cpu, now), changed;

	m->ran += ran;
	m->finished++;
	m->release = release;
	emit_event(SW_E_RAN, now, i, cpu, ran);
	emit_for_agent(SW_E_NEXT_JOB, now, i, cpu, release);
	changed = stop_task_locked(i);
	commit_and_unlock(now, changed, sw_bit(cpu));
}

/*
 * The slot is filled as far as that is still what the agent wants. Returns its CPU.
 *
 * Context: core's lock held, interrupts off.
 */
static __always_inline u64 fill_slot_locked(u64 now, u32 cpu, u32 i, u32 stops)
{
	struct sw_task *t = sw_task(&core, i);

	if (cpu >= SW_CPUS)
		return 0;
	empty_slot_locked(cpu);
	if (i && i <= SW_TASKS && t->state != SW_ABSENT && managed_at(i)->stops == stops &&
	    !cpu_at(cpu)->gone) {
		if (t->on)
			empty_slot_locked(t->on - 1);
		*sw_runner(&core, cpu) = i;
		t->on = cpu + 1;
		t->last = cpu + 1;
	}
	emit_event(SW_E_SLOT_FILLED, now, i, cpu, 0);
	return sw_bit(cpu);
}

/*
 * The agent's decision: fills slots, and kicks the CPUs with a changed slot.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int assign(struct sw_slots *a)
{
	u64 changed = 0, now;
	unsigned long flags;
	u32 k;

	bpf_local_irq_save(&flags);
	now = core_lock_now();
	/* Unrolled: what is handed over can only be read at known places. */
#pragma unroll
	for (k = 0; k < SW_SLOTS; k++)
		if (k < a->count)
			changed |= fill_slot_locked(now, a->slots[k].cpu, a->slots[k].task, a->slots[k].stops);
	WRITE_ONCE(last_heartbeat, now);
	a->lost = events_lost;
	commit_and_unlock(now, changed, 0);
	bpf_local_irq_restore(&flags);
	return 0;
}

/*
 * The agent is alive, or with another word than 0 about to end as it should. The answer is how many events
 * found no room so far.
 *
 * Context: task context, no locks held (BPF_PROG_RUN).
 */
static __always_inline int heartbeat(struct sw_tick *a)
{
	WRITE_ONCE(agent_thread, a->next ? 0 : bpf_get_current_task_btf()->pid);
	WRITE_ONCE(last_heartbeat, bpf_ktime_get_ns());
	a->next = events_lost;
	return 0;
}

#define SW_PROBES 64

/*
 * Emits SW_PROBES events that carry nothing. The answer is how long that took, ns.
 *
 * Context: task context, no locks held (BPF_PROG_RUN).
 */
static __always_inline int probe_records(struct sw_tick *a)
{
	u64 before = bpf_ktime_get_ns();
	u32 k;

	bpf_for(k, 0, SW_PROBES)
		emit_event(SW_E_PROBE, before, 0, SW_NO_CPU, 0);
	a->next = bpf_ktime_get_ns() - before;
	return 0;
}

/*
 * The agent is going to sleep, and looks at the ring once more after this; or it is awake and need not
 * be woken.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Full memory barrier: the agent reads the ring once more after it; pairs
 * with emit_for_agent().
 */
static __always_inline int set_sleeping(struct sw_tick *a)
{
	__sync_lock_test_and_set(&agent_sleeps, (u32)a->next);
	return 0;
}

/*
 * Why a CPU is gone, for an agent that has missed reports.
 *
 * Context: task context. Takes the core's lock.
 */
static __always_inline void cpu_snapshot(struct sw_snapshot *a)
{
	unsigned long flags;

	bpf_local_irq_save(&flags);
	a->at = core_lock_now();
	a->affinity = cpu_at(a->cpu)->gone;
	core_unlock();
	bpf_local_irq_restore(&flags);
}

/*
 * How things stand with a task or a CPU, for an agent that has missed reports.
 *
 * Context: task context, no locks held (BPF_PROG_RUN). Takes the core's lock.
 */
static __always_inline int task_snapshot(struct sw_snapshot *a)
{
	u32 i = a->task, on;
	const struct sw_task *t;
	struct sw_managed *m;
	unsigned long flags;

	if (!i) {
		cpu_snapshot(a);
		return 0;
	}
	if (i > SW_TASKS)
		return -ERANGE;
	t = sw_task(&core, i);
	m = managed_at(i);
	bpf_local_irq_save(&flags);
	a->at = core_lock_now();
	on = t->on;
	a->stops = m->stops;
	a->finished = m->finished;
	a->release = m->release;
	a->ran = m->ran;
	a->awake = t->awake;
	a->present = t->state != SW_ABSENT;
	if (a->present)
		a->affinity = t->affinity;
	else
		a->affinity = m->demoted ? m->asked : 0;
	a->cpu = on && cpu_at(on - 1)->current == i ? on : 0;
	core_unlock();
	bpf_local_irq_restore(&flags);
	return 0;
}

#endif
