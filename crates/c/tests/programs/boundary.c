/* Checks the edge cases of the library; ends with status 1 at the first check that fails, and names it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shiftwork.h>

#define HOLDS(it)                                                                                \
	do {                                                                                     \
		if (!(it)) {                                                                     \
			fprintf(stderr, "line %d: not %s; the last error: %s\n", __LINE__, #it, \
				shiftwork_error());                                              \
			_exit(1);                                                                \
		}                                                                                \
	} while (0)

#define MS 1000000

static volatile sig_atomic_t signals;

static void count(int number)
{
	(void)number;
	signals++;
}

static int64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * (int64_t)1000000000 + at.tv_nsec;
}

static struct shiftwork_reservation reservation(uint64_t cost_ns, uint64_t period_ns)
{
	struct shiftwork_reservation it = {
		.size = sizeof(it), .cost_ns = cost_ns, .period_ns = period_ns,
	};

	return it;
}

static void mistakes(void)
{
	struct shiftwork_reservation it = reservation(1 * MS, 20 * MS);
	struct shiftwork_task *task = (struct shiftwork_task *)&it;

	HOLDS(strcmp(shiftwork_error(), "") == 0);
	it.size -= 4;
	HOLDS(shiftwork_admit(&task, "edge", &it) == SHIFTWORK_INVALID);
	HOLDS(task == NULL);
	HOLDS(strstr(shiftwork_error(), "`size` is ") == shiftwork_error());
	it = reservation(0, 20 * MS);
	HOLDS(shiftwork_admit(&task, "edge", &it) == SHIFTWORK_INVALID);
	it = reservation(1 * MS, 20 * MS);
	it.cpus = "0\xff";
	HOLDS(shiftwork_admit(&task, "edge", &it) == SHIFTWORK_INVALID);
	it.cpus = NULL;
	HOLDS(shiftwork_admit(&task, "\xff", &it) == SHIFTWORK_INVALID);
	HOLDS(shiftwork_admit(NULL, "edge", &it) == SHIFTWORK_INVALID);
	HOLDS(shiftwork_wait_next(NULL) == SHIFTWORK_INVALID);
	HOLDS(shiftwork_guarantee(NULL) == NULL);
	HOLDS(shiftwork_dismiss(NULL) == 0);
}

static void *other_thread(void *task)
{
	struct shiftwork_reservation it = reservation(1 * MS, 20 * MS);
	struct shiftwork_task *own;

	HOLDS(strcmp(shiftwork_error(), "") == 0);
	HOLDS(shiftwork_wait_next(task) == SHIFTWORK_OTHER_THREAD);
	HOLDS(strstr(shiftwork_error(), "the task belongs to thread ") == shiftwork_error());
	HOLDS(shiftwork_change(task, &it) == SHIFTWORK_OTHER_THREAD);
	HOLDS(shiftwork_release(task) == SHIFTWORK_OTHER_THREAD);
	HOLDS(shiftwork_guarantee(task) == NULL);
	HOLDS(shiftwork_dismiss(task) == SHIFTWORK_OTHER_THREAD);

	/* A task of its own. */
	HOLDS(shiftwork_admit(&own, "own", &it) == 0);
	HOLDS(shiftwork_wait_next(own) >= 0);
	HOLDS(shiftwork_dismiss(own) == 0);
	return NULL;
}

static void child(struct shiftwork_task *task)
{
	pid_t id = fork();
	int status;

	HOLDS(id >= 0);
	if (id == 0) {
		HOLDS(shiftwork_wait_next(task) == SHIFTWORK_OTHER_THREAD);
		HOLDS(shiftwork_dismiss(task) == SHIFTWORK_OTHER_THREAD);
		_exit(0);
	}
	HOLDS(waitpid(id, &status, 0) == id && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Signals arrive every millisecond, and no wait ends before its release. */
static void disturbed(struct shiftwork_task *task)
{
	struct sigaction action = { .sa_handler = count };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	HOLDS(sigaction(SIGALRM, &action, NULL) == 0);
	HOLDS(setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int job = 0; job < 5; job++) {
		int64_t before = shiftwork_release(task), missed = shiftwork_wait_next(task);

		HOLDS(missed >= 0);
		HOLDS(shiftwork_release(task) == before + (missed + 1) * 20 * MS);
		HOLDS(now() >= shiftwork_release(task));
	}
	HOLDS(setitimer(ITIMER_REAL, &never, NULL) == 0);
	HOLDS(signals > 0);
}

static void late(struct shiftwork_task *task)
{
	int64_t before = shiftwork_release(task), missed;
	struct timespec until;

	before = shiftwork_release(task) + 50 * MS;
	until.tv_sec = before / 1000000000;
	until.tv_nsec = before % 1000000000;
	HOLDS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
	before = shiftwork_release(task);
	/* At least the releases after 20 and 40 ms are past. */
	missed = shiftwork_wait_next(task);
	HOLDS(missed >= 2);
	HOLDS(shiftwork_release(task) == before + (missed + 1) * 20 * MS);
}

static void changed(struct shiftwork_task *task)
{
	struct shiftwork_reservation it = reservation(2 * MS, 5 * MS);
	int64_t before = shiftwork_release(task), missed;

	HOLDS(shiftwork_change(task, &it) == 0);
	HOLDS(strcmp(shiftwork_guarantee(task), "bounded-tardiness") == 0);
	missed = shiftwork_wait_next(task);
	HOLDS(shiftwork_release(task) == before + (missed + 1) * 5 * MS);
	it.cost_ns = 5 * MS;
	HOLDS(shiftwork_change(task, &it) == SHIFTWORK_REFUSED);
	HOLDS(strstr(shiftwork_error(), "refused: ") == shiftwork_error());
	HOLDS(strcmp(shiftwork_guarantee(task), "bounded-tardiness") == 0);
}

int main(void)
{
	struct shiftwork_reservation it = reservation(1 * MS, 20 * MS);
	struct shiftwork_task *task, *twice;
	int64_t before;
	pthread_t other;

	mistakes();
	before = now();
	HOLDS(shiftwork_admit(&task, "edge", &it) == 0);
	HOLDS(before <= shiftwork_release(task) && shiftwork_release(task) <= now());
	HOLDS(strcmp(shiftwork_guarantee(task), "bounded-tardiness") == 0);
	HOLDS(shiftwork_admit(&twice, "twice", &it) == SHIFTWORK_INVALID);
	HOLDS(twice == NULL && strstr(shiftwork_error(), "already"));
	child(task);
	disturbed(task);
	late(task);
	changed(task);
	HOLDS(shiftwork_dismiss(task) == 0);

	it.cost_ns = 1 * MS;
	HOLDS(shiftwork_admit(&task, "edge", &it) == 0);
	HOLDS(pthread_create(&other, NULL, other_thread, task) == 0);
	HOLDS(pthread_join(other, NULL) == 0);
	/* The other thread's errors were its own. */
	HOLDS(strstr(shiftwork_error(), "refused: ") == shiftwork_error());
	/* Its calls did not affect this thread's task. */
	HOLDS(shiftwork_wait_next(task) >= 0);
	HOLDS(strcmp(shiftwork_guarantee(task), "bounded-tardiness") == 0);
	HOLDS(shiftwork_dismiss(task) == 0);
	return 0;
}
