/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers of the queues, which the kernel calls dispatch queues (DSQs). What waits in which is in queues.h. */
#ifndef SW_QUEUE_IDS_H
#define SW_QUEUE_IDS_H

/*
 * Below 2^32, so that none has a bit of SCX_DSQ_FLAG_BUILTIN, and far enough apart for a queue for each task and each CPU.
 * Queues in the order of virtual time have numbers next to each other: see is_by_virtual_time().
 */
enum sw_queue {
	SW_QUEUES_OF_TASKS = 0x10000,	/* one for each managed task, with no other task in it */
	SW_QUEUES_OF_CPUS = 0x20000,	/* one for each CPU: ordinary work that may run nowhere else, by virtual time */
	SW_QUEUE_ALL = 0x30000,		/* other ordinary work, by virtual time */
	SW_QUEUE_EXCESS = 0x40000,	/* throttled tasks that go on as ordinary work */
	SW_QUEUE_LIMITED = 0x50000,	/* ordinary work that waits for its control group's next period, by these instants */
};

/* As the kernel's functions take them. */
#define SW_QUEUE_OF_TASK(i)	((u64)SW_QUEUES_OF_TASKS + ((i) & (SW_TASKS - 1)))
#define SW_QUEUE_OF_CPU(cpu)	((u64)SW_QUEUES_OF_CPUS + (cpu))
#define SW_QUEUE_OF_ALL		((u64)SW_QUEUE_ALL)
#define SW_QUEUE_OF_EXCESS	((u64)SW_QUEUE_EXCESS)
#define SW_QUEUE_OF_LIMITED	((u64)SW_QUEUE_LIMITED)

#endif
