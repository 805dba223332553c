/* A control loop: 2 ms of processor time in each 10 ms, and for a while 4 ms. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>

#include <shiftwork.h>

static void control(void)
{
	/* Reads sensors, computes, sets actuators; whatever it does, it does not sleep. */
}

int main(void)
{
	struct shiftwork_reservation reservation = {
		.size = sizeof(reservation),
		.cost_ns = 2000000,
		.period_ns = 10000000,
	};
	struct shiftwork_task *task;
	int64_t skipped = 0;

	if (shiftwork_admit(&task, "control", &reservation) < 0)
		errx(1, "%s", shiftwork_error());
	printf("guarantee: %s\n", shiftwork_guarantee(task));

	for (int job = 0; job < 20; job++) {
		if (job == 10) {
			reservation.cost_ns = 4000000;
			if (shiftwork_change(task, &reservation) < 0)
				warnx("it goes on with 2 ms: %s", shiftwork_error());
		}
		control();
		skipped += shiftwork_wait_next(task);
	}
	printf("skipped releases: %" PRId64 "\n", skipped);

	if (shiftwork_dismiss(task) < 0)
		errx(1, "%s", shiftwork_error());
	return 0;
}
