/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CPU goes offline and comes back while a task waits for it, which the kernel may wait for in turn: a reader of RCU that was
 * preempted.
 *
 * Checked: the kernel is never stuck on the way down, and at the end a task that is awake runs. One task, which may use CPU 1
 * alone, or CPU 0 as well; CPU 1 goes and comes back.
 *
 * What stands for what, in crates/live/bpf:
 *	set_offline		the function of that name in hotplug.h, before the CPU becomes inactive, and after it is active again
 *	follow			follow_hotplug() in hotplug.h: the core decides, at some later switch or look of that CPU
 *	queue_for, enqueue	the functions of that name in queues.h
 *	checks			serve_background() in background.h, requeue_all_misplaced() in queues.h
 *	cpu			dispatch() in main.bpf.c
 *
 * Of the kernel (kernel/cpu.c, sched_cpu_deactivate() in kernel/sched/core.c): a CPU that is inactive asks for no task, but runs
 * what is in its local queue; before it goes all readers of RCU have to be through; a task in the local queue of a CPU that has
 * gone is moved on, to any CPU. Assignments and kicks are those of assign.pml: a CPU that a task is assigned to looks for it.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
mtype = { RUNS, BETWEEN, OWN, LOCAL, MOVED };	/* where the task is; between callback and insertion it is in no queue */

bit takes = 1;		/* of CPU 1, for the kernel */
bit gone;		/* it is down */
bit offline;		/* of CPU 1, in cpus_offline */
bit pending;		/* the core does not know that yet */
byte on = 2;		/* CPU + 1 that the task is assigned to; 0: none */
mtype where = RUNS;
byte at = 1;		/* the CPU of its run queue */
bit reads;		/* it is a reader of RCU */
bit wide;		/* it may use CPU 0 as well */
byte left = 3;
byte passes;		/* how often all queues are still to be checked */
bit done;		/* CPU 1 is back */

inline decide()
{
	/* lose_cpu_locked() or regain_cpu_locked(): the task is assigned where it may run. */
	if
	:: offline && wide -> on = 1
	:: offline && !wide -> on = 0
	:: !offline -> on = 2
	:: !offline && wide -> on = 1
	fi
}

inline set_offline(is)
{
	offline = is;
	atomic { pending = 1; passes = 2 }
}

/* However late: the kernel's thread that goes to sleep is the last that can be. */
proctype follow()
{
end:	do
	:: atomic { pending -> pending = 0; decide() }
	od
}

/* In queues.h: where the task belongs, by what is known of CPU 1. */
#define belongs(knows_offline) (knows_offline && at == 1 -> LOCAL : (knows_offline && !wide -> MOVED : OWN))

/* The thread is preempted, and inserted after the callback. */
proctype thread()
{
	bit knows;
end:	do
	:: atomic { left && where == RUNS && !gone -> left--; where = BETWEEN;
		if
		:: reads = 1
		:: skip
		fi };
		knows = offline;
		where = belongs(knows);
		knows = 0
	od
}

/* The timer: at once after a change, every 100 ms after that. Between two of them each callback that had begun ends. */
proctype checks()
{
end:	do
#ifndef NO_REQUEUE
	:: atomic { passes && where != BETWEEN -> passes-- };
		d_step {
			if
			:: where == OWN -> where = belongs(offline)
			:: else
			fi
		}
	/* The first one does not wait for callbacks. */
	:: atomic { passes == 2 -> passes = 1 };
		d_step {
			if
			:: where == OWN -> where = belongs(offline)
			:: else
			fi
		}
#else
	:: passes -> passes = 0
#endif
	od
}

proctype cpu(byte c)
{
end:	do
	/* dispatch() */
	:: atomic { where == OWN && on == c + 1 && (c == 0 || takes) -> where = RUNS; at = c; reads = 0 }
	/* The local queue. */
	:: atomic { where == LOCAL && at == c && (c == 0 || !gone) -> where = RUNS; reads = 0 }
	/* Ordinary work; what the kernel has moved on. */
	:: atomic { where == MOVED && (c == 0 || !gone) -> where = RUNS; at = c; reads = 0 }
	/* A task that runs where it is not assigned is kicked, and queued again. */
	:: atomic { where == RUNS && at == c && on && on != c + 1 && (c == 0 || !offline) -> where = OWN }
	od
}

/* Hotplug of CPU 1. */
proctype kernel()
{
#ifndef OFFLINE_LATE
	set_offline(1);
#endif
	takes = 0;
	/* synchronize_rcu() */
	!reads;
#ifdef OFFLINE_LATE
	set_offline(1);
#endif
	/* The stopper moves on what is left there. */
	d_step {
		gone = 1;
		if
		:: at == 1 && (where == RUNS || where == LOCAL) -> where = MOVED
		:: else
		fi
	}
	atomic { gone = 0; takes = 1 };
	set_offline(0);
	done = 1
}

init
{
	atomic {
		if
		:: wide = 1
		:: skip
		fi;
		run thread(); run checks(); run cpu(0); run cpu(1); run follow(); run kernel()
	}
end:	timeout ->
	assert(done);
	assert(where == RUNS)
}
