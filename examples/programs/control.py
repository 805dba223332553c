"""A control loop: 2 ms of processor time in each 10 ms, and for a while 4 ms."""

import sys

from shiftwork import agent


def control() -> None:
    """Reads sensors, computes, sets actuators; whatever it does, it does not sleep."""


try:
    with agent.admit("control", cost="2ms", period="10ms") as task:
        print("guarantee:", task.guarantee)
        skipped = 0
        for job in range(20):
            if job == 10:
                try:
                    task.change(cost="4ms", period="10ms")
                except agent.RefusedError as error:
                    print("it goes on with 2 ms:", error, file=sys.stderr)
            control()
            skipped += task.wait_next()
        print("skipped releases:", skipped)
except agent.AgentError as error:
    sys.exit(str(error))
