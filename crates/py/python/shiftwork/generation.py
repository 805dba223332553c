"""Random task sets, as the literature draws them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypedDict, Unpack, overload

from . import _shiftwork
from ._spans import Duration, span_ns
from .errors import InputError
from .taskset import TaskSet

__all__ = ["GenerateOptions", "Method", "Shape", "generate"]

Method = Literal[
    "randfixedsum",
    "uunifast",
    "uunifast-discard",
    "uniform-light",
    "uniform-medium",
    "uniform-heavy",
    "bimodal-light",
    "bimodal-medium",
    "bimodal-heavy",
]
Shape = Literal["global", "partitioned", "bi-level", "clustered", "three-level", "laminar", "arbitrary"]

#: How many task sets are drawn at once at most: many enough to be fast, few enough to be held in memory.
_BATCH = 256


class GenerateOptions(TypedDict, total=False):
    """The further keywords of :func:`generate`."""

    method: Method
    period_min: Duration | None
    period_max: Duration | None
    granularity: Duration | None
    periods: Literal["log-uniform", "uniform"]
    deadlines: Literal["implicit", "constrained", "arbitrary"]
    affinities: Shape
    cluster_size: int | None
    min_cost: Duration | None
    feasible: bool
    attempts: int
    seed: int
    cell: int
    index: int
    period_min_ns: int | None
    period_max_ns: int | None
    granularity_ns: int | None
    min_cost_ns: int | None


@overload
def generate(
    cpus: int = ...,
    tasks: int = ...,
    utilization: float | None = ...,
    *,
    count: None = None,
    **options: Unpack[GenerateOptions],
) -> TaskSet: ...
@overload
def generate(
    cpus: int = ...,
    tasks: int = ...,
    utilization: float | None = ...,
    *,
    count: int,
    **options: Unpack[GenerateOptions],
) -> Iterator[TaskSet]: ...
def generate(
    cpus: int = 4,
    tasks: int = 10,
    utilization: float | None = None,
    *,
    count: int | None = None,
    method: Method = "randfixedsum",
    period_min: Duration | None = None,
    period_max: Duration | None = None,
    granularity: Duration | None = None,
    periods: Literal["log-uniform", "uniform"] = "log-uniform",
    deadlines: Literal["implicit", "constrained", "arbitrary"] = "implicit",
    affinities: Shape = "global",
    cluster_size: int | None = None,
    min_cost: Duration | None = None,
    feasible: bool = False,
    attempts: int = 10_000,
    seed: int = 1,
    cell: int = 0,
    index: int = 0,
    period_min_ns: int | None = None,
    period_max_ns: int | None = None,
    granularity_ns: int | None = None,
    min_cost_ns: int | None = None,
) -> TaskSet | Iterator[TaskSet]:
    """Draws a task set, or with ``count`` an iterator of so many.

    The same ``seed``, ``cell`` and ``index`` always give the same task set, the one that ``shiftwork generate``
    gives for this seed and index (there the cell is 0); ``count`` counts on from ``index``.

    >>> import shiftwork as sw
    >>> sw.generate(cpus=8, tasks=20, utilization=6, affinities="three-level")
    TaskSet('generated 1-0-0', cpus=8, tasks=20, utilization=6, affinities='laminar')
    >>> [len(one) for one in sw.generate(2, utilization=1.5, method="uniform-light", count=3, seed=7)]
    [32, 31, 27]

    Args:
        cpus: How many CPUs the platform has.
        tasks: How many tasks; the distributions of ``method`` draw until ``utilization`` is reached instead.
        utilization: The sum of the utilizations; default: half the CPUs.
        count: How many task sets; without it one, and no iterator.
        method: How utilizations are drawn.
        period_min: The shortest period; default 1 ms.
        period_max: The longest; default 1 s.
        granularity: What every period is a multiple of; default 1 us.
        periods: Whether every order of magnitude is as likely, or every period.
        deadlines: The period, from cost to period, or from cost to twice the period.
        affinities: What the affinities look like together.
        cluster_size: CPUs in each cluster or socket; default: half the CPUs.
        min_cost: No task costs less; default 1 ns.
        feasible: Whether to draw again until the affinities leave enough room for every task.
        attempts: How often to draw before giving up.
        seed: The seed of everything.
        cell: The cell of a study.
        index: Which task set of the cell, the first of several.
        period_min_ns: ``period_min`` in nanoseconds; likewise the other keywords with ``_ns``.

    Raises:
        InputError: No task set is as the options say, or none was found in so many attempts; from an iterator
            when it comes to that.
    """
    wanted: dict[str, object] = {
        "cpus": cpus,
        "tasks": tasks,
        "utilization": utilization,
        "method": method,
        "period_min_ns": _or(span_ns("period_min", period_min, period_min_ns), 1_000_000),
        "period_max_ns": _or(span_ns("period_max", period_max, period_max_ns), 1_000_000_000),
        "granularity_ns": _or(span_ns("granularity", granularity, granularity_ns), 1_000),
        "periods": periods,
        "deadlines": deadlines,
        "affinities": affinities,
        "cluster_size": cluster_size,
        "min_cost_ns": _or(span_ns("min_cost", min_cost, min_cost_ns), 1),
        "feasible": feasible,
        "attempts": attempts,
    }
    for key, number in (("seed", seed), ("cell", cell), ("index", index), ("count", count)):
        if number is not None and not 0 <= number < 2**64:
            raise InputError(f"`{key}` is {number}; write 0 to {2**64 - 1}")
    if count is None:
        (core,) = _shiftwork.generate(wanted, seed=seed, cell=cell, index=index, count=1)
        return TaskSet._of(core)
    # Impossible options are refused now, and not when the first task set is requested.
    first = _shiftwork.generate(wanted, seed=seed, cell=cell, index=index, count=min(count, 1))
    return _several(wanted, first, (seed, cell, index), count)


def _several(
    wanted: dict[str, object],
    sets: list[_shiftwork.TaskSet],
    key: tuple[int, int, int],
    count: int,
) -> Iterator[TaskSet]:
    seed, cell, index = key
    last, batch = index + count, 1
    while sets:
        yield from map(TaskSet._of, sets)
        index += len(sets)
        batch = min(2 * batch, _BATCH, last - index)
        sets = _shiftwork.generate(wanted, seed=seed, cell=cell, index=index, count=batch)


def _or(given: int | None, default: int) -> int:
    return default if given is None else given
