/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The timer of releases and replenishments, which several CPUs set without a lock: none is forgotten, however late it ends.
 *
 * Checked: whenever nothing is under way the timer ends when the first release is due, or before; at the end all has been
 * released. Instants are 1 to 4; a task may also leave before its release.
 *
 * What stands for what, in crates/live/bpf/timers.h:
 *	earlier, arm	the functions of that name; commit_unlock_and_arm() calls both
 *	ends		releases_due(), release_all() and release_next()
 *
 * Of the kernel: bpf_timer_start() replaces the instant that was set before, also while the callback runs, and may refuse.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
#ifndef EVENTS
#define EVENTS 3
#endif
#define NEVER 5
#define TRIES 8

bit locked;
bit due[6];		/* instants at which something is to be released */
byte armed = NEVER;	/* when the timer ends at the latest, by what is known under the lock */
byte timer = NEVER;	/* when it ends */
byte now;
byte left = EVENTS;
byte refusals = 2;
byte under_way;		/* how many are about to set the timer */

#define first	(due[1] -> 1 : (due[2] -> 2 : (due[3] -> 3 : (due[4] -> 4 : NEVER))))

inline start(at)
{
	do
	:: atomic { timer = at; break }
	:: atomic { refusals -> refusals--
#ifdef NO_RETRY
		; break
#endif
	   }
	od
}

inline arm()
{
	if
	:: at == 0 || at == NEVER
	:: else ->
		tries = 0;
		do
		:: tries == TRIES -> break
		:: tries < TRIES ->
			tries++;
			start(at);
#ifdef ONE_LOOK
			break
#else
			latest = armed;
			if
			:: latest >= at -> break
			:: else -> at = latest
			fi
#endif
		od
	fi;
	atomic { at = 0; latest = 0; tries = 0; under_way-- }
}

/* A CPU on which something is decided that is to be released, or not any more. */
proctype decides()
{
	byte at, latest, tries;
end:	do
	:: atomic { left && !locked -> left--; locked = 1; under_way++;
		if
		:: due[1] = 1
		:: due[2] = 1
		:: due[3] = 1
		:: due[4] = 1
		:: due[2] = 0
		fi;
		/* earlier_locked() */
		if
		:: first >= armed -> at = 0
		:: else -> at = first; armed = at
		fi;
		locked = 0 };
		arm()
	od
}

proctype ends()
{
	byte at, latest, tries;
	bit more;
end:	do
	:: d_step { timer != NEVER -> now = (timer > now -> timer : now); timer = NEVER; more = 1; under_way++ };
		do
		:: atomic { more && !locked ->
			if
			:: first <= now -> due[first] = 0
			:: else
			fi;
			at = first;
			armed = at;
			more = (at <= now) }
		:: !more -> break
		od;
		arm()
	od
}

init
{
	atomic { run decides(); run decides(); run ends() }
end:	do
	:: atomic { !under_way && !locked -> assert(timer <= first) }
	:: timeout -> assert(first == NEVER); break
	od
}
