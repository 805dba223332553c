/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that waits for a lock lends the number of its task to the thread at the end of the chain of those that wait for each
 * other, while threads lock, unlock, fall asleep, wake up, are interrupted, or get another PID.
 *
 * Callbacks note that a thread waits, and take its number back, without knowing what it waits for; a timer reads that without the
 * kernel's locks, and lends the number. Checked: once all is quiet, and no check of loans is due but the one that comes every two
 * milliseconds, each thread that is awake runs as the most urgent of its own task and of those that wait for it, as ordinary work if
 * there is none; a task is awake exactly if a thread that is awake has its number; and checks end when threads do nothing. Three
 * threads, of which two are tasks, and two locks.
 *
 * What stands for what, all in crates/live/bpf:
 *	runnable, enqueue	ops.runnable(), ops.enqueue(): on_wait_over() in inherit.h, on_wakeup() in managed.h, enqueue() in queues.h
 *	awaken_soon		awaken_soon() in loan_checks.h
 *	fall_asleep		ops.stopping(), ops.quiescent(): on_stop(), on_block() in managed.h, on_wait() in inherit.h
 *	follow, next_holder	thread_waited_for(), holder_for() and is_queued() in waited.h
 *	take_back		take_number_back_locked() in inherit.h
 *	check_loan		check_loan(), update_loan_locked(), sync_loan_locked(), kick_for_loan() in inherit.h, is_awake() in awake.h
 *	begin_loan, suspend	begin_loan_locked(), suspend_locked() in inherit.h
 *	requeue			requeue_misplaced(), on_moved() in queues.h
 *	loans, check_marked	loans_due(), check_loans() in inherit.h, check_loans_soon(), is_unsettled() in loan_checks.h
 *	cpus, take		ops.dispatch(), ops.running(): pull_assigned() in assigned.h, fetch_borrower() in inherit.h
 *	start			on_start(), recheck_number() in managed.h
 *
 * Of the kernel: kernel/locking/rtmutex.c, where unlocking leaves the lock without a holder and with its first waiter, until that takes
 * itself out of the tree, clears `pi_blocked_on` and becomes the holder (try_to_take_rt_mutex()); a waiter that was interrupted takes
 * the lock if it can, and itself out otherwise (rt_mutex_cleanup_proxy_lock()). try_to_wake_up() calls no callback while the thread is
 * on its run queue. Callbacks of a thread have the lock of its run queue, and requeue_misplaced() takes it.
 *
 * Left out: budgets, affinities, classes, admission and dismissal (the last two: admit.pml); where a task runs (assign.pml): one that is
 * awake has a CPU. The two words that known_number() reads are one.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 3	/* how often threads request or unlock a lock, sleep, are woken or interrupted, or get another PID */
#endif
#ifndef URGENT
#define URGENT 1	/* the more urgent task of the two */
#endif
/* Smaller: no other PIDs; or none, no sleep and no interruptions, and the locks held by 2 and 3. */
#ifdef CHAIN
#define SAME_PID
#define ALL 0
#else
#define ALL 1
#endif
#ifdef SAME_PID
#define NEW_PIDS 0
#else
#define NEW_PIDS 1
#endif

#define HOPS 5		/* SW_WAITING_MAX: more than there are threads, since a hop may be old */
#define ORDINARY 3	/* the thread that is no task, and the queue of ordinary work; tasks have the numbers of their threads */

/* The core, and struct sw_managed: written under the core's lock. */
bit locked;
bit awake[3];		/* the task; then it has a CPU */
byte holder[3];		/* thread that runs as the task; 0: none */
byte lends_to[3];
bit waits[3], borrows[3];
byte borrowed[4];	/* of a thread, in struct sw_storage */
bit stale[3];		/* the thread has another PID than is known */
bit changed;		/* is_unsettled() */

bit mark[3];		/* `loans_checked` */
bit due, settles;	/* the timer of loans: at once, and after SW_LOAN_SETTLES */
bit checks;		/* it has ended, and what it calls has not */
byte current[4];	/* as which task a CPU runs the thread */

/* The kernel. */
bit rq[4];		/* the lock of the thread's run queue */
bit up[4];		/* is_awake() */
bit sleeping[4];	/* __state */
bit runs[4];
byte queue[4];
bit looks[4];		/* a kick is on its way to the CPU of the task, */
bit kicked[4];		/* or to the one that runs the thread */
bit inside[4];		/* the thread is not preempted */
bit wait_lock[3];
byte owner[3], first[3], second[3];	/* of a lock, 1 or 2: the thread that holds it, and those that wait for it */
byte blocked_on[4];	/* pi_blocked_on, as the lock of the waiter */
bit interrupted[4];
byte left = EVENTS;
bit passed;		/* a lock has passed on without a callback, and loans were not checked since */
byte rounds;		/* checks in a row that nothing but a check led to */

#define own(t)		((t) == ORDINARY -> 0 : (t))
#define has_own(t)	((t) != ORDINARY && holder[own(t)] == (t))
#define known(t)	(has_own(t) -> (t) : (borrowed[t] && holder[borrowed[t]] == (t) -> borrowed[t] : 0))
#define number_now(t, i) (holder[i] == (t) -> (i) : known(t))
#define is_lent(i)	(holder[i] && holder[i] != (i))
#define is_queued(t, l)	(first[l] == (t) || second[l] == (t))
#define precedes(i, j)	((i) == URGENT && (j) != URGENT)
#ifdef LEND_TO_SLEEPER
#define may_lend(i, t)	(!known(t) || known(t) == (i) || !awake[known(t)] || precedes(i, known(t)))
#else
/* As which task the thread would run otherwise. */
#define other(i, t)	(known(t) && known(t) != (i) -> known(t) : own(t))
#define may_lend(i, t)	(!other(i, t) || other(i, t) == (i) || precedes(i, other(i, t)))
#endif
/* At the beginning of a step: takes the core's lock. */
#define LOCK		!locked -> locked = 1

/* Makes the CPU look that runs a thread as the task. */
inline kick_runner(i)
{
	if
	:: current[1] == i -> kicked[1] = 1
	:: current[2] == i -> kicked[2] = 1
	:: current[3] == i -> kicked[3] = 1
	:: else
	fi
}

inline stop_running(i)
{
	kick_runner(i); current[1] = (current[1] == i -> 0 : current[1]);
	current[2] = (current[2] == i -> 0 : current[2]); current[3] = (current[3] == i -> 0 : current[3])
}

inline block(i)
{
	awake[i] = 0; kick_runner(i)
}

/* With the lock. */
inline take_back(i)
{
	if
	:: is_lent(i) ->
		was = holder[i]; holder[i] = i;
		if :: lends_to[i] && !holder[lends_to[i]] -> holder[lends_to[i]] = was :: else fi;
		lends_to[i] = 0; was = 0; changed = 1; stop_running(i); mark[i] = 1
	:: else
	fi
}

/* Callbacks, with the lock of the run queue of the thread. */
inline runnable(t)
{
	atomic {
		if
		:: t != ORDINARY && waits[own(t)] -> LOCK; waits[own(t)] = 0; n = t
		:: else ->
			if :: (waits[1] || waits[2]) && blocked_on[t] -> due = 1 :: else fi
		fi
	};
	atomic {
		if :: n -> take_back(n); mark[n] = 1; locked = 0; due = 1 :: else fi;
		n = 0
	};
	atomic { n = known(t); n = (n && !awake[n] -> n : 0) };
	atomic {
		if
		:: n ->
			LOCK;
			n = number_now(t, n);
			/* Its CPU is kicked when the thread is queued, which comes next. */
			awake[n] = (n != 0); locked = 0
		:: else
		fi;
		n = 0
	}
}

/* The thread waits as a task that sleeps. */
inline awaken_soon(t, i)
{
	if :: i && !awake[i] -> stale[i] = (i == t -> 0 : stale[i]); mark[i] = 1; due = 1 :: else fi
}

inline enqueue(t)
{
	atomic {
		n = known(t);
#ifndef NO_AWAKEN
		awaken_soon(t, n)
#endif
	};
	/* The kernel inserts it after the callback. */
	d_step {
		queue[t] = (n -> n : ORDINARY); looks[n] = (n && awake[n] -> 1 : looks[n]); n = 0; rq[t] = 0
	}
}

inline stop(t)
{
	atomic { if :: current[t] -> LOCK; current[t] = 0; locked = 0 :: else fi }
}

inline fall_asleep(t)
{
	atomic { stop(t); n = known(t) };
	atomic {
		if
		:: n && blocked_on[t] && t != ORDINARY ->
			LOCK; stale[t] = 0; waits[t] = 1; mark[t] = 1; locked = 0
		:: n && !blocked_on[t] ->
			LOCK;
			n = number_now(t, n);
			if :: n -> block(n) :: else fi;
			n = 0; locked = 0
		:: else
		fi
	};
	atomic {
		if :: n -> mark[n] = 1; due = 1 :: else fi;
		n = 0
	};
	d_step { up[t] = 0; runs[t] = 0; rq[t] = 0 }
}

/* try_to_wake_up() */
inline wake(t)
{
	atomic {
		!rq[t];
		if
		:: sleeping[t] && !up[t] -> rq[t] = 1; up[t] = 1
		:: else -> skip
		fi;
		sleeping[t] = 0; t = (rq[t] -> t : 0)
	};
	if :: t -> runnable(t); enqueue(t); t = 0 :: else fi
}

#define may_act		(left && runs[t] && !rq[t])
#define may_request(l)	(may_act && owner[1] != t && owner[2] != t && !wait_lock[l])
#define may_unlock(l)	(may_act && owner[l] == t && !wait_lock[l])

proctype thread(byte t)
{
	byte n, was, other, l;
	bit slept;
end:	do
	/* It requests a lock, the first before the second, */
	:: atomic {
		if
		:: may_request(1) -> l = 1
		:: may_act && owner[2] != t && !wait_lock[2] -> l = 2
		fi;
		left--; rounds = 0;
		if
		:: !owner[l] && !first[l] -> owner[l] = t; l = 0
		:: else ->
			second[l] = (first[l] -> t : 0);
			first[l] = (first[l] -> first[l] : t);
			blocked_on[t] = l; sleeping[t] = 1;
			goto wait
		fi }
	/* unlocks one, */
	:: atomic {
		if
		:: may_unlock(1) -> l = 1
		:: may_unlock(2) -> l = 2
		fi;
		left--; rounds = 0; owner[l] = 0; other = first[l]; l = 0; inside[t] = (other != 0) };
		if :: other -> wake(other); inside[t] = 0 :: else fi
	/* sleeps, */
	:: atomic { ALL && may_act -> left--; rounds = 0; sleeping[t] = 1 };
		do
		:: atomic { runs[t] && !rq[t] && sleeping[t] -> rq[t] = 1 };
			fall_asleep(t)
		:: atomic { runs[t] && !rq[t] && !sleeping[t] -> break }
		od
	/* wakes up another thread, or interrupts it, */
	:: atomic {
		if
		:: ALL && may_act && t != 1 && sleeping[1] -> other = 1
		:: ALL && may_act && t != 2 && sleeping[2] -> other = 2
		:: ALL && may_act && t != 3 && sleeping[3] -> other = 3
		fi;
		left--; rounds = 0; inside[t] = 1; interrupted[other] = (blocked_on[other] != 0) };
		wake(other); inside[t] = 0
	/* or executes another program, which takes longer than checks do. */
	:: atomic { NEW_PIDS && may_act && t != ORDINARY && !stale[t] && !due && !settles && !checks -> left--; stale[t] = 1 }
	od;

wait:	do
	:: atomic { runs[t] && !rq[t] && sleeping[t] -> rq[t] = 1; slept = 1 };
		fall_asleep(t)
	:: atomic { runs[t] && !rq[t] && !sleeping[t] && !wait_lock[l] ->
		if
		:: (owner[l] || first[l] != t) && !interrupted[t] -> sleeping[t] = 1; slept = 0
		:: else ->
			/* It is the holder, or gives up: rt_mutex_dequeue(), */
			wait_lock[l] = 1; inside[t] = 1;
			first[l] = (first[l] == t -> second[l] : first[l]);
			second[l] = 0
		fi
	};
		if
		:: wait_lock[l] && inside[t] ->
			blocked_on[t] = 0;
			atomic {
				/* rt_mutex_set_owner() */
				owner[l] = (owner[l] -> owner[l] : t);
				/* Without a callback, or after it: handed over before it slept, woken for another reason, or given up. */
				passed = (slept && owner[l] == t && !interrupted[t] -> passed : 1);
				wait_lock[l] = 0; inside[t] = 0; interrupted[t] = 0; l = 0; slept = 0;
				goto end
			}
		:: else
		fi
	od
}

/* on_start() and recheck_number() */
inline start(t)
{
	current[t] = n;
	atomic { if :: !awake[n] -> kicked[t] = 1 :: else fi };
#ifndef NO_RECHECK_OF_NUMBER
	atomic { if :: holder[n] != t -> LOCK; current[t] = 0; kicked[t] = 1; locked = 0 :: else fi }
#endif
}

/* running() of a thread that @i's CPU has taken from its queue, or a CPU from that of ordinary work */
inline take(t, i)
{
	n = known(t);
	if :: n -> start(t) :: else fi;
	d_step {
		/* recheck_assignment(), on_start(): it is to run another task. */
		looks[i] = (i && n != i -> 1 : looks[i]); kicked[t] = (i && n != i -> 1 : kicked[t]);
		runs[t] = 1; rq[t] = 0; n = 0; t = 0
	}
}

/* CPUs look for what to run. */
proctype cpus()
{
	byte n, t, i;
end:	do
	:: atomic {
		if
		:: queue[1] == ORDINARY && !rq[1] -> t = 1
		:: queue[2] == ORDINARY && !rq[2] -> t = 2
		:: queue[3] == ORDINARY && !rq[3] -> t = 3
		fi;
		rq[t] = 1; queue[t] = 0 };
		take(t, 0)
	/* One that runs a thread: */
	:: atomic {
		if
		:: kicked[1] && !rq[1] && !inside[1] -> t = 1
		:: kicked[2] && !rq[2] && !inside[2] -> t = 2
		:: kicked[3] && !rq[3] && !inside[3] -> t = 3
		fi;
		kicked[t] = 0;
		if
		:: runs[t] -> rq[t] = 1
		:: else -> t = 0; goto end
		fi };
		n = known(t);
		if
		:: n && awake[n] && current[t] == n
		/* the task of it, from now on, */
		:: n && awake[n] && current[t] != n -> stop(t); start(t)
		/* or not here; */
		:: n && !(awake[n] && current[t] == n) ->
			stop(t); runs[t] = 0; enqueue(t)
		:: !n -> stop(t)
		fi;
		d_step { rq[t] = (runs[t] -> 0 : rq[t]); n = 0; t = 0 }
	/* one that is to run a task. */
	:: atomic {
		if
		:: looks[1] -> i = 1
		:: looks[2] -> i = 2
		fi;
		looks[i] = 0;
		if
		:: !awake[i] -> i = 0
		:: awake[i] && queue[1] == i && !rq[1] -> t = 1
		:: awake[i] && queue[2] == i && !rq[2] -> t = 2
		:: awake[i] && queue[3] == i && !rq[3] -> t = 3
		:: awake[i] && queue[1] != i && queue[2] != i && queue[3] != i -> n = (is_lent(i) -> holder[i] : 0)
		fi;
		rq[t] = (t != 0); queue[t] = 0 };
		if
		:: t -> take(t, i)
		/* fetch_borrower() */
		:: n -> atomic {
			if
			:: known(n) == i && runs[n] -> kicked[n] = (current[n] == i -> kicked[n] : 1)
			:: known(n) == i && !runs[n] && !rq[n] && queue[n] -> queue[n] = i; looks[i] = 1
			:: known(n) == i && !runs[n] && !(!rq[n] && queue[n]) -> looks[i] = (up[n] -> 1 : looks[i])
			:: else
			fi;
			n = 0 }
		:: else
		fi;
		i = 0
	od
}

/* holder_for() the waiters of lock @b */
inline next_holder()
{
	e = owner[b];
	if :: !e -> e = first[b] :: else fi
}

/* The thread at the end of the chain from @i, whose waiter is that of @b, or 0: @e */
inline follow(i)
{
	next_holder();
	do
	:: atomic { !e || e == i || hops == HOPS -> e = (e == i -> e : 0); break }
	:: atomic { e && e != i && hops < HOPS ->
		b = blocked_on[e];
		if
		:: !b -> break
#ifndef QUEUED_OR_NOT
		:: b && !is_queued(e, b) -> break
		:: b && is_queued(e, b)
#else
		:: b
#endif
		fi;
		was = e; hops++ };
		next_holder();
		atomic { if :: !e || e == was -> e = was; break :: else fi }
	od;
	atomic {
		if
		:: e == i ->
			e = 0;
#ifndef NO_NEXT_HOLDER
			/* The next holder is out of the tree, and not the holder yet: asked again soon. */
			changed = 1
#endif
		:: else
		fi;
		was = 0; hops = 0; b = 0
	}
}

inline suspend(j)
{
	if
	:: j ->
		take_back(j); stop_running(j); awake[j] = 0
	:: else
	fi
}

inline begin_loan(i)
{
	o = own(e); k = known(e); take_back(k); take_back(o); borrowed[e] = i; lends_to[i] = o; changed = 1;
	if :: o -> holder[o] = 0; borrows[o] = 1; mark[o] = 1 :: else fi;
	holder[i] = e; suspend(o);
	if :: k != o -> suspend(k) :: else fi;
	o = 0; k = 0
}

/* The step between reading whether the thread is awake and acting on it has the lock. */
inline check_loan(i)
{
	if
	:: !stale[i] ->
		b = (waits[i] -> blocked_on[i] : 0);
		if :: b -> follow(i) :: else fi;
		atomic {
			LOCK;
			if
			:: !waits[i] && known(i) == i ->
				if :: borrows[i] -> borrows[i] = 0; changed = 1; mark[i] = 1 :: else fi;
				it = i
			:: !waits[i] && known(i) != i
			:: waits[i] && (!e || !may_lend(i, e)) -> take_back(i); block(i)
			:: waits[i] && e && may_lend(i, e) ->
				if
				:: holder[i] != e ->
#ifndef TWO_NUMBERS
					/* The thread that waits may have another number: that is the other loan's matter. */
					k = known(i);
					if :: borrows[i] && k && k != i -> take_back(k) :: else fi;
#endif
					take_back(i); begin_loan(i)
				:: else
				fi;
				it = e
			fi
		};
		b = (it -> up[it] : awake[i]);
		atomic {
			if
			:: b && !awake[i] ->
				awake[i] = 1; looks[i] = 1;
#ifndef SYNC_ONCE
				changed = 1; mark[i] = 1
#endif
			:: !b && awake[i] ->
				block(i);
#ifndef SLEEP_ONCE
				changed = 1; mark[i] = 1
#endif
			:: else
			fi;
			b = 0; it = 0; locked = 0
		};
		/* kick_for_loan() */
		atomic {
			if
			:: e && is_lent(i) && holder[i] == e && runs[e] && current[e] != i -> kicked[e] = 1
			:: e && is_lent(i) && holder[i] == e && !runs[e] && awake[i] -> looks[i] = 1
			:: else
			fi;
			e = 0
		};
		atomic { requeue(1, i); requeue(2, i); requeue(3, i) }
	:: else -> borrows[i] = 0
	fi
}

/* requeue_misplaced(): it takes the lock of the run queue. */
inline requeue(t, i)
{
	atomic {
		if
		:: queue[t] == i && !rq[t] && known(t) != i ->
			k = known(t); queue[t] = (k -> k : ORDINARY); looks[k] = (k && awake[k] -> 1 : looks[k]);
#ifndef MOVED_ASLEEP
			awaken_soon(t, k);
#endif
			k = 0
		:: queue[t] != i || known(t) == i
		fi
	}
}

#ifdef SETTLES_ONCE
#define UNSETTLED	0
#define younger		0
#else
#define UNSETTLED	changed
#define younger		changed
#endif

inline check_marked(i)
{
	if
	:: mark[i] ->
#ifdef CLEARED_LATE
		if :: !waits[i] && !borrows[i] && !UNSETTLED -> mark[i] = 0 :: else fi;
#else
		mark[i] = 0;
		if :: waits[i] || borrows[i] || UNSETTLED -> mark[i] = 1 :: else fi;
#endif
		check_loan(i)
	:: else
	fi
}

#define is_over(t)	(!rq[t] && !inside[t])

proctype loans()
{
	byte e, was, b, hops, o, k, it;
end:	do
	:: atomic {
		if
		:: due -> due = 0; rounds = 0; changed = younger
		/* Of the checks that come every two milliseconds only those for which there are any. */
		:: !due && passed -> passed = 0; changed = younger
		/* Longer after the last change than any callback or lock of the kernel's takes. */
		:: !due && settles && is_over(1) && is_over(2) && is_over(3) -> rounds++; assert(rounds < 6); changed = 0
		fi;
		settles = 0; checks = 1 };
		check_marked(1); check_marked(2);
		atomic { settles = (changed && (mark[1] || mark[2])); checks = 0 }
	od
}

#define end_of(t)	(!blocked_on[t] -> t : (!blocked_on[owner[blocked_on[t]]] -> owner[blocked_on[t]] : \
			 owner[blocked_on[owner[blocked_on[t]]]]))
#define is_for(i, t)	((i == t && up[i]) || (!up[i] && blocked_on[i] && end_of(i) == t))
#define best_for(t)	(is_for(URGENT, t) -> URGENT : (is_for(3 - URGENT, t) -> 3 - URGENT : 0))
#define is_right(t)	(!up[t] || (runs[t] && current[t] == known(t) && known(t) == best_for(t)))
#define serves(i)	((up[1] && known(1) == i) || (up[2] && known(2) == i) || (up[3] && known(3) == i))

init
{
	byte t;
	atomic {
		/* Of two locks the first is held before the second is requested. */
		if
		:: ALL -> owner[1] = 1
		:: owner[1] = 2
		:: ALL -> owner[1] = 3
		fi;
		if
		:: ALL && owner[1] != 1 -> owner[2] = 1
		:: ALL && owner[1] != 2 -> owner[2] = 2
		:: owner[1] != 3 -> owner[2] = 3
		fi;
		t = 1;
		do
		:: t < 3 -> holder[t] = t; awake[t] = 1; current[t] = t; up[t] = 1; runs[t] = 1; t++
		:: else -> up[t] = 1; runs[t] = 1; break
		od;
		t = 0;
		run thread(1); run thread(2); run thread(3); run cpus(); run loans()
	}
	timeout ->
	assert(is_right(1));
	assert(is_right(2));
	assert(is_right(3));
	assert(awake[1] == serves(1));
	assert(awake[2] == serves(2));
	/* Some threads wait. */
	do
	:: rounds = 0
	od
}
