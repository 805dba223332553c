/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads declare themselves as tasks of the shiftwork agent: so much processor time in each period, by a deadline,
 * on these CPUs. Link with -lshiftwork (pkg-config shiftwork).
 *
 *	struct shiftwork_reservation reservation = {
 *		.size = sizeof(reservation), .cost_ns = 2000000, .period_ns = 10000000,
 *	};
 *	struct shiftwork_task *task;
 *
 *	if (shiftwork_admit(&task, "control", &reservation) < 0)
 *		errx(1, "%s", shiftwork_error());
 *	for (;;) {
 *		do_the_job();
 *		if (shiftwork_wait_next(task) > 0)
 *			too_late();
 *	}
 *
 * The agent is found at the socket that the environment variable SHIFTWORK_SOCKET names, by default
 * /run/shiftwork/agent.sock. Programs need no privilege but to connect there.
 *
 * Functions return 0 or more, or one of enum shiftwork_failure, which is negative; shiftwork_error() then says in words
 * what is wrong and what would be accepted. They may be called by any number of threads at once, but each
 * task is of the thread that admitted it: all others are told SHIFTWORK_OTHER_THREAD, and so is a child after
 * fork(). None may be called by a handler of signals. None aborts or unwinds into the program.
 */
#ifndef SHIFTWORK_H
#define SHIFTWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread with a reservation. */
struct shiftwork_task;

/* What happens when the cost is used up before the period ends. */
enum shiftwork_on_overrun {
	SHIFTWORK_THROTTLE = 0,	/* the thread waits for the next period */
	SHIFTWORK_SIGNAL = 1,	/* its process gets SIGXCPU, of which it dies unless it handles it */
	SHIFTWORK_CONTINUE = 2,	/* nothing */
};

/* Why something was not done. The reservation is as before then. */
enum shiftwork_failure {
	SHIFTWORK_REFUSED = -1,		/* no room: the text has the sum that does not fit, and what would */
	SHIFTWORK_FORBIDDEN = -2,	/* the thread or the task is another user's */
	SHIFTWORK_INVALID = -3,		/* an argument says something impossible */
	SHIFTWORK_MISSING = -4,		/* the thread has no reservation any more */
	SHIFTWORK_EXHAUSTED = -5,	/* this user or control group has as much as it may, or asks too often */
	SHIFTWORK_BROKEN = -6,		/* the agent's scheduler is not loaded any more */
	SHIFTWORK_NO_AGENT = -7,	/* nobody listens at the socket */
	SHIFTWORK_NOT_PERMITTED = -8,	/* the socket is for others */
	SHIFTWORK_SILENT = -9,		/* the agent did not answer within 10 s */
	SHIFTWORK_LOST = -10,		/* the connection broke; it may have been done or not */
	SHIFTWORK_GARBLED = -11,	/* what answers is no agent of this version */
	SHIFTWORK_OTHER_THREAD = -12,	/* the task is another thread's */
	SHIFTWORK_INTERNAL = -13,	/* a mistake of the library; the task cannot be relied upon any more */
};

/* Processor time that a thread is to have. What is not named is 0, and then what is said here. */
struct shiftwork_reservation {
	size_t size;		/* sizeof(struct shiftwork_reservation), by which later versions are told apart */
	uint64_t cost_ns;	/* processor time in each period */
	uint64_t period_ns;	/* how often */
	uint64_t deadline_ns;	/* by when after its release a job is due; 0: by the end of the period */
	const char *cpus;	/* the CPUs that it may use, as of taskset -c ("0-3,7"); NULL: those that it may use now */
	uint32_t priority;	/* 1 is the most urgent, where the agent goes by priorities; 0: by the deadline */
	uint32_t on_overrun;	/* enum shiftwork_on_overrun */
};

/*
 * The calling thread has the reservation from now on; its first job is under way. The name is for people: 1 to 64 bytes
 * of UTF-8 on one line. *task is to be ended by shiftwork_dismiss(); it is NULL if this fails.
 */
int shiftwork_admit(struct shiftwork_task **task, const char *name, const struct shiftwork_reservation *reservation);

/*
 * The task has another reservation from its next job on. Its next release is the new period after the last one. The
 * thread waits for the agent's answer, which ends the job for the agent.
 */
int shiftwork_change(struct shiftwork_task *task, const struct shiftwork_reservation *reservation);

/*
 * Ends the job, and sleeps until the next release that is still ahead: a whole number of periods after the thread was
 * admitted, whatever jobs took. Returns how many releases there were since the last one that are past by now; 0 as long
 * as each job ends before the next is released. Signals do not shorten the sleep.
 */
int64_t shiftwork_wait_next(struct shiftwork_task *task);

/*
 * Ends the reservation; the thread goes on as ordinary work. Whatever it returns, the task must not be used any more,
 * unless that is SHIFTWORK_OTHER_THREAD: then nothing was done. A task that is NULL is none, and that is fine.
 */
int shiftwork_dismiss(struct shiftwork_task *task);

/* When the present job was released, on CLOCK_MONOTONIC in nanoseconds. */
int64_t shiftwork_release(const struct shiftwork_task *task);

/*
 * What is guaranteed, in the words of `shiftwork analyze`: "hard", "bounded-tardiness", "share" or "none". The text lives
 * until the task is changed or dismissed. NULL for the task NULL.
 */
const char *shiftwork_guarantee(const struct shiftwork_task *task);

/*
 * What the last call of this thread that failed had to say, on one line; "" if none did. The text lives until the next
 * call of this thread that fails.
 */
const char *shiftwork_error(void);

/* The version of the library, as "0.1.0". */
const char *shiftwork_version(void);

#ifdef __cplusplus
}
#endif

#endif
