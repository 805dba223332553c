/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports to an agent and its answers: a ring that may be full, a count of what was lost, snapshots that make up for that, and
 * slots that are only filled with a task that has not stopped since the agent decided.
 *
 * Checked: a slot has a task only while that is awake and its job is released, and only on a CPU that is there; once nothing
 * happens any more the agent knows the task and the CPU as they are, and the job runs if it can. One task and one CPU; whenever
 * it may, a job is to run.
 *
 * What stands for what, in crates/live:
 *	wakes, blocks, ends_job		agent_on_wakeup(), agent_on_block(), agent_next_job() in bpf/agent.h
 *	lose_cpu, regain_cpu		the functions of that name in bpf/decide.h
 *	starts, stops			on_start() in bpf/managed.h, agent_on_stop() in bpf/agent.h
 *	emit				write_here() in bpf/trace.h
 *	fill				assign() and fill_slot_locked() in bpf/agent.h
 *	apply				Decider::report() in src/agent/decider/reports.rs
 *	resync				Agent::resync() in src/agent/thread.rs, task_snapshot() in bpf/agent.h, resync_task() and
 *					resync_cpu() in src/agent/decider/resync.rs
 *	agent				Agent::poll() in src/agent/thread.rs; its heartbeat, which answers how many reports were lost
 *
 * Sections of the lock are one step each, since nothing reads their parts: only SW_E_RUNNING is emitted without it. Instants
 * are numbers of such steps.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 5
#endif
#ifndef ROOM
#define ROOM 1		/* reports that the ring can hold */
#endif

mtype = { WOKEN, BLOCKED, NEXT_JOB, CPU_LOST, CPU_BACK, STARTED, STOPPED };
mtype = { READY, UNRELEASED, SUSPENDED };	/* the stages of a job in the agent */

/* The kernel, and the thread. */
byte now = 1;
bit awake = 1, released = 1, gone;
byte stops, finished;
bit slot;		/* the CPU is to run the task */
bit runs;		/* it does, by `current` */
byte ran;		/* what runs took that are over */
chan ring = [ROOM] of { mtype, byte /* instant */, bit /* the next job is released already */ };
byte lost;
byte left = EVENTS;
bit later;		/* the last job ended before the release of the next */

/* The agent. */
bit a_awake = 1, a_slot, a_gone, a_cause = 1, a_runs;
mtype stage = READY;
byte a_stops, a_finished, a_lost, known_until, cpu_known_until, a_ran;
byte answered;		/* how many were lost, by the last answer of a command */

#define tick now = now + 1

inline emit(what, at, value)
{
	if
	:: nfull(ring) -> ring!what,at,value
	:: full(ring) -> lost++
	fi
}

/* stop_task_locked() */
inline stop()
{
	stops++;
	slot = 0
}

/* The thread and its CPU. */
proctype machine()
{
	byte began;
end:	do
	:: d_step { left && !awake -> left--; tick; awake = 1; emit(WOKEN, now, 0) }
	:: d_step { left && gone -> left--; tick; gone = 0; emit(CPU_BACK, now, 0) }
	:: d_step { left && !gone -> left--; tick; gone = 1; emit(CPU_LOST, now, 0); slot = 0 }
	/* The CPU runs the task: not under the lock. */
#ifdef LATE_CURRENT
	:: atomic { slot && !runs -> tick; began = now };
		atomic { emit(STARTED, began, 0) };
		d_step { runs = 1; began = 0 };
#else
	:: atomic { slot && !runs -> runs = 1 };
		d_step { tick; began = now };
		atomic { emit(STARTED, began, 0); began = 0 };
#endif
endless:	do
		:: atomic { !slot -> break }
		:: atomic { left && awake && slot -> left--; tick; awake = 0; emit(BLOCKED, now, 0); stop(); break }
		:: atomic { left && awake && slot -> left--; tick; finished++; later = 0; emit(NEXT_JOB, now, 1); stop(); break }
		:: atomic { left && awake && slot -> left--; tick; finished++; later = 1; released = 0; emit(NEXT_JOB, now, 0);
			stop(); break }
		od;
		atomic { tick; ran++; runs = 0; emit(STOPPED, now, 0) }
	od
}

/* Time passes until the release, which the agent notices by a timer. */
proctype clock()
{
end:	do
	:: d_step { !released -> tick; released = 1 }
	od
}

inline cause()
{
	a_cause = 1
}

/* For the policy the job is ready, or no more. */
inline becomes(what)
{
	if
	:: stage != what -> stage = what; cause()
	:: else
	fi
}

inline suspend()
{
	a_awake = 0;
	if
	:: stage == READY -> becomes(SUSPENDED)
	:: else
	fi
}

inline wake()
{
	a_awake = 1;
	if
	:: stage == SUSPENDED || (stage == UNRELEASED && released) -> becomes(READY)
	:: else
	fi
}

inline follow(is_released)
{
	if
	:: is_released && a_awake -> stage = READY; cause()
	:: is_released && !a_awake -> becomes(SUSPENDED)
	:: !is_released -> becomes(UNRELEASED)
	fi
}

inline vacate()
{
	if
	:: a_slot -> a_slot = 0; cause()
	:: else
	fi
}

#ifdef OLD_IS_NEWS
#define NEWS(at) true
#else
#define NEWS(at) (at > known_until)
#endif

inline apply(what, at, value)
{
	if
	:: what == CPU_LOST && at >= cpu_known_until -> a_gone = 1; a_slot = 0; cause()
	:: what == CPU_BACK && at >= cpu_known_until -> a_gone = 0; cause()
	:: what == WOKEN && NEWS(at) -> wake()
	:: what == BLOCKED && NEWS(at) -> a_stops++; vacate(); suspend()
	:: what == NEXT_JOB && NEWS(at) -> a_finished++; a_stops++; vacate(); follow(value)
	:: what == STARTED && NEWS(at) -> a_runs = 1
	:: what == STOPPED && NEWS(at) -> a_runs = 0; a_ran++
	:: else
	fi
}
inline resync()
{
	/* task_snapshot(), and what it answers. */
	d_step {
		tick;
		known_until = now;
		s_runs = runs && slot;
		if
		:: finished != a_finished -> vacate(); follow(!later || released)
		:: else ->
			if
			:: stops != a_stops -> vacate(); suspend()
			:: else
			fi
		fi;
		a_runs = (ran == a_ran && a_runs) || s_runs;
		a_ran = ran;
		a_stops = stops;
		a_finished = finished;
		if
		:: awake && !a_awake -> wake()
		:: !awake && a_awake -> suspend()
		:: else
		fi;
		s_runs = 0
	}
	d_step {
		tick;
		cpu_known_until = now;
		if
		:: gone != a_gone -> a_gone = gone; a_slot = 0; cause()
		:: else
		fi
	}
#ifndef NO_REFILL
	d_step { a_slot = 0; cause() }
#endif
}

/* What the policy wants. */
#define wanted (stage == READY && !a_gone)

/* assign() */
inline fill(task, known_stops)
{
	slot = 0;
	if
#ifdef NO_STOPS
	:: task && !gone -> slot = 1
#else
	:: task && !gone && known_stops == stops -> slot = 1
#endif
	:: else
	fi
}

#define is_due	(nempty(ring) || lost != answered || answered != a_lost || a_cause || (stage == UNRELEASED && released && a_awake))

proctype agent()
{
	mtype what;
	byte at, decided_stops;
	bit value, s_runs, decided;
end:	do
	:: is_due ->
		/* The reports until now, */
		do
		:: d_step { nempty(ring) -> ring?what,at,value; apply(what, at, value); what = 0; at = 0; value = 0 }
		:: empty(ring) -> break
		od;
		/* what was lost, by the last answer, */
		if
#ifndef NO_RESYNC
		:: answered != a_lost -> a_lost = answered; resync()
#else
		:: answered != a_lost -> a_lost = answered
#endif
		:: else
		fi;
		/* timers, */
		if
		:: d_step { stage == UNRELEASED && released && a_awake -> stage = READY; cause() }
		:: else
		fi;
		/* and the decision. */
		if
		:: d_step { a_cause -> a_cause = 0; decided = wanted; decided_stops = a_stops };
			if
			:: decided != a_slot ->
				a_slot = decided;
				d_step { fill(decided, decided_stops); answered = lost };
				assert(!slot || (awake && released && !gone))
			:: else
			fi;
			d_step { decided = 0; decided_stops = 0 }
		:: else
		fi;
		/* heartbeat() */
		answered = lost
	od
}

init
{
	atomic { run machine(); run clock(); run agent() }
end:	timeout ->
	assert(a_awake == awake && a_stops == stops && a_finished == finished && a_gone == gone && a_lost == lost);
	assert(slot == (awake && released && !gone));
	assert(slot == runs);
	assert(a_runs == runs)
}

ltl every_job_runs { [] <> (left || runs == (awake && released && !gone)) }
