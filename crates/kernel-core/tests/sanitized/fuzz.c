// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * Random sequences of all events of the core, led by the branches that they reach (libFuzzer): the invariants hold after each,
 * and nothing is undefined. Three bytes are an event.
 */
#define TASKS 8
#include "core.h"

/* The longest step of the clock, and the longest span of a server, are 2 to the power of these, ns. */
#define STEP_BITS 40
#define SPAN_BITS 55

/* A number of up to so many bits: few bytes have to reach zeros, small ones and large ones. */
static sw_u64 scaled(unsigned char byte, sw_u32 bits)
{
	return (sw_u64)(byte & 7) << (byte >> 3) * bits / 32;
}

static sw_u64 affinity(unsigned char byte)
{
	return byte & PLATFORM ? byte & PLATFORM : PLATFORM;
}

/* The task stops running: what it ran for is charged first, as machines do. */
static void spend(struct world *w, sw_u32 i, unsigned char byte)
{
	sw_u64 ran = scaled(byte, STEP_BITS);

	w->now += ran;
	sw_spend(&w->core, i, ran);
}

static sw_u64 unlock(struct world *w, sw_u32 i, unsigned char byte)
{
	w->mutexes.unlocked[0] = byte & 3;
	w->mutexes.unlocked[1] = byte >> 2 & 3;
	return sw_unlock(&w->core, &w->mutexes, i, w->now);
}

static sw_u64 event(struct world *w, unsigned char what, unsigned char a, unsigned char b)
{
	struct sw_core *s = &w->core;
	sw_u32 i = 1 + (a & 7);
	struct sw_task *t = sw_task(s, i);

	switch (what % 20) {
	case 0:
		return sw_wake(s, i, w->now);
	case 1:
		if (t->on)
			spend(w, i, b);
		return sw_sleep(s, i);
	case 2:
		if (!t->on)
			return 0;
		w->now += scaled(b, STEP_BITS);
		return sw_charge(s, i, scaled(b, STEP_BITS), w->now);
	case 3:
		return t->on ? sw_yield(s, i, w->now) : 0;
	case 4:
		w->now += scaled(b, STEP_BITS);
		return 0;
	case 5:
		return sw_replenish_next(s, w->now);
	case 6:
		return sw_enter(s, i, affinity(b), b >> 4 & 3);
	case 7:
		return t->state == SW_ABSENT && t->affinity ? sw_enter_again(s, i, affinity(b), b >> 4 & 3) : 0;
	case 8:
		return sw_leave(s, i);
	case 9:
		return sw_set_affinity(s, i, affinity(b));
	case 10:
		return sw_narrow(s, i, b & 8 ? 0 : 1ULL << b % 3);
	case 11:
		return t->state == SW_ABSENT || sw_locks(&w->mutexes, i)->held || t->kept ? 0 : sw_set_priority(s, i, b);
	case 12: {
		sw_u64 relative = scaled(b, SPAN_BITS);

		sw_set_server(s, i, relative >> (a >> 6), relative + (a & 8 ? scaled(b, STEP_BITS) : 0), relative);
		return 0;
	}
	case 13:
		sw_follow(s, i);
		return 0;
	case 14: {
		sw_u64 release = b == 255 ? SW_NEVER : w->now + scaled(b & 127, STEP_BITS);

		/* Also in the past. */
		if (b >= 128 && b != 255)
			release = w->now - scaled(b & 127, STEP_BITS) % (w->now + 1);
		w->mutexes.unlocked[0] = 0;
		return sw_complete(s, &w->mutexes, i, release, w->now);
	}
	case 15:
		return sw_cpu_leave(s, a % 3);
	case 16:
		return sw_cpu_join(s, a % 3);
	case 17:
		return t->state == SW_READY && t->on ? sw_lock(s, &w->mutexes, i, 1 + b % 3, w->now) : 0;
	case 18:
		return unlock(w, i, b);
	default:
		/* Of a thread that has ended: its task has left. */
		return t->state != SW_ABSENT ? 0 : sw_end_locks(s, &w->mutexes, i, w->now);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t count)
{
	static struct world w;
	/* To read what an input does. */
	const int shows = getenv("SHOW") != NULL;
	sw_u32 before[SW_CPUS];
	size_t at;
	sw_u32 k;

	if (count < 4)
		return 0;
	memset(&w, 0, sizeof(w));
	sw_init(&w.core, bytes[0] & 1 ? SW_FP : SW_EDF, PLATFORM);
	for (k = 0; k < 3; k++)
		*sw_mates(&w.core, k) = bytes[1] >> 2 * k & PLATFORM;
	for (k = 1; k <= 3; k++)
		sw_set_mutex(&w.mutexes, k, (bytes[2] + k * (bytes[3] & 3)) % 5, 1, 1);
	for (at = 4; at + 3 <= count && w.now < 1ULL << 61; at += 3) {
		memcpy(before, w.core.runner, sizeof(before));
		if (shows)
			fprintf(stderr, "event %u of task %u, %u\n", bytes[at] % 20, 1 + (bytes[at + 1] & 7), bytes[at + 2]);
		check(&w, before, event(&w, bytes[at], bytes[at + 1], bytes[at + 2]));
	}
	return 0;
}
