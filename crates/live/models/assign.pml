/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A decision reaches its CPU: the core assigns tasks to CPUs under its lock, the BPF programs kick CPUs and queue threads
 * without it, and each CPU looks for its assignment when the kernel asks it.
 *
 * Checked, for any number of decisions, wake-ups, blocks, preemptions and moments in which a thread may not migrate: once no
 * more of them come, each assigned task runs on its CPU and no other task runs; and no ordinary work is before a task in a
 * local queue. Two CPUs and two tasks; what decides is not modelled: any assignment of tasks that are awake may follow any
 * other.
 *
 * What stands for what, all in crates/live/bpf:
 *	decide, commit		commit_and_unlock_here() in decide.h, after any event of the core
 *	wake			ops.runnable() and ops.enqueue(): on_wakeup() in managed.h, enqueue() in queues.h
 *	enqueue			enqueue() and kick_cpu_for() in queues.h
 *	look			dispatch() in main.bpf.c, pull_assigned() in assigned.h
 *	past			takes_cpu() in ordinary.h
 *	recheck			recheck_assignment() in assigned.h
 *	start, stop		on_start(), on_stop() in managed.h
 *	narrow, widen		on_affinity_change() in managed.h
 *
 * Of the kernel (kernel/sched/core.c, kernel/sched/ext.c): __schedule() with the lock of the run queue, which
 * consume_remote_task() lets go of; a kick, which takes that lock and makes the thread that runs by then give way, so that it
 * is without effect while that thread is being replaced; kicks leave a CPU when its interrupts are on again;
 * migrate_disable_switch(). Memory is sequentially consistent; docs/decisions/one-lock.md says by which barriers.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 3	/* wake-ups, blocks, other decisions, and moments in which a thread may not migrate */
#endif
#ifdef NO_PINS
#define PINS 0
#else
#define PINS 1
#endif
#define ENV 2		/* sends kicks like the CPUs 0 and 1: a third CPU */

/* The core. Written under the lock, read without it. */
bit locked;
byte runner[2], before[2];	/* task that the CPU is to run, 1 or 2; 0: none */
byte on[3];		/* CPU + 1 that the task is to run on */
bit awake[3];
bit held[3];		/* the core knows that the task may run only where it is */

/* struct sw_cpu and struct sw_managed. */
byte current[2], refused[2];
bit pulls[2];
bit queued[3];

/* The kernel. */
bit rq[2];		/* locks of the run queues */
bit resched[2];		/* the thread that runs has to give way */
byte curr[2];		/* the task that runs; 0: ordinary work, or none */
byte next_up[2];	/* the local queue: a task, */
bit past[2];		/* and before it ordinary work that woke up */
bit own[3];		/* the task is in its own queue */
byte taker[3];		/* CPU + 1 that has unlinked it from there, and waits for the lock of its run queue */
byte home[3];		/* CPU of its run queue */
bit asleep[3];
bit pinned[3];		/* the thread has disabled its migration, */
bit narrow[3];		/* and was switched out since: the kernel has narrowed its mask */
bit leaving[3];		/* it is being switched out: BPF programs may have disabled its migration */
byte outbox[3];		/* kicks that leave when interrupts are on, a bit for each CPU */
byte under_way;		/* kicks */
byte left = EVENTS;	/* how many more events there may be */

#define BIT(c)		(1 << (c))
#define may_use(i, c)	(awake[i] && (!held[i] || home[i] == c))
#define kick(from, c)	outbox[from] = outbox[from] | BIT(c)
/* At the beginning of a step: takes a lock. */
#define LOCK		!locked -> locked = 1
#define LOCK_RQ(c)	!rq[c] -> rq[c] = 1

/* In the step that takes the lock: any new assignment. */
inline decide()
{
	before[0] = runner[0];
	before[1] = runner[1];
	if
	:: runner[0] = 0
	:: may_use(1, 0) -> runner[0] = 1
	:: may_use(2, 0) -> runner[0] = 2
	fi;
	if
	:: runner[1] = 0
	:: runner[0] != 1 && may_use(1, 1) -> runner[1] = 1
	:: runner[0] != 2 && may_use(2, 1) -> runner[1] = 2
	fi
}

/* Ends the section: kicks, and unlocks. @woken: a task that wakes up, or 0. */
inline commit(from, woken)
{
	d_step {
		on[1] = (runner[0] == 1 -> 1 : (runner[1] == 1 -> 2 : 0));
		on[2] = (runner[0] == 2 -> 1 : (runner[1] == 2 -> 2 : 0))
	}
	d_step {
		commit_cpu(from, 0, woken);
		commit_cpu(from, 1, woken);
		before[0] = 0;
		before[1] = 0;
		locked = 0
	}
}

/* The CPU is kicked if it runs another task than it is to run. That of a thread that wakes up is when the thread is queued. */
inline commit_cpu(sender, place, except)
{
	if
	:: before[place] != runner[place] -> refused[place] = 0
	:: else
	fi;
	if
	:: before[place] != runner[place] && current[place] != runner[place] && !(except && runner[place] == except) ->
		kick(sender, place)
	:: else
	fi
}

inline enqueue(from, i)
{
	queued[i] = 1;
	d_step {
		if
#ifdef NO_KICK_OF_PREEMPTED
		:: from != ENV
#endif
		:: on[i] -> refused[on[i] - 1] = 0; kick(from, on[i] - 1)
		:: else
		fi
	}
	/* The kernel inserts it after the callback. */
	own[i] = 1
}

inline recheck(self)
{
	it = runner[self];
	d_step {
		if
#ifdef NO_RECHECK
		:: true
#elif defined(NO_MARK)
		:: it && it != refused[self] && own[it] -> kick(self, self)
		:: else
#else
		:: it && it != refused[self] && queued[it] -> kick(self, self)
		:: else
#endif
		fi;
		it = 0
	}
}

/* scx_bpf_dsq_move_to_local() of the queue of task @i. Whether it is in the local queue: @moved. */
inline move(to, i)
{
	do
	:: atomic { !own[i] -> break }
	:: atomic { own[i] && home[i] == to -> own[i] = 0; next_up[to] = i; moved = 1; break }
	:: atomic { own[i] && home[i] != to && (pinned[i] || narrow[i] || leaving[i]) -> break }
	:: d_step { own[i] && home[i] != to && !pinned[i] && !narrow[i] ->
		own[i] = 0; taker[i] = to + 1; rq[to] = 0 };
		atomic { !rq[1 - to] ->
			if
			:: taker[i] == to + 1 -> taker[i] = 0; home[i] = to; moved = 1
			:: else
			fi };
		atomic { LOCK_RQ(to);
			if
			:: moved -> next_up[to] = i; break
			:: else
			fi }
	od
}

/* pull_assigned(): whether the assignment is in the local queue or goes on. */
inline pull(self)
{
	it = runner[self];
	if
	:: it && it == goes_on -> moved = 1; keeps = 1
	:: it && it != goes_on ->
		pulls[self] = 1;
		move(self, it);
		if
		:: !moved && own[it] ->
			move(self, it);
			if
			:: moved
#ifdef REFUSAL_KEPT
			:: !moved -> refused[self] = it
#elif defined(LATE_REFUSAL)
			:: !moved && own[it] && narrow[it] && home[it] != self -> refused[self] = it
			:: !moved && !(own[it] && narrow[it] && home[it] != self)
#else
			:: !moved -> refused[self] = it;
				if
				:: own[it] && narrow[it] && home[it] != self
				:: else -> refused[self] = 0
				fi
#endif
			fi
		:: else
		fi;
		pulls[self] = 0
	:: !it
	fi;
	it = 0
}

/* dispatch() */
inline look(c)
{
	pull(c);
	if
	:: moved -> moved = 0
	/* No ordinary work is found: */
	:: !moved -> recheck(c)
	/* nor after the lock was let go of for a moment; */
	:: !moved -> rq[c] = 0; atomic { LOCK_RQ(c) }; recheck(c)
	/* or some is, which looks again when it runs. */
	:: !moved -> rq[c] = 0; atomic { LOCK_RQ(c); ordinary = 1 }
	fi
}

inline start(c, i)
{
#ifdef LATE_START
	atomic { it = runner[c]; queued[i] = 0 };
	d_step { current[c] = i;
#else
	d_step { queued[i] = 0; current[c] = i };
	d_step { it = runner[c];
#endif
		if
#ifndef NO_RECHECK_AT_START
		:: it != i -> kick(c, c)
#endif
		:: else
		fi;
		it = 0
	}
}

inline stop(c)
{
	d_step { !locked -> current[c] = 0 }
}

/* __schedule(), with the lock of the run queue held: @prev runs, @goes_on if it wants to run on. */
inline switch_threads(c)
{
	if
	/* The local queue is not empty. */
	:: past[c] || next_up[c]
	:: else -> look(c)
	fi;
	d_step {
		if
		:: past[c] && !keeps -> assert(!next_up[c]); past[c] = 0; ordinary = 1
		:: else -> next = (keeps -> prev : next_up[c]); next_up[c] = 0
		fi
	}
	if
	:: goes_on && goes_on != next ->
		stop(c);
		leaving[goes_on] = 1;
		enqueue(c, goes_on)
	:: else
	fi;
	if
	:: next && !keeps -> start(c, next)
	:: ordinary -> recheck(c)
	:: else
	fi;
	/* migrate_disable_switch() */
	if
	:: goes_on && goes_on != next && pinned[goes_on] && !narrow[goes_on] ->
		d_step { own[goes_on] = 0; taker[goes_on] = 0; narrow[goes_on] = 1 }
		atomic { LOCK; held[goes_on] = 1; decide() };
		commit(c, 0);
		enqueue(c, goes_on)
	:: else
	fi;
	d_step {
		curr[c] = next; resched[c] = 0; rq[c] = 0;
		leaving[goes_on] = 0; prev = 0; goes_on = 0; next = 0; keeps = 0; ordinary = 0;
		under_way = under_way | outbox[c]; outbox[c] = 0
	}
}

proctype cpu(byte c)
{
	byte prev, goes_on, next, it;
	bit moved, keeps, ordinary;
end:	do
	:: atomic { resched[c] && LOCK_RQ(c); prev = curr[c]; goes_on = prev };
		switch_threads(c)
	/* The thread goes to sleep. */
	:: atomic { left && curr[c] && !pinned[curr[c]] && LOCK_RQ(c); left--; prev = curr[c] };
		stop(c);
		atomic { LOCK; awake[prev] = 0; decide() };
		commit(c, 0);
		d_step { asleep[prev] = 1; prev = 0 };
		switch_threads(c)
	/* One thread disables its migration for a while. */
	:: atomic { PINS && left && curr[c] == 1 && !pinned[1] && !rq[c] -> left--; pinned[1] = 1 }
	:: atomic { curr[c] == 1 && pinned[1] && !narrow[1] && !rq[c] -> pinned[1] = 0 }
	:: atomic { curr[c] == 1 && narrow[1] && LOCK_RQ(c) };
		stop(c);
		d_step { pinned[1] = 0; narrow[1] = 0 }
		atomic { LOCK; held[1] = 0; decide() };
		commit(c, 0);
		start(c, 1);
		d_step { rq[c] = 0; under_way = under_way | outbox[c]; outbox[c] = 0 }
	od
}

/* A kick arrives. */
proctype kicks(byte c)
{
end:	do
	:: d_step { (under_way & BIT(c)) && !rq[c] -> under_way = under_way & ~BIT(c); resched[c] = 1 }
	od
}

#define wrong(c) (curr[c] && curr[c] != runner[c])
#define waits(i) (on[i] && curr[on[i] - 1] != i)
#define settled	(!wrong(0) && !wrong(1) && !waits(1) && !waits(2))

#ifdef PAST_A_PULL
#define may_pass(c)	(!past[c])
#else
#define may_pass(c)	(!past[c] && !pulls[c])
#endif

/* Threads wake up, and other events lead to decisions. */
proctype events()
{
	byte i;
end:	do
	:: atomic { left && LOCK; left--; decide() };
		commit(ENV, 0);
		d_step { under_way = under_way | outbox[ENV]; outbox[ENV] = 0 }
	:: atomic { left && asleep[1] && LOCK_RQ(home[1]); i = 1; goto wake }
	:: atomic { left && asleep[2] && LOCK_RQ(home[2]); i = 2;
wake:		left--; asleep[i] = 0 };
		atomic { LOCK; awake[i] = 1; decide() };
		commit(ENV, i);
		enqueue(ENV, i);
		d_step {
			rq[home[i]] = 0; i = 0;
			under_way = under_way | outbox[ENV]; outbox[ENV] = 0
		}
	/* Ordinary work wakes up on a CPU that runs no task. */
	:: atomic { left && !runner[0] && !curr[0] && may_pass(0) && LOCK_RQ(0) -> left-- };
		d_step { past[0] = 1; resched[0] = 1; rq[0] = 0 }
	:: atomic { left && !runner[1] && !curr[1] && may_pass(1) && LOCK_RQ(1) -> left-- };
		d_step { past[1] = 1; resched[1] = 1; rq[1] = 0 }
	:: timeout -> assert(settled); break
	od
}

init
{
	atomic {
		home[2] = 1;
		awake[1] = 1; runner[0] = 1; on[1] = 1; current[0] = 1; curr[0] = 1;
		if
		:: awake[2] = 1; runner[1] = 2; on[2] = 2; current[1] = 2; curr[1] = 2
		:: asleep[2] = 1
		fi;
		run cpu(0); run cpu(1); run kicks(0); run kicks(1); run events()
	}
}

ltl decisions_are_carried_out { [] <> (settled || left) }
