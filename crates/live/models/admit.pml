/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread becomes a task, and ceases to be one, while it wakes up, goes to sleep, moves between CPUs, is preempted or ends.
 *
 * Its admission reads fields of the kernel without a lock, and the callbacks of the thread read without one whether it is a
 * task. Checked: once both are done, the core has the thread for awake exactly if it is; a thread that is awake and takes part
 * runs as the task on the CPU that it is assigned to, and is charged; one that takes no part waits in no task's queue. One
 * thread, two CPUs.
 *
 * What stands for what, in crates/live:
 *	admit, settle, dismiss	the functions of that name in bpf/commands.h, called by Members in src/kernel/members.rs
 *	replay			replay_missed_callbacks(), with sync_thread_state_locked() and requeue_thread()
 *	is_task			number_of() in bpf/decide.h
 *	runnable, quiescent	ops.runnable() and ops.quiescent(): on_wakeup(), on_block() in bpf/managed.h
 *	enqueue, cpu		enqueue() in bpf/queues.h, pull_assigned() in bpf/assigned.h, on_promotion(), on_start(), on_stop() in bpf/managed.h
 *	exit			ops.exit_task(): leave() in bpf/managed.h
 *
 * Of the kernel: the order in which enqueue_task_scx(), dequeue_task_scx(), ttwu_do_activate(), __schedule() and
 * move_remote_task_to_local_dsq() write SCX_TASK_QUEUED, on_rq and __state, and when they call whom, under the lock of the
 * thread's run queue. Assignments and kicks are those of assign.pml, in fewer steps.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 3	/* how often the thread wakes up, sleeps, is preempted or ends */
#endif

mtype = { RUNNING, SLEEPING, WAKING, DEAD };	/* p->__state */
mtype = { NOWHERE, OWN, ORDINARY };		/* queues */

/* The core and what is beside it. */
bit locked;
bit present, awake;	/* the task */
byte on;		/* CPU + 1 that it is assigned to */
bit number;		/* the thread has the number of the task */
bit mark;		/* sw_managed.queued */
bit current[2];

/* The kernel. */
bit rq;			/* the lock of the thread's run queue */
mtype state = RUNNING;
bit flag_queued;	/* SCX_TASK_QUEUED */
byte on_rq;		/* 1: queued; 2: migrating */
mtype queue = NOWHERE;
byte at;		/* the CPU whose run queue it is on */
bit runs;		/* it runs there */
byte kicked;		/* a bit for each CPU */
byte left = EVENTS;
bit admitted;		/* the one that admits is done */

#define BIT(c)		(1 << (c))
#define kick(c)		kicked = kicked | BIT(c)
#define is_task		(number && present)
/* At the beginning of a step: takes a lock. */
#define LOCK		!locked -> locked = 1
#define LOCK_RQ		!rq -> rq = 1

/* Ends a section of the lock in which the task woke up, blocked, entered or left. */
inline commit(is_woken)
{
	atomic {
		if
		:: !awake -> on = 0
		:: awake && !on -> on = 1
		:: awake && !on -> on = 2
		:: awake && on
		fi;
		if
		:: current[0] != (on == 1) && !(is_woken && on == 1) -> kick(0)
		:: else
		fi;
		if
		:: current[1] != (on == 2) && !(is_woken && on == 2) -> kick(1)
		:: else
		fi;
		locked = 0
	}
}

/* The reads of is_awake(), one after the other. */
inline read_awake()
{
#ifdef QUEUED_ONLY
	wakes = flag_queued;
#else
	wakes = flag_queued;
	if
	:: !wakes -> wakes = (on_rq != 0)
	:: else
	fi
#endif
}

/* leave_locked(), with the lock: the CPU that runs it does so as ordinary work from now on. */
inline leave()
{
	d_step {
		if
		:: current[0] -> current[0] = 0; kick(0)
		:: current[1] -> current[1] = 0; kick(1)
		:: else
		fi;
		present = 0;
		awake = 0
	}
}

/* Callbacks: with the lock of the run queue. */
inline runnable()
{
	if
	:: is_task && !awake ->
		atomic { LOCK };
		if
		:: !awake && present -> awake = 1; commit(true)
		:: else -> locked = 0
		fi
	:: else
	fi
}

inline quiescent()
{
	if
	:: is_task ->
		atomic { LOCK };
		awake = 0;
		commit(false)
	:: else
	fi
}

inline enqueue()
{
	if
	:: is_task ->
		mark = 1;
		d_step {
			if
			:: on -> kick(on - 1)
			:: else
			fi
		}
		queue = OWN
	:: else -> queue = ORDINARY
	fi
}

inline stopping()
{
	atomic {
		if
		:: current[at] -> LOCK; current[at] = 0; locked = 0
		:: else
		fi
	}
}

inline start(c)
{
	if
	:: is_task ->
		d_step { mark = 0; current[c] = 1 }
		if
		:: on != c + 1 -> kick(c)
		:: else
		fi
	:: else
	fi
}

/* The thread, in what others do to it, too. */
proctype thread()
{
	do
	/* It goes to sleep, */
	:: atomic { left && runs && state == RUNNING && !rq -> left--; state = SLEEPING };
		atomic { LOCK_RQ };
		if
		:: runs ->
			stopping();
			quiescent();
			flag_queued = 0;
			d_step { on_rq = 0; runs = 0; rq = 0 }
		/* or was preempted on its way, and does so when it runs again. */
		:: else -> rq = 0;
			if
			:: atomic { runs && !rq -> rq = 1 };
				stopping();
				quiescent();
				flag_queued = 0;
				d_step { on_rq = 0; runs = 0; rq = 0 }
			fi
		fi
	/* wakes up, */
	:: atomic { left && state == SLEEPING && !on_rq -> LOCK_RQ; left--; state = WAKING };
		flag_queued = 1;
		runnable();
		enqueue();
		on_rq = 1;
		d_step { state = RUNNING; rq = 0 }
	/* is preempted, */
	:: atomic { left && runs && !rq -> left--; kick(at) }
	/* or ends. */
	:: atomic { left && runs && state == RUNNING && !rq -> left = 0; rq = 1; state = DEAD };
		stopping();
		quiescent();
		flag_queued = 0;
		d_step { on_rq = 0; runs = 0; rq = 0 }
		if
		:: number ->
			atomic { LOCK };
			leave();
			commit(false)
		:: else
		fi;
		break
	:: left == 0 -> break
	od
}

/* The thread gets to this CPU and runs; with the lock of the run queue. */
inline take(c)
{
	queue = NOWHERE;
	if
	:: at != c ->
		on_rq = 2;
		flag_queued = 0;
		at = c;
		flag_queued = 1;
		on_rq = 1
	:: else
	fi;
	start(c);
	runs = 1
}

/* A CPU that looks for what to run. */
proctype cpu(byte c)
{
end:	do
	:: atomic { (kicked & BIT(c)) && !rq -> rq = 1; kicked = kicked & ~BIT(c) };
		if
		/* It goes on, */
		:: runs && at == c && is_task && on == c + 1 ->
			if
#ifndef NO_PROMOTION
			:: !current[c] -> start(c)
#endif
			:: else
			fi
		:: runs && at == c && !is_task ->
			/* It was dismissed in the moment in which it began to run. */
#ifdef LATE_START_STAYS
			skip
#else
			stopping()
#endif
		/* or gives way. */
		:: runs && at == c && is_task && on != c + 1 ->
			stopping();
			runs = 0;
			enqueue()
		:: !(runs && at == c) && on == c + 1 && queue == OWN -> take(c)
		:: !(runs && at == c) && on == c + 1 && queue != OWN ->
			/* recheck_assignment() */
			if
			:: mark -> kick(c)
			:: else
			fi
		:: !(runs && at == c) && on != c + 1
		fi;
		rq = 0
	:: atomic { queue == ORDINARY && !rq -> rq = 1 };
		take(c);
		rq = 0
	od
}

inline requeue()
{
	/* scx_bpf_dsq_move() takes the lock of the run queue. */
	d_step {
		!rq ->
		if
		:: queue == ORDINARY && is_task ->
			queue = OWN; mark = 1;
			if
			:: on -> kick(on - 1)
			:: else
			fi
		:: queue == OWN && !is_task -> queue = ORDINARY; mark = 0
		:: else
		fi
	}
}

inline replay()
{
	atomic { LOCK };
	if
	:: is_task ->
		if
		:: awake ->
			read_awake();
			if
			:: !wakes -> awake = 0; slept = 1
			:: else
			fi
		:: else
		fi;
		if
#ifdef NO_SECOND_LOOK
		:: !awake && !slept ->
#else
		:: !awake ->
#endif
			was = state;
			read_awake();
			if
#ifndef SLEEPS_AGAIN
			/* What it does by now has its callbacks, which wait for the lock. */
			:: wakes && slept -> awake = 1
#endif
			:: wakes && (was == RUNNING || was == WAKING) -> awake = 1
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	d_step { wakes = 0; slept = 0; was = RUNNING }
	commit(false);
	requeue();
	d_step {
		if
		:: on -> kick(on - 1)
		:: else
		fi
	}
	d_step {
		if
#ifdef NO_KICK_OF_RUNNING
		:: true
#else
		:: runs && !current[at] -> kick(at)
		:: else
#endif
		fi
	}
}

proctype admits()
{
	mtype was = RUNNING;
	bit wakes, slept, again;
	do
	:: state == DEAD -> break
	:: else ->
		/* admit() */
		atomic { LOCK; mark = 0; present = 1 };
		number = 1;
		read_awake();
		d_step { awake = wakes; wakes = 0 }
		commit(false);
		replay();
#ifndef NO_SETTLE
		/* pass_run_queue(), settle() */
		!rq;
		if
		:: number -> replay()
		:: else
		fi;
#endif
		if
		:: again -> break
		:: break
		/* dismiss(), pass_run_queue(), dismiss() */
		:: !again -> again = 1;
			atomic { LOCK };
			leave();
			commit(false);
			requeue();
			!rq;
			requeue();
			if
			:: true
			:: break
			fi
		fi
	od;
	admitted = 1
}

#define runs_as_task	(runs && current[at] && on == at + 1)
#define runs_as_none	(!current[0] && !current[1])
#define is_settled	((awake == (present && flag_queued)) && (!awake || runs_as_task) && (awake || runs_as_none) && \
			 (present || queue != OWN))

init
{
	atomic {
		if
		:: runs = 1; flag_queued = 1; on_rq = 1
		:: queue = ORDINARY; flag_queued = 1; on_rq = 1
		:: state = SLEEPING
		fi;
		run thread(); run admits(); run cpu(0); run cpu(1)
	}
end:	timeout ->
	assert(admitted);
	assert(is_settled)
}

ltl thread_and_task_agree { [] <> (left || !admitted || is_settled) }
