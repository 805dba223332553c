// SPDX-License-Identifier: GPL-2.0-only
/* All of the core as one BPF program, which applies one event each time it is run. */
#include "probe.h"

#define SEC(name) __attribute__((section(name), used))

char _license[] SEC("license") = "GPL";

struct probe_shared shared;

SEC("syscall")
int step(void *context)
{
	(void)context;
	shared.result = probe_apply(&shared.core, &shared.probe);
	return 0;
}
