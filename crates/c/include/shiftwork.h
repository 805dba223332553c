/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads declare themselves as tasks of the shiftwork daemon: CPU time in each period, with a deadline and an affinity.
 * Link with -lshiftwork (pkg-config shiftwork).
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
 * The daemon listens at the socket that the environment variable SHIFTWORK_SOCKET names, by default
 * /run/shiftwork/daemon.sock. Programs need only the permission to connect there.
 *
 * Functions return 0 or more, or a negative value of enum shiftwork_failure; shiftwork_error() then describes the failure
 * and the valid values. Any number of threads may call them concurrently, but each task belongs to the thread that
 * admitted it: other threads get SHIFTWORK_OTHER_THREAD, and so does a child after fork(). No function may be called from a
 * signal handler. No function aborts or unwinds into the program.
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

/* Reaction to a cost that is used up before the end of the period. */
enum shiftwork_on_overrun {
	SHIFTWORK_THROTTLE = 0,	/* the thread waits for the next period */
	SHIFTWORK_SIGNAL = 1,	/* as below, and its process gets SIGXCPU, which terminates it unless handled */
	SHIFTWORK_CONTINUE = 2,	/* the thread is ordinary work until the next period */
};

/* Why a function failed. The reservation is then unchanged. */
enum shiftwork_failure {
	SHIFTWORK_REFUSED = -1,		/* not admitted: the text has the condition that fails, and what would be admitted */
	SHIFTWORK_FORBIDDEN = -2,	/* the thread or task belongs to another user */
	SHIFTWORK_INVALID = -3,		/* an argument is invalid */
	SHIFTWORK_MISSING = -4,		/* the thread no longer has a reservation */
	SHIFTWORK_EXHAUSTED = -5,	/* a quota or limit of the user or control group is reached */
	SHIFTWORK_BROKEN = -6,		/* the daemon's scheduler is no longer loaded */
	SHIFTWORK_NO_AGENT = -7,	/* no daemon listens at the socket */
	SHIFTWORK_NOT_PERMITTED = -8,	/* no permission to connect to the socket */
	SHIFTWORK_SILENT = -9,		/* the daemon did not answer within 10 s */
	SHIFTWORK_LOST = -10,		/* the connection broke; the call may have been carried out or not */
	SHIFTWORK_GARBLED = -11,	/* the service at the socket is not a daemon of this version */
	SHIFTWORK_OTHER_THREAD = -12,	/* the task belongs to another thread */
	SHIFTWORK_INTERNAL = -13,	/* a bug in the library; the task cannot be used any more */
};

/* Reserved CPU time. Unset fields are 0 and have the default given here. */
struct shiftwork_reservation {
	size_t size;		/* sizeof(struct shiftwork_reservation), which identifies the version */
	uint64_t cost_ns;	/* CPU time in each period */
	uint64_t period_ns;	/* the period */
	uint64_t deadline_ns;	/* relative deadline; 0: the period */
	const char *cpus;	/* affinity, as for taskset -c ("0-3,7"); NULL: the current affinity */
	uint32_t priority;	/* 1 is the most urgent, under policies with fixed priorities; 0: by the deadline */
	uint32_t on_overrun;	/* enum shiftwork_on_overrun */
};

/*
 * Admits the calling thread with the reservation; its first job begins. The name is for output only: 1 to 64 bytes of UTF-8
 * on one line. *task must be released by shiftwork_dismiss(); it is NULL on a failure.
 */
int shiftwork_admit(struct shiftwork_task **task, const char *name, const struct shiftwork_reservation *reservation);

/*
 * Replaces the reservation from the next job on. The next release is the new period after the last one. Waiting for the
 * daemon's reply ends the current job for the daemon.
 */
int shiftwork_change(struct shiftwork_task *task, const struct shiftwork_reservation *reservation);

/*
 * Ends the job, and sleeps until the first release in the future: a whole number of periods after the thread was admitted,
 * whatever the execution times. Returns the number of skipped releases, those since the last one that are already past; 0
 * while each job ends before the next release. Signals do not shorten the sleep.
 */
int64_t shiftwork_wait_next(struct shiftwork_task *task);

/*
 * Ends the reservation; the thread continues as ordinary work. The task must not be used afterwards, also on a failure,
 * except after SHIFTWORK_OTHER_THREAD, which has no effect. Does nothing if the task is NULL.
 */
int shiftwork_dismiss(struct shiftwork_task *task);

/* Release of the current job, on CLOCK_MONOTONIC in nanoseconds. */
int64_t shiftwork_release(const struct shiftwork_task *task);

/*
 * The guarantee, as `shiftwork analyze` names it: "hard", "bounded-tardiness", "share" or "none". The string is valid until
 * the task is changed or dismissed. NULL for the task NULL.
 */
const char *shiftwork_guarantee(const struct shiftwork_task *task);

/*
 * Description of this thread's last failure, on one line; "" if there was none. The string is valid until the next failure
 * of this thread.
 */
const char *shiftwork_error(void);

/* The version of the library, as "0.1.0". */
const char *shiftwork_version(void);

#ifdef __cplusplus
}
#endif

#endif
