/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What the programs in the kernel and the program that loaded them exchange: events of the
 * trace, arguments of commands. src/kernel/event.rs reads the events, and a test there compares names and
 * numbers; src/kernel/machine.rs puts the arguments together, word by word.
 */
#ifndef SW_SHARED_H
#define SW_SHARED_H

/*
 * One fact, as it is put into the ring. All facts but SW_E_RUNNING, SW_E_TRIGGERED where an agent decides, and those of ordinary
 * work that is observed, are emitted under the core's lock, so their order is that of the decisions.
 */
struct sw_event {
	unsigned long long at;		/* monotonic clock, ns */
	unsigned long long value;	/* see the kinds */
	unsigned int task;		/* number of the core, 0: no task */
	unsigned short cpu;		/* SW_NO_CPU: none */
	unsigned short kind;
};

#define SW_NO_CPU 0xffff

enum sw_event_kind {
	SW_E_READY = 1,		/* the task's job may run; value: the deadline that it is scheduled by */
	SW_E_NEXT_JOB,		/* the job is finished; value: when the next is released */
	SW_E_LAST_JOB,		/* the job is finished, and no more will come */
	SW_E_WOKEN,		/* the task woke up */
	SW_E_BLOCKED,		/* the task went to sleep */
	SW_E_YIELDED,		/* the task gave up what was left of its budget */
	SW_E_SPENT,		/* the budget is used up, and the task waits */
	SW_E_REPLENISHED,	/* the budget is full again; value: the new deadline */
	SW_E_OVERRUN,		/* a task that is only warned has used up its budget */
	SW_E_ASSIGNED,		/* decided: the CPU should run the task */
	SW_E_RUNNING,		/* done: the CPU runs the task */
	SW_E_STOPPED,		/* done: the CPU runs the task no more; value: for how long it did, ns;
				 * under an agent less what SW_E_RAN said */
	SW_E_ENTERED,		/* the task takes part; value: its affinity */
	SW_E_LEFT,		/* the task takes no part any more */
	SW_E_AFFINITY,		/* the task may use other CPUs; value: its affinity */
	SW_E_DEMOTED,		/* it asked for CPUs that it was not admitted for; value: the affinity asked for */
	SW_E_NARROWED,		/* the task is held on some CPUs for a while; value: which, 0: no more */
	SW_E_PRIORITY,		/* the task has another priority; value: which */
	SW_E_CPU_LOST,		/* the CPU is gone; value: enum sw_why */
	SW_E_CPU_BACK,		/* the CPU is back; value: enum sw_why */
	/* Only where an agent decides. */
	SW_E_SLOT_FILLED,	/* the slot of the CPU has been filled with the task; 0: none */
	SW_E_DISPATCHED,	/* the CPU has looked for what to run; value: how long that took, ns */
	SW_E_DECIDED,		/* by the agent; value: ns from the event to the agent, and in the upper half to the decision */
	SW_E_CONCLUDED,		/* by the agent: all slots are filled */
	SW_E_PROBE,		/* nothing: to measure what an event costs, or only to wake the agent */
	SW_E_RAN,		/* the task has run for so long and goes on; value: ns, not in any SW_E_STOPPED */
	SW_E_TRIGGERED,		/* another task triggers it; value: see enum sw_trigger_value */
	SW_E_LOCKED,		/* the task holds a mutex; value: its number, as of the next three */
	SW_E_UNLOCKED,
	SW_E_AWAITS_MUTEX,	/* the task's job is blocked until the mutex passes to it */
	SW_E_SPINS,		/* the task's job keeps its CPU until the mutex passes to it */
	SW_E_RANK_PRIORITY,	/* what the task is scheduled by, by the protocols of mutexes; value: a priority */
	SW_E_RANK_DEADLINE,	/* value: a deadline, 0: before all others */
	SW_E_LOCK_REQUESTED,	/* of threads to an agent in their process, as the next; value: the number of a mutex */
	SW_E_UNLOCK_REQUESTED,	/* value: the numbers of mutexes, 12 bits each, and 1 << 63 if the job ends by that */
};

/* The value of SW_E_TRIGGERED: the number of the task that triggers, and these. */
enum sw_trigger_value {
	SW_TRIGGER_TAKEN_SHIFT = 32,	/* enum sw_taken; an agent adds it where one decides */
	SW_TRIGGER_AT_COMPLETION_SHIFT = 40,	/* 1: by the job that SW_E_NEXT_JOB or SW_E_LAST_JOB ended just before */
};

/* Why a CPU is gone. It is back when no reason is left. */
enum sw_why {
	SW_WHY_OFFLINE = 1,
	SW_WHY_TAKEN = 2,	/* by a task of a higher scheduling class */
	SW_WHY_BACKGROUND = 4,	/* pinned background work has waited long enough */
	SW_WHY_NOT_OURS = 8,	/* never emitted: it does not belong to the platform */
};

/* Arguments of the commands. All times are ns, instants are of the monotonic clock. */

struct sw_configure {
	unsigned long long cpus;	/* the CPUs of the platform */
	unsigned int order;		/* enum sw_order */
	unsigned int unused;
};

struct sw_cache {
	unsigned long long mates;	/* the CPUs that share a cache with this one */
	unsigned int cpu;
	unsigned int unused;
};

/* What becomes of a task that has used up its budget. */
enum sw_budgeting {
	SW_BUDGET_WAITS,	/* it waits for its next period: a thread that holds nothing inside the kernel */
	SW_BUDGET_WARNED,	/* it goes on, and an event says so */
	SW_BUDGET_LEAVES,	/* it is ordinary work until it has left the kernel, and waits from then on */
	SW_BUDGET_DEMOTES,	/* it is ordinary work until its next period */
	SW_BUDGET_SIGNALS,	/* the same, and user space is woken to say so */
};

/* When a job is released that another task's job triggers. */
#define SW_ON_TRIGGER (SW_NEVER - 1)

struct sw_admit {
	unsigned long long affinity;
	unsigned long long budget;	/* 0: none */
	unsigned long long period;
	unsigned long long deadline;	/* relative */
	unsigned int thread;
	unsigned int task;		/* number of the core */
	unsigned int priority;
	unsigned char follows;		/* its releases are known, see sw_next_job */
	unsigned char budgeting;	/* enum sw_budgeting */
	unsigned char start;		/* CPU + 1 where it is; 0: that does not matter */
	unsigned char awake;		/* answer: it wants to run */
};

/* By what rule triggers release jobs of a task; set before its first. */
struct sw_trigger_rule {
	unsigned int task;
	unsigned int places;		/* as in struct sw_triggers */
	unsigned int limit;
	unsigned int unused;
};

/* The protocol of a mutex; set before the run begins. */
struct sw_mutex_rule {
	unsigned long long floor;	/* as in struct sw_mutex, and so the next two */
	unsigned int ceiling;
	unsigned int protocol;		/* enum sw_protocol */
	unsigned int mutex;
	unsigned int unused;
};

/* What became of a request for a mutex. */
enum sw_request {
	SW_REQUEST_AGAIN,	/* the task is about to lose this CPU, and requests the mutex when it runs again */
	SW_REQUEST_HOLDS,
	SW_REQUEST_WAITS,	/* the task has no CPU until the mutex has passed to it, and requests it when it runs again */
	SW_REQUEST_SPINS,	/* until it is the holder */
};

struct sw_lock {
	unsigned int task;
	unsigned int mutex;
	unsigned int request;		/* answer: enum sw_request */
	unsigned int unused;
};

struct sw_job {
	unsigned long long release;	/* SW_NEVER: no more jobs come */
	unsigned int task;
	unsigned int sleeps;		/* the thread will sleep until the release, and wakes up by itself; answer, where a trigger
					 * is to release the job: the thread may sleep */
	unsigned int held;		/* answer: the task has to give up its CPU now */
	unsigned int triggers;		/* answer: how often the task was triggered so far */
	unsigned short targets[SW_SOURCES];
	unsigned char places[SW_SOURCES];	/* of this task among the sources of each; the rest of the targets are 0 */
	unsigned short unlocks[SW_UNLOCKS];	/* mutexes; the rest are 0 */
};

struct sw_change {
	unsigned long long value;
	unsigned int task;
	unsigned int unused;
};

/* So many in a call: most decisions concern one CPU or two, and what is handed over is copied twice. */
#define SW_SLOTS 4

/* What an agent has decided: a CPU is to run a task, 0: none, unless it has stopped since. */
struct sw_slot {
	unsigned short task;
	unsigned short cpu;
	unsigned int stops;
};

struct sw_slots {
	unsigned long long lost;	/* answer: how many events found no room so far */
	struct sw_slot slots[SW_SLOTS];
	unsigned int count;
	unsigned int unused;
};

/*
 * All but the task is answer. Where that is 0 @cpu says which CPU is asked about, and the answer in
 * @affinity is enum sw_why, or-ed.
 */
struct sw_snapshot {
	unsigned long long at;		/* when that was so: later reports are news */
	unsigned long long release;	/* of the next job, if next_job() named one */
	unsigned long long ran;		/* ns, since it was admitted */
	unsigned long long affinity;	/* if it takes part; otherwise what it asks for, 0: nothing */
	unsigned int task;
	unsigned int stops;		/* how often its slot was emptied by what it did */
	unsigned int finished;		/* how often it called next_job() */
	unsigned char awake;
	unsigned char present;
	unsigned char cpu;		/* CPU + 1 that runs it; 0: none */
	unsigned char unused;
};

/* What tick() answers: when it is due again at the latest. */
struct sw_tick {
	unsigned long long next;
};

/* Which command is called. */
enum sw_command_number {
	SW_COMMAND_CONFIGURE,
	SW_COMMAND_SET_CACHE,
	SW_COMMAND_ADMIT,
	SW_COMMAND_SETTLE,
	SW_COMMAND_FIRST_JOB,
	SW_COMMAND_NEXT_JOB,
	SW_COMMAND_AFFECT,
	SW_COMMAND_SET_TRIGGERS,
	SW_COMMAND_LOCK,
	SW_COMMAND_SET_MUTEX,
	SW_COMMAND_DISMISS,
	SW_COMMAND_APPROVE,
	SW_COMMAND_SET_PRIORITY,
	SW_COMMAND_SET_SERVER,
	SW_COMMAND_TICK,
	SW_COMMAND_ASSIGN,
	SW_COMMAND_HEARTBEAT,
	SW_COMMAND_SET_SLEEPING,
	SW_COMMAND_PROBE_RECORDS,
	SW_COMMAND_TASK_SNAPSHOT,
	SW_COMMAND_OBSERVE,
	SW_COMMAND_STOP_OBSERVING,
};

/* A call. The arguments are at its beginning: the verifier allows no pointer to what is further on. */
struct sw_command {
	union {
		struct sw_configure configure;
		struct sw_cache cache;
		struct sw_admit admit;
		struct sw_job job;
		struct sw_trigger_rule rule;
		struct sw_lock lock;
		struct sw_mutex_rule mutex;
		struct sw_change change;
		struct sw_slots slots;
		struct sw_snapshot snapshot;
		struct sw_tick tick;
	};
	unsigned long long number;	/* enum sw_command_number */
};

_Static_assert(sizeof(struct sw_command) == 64, "layout known outside");

#endif
