"""What a policy makes of a task set, exactly."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from . import _shiftwork
from ._spans import Duration, as_text, span_ns
from .errors import InputError, PolicyError, ShiftworkError
from .overheads import OverheadSource, resolve
from .tables import Table, from_bytes
from .taskset import TaskSet

__all__ = ["Refused", "Response", "Simulation", "Tardiness", "TaskStatistics", "simulate"]


@dataclass(frozen=True, slots=True)
class Response:
    """Response times of a task's completed jobs, in nanoseconds."""

    min: int
    #: To the nearest nanosecond.
    mean: int
    #: To three digits.
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class Tardiness:
    """Tardiness of a task's completed jobs, in nanoseconds."""

    max: int
    #: To the nearest nanosecond.
    mean: int


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """What one task did in a run."""

    name: str
    #: Released before the horizon.
    jobs: int
    #: Finished by the horizon.
    completed: int
    #: Finished late, or unfinished and due by the horizon.
    misses: int
    #: ``None`` if no job was completed.
    response_ns: Response | None
    #: ``None`` if no job was completed.
    tardiness_ns: Tardiness | None
    preemptions: int
    migrations: int
    shifts: int
    #: For how long its jobs spun for mutexes.
    spinning_ns: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A timed change that was refused."""

    at_ns: int
    #: The place of the action in the task set, from 0.
    action: int
    reason: str


@dataclass(frozen=True)
class Simulation:
    """What came of a simulation. Counts are the sums over the tasks."""

    task_set: TaskSet
    #: The policy's name.
    policy: str
    seed: int
    cpus: int
    #: The run covers [0, horizon).
    horizon_ns: int
    #: Released before the horizon.
    jobs: int
    #: Finished by the horizon.
    completed: int
    #: Events that the policy took.
    events: int
    #: Jobs finished late, or unfinished and due by the horizon.
    deadline_misses: int
    preemptions: int
    #: Shifts included.
    migrations: int
    shifts: int
    tasks: tuple[TaskStatistics, ...]
    #: The list of CPUs to which the policy bound each task; ``None`` if it binds none.
    packing: tuple[str, ...] | None
    #: Timed changes that were refused.
    refused: tuple[Refused, ...]
    _job_table: Table | None = field(repr=False, hash=False)
    _schedule: Table | None = field(repr=False, hash=False)
    _json: dict[str, Any] = field(repr=False, compare=False)

    @property
    def job_table(self) -> Table:
        """One row for each job: completed jobs in the order of their completion, then the others by task.

        Columns: task, job, release_ns, deadline_ns, start_ns, finish_ns, response_ns, tardiness_ns, and under
        ``dl-*`` server_deadline_ns. -1: it never started, or did not finish by the horizon.

        Raises:
            ShiftworkError: Jobs were not kept (``simulate(..., jobs=False)``).
        """
        return _kept(self._job_table, "jobs")

    @property
    def schedule(self) -> Table:
        """One row for each stretch of time in which a CPU ran a job, by start.

        Columns: task, job, cpu, start_ns, end_ns.

        Raises:
            ShiftworkError: The schedule was not kept (``simulate(..., schedule=False)``).
        """
        return _kept(self._schedule, "schedule")

    def task(self, name: str) -> TaskStatistics:
        """What the task with this name did.

        Raises:
            KeyError: There is no such task.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """The same under the keys of ``shiftwork simulate --json``."""
        return json.loads(json.dumps(self._json))  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        names = ("task", "jobs", "missed", "mean", "p99", "max", "preempted", "migrated")
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(map(_row, self.tasks))
        title = f"{escape(self.policy)}, {as_text(self.horizon_ns)}: {self.jobs} jobs, {self.deadline_misses} missed"
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def simulate(
    task_set: TaskSet,
    policy: str | None = None,
    duration: Duration | None = None,
    *,
    duration_ns: int | None = None,
    seed: int = 1,
    overheads: OverheadSource = None,
    overheads_use: Literal["worst", "average"] = "worst",
    reserve_server: bool = False,
    jobs: bool = True,
    schedule: bool = True,
) -> Simulation:
    """Simulates a task set under a policy, to the nanosecond. Never refuses for load.

    >>> import shiftwork as sw
    >>> rover = sw.TaskSet(
    ...     cpus=2,
    ...     tasks=[
    ...         sw.Task("control", cost="2ms", period="10ms", affinity="0"),
    ...         sw.Task("vision", cost="25ms", period="40ms"),
    ...     ],
    ... )
    >>> run = sw.simulate(rover, "strong-edf", "1s")
    >>> run.jobs, run.deadline_misses
    (125, 0)
    >>> run.task("control").response_ns
    Response(min=2000000, mean=2000000, p99=2000000, max=2000000)
    >>> run.schedule.cpu[:3].tolist()
    [0, 1, 0]

    The interpreter is free meanwhile, and Ctrl-C ends the simulation.

    Args:
        task_set: The tasks.
        policy: The policy's name, in any case; default: that of the task set.
        duration: How long, from the first release; default 10 s.
        duration_ns: The same in nanoseconds.
        seed: Of all random numbers: sporadic gaps, random execution times.
        overheads: What scheduling costs; default: the file that the task set names, if any.
        overheads_use: Which of the overheads to apply.
        reserve_server: Whether background work that has waited for a second gets its reserve.
        jobs: Whether to keep a table of all jobs. Its memory grows with the duration.
        schedule: Whether to keep the schedule, likewise.

    Raises:
        PolicyError: There is no such policy, it does not take the task set, or none is named.
        InputError: An argument is refused, or there are no overheads for the policy.
    """
    name = policy if policy is not None else task_set.policy
    if name is None:
        raise PolicyError(
            "the task set names no policy; name one: `hpa-edf` takes nested affinities, `strong-edf` any, "
            "`g-edf` none"
        )
    horizon_ns = span_ns("duration", duration, duration_ns)
    if not 0 <= seed < 2**64:
        raise InputError(f"`seed` is {seed}; write 0 to {2**64 - 1}")
    source = resolve(task_set, overheads)
    run = _shiftwork.simulate(
        task_set._core,
        name,
        horizon_ns=10_000_000_000 if horizon_ns is None else horizon_ns,
        seed=seed,
        overheads=source,
        purpose=overheads_use,
        reserve_server=reserve_server,
        jobs=jobs,
        schedule=schedule,
    )
    found = json.loads(run["json"])
    names = tuple(task["name"] for task in found["tasks"])
    counts = {key: found[key] for key in _COUNTS}
    return Simulation(
        **counts,
        task_set=task_set,
        seed=seed,
        tasks=tuple(map(_statistics, found["tasks"])),
        packing=None if run["packing"] is None else tuple(run["packing"]),
        refused=tuple(Refused(*refused) for refused in run["refused"]),
        _job_table=None if run["jobs"] is None else from_bytes(run["jobs"], names),
        _schedule=None if run["segments"] is None else from_bytes(run["segments"], names),
        _json=found,
    )


_COUNTS = (
    "policy",
    "cpus",
    "horizon_ns",
    "jobs",
    "completed",
    "events",
    "deadline_misses",
    "preemptions",
    "migrations",
    "shifts",
)


def _statistics(found: dict[str, Any]) -> TaskStatistics:
    response, tardiness = found["response_ns"], found["tardiness_ns"]
    counts = ("name", "jobs", "completed", "misses", "preemptions", "migrations", "shifts")
    return TaskStatistics(
        **{key: found[key] for key in counts},
        spinning_ns=found.get("spinning_ns", 0),
        response_ns=None if response is None else Response(**response),
        tardiness_ns=None if tardiness is None else Tardiness(**tardiness),
    )


def _kept(table: Table | None, what: str) -> Table:
    if table is None:
        raise ShiftworkError(f"the {what} of this run were not kept; simulate it with {what}=True")
    return table


def _row(task: TaskStatistics) -> str:
    times = task.response_ns
    shown = ("-",) * 3 if times is None else tuple(map(as_text, (times.mean, times.p99, times.max)))
    missed = f"{task.misses} !" if task.misses else "0"
    cells = (escape(task.name), task.jobs, missed, *shown, task.preemptions, task.migrations)
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
