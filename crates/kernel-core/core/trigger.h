/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The triggers of one task that wait for others, and the arrivals of its jobs that have not begun: the same as
 * TriggerQueue of the crate `machine`, but that a job which would wait behind SW_ARRIVALS others is not released.
 */
#ifndef SW_TRIGGER_H
#define SW_TRIGGER_H

#include "base.h"

/* Powers of two. */
#define SW_ARRIVALS 32
#define SW_SOURCES 8

/* What became of a trigger. */
enum sw_taken {
	SW_TRIGGER_LOST,	/* no room */
	SW_TRIGGER_WAITS,	/* for triggers by other sources */
	SW_TRIGGER_RELEASES,	/* a job, which arrives now */
};

struct sw_triggers {
	sw_u64 arrivals[SW_ARRIVALS];
	sw_u32 accepted[SW_SOURCES];	/* how many were not lost: of each source, or of all together in the first place */
	sw_u32 places;			/* of these are used */
	sw_u32 limit;			/* of those that wait; see docs/formats.md */
	sw_u32 released;		/* jobs so far */
	sw_u32 waiting;			/* of these have not begun */
};

SW_IN void sw_init_triggers(struct sw_triggers *q, sw_u32 places, sw_u32 limit)
{
	sw_u32 k;

	for (k = 0; k < SW_SOURCES; k++)
		q->accepted[k] = 0;
	q->places = places;
	q->limit = limit;
	q->released = 0;
	q->waiting = 0;
}

/* A trigger by the source of this place. @is_idle: the task has no unfinished job. Returns enum sw_taken. */
SW_IN sw_u32 sw_take_trigger(struct sw_triggers *q, sw_u32 place, sw_u32 is_idle, sw_u64 now)
{
	sw_u32 *accepted = &q->accepted[place & (SW_SOURCES - 1)];
	sw_u32 released = q->released, k;
	sw_u32 completes = *accepted == released;

	for (k = 0; k < SW_SOURCES; k++)
		if (k < q->places && k != place && q->accepted[k] == released)
			completes = 0;
	if (!(completes && is_idle)) {
		if (*accepted - (released - q->waiting) >= q->limit)
			return SW_TRIGGER_LOST;
		if (completes && q->waiting >= SW_ARRIVALS)
			return SW_TRIGGER_LOST;
	}
	(*accepted)++;
	if (!completes)
		return SW_TRIGGER_WAITS;
	q->arrivals[released & (SW_ARRIVALS - 1)] = now;
	q->released++;
	q->waiting++;
	return SW_TRIGGER_RELEASES;
}

/* The arrival of the next job, which begins; SW_NEVER if none has been released. */
SW_IN sw_u64 sw_next_arrival(struct sw_triggers *q)
{
	sw_u32 first = q->released - q->waiting;

	if (!q->waiting)
		return SW_NEVER;
	q->waiting--;
	return q->arrivals[first & (SW_ARRIVALS - 1)];
}

#endif
