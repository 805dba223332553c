// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core in the running kernel and natively, in lockstep: after every event the bytes of both states
 * are equal. Usage: lockstep OBJECT SEQUENCES STEPS. Exit status 3: the kernel refused to load the
 * object; 1: the states differ.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probe.h"

static struct sw_core native;
static sw_u64 seed = 88172645463325252ULL;

/* A number below @bound (xorshift64). */
static sw_u64 below(sw_u64 bound)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % bound;
}

struct sequence {
	sw_u32 cpus, tasks, order;
	sw_u64 all, now;
};

/* Each task enters, gets a server, and follows its releases or not; then random events follow. */
static struct probe next_event(struct sequence *q, sw_u32 step)
{
	static const sw_u8 usual[] = {
		PROBE_WAKE, PROBE_WAKE, PROBE_WAKE, PROBE_WAKE, PROBE_WAKE, PROBE_WAKE, PROBE_WAKE,
		PROBE_SLEEP, PROBE_SLEEP, PROBE_SLEEP, PROBE_CHARGE, PROBE_CHARGE, PROBE_YIELD,
		PROBE_NEXT_JOB, PROBE_NEXT_JOB, PROBE_NEXT_JOB, PROBE_NEXT_JOB, PROBE_REPLENISH,
		PROBE_REPLENISH, PROBE_REPLENISH, PROBE_SET_AFFINITY, PROBE_CPU_JOIN, PROBE_ASK,
	};
	struct probe p = {
		.task = 1 + below(q->tasks),
		.cpu = below(q->cpus),
		.priority = 1 + below(20),
		.now = q->now += below(1000),
		.span = below(30000),
		.mask = below(3) ? 1 + below(q->all) : sw_bit(below(q->cpus)),
	};
	sw_u32 running = native.runner[p.cpu];

	if (step == 0) {
		p.event = PROBE_INIT;
		p.priority = q->order;
		p.mask = q->all;
	} else if (step <= q->tasks) {
		p.event = PROBE_ENTER;
		p.task = step;
	} else if (step <= 2 * q->tasks) {
		p.event = PROBE_SET_SERVER;
		p.task = step - q->tasks;
		p.now = 20000 + below(100000);
		p.mask = below(2) ? p.now : 10000 + below(10000);
		p.span = 1 + below(p.mask);
	} else if (step <= 3 * q->tasks) {
		p.event = below(2) ? PROBE_FOLLOW : PROBE_WAKE;
		p.task = step - 2 * q->tasks;
	} else {
		p.event = below(8) ? usual[below(sizeof(usual))] : PROBE_ENTER + below(PROBE_ASK);
		if (p.event == PROBE_NARROW && below(2))
			p.mask = 0;
		if (p.event == PROBE_NEXT_JOB)
			p.span = below(50) ? q->now - q->now / 8 + below(40000) : SW_NEVER;
		if (running && p.event != PROBE_WAKE && below(2))
			p.task = running;
	}
	return p;
}

static struct probe_shared *map_shared(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
		if (strstr(bpf_map__name(map), ".bss"))
			return mmap(NULL, sizeof(struct probe_shared), PROT_READ | PROT_WRITE,
				    MAP_SHARED, bpf_map__fd(map), 0);
	return MAP_FAILED;
}

static int play(int program, struct probe_shared *shared, struct sequence *q, sw_u32 steps)
{
	sw_u32 step;

	memset(&shared->core, 0, sizeof(native));
	memset(&native, 0, sizeof(native));
	for (step = 0; step < steps; step++) {
		struct probe p = next_event(q, step);
		sw_u64 result = probe_apply(&native, &p);
		LIBBPF_OPTS(bpf_test_run_opts, run);

		shared->probe = p;
		if (bpf_prog_test_run_opts(program, &run)) {
			perror("bpf_prog_test_run");
			return 1;
		}
		if (result != shared->result || memcmp(&shared->core, &native, sizeof(native)) ||
		    (step % 64 == 0 && sw_check(&shared->core))) {
			printf("step %u, event %u of task %u differs\n", step, p.event, p.task);
			return 1;
		}
	}
	return 0;
}

int main(int count, char **arguments)
{
	struct bpf_object *object = count == 4 ? bpf_object__open_file(arguments[1], NULL) : NULL;
	struct probe_shared *shared;
	int program, k;

	if (!object)
		return 2;
	if (bpf_object__load(object))
		return 3;
	shared = map_shared(object);
	if (shared == MAP_FAILED)
		return 3;
	program = bpf_program__fd(bpf_object__find_program_by_name(object, "step"));
	for (k = 0; k < atoi(arguments[2]); k++) {
		struct sequence q = { .cpus = 2 + below(63), .tasks = 1 + below(500), .order = k & 1 };

		q.all = q.cpus == 64 ? ~0ULL : sw_bit(q.cpus) - 1;
		if (play(program, shared, &q, atoi(arguments[3]))) {
			printf("sequence %d: %u CPUs, %u tasks\n", k, q.cpus, q.tasks);
			return 1;
		}
	}
	return 0;
}
