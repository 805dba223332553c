"""Tasks and task sets."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal, overload

from . import _shiftwork, _toml
from ._spans import Duration, as_text, span_ns
from .errors import InputError

__all__ = ["AffinityKind", "Task", "TaskSet", "load", "loads"]

AffinityKind = Literal["global", "partitioned", "bi-level", "clustered", "laminar", "arbitrary"]


@dataclass(frozen=True, init=False, slots=True)
class Task:
    """A task: what one ``[[task]]`` of a task-set file says.

    Durations are texts with a unit, ``timedelta``, or whole nanoseconds under the keyword with ``_ns``.

    >>> import shiftwork as sw
    >>> imu = sw.Task("imu", cost="500us", period="2ms", affinity="0-1")
    >>> imu.cost_ns, imu.deadline_ns, imu.utilization
    (500000, 2000000, Fraction(1, 4))
    >>> sw.Task("imu", cost=500, period="2ms")
    Traceback (most recent call last):
    ...
    shiftwork.errors.InputError: `cost` is 500, which has no unit; write a duration like "500us", a timedelta, or `cost_ns`
    """

    #: Unique in its task set.
    name: str
    #: The worst-case execution time of a job, and the budget where one is enforced.
    cost_ns: int
    #: The least separation of arrivals; of a triggered task their mean separation, and 0 outside a task set.
    period_ns: int
    #: Relative to an arrival; of a triggered task without one of its own 0 outside a task set.
    deadline_ns: int
    #: The earliest arrival.
    offset_ns: int
    #: How much later than its arrival a job is released at most, in whole ticks from the seed.
    jitter_ns: int
    #: The CPUs that the task may use, as a list ``0-3,7``, a mask ``0xf`` or the name of a set; ``None``: all.
    affinity: str | None
    #: For fixed priorities: 1 is the most urgent; ``None``: by deadline.
    priority: int | None
    #: ``periodic``, ``sporadic``, ``releases``, or ``triggered``; with distances, ``periodic``: as early as they allow.
    arrival: str
    #: When jobs arrive, counted from the offset, if ``arrival`` is ``releases``; otherwise empty.
    releases_ns: tuple[int, ...]
    #: The least time from the first to the last of 2, 3, .. arrivals, of which the first is the period; empty: the period
    #: alone says it.
    distances_ns: tuple[int, ...]
    #: The task that triggers its jobs, or several as in task-set files (``{"all": ["camera", "lidar"]}``); ``None``: they
    #: arrive by time.
    triggered_by: str | Mapping[str, Any] | None
    #: How many triggers wait at most; ``None``: any number.
    queue: int | None
    #: What a job really does, as in task-set files (``{"run": "450us"}``); ``None``: the cost.
    work: Mapping[str, Any] | None
    #: What happens when the budget is used up: ``throttle``, ``continue`` or ``signal``.
    on_overrun: str
    #: Where the task is before it first runs; ``None``: anywhere.
    start_cpu: int | None
    #: The program to run on a live machine; empty: synthetic work.
    command: tuple[str, ...]
    #: The thread of a running program that ``shiftwork apply`` reserves for, as in task-set files
    #: (``{"process": "rover", "name": "camera"}``); ``None``: of none.
    thread: Mapping[str, Any] | None

    def __init__(
        self,
        name: str,
        cost: Duration | None = None,
        period: Duration | None = None,
        deadline: Duration | None = None,
        *,
        offset: Duration | None = None,
        jitter: Duration | None = None,
        affinity: str | Iterable[int] | None = None,
        priority: int | None = None,
        arrival: Literal["periodic", "sporadic", "releases", "triggered"] = "periodic",
        releases: Iterable[Duration] | None = None,
        releases_ns: Iterable[int] = (),
        distances: Iterable[Duration] | None = None,
        distances_ns: Iterable[int] = (),
        triggered_by: str | Mapping[str, Any] | None = None,
        queue: int | None = None,
        work: Mapping[str, Any] | None = None,
        on_overrun: Literal["throttle", "continue", "signal"] = "throttle",
        start_cpu: int | None = None,
        command: Sequence[str] = (),
        thread: Mapping[str, Any] | None = None,
        cost_ns: int | None = None,
        period_ns: int | None = None,
        deadline_ns: int | None = None,
        offset_ns: int | None = None,
        jitter_ns: int | None = None,
    ) -> None:
        cost_ns = span_ns("cost", cost, cost_ns)
        period_ns = span_ns("period", period, period_ns)
        apart = [span_ns("distances", distance) or 0 for distance in distances or ()]
        apart += distances_ns
        if apart:
            if period_ns is not None or triggered_by is not None:
                other = "triggered_by" if period_ns is None else "period"
                raise InputError(f"task `{name}` has `{other}` and `distances`; keep one of them")
            period_ns = apart[0]
        if triggered_by is not None:
            if period_ns is not None:
                raise InputError(f"task `{name}` has `period` and `triggered_by`; keep one of them")
            period_ns, arrival = 0, "triggered"
        if cost_ns is None or period_ns is None:
            lacking = "cost" if cost_ns is None else "period"
            raise InputError(f'task `{name}` lacks `{lacking}`; write for instance {lacking}="2ms"')
        deadline_ns = span_ns("deadline", deadline, deadline_ns)
        given = [span_ns("releases", release, positive=False) or 0 for release in releases or ()]
        given += releases_ns
        if not (affinity is None or isinstance(affinity, str)):
            affinity = ",".join(str(cpu) for cpu in sorted(set(affinity)))
        fields = {
            "name": name,
            "cost_ns": cost_ns,
            "period_ns": period_ns,
            "deadline_ns": period_ns if deadline_ns is None else deadline_ns,
            "offset_ns": span_ns("offset", offset, offset_ns, positive=False) or 0,
            "jitter_ns": span_ns("jitter", jitter, jitter_ns, positive=False) or 0,
            "affinity": affinity,
            "priority": priority,
            "arrival": "releases" if given else arrival,
            "releases_ns": tuple(given),
            "distances_ns": tuple(apart),
            "triggered_by": triggered_by,
            "queue": queue,
            "work": work,
            "on_overrun": on_overrun,
            "start_cpu": start_cpu,
            "command": tuple(command),
            "thread": thread,
        }
        for field, content in fields.items():
            object.__setattr__(self, field, content)

    @property
    def utilization(self) -> Fraction:
        """C/T, exact, by ``distances_ns`` in the long run; 0 for a triggered task outside a task set."""
        if self.distances_ns:
            return self.cost_ns / max(Fraction(length, gaps) for gaps, length in enumerate(self.distances_ns, 1))
        return Fraction(self.cost_ns, self.period_ns) if self.period_ns else Fraction(0)

    def __hash__(self) -> int:
        return hash((self.name, self.cost_ns, self.period_ns, self.deadline_ns, self.affinity))

    def _toml(self) -> list[str]:
        entries: dict[str, object] = {
            "name": self.name,
            "cost": f"{self.cost_ns}ns",
        }
        if self.distances_ns:
            entries["distances"] = [f"{distance}ns" for distance in self.distances_ns]
        elif self.triggered_by is None:
            entries["period"] = f"{self.period_ns}ns"
        if self.deadline_ns != self.period_ns:
            entries["deadline"] = f"{self.deadline_ns}ns"
        if self.offset_ns:
            entries["offset"] = f"{self.offset_ns}ns"
        if self.jitter_ns:
            entries["jitter"] = f"{self.jitter_ns}ns"
        if self.arrival == "releases":
            entries["releases"] = [f"{at}ns" for at in self.releases_ns]
        elif self.arrival not in ("periodic", "triggered"):
            entries["arrival"] = self.arrival
        if self.on_overrun != "throttle":
            entries["on-overrun"] = self.on_overrun
        if self.command:
            entries["command"] = self.command
        optional = {
            "affinity": self.affinity,
            "priority": self.priority,
            "triggered-by": self.triggered_by,
            "queue": self.queue,
            "work": self.work,
            "start-cpu": self.start_cpu,
            "thread": self.thread,
        }
        entries |= {key: item for key, item in optional.items() if item is not None}
        return ["[[task]]", *(_toml.line(key, item) for key, item in entries.items())]


class TaskSet:
    """Tasks and the CPUs that they share: everything that one task-set file says. Does not change.

    >>> import shiftwork as sw
    >>> rover = sw.TaskSet(
    ...     cpus=2,
    ...     tasks=[
    ...         sw.Task("control", cost="2ms", period="10ms", affinity="0"),
    ...         sw.Task("vision", cost="25ms", period="40ms"),
    ...         sw.Task("logging", cost="10ms", period="50ms"),
    ...     ],
    ... )
    >>> rover
    TaskSet('', cpus=2, tasks=3, utilization=1.025, affinities='bi-level')
    >>> rover.utilization
    Fraction(41, 40)
    >>> rover["vision"].affinity
    '0,1'
    >>> rover == sw.loads(rover.to_toml())
    True

    Mistakes are refused, with what would be accepted:

    >>> sw.TaskSet(cpus=2, tasks=[sw.Task("a", cost="5ms", period="4ms")])
    Traceback (most recent call last):
    ...
    shiftwork.errors.InputError: task `a` costs 5ms in each period of 4ms, more than one CPU can give it; lower `cost` or raise `period`
    """

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        *,
        cpus: int | Literal["host"],
        name: str = "",
        policy: str | None = None,
        sets: Mapping[str, str] | None = None,
        clusters: Sequence[str] = (),
        caches: Sequence[str] = (),
        capacities: Sequence[float] = (),
        frequency: Literal["fixed", "grub-pa"] = "fixed",
        tick_unit: Duration | None = None,
        reserve: float | None = None,
        reserve_server: bool = False,
        quantum: Duration | None = None,
        early_release: bool = False,
        overheads: str | None = None,
        repairs: Sequence[str] | None = None,
        lagging: Literal["grid", "reset"] | None = None,
        resources: Iterable[Mapping[str, Any]] = (),
        chains: Iterable[Mapping[str, Any]] = (),
        actions: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        platform: dict[str, object] = {"cpus": cpus, "frequency": frequency}
        given = {"sets": sets, "clusters": clusters, "caches": caches, "capacities": capacities}
        platform |= {key: item for key, item in given.items() if item}
        platform["tick-unit"] = tick_unit
        scheduler = {
            "policy": policy,
            "reserve": reserve,
            "reserve-server": reserve_server or None,
            "quantum": quantum,
            "early-release": early_release or None,
            "overheads": overheads,
            "repairs": repairs,
            "lagging": lagging,
        }
        lines = [_toml.line("name", name)] if name else []
        for table, entries in (("platform", platform), ("scheduler", scheduler)):
            lines.append(f"[{table}]")
            lines += [_toml.line(key, item) for key, item in entries.items() if item is not None]
        for resource in resources:
            lines += ["[[resource]]", *(_toml.line(key, item) for key, item in resource.items())]
        # Which task a line is about, for messages.
        owners: dict[int, str] = {}
        for task in tasks:
            if not isinstance(task, Task):
                raise InputError(f"{task!r} is no task; write Task(\"name\", cost=\"1ms\", period=\"10ms\")")
            first = len(lines) + 1
            lines += task._toml()
            owners |= dict.fromkeys(range(first, len(lines) + 1), task.name)
        for chain in chains:
            lines += ["[[chain]]", *(_toml.line(key, item) for key, item in chain.items())]
        for action in actions:
            lines += ["[[action]]", *(_toml.line(key, item) for key, item in action.items())]
        try:
            self._core = _shiftwork.TaskSet.read("\n".join(lines))
        except InputError as error:
            raise _without_place(error, owners) from None
        self._folder: Path | None = None

    @classmethod
    def _of(cls, core: _shiftwork.TaskSet, folder: Path | None = None) -> TaskSet:
        made = cls.__new__(cls)
        made._core = core
        made._folder = folder
        return made

    @property
    def name(self) -> str:
        """For people."""
        return self._core.name

    @property
    def cpus(self) -> int:
        """How many CPUs there are; they are numbered from 0."""
        return self._core.cpus

    @property
    def policy(self) -> str | None:
        """The policy where none is named; ``None``: there is none."""
        return self._core.policy

    @property
    def overheads(self) -> str | None:
        """The overhead file that the task-set file names, as it names it."""
        return self._core.overheads

    @property
    def utilization(self) -> Fraction:
        """The sum of all C/T, exact."""
        return Fraction(self._core.utilization)

    @property
    def affinity_kind(self) -> AffinityKind:
        """What the affinities look like together; of the kinds that apply the most special one."""
        return self._core.affinity_kind

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks in the order of the file, with affinities as lists of CPUs."""
        tables = tomllib.loads(self.to_toml()).get("task", [])
        pairs = zip(self._core.tasks(), tables, strict=True)
        return tuple(_task(fields, table) for fields, table in pairs)

    def to_toml(self) -> str:
        """The task set as a task-set file.

        >>> import shiftwork as sw
        >>> print(sw.TaskSet([sw.Task("a", cost="1ms", period="5ms")], cpus=1).to_toml())
        [platform]
        cpus = 1
        <BLANKLINE>
        [[task]]
        name = "a"
        cost = "1ms"
        period = "5ms"
        <BLANKLINE>
        """
        return self._core.write()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the task set as a task-set file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @overload
    def __getitem__(self, which: int | str) -> Task: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, which: int | str | slice) -> Task | tuple[Task, ...]:
        """The task at this place, or with this name."""
        if not isinstance(which, str):
            return self.tasks[which]
        for task in self.tasks:
            if task.name == which:
                return task
        raise KeyError(which)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSet) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.to_toml(), self._folder)

    def __repr__(self) -> str:
        return (
            f"TaskSet({self.name!r}, cpus={self.cpus}, tasks={len(self)}, "
            f"utilization={float(self.utilization):.4g}, affinities={self.affinity_kind!r})"
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("task", "cost", "period", "deadline", "CPUs", "utilization"))
        rows = "".join(_row(task) for task in self)
        title = f"{escape(self.name) or 'task set'}: {self.cpus} CPUs, utilization {float(self.utilization):.4g}, "
        title += f"{self.affinity_kind} affinities"
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def loads(text: str) -> TaskSet:
    """Reads a task set from the text of a task-set file.

    >>> import shiftwork as sw
    >>> sw.loads('''  # doctest: +ELLIPSIS
    ... [platform]
    ... cpus = 2
    ... [[task]]
    ... name = "imu"
    ... cost = "500us"
    ... perod = "2ms"
    ... ''')
    Traceback (most recent call last):
    ...
    shiftwork.errors.InputError: line 7, column 1: `task` has no key `perod`; did you mean `period`? accepted: ...

    Raises:
        InputError: All mistakes, each with its place and what would be accepted.
    """
    return TaskSet._of(_shiftwork.TaskSet.read(text))


def load(path: str | os.PathLike[str]) -> TaskSet:
    """Reads a task-set file; an overhead file that it names is looked for beside it.

    Raises:
        InputError: All mistakes, each with the path and its place.
        OSError: The file cannot be read.
    """
    text = read_text(path)
    try:
        core = _shiftwork.TaskSet.read(text)
    except InputError as error:
        raise in_file(error, path) from None
    return TaskSet._of(core, Path(path).resolve().parent)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file; some editors begin one with a mark, which is left out."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} is no UTF-8; a text file is expected"
        raise InputError(detail, path=os.fspath(path)) from None


def in_file(error: InputError, path: str | os.PathLike[str]) -> InputError:
    """The same error, of this file."""
    return InputError(error.detail, error.line, error.column, os.fspath(path), error.others)


def _again(text: str, folder: Path | None) -> TaskSet:
    return TaskSet._of(_shiftwork.TaskSet.read(text), folder)


def _without_place(error: InputError, owners: Mapping[int, str]) -> InputError:
    """The text is no file of the user's, so lines mean nothing; the tasks at them do."""

    def named(detail: str, line: int | None) -> str:
        owner = owners.get(line or 0)
        return detail if owner is None or f"`{owner}`" in detail else f"task `{owner}`: {detail}"

    first, *others = (named(detail, line) for detail, line, _ in error.mistakes)
    return InputError(first, others=[(detail, None, None) for detail in others])


def _task(fields: _shiftwork._TaskFields, table: Mapping[str, Any]) -> Task:
    name, (cost_ns, period_ns, deadline_ns, offset_ns, jitter_ns), affinity, priority, (arrival, times) = fields
    triggered_by = table.get("triggered-by")
    task = Task(
        name,
        cost_ns=cost_ns,
        period_ns=period_ns if triggered_by is None and (arrival == "releases" or not times) else None,
        deadline_ns=deadline_ns,
        offset_ns=offset_ns,
        jitter_ns=jitter_ns,
        affinity=affinity,
        priority=priority,
        arrival=arrival,
        releases_ns=(times or ()) if arrival == "releases" else (),
        distances_ns=(times or ()) if arrival != "releases" else (),
        triggered_by=triggered_by,
        queue=table.get("queue"),
        work=table.get("work"),
        on_overrun=table.get("on-overrun", "throttle"),
        start_cpu=table.get("start-cpu"),
        command=table.get("command", ()),
        thread=table.get("thread"),
    )
    object.__setattr__(task, "period_ns", period_ns)
    return task


def _row(task: Task) -> str:
    cells = [
        escape(task.name),
        as_text(task.cost_ns),
        as_text(task.period_ns),
        as_text(task.deadline_ns),
        escape(task.affinity or "all"),
        f"{float(task.utilization):.3f}",
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
