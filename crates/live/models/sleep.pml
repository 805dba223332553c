/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An agent goes to sleep while events are written: none waits for it to wake up by itself.
 *
 * What stands for what, in crates/live:
 *	emits	emit_for_agent() in bpf/trace.h; of two CPUs, since not all such events are written under the core's lock
 *	agent	set_sleeping() in bpf/agent.h; wait_until() of SchedExtEnactor in src/kernel/enactor.rs, EventReader in
 *		src/sys/bpf/ring.rs
 *
 * Of the kernel: an event is seen when it is complete, which it is before its reader is woken; poll() waits for a wake-up,
 * whatever is in the ring, but does not return if the ring is empty.
 *
 * Faults, by -D: see the list `checks` beside this file.
 */
byte events;	/* in the ring */
bit sleeps;	/* agent_sleeps */
bit woken;
byte left = 3;

proctype emits()
{
	bit slept;
end:	do
	:: atomic { left -> left--; slept = sleeps };
		events++;
		if
		:: slept -> woken = 1
#ifndef FLAG_READ_ONCE
		:: !slept && sleeps ->
			events++;
			woken = 1
#endif
		:: else
		fi;
		slept = 0
	od
}

proctype agent()
{
	do
	:: d_step { events = 0 };
		sleeps = 1;
		if
		:: !events ->
			/* poll() */
end:			do
			:: d_step { woken -> woken = 0 };
				if
				:: events -> break
				:: else
				fi
			od
		:: else
		fi;
		sleeps = 0
	od
}

init
{
	atomic { run emits(); run emits(); run agent() }
end:	timeout -> assert(!events)
}
