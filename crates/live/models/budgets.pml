/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets: what a task runs for is charged once, and while a CPU runs a task its timer ends when the task's budget does, or
 * before.
 *
 * Checked: at the end of each run, and whenever nothing is under way. One CPU runs two tasks in turns, one of which has more
 * budget left than the other; timers are late by any time. Instants grow with each event.
 *
 * What stands for what, in crates/live/bpf:
 *	cpu			on_start() and on_stop() in managed.h
 *	charge			take_elapsed_locked() in decide.h
 *	check_and_arm		check_and_arm_budget(), with check_budget(), in timers.h
 *	ends			budget_ended() in timers.h: the timer may have been started by another CPU, and end there
 *	looks			background_due() in timers.h, ten times a second on another CPU
 *	leaves			stop_running_locked() in managed.h: the task leaves, or changes its class
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 4
#endif

bit locked;
byte instant;		/* read when it was taken, see core_lock_now() */
byte current;		/* task 1 or 2 that the CPU runs */
byte began, since;
byte timer;		/* what was left when it was started; 0: it does not run */
byte now = 1;
byte left = EVENTS;
byte charged, ran;
byte under_way;		/* how many look at a budget */
bit busy = 1;		/* the CPU begins to run a task, or stops */

/* What is left of the budget of a task. */
#define budget(i) (i == 1 -> 3 : (i == 2 -> 1 : 0))

inline charge()
{
	d_step {
		if
		:: current && since && instant > since -> charged = charged + instant - since
		:: else
		fi;
		since = instant
	}
}

inline check_and_arm()
{
	do
	:: was = began;
		/* check_budget() */
		atomic { !locked -> locked = 1; instant = now; i = current };
		if
		:: i -> charge()
		:: else
		fi;
		d_step { rest = budget(i); i = 0; locked = 0 }
		/* arm_budget() */
		if
		:: rest -> timer = rest
		:: else
		fi;
#ifdef TIMER_OVERWRITTEN
		break
#else
		if
		:: began == was -> break
		:: else
		fi
#endif
	od;
	atomic { was = 0; rest = 0; under_way-- }
}

/* The CPU begins to run a task, and stops. */
proctype cpu()
{
	byte i, at;
end:	do
	:: atomic { left -> left--; now++; at = now;
		if
		:: i = 1
		:: i = 2
		fi };
		began = at;
		since = at;
		current = i;
		timer = budget(i);
		busy = 0;
end_of_run:	atomic { left && !locked -> left--; busy = 1; now = now + 2; locked = 1; instant = now };
		if
		:: current -> charge(); current = 0; since = 0; ran = ran + instant - at
		/* leaves() has ended it. */
		:: else
		fi;
		atomic { locked = 0; i = 0; at = 0 }
	od
}

proctype ends()
{
	byte i, was, rest;
end:	do
	:: atomic { timer -> timer = 0; under_way++ };
		check_and_arm()
	od
}

proctype looks()
{
	byte i, was, rest;
end:	do
	:: atomic { left -> left--; now++; under_way++ };
		check_and_arm()
	od
}

proctype leaves()
{
	if
	:: atomic { left && !locked -> left--; now++; locked = 1; instant = now };
		if
		:: current ->
			atomic { charge(); ran = ran + (instant > began -> instant - began : 0); current = 0; since = 0; locked = 0 }
		:: else -> locked = 0
		fi
	:: left == 0
	fi
}

init
{
	atomic { run cpu(); run ends(); run looks(); run leaves() }
}

/* What the CPU runs is charged up to now, but for what it ran since it was charged last; and its timer runs. */
active proctype judge()
{
end:	do
	:: atomic { !busy && !under_way && current && !locked ->
		assert(timer && timer <= budget(current));
		assert(charged + now - since == ran + now - began) }
	:: timeout -> assert(current || charged == ran); break
	od
}
