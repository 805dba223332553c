"""Pictures, by matplotlib: schedules, and curves of schedulability.

Every function returns a ``Figure`` of matplotlib that belongs to no window, so it works without a display. Notebooks show it,
``figure.savefig("picture.pdf")`` writes it (also as SVG or PNG).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._spans import Duration, span_ns
from .errors import InputError, missing
from .simulation import Simulation
from .study import StudyCriterion, StudyResults

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["curves", "schedule", "study"]

#: Colours that people with any colour vision tell apart (Okabe and Ito 2008), darkest contrasts first.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx")

#: More stretches than this are illegible, and slow to draw.
_STRETCHES_MAX = 20_000

#: What part of the picture a number needs.
_NUMBER_WIDTH = 0.009


def schedule(
    run: Simulation,
    *,
    start: Duration | None = None,
    end: Duration | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    tasks: Iterable[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Draws the schedule: above a row for each CPU, below one for each task.

    In a task's row an arrow up is a release, an arrow down a deadline, and a cross a deadline that was missed; numbers are
    CPUs. Tasks differ by colour, then by hatching.

    >>> import shiftwork as sw
    >>> tasks = [sw.Task("a", cost="1ms", period="5ms"), sw.Task("b", cost="3ms", period="4ms")]
    >>> run = sw.simulate(sw.TaskSet(tasks, cpus=1), "p-edf", "20ms")
    >>> figure = sw.plot.schedule(run)
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['CPU', 'task']

    Args:
        run: A simulation that kept its jobs and its schedule.
        start: From when on; default: the start of the run.
        end: Until when; default: so long that the longest period passes twice, but no longer than the run.
        start_ns: ``start`` in nanoseconds.
        end_ns: ``end`` in nanoseconds.
        tasks: Names of the tasks to show; default: all.
        title: Default: the task set's name and the policy.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: There is nothing to draw, or too much.
    """
    figure = _figure()
    first = span_ns("start", start, start_ns, positive=False) or 0
    last = span_ns("end", end, end_ns)
    if last is None:
        longest = max((task.period_ns for task in run.task_set), default=0)
        last = first + 2 * longest
    last = min(last, run.horizon_ns)
    if first >= last:
        raise InputError(f"`start` is at {first} ns and the end at {last} ns; write a start before the end")
    names = _chosen(run, tasks)
    scale, unit = _unit(last - first)
    rows = _stretches(run, names, first, last)
    cpus, lanes = figure.subplots(
        2, 1, sharex=True, height_ratios=[run.cpus, 1.6 * max(1, len(names))], gridspec_kw={"hspace": 0.08}
    )
    figure.set_size_inches(10, 1.4 + 0.32 * run.cpus + 0.5 * len(names))
    looks = {name: _look(place) for place, name in enumerate(run.job_table.names)}
    for name, lane in zip(names, range(len(names)), strict=True):
        _draw_task(cpus, lanes, rows[name], lane, (scale, (last - first) * _NUMBER_WIDTH, looks[name]))
        _draw_jobs(lanes, run, name, lane, (first, last, scale))
    _lanes(cpus, "CPU", [str(cpu) for cpu in range(run.cpus)])
    _lanes(lanes, "task", names)
    lanes.set_xlim(first / scale, last / scale)
    lanes.set_xlabel(f"time [{unit}]")
    handles = [_patch(name, looks[name]) for name in names] + _legend()
    cpus.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.02), ncols=6, fontsize=8, frameon=False)
    heading = ", ".join(part for part in (run.task_set.name, run.policy) if part)
    figure.suptitle(heading if title is None else title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    return figure


def curves(
    series: Mapping[str, Mapping[str, ArrayLike]],
    *,
    xlabel: str = "utilization",
    ylabel: str = "schedulable",
    title: str | None = None,
) -> Figure:
    """Draws curves of schedulability: for each name the columns ``x`` and ``ratio``, and perhaps ``low`` and ``high``.

    ``ratio`` is the share of the task sets that are schedulable, ``low`` and ``high`` an interval of confidence, drawn as
    a band. Curves differ by colour, marker and dashes.

    >>> import shiftwork as sw
    >>> figure = sw.plot.curves({"g-edf": {"x": [1, 2, 3], "ratio": [1.0, 0.7, 0.1]}})
    >>> figure.axes[0].get_xlabel()
    'utilization'

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: A curve lacks a column, or its columns are not equally long.
    """
    figure = _figure()
    figure.set_size_inches(7, 4.2)
    axes = figure.subplots()
    _draw_curves(axes, series, {name: place for place, name in enumerate(series)})
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    if title:
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    if series:
        axes.legend(frameon=False, fontsize=8)
    return figure


def study(
    results: StudyResults,
    *,
    families: Iterable[str] | str | None = None,
    criteria: Iterable[StudyCriterion] | StudyCriterion | None = None,
    title: str | None = None,
) -> Figure:
    """Draws the curves of a study: a picture for each family and number of CPUs, a row for each criterion.

    Each shows what share of the task sets meets the criterion against the utilization that was asked for, with 95% intervals
    of confidence as bands. A policy looks the same in all pictures.

    >>> import tempfile
    >>> import shiftwork as sw
    >>> two = sw.Study.loads('''
    ... name = "two policies"
    ... sets = 20
    ... [tasks]
    ... cpus = 2
    ... caps = [1, 1.5, 2]
    ... utilizations = "uniform-medium"
    ... [[policy]]
    ... name = "g-edf"
    ... [[policy]]
    ... name = "p-edf"
    ... ''')
    >>> with tempfile.TemporaryDirectory() as out:
    ...     figure = sw.plot.study(two.run(out))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['tasks, 2 CPUs: hard', 'tasks, 2 CPUs: soft']

    Args:
        results: What came of the study.
        families: The families to show; default: all.
        criteria: The criteria to show; default: all.
        title: Default: the name of the study.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: There is nothing to draw, or too much.
    """
    known = results.figures
    chosen = [
        _known("families", families, [family for family, _, _ in known]),
        _known("criteria", criteria, [criterion for _, _, criterion in known]),
    ]
    shown = [one for one in known if one[0] in chosen[0] and one[2] in chosen[1]]
    across = list(dict.fromkeys((family, cpus) for family, cpus, _ in shown))
    down = list(dict.fromkeys(criterion for _, _, criterion in shown))
    if not shown:
        raise InputError("there is nothing to draw; choose `families` that were asked about these `criteria`")
    if len(across) * len(down) > _PICTURES_MAX:
        raise InputError(
            f"these are {len(across) * len(down)} pictures; choose `families` or `criteria` with at most {_PICTURES_MAX}"
        )
    # One row of many families would be too wide to read.
    columns = min(len(across), _COLUMNS_MAX)
    bands = -(-len(across) // columns)
    figure = _figure()
    grid = figure.subplots(len(down) * bands, columns, squeeze=False, sharey=True)
    figure.set_size_inches(4.2 * columns, 3.1 * len(down) * bands + 0.6)
    looks = {label: place for place, label in enumerate(dict.fromkeys(results["label"].tolist()))}
    used: dict[str, Any] = {}
    for axes in grid.flat:
        axes.set_visible(False)
    for family, cpus, criterion in shown:
        band, column = divmod(across.index((family, cpus)), columns)
        axes = grid[band * len(down) + down.index(criterion), column]
        axes.set_visible(True)
        used |= _draw_curves(axes, results.curves(family, criterion, cpus=cpus), looks)
        axes.set_title(f"{family}, {cpus} CPUs: {criterion}", loc="left", fontsize=9)
        axes.set_xlabel("utilization")
        if column == 0:
            axes.set_ylabel(_SHARES[criterion])
    for axes in grid.flat:
        if not axes.get_visible():
            axes.remove()
    labels = sorted(used, key=looks.__getitem__)
    heading = results.name if title is None else title
    if results.missing:
        heading += f" ({results.missing} task sets missing)"
    figure.suptitle(heading, x=0.01, ha="left", fontsize=10, fontweight="bold")
    figure.legend([used[label] for label in labels], labels, loc="outside lower left", ncols=4, frameon=False, fontsize=8)
    return figure


#: More pictures than this in one figure are illegible.
_PICTURES_MAX = 48
_COLUMNS_MAX = 3

#: What share is drawn, by criterion.
_SHARES = {"hard": "all deadlines met", "soft": "tardiness bounded", "simulated": "no deadline missed"}


def _known(key: str, wanted: Iterable[str] | str | None, known: Sequence[str]) -> list[str]:
    """The names that are wanted, or all."""
    if wanted is None:
        return list(known)
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise InputError(f"`{key}` names {name!r}; there are {', '.join(dict.fromkeys(known))}")
    return names


def _draw_curves(
    axes: Axes, series: Mapping[str, Mapping[str, ArrayLike]], looks: Mapping[str, int]
) -> dict[str, Any]:
    """Draws curves that look as their places say; returns the lines by name."""
    lines = {}
    for name, columns in series.items():
        place = looks[name]
        x, ratio, low, high = _curve(name, columns)
        colour = _COLOURS[place % len(_COLOURS)]
        marker = _MARKERS[place % len(_MARKERS)]
        # Where colours begin again, dashes do not.
        dashes = _DASHES[(place + place // len(_COLOURS)) % len(_DASHES)]
        # A few markers tell curves apart; one for each of a hundred points would hide them.
        every = max(1, len(x) // 12)
        (lines[name],) = axes.plot(
            x, ratio, dashes, color=colour, marker=marker, markevery=every, markersize=5, label=name
        )
        if low is not None and high is not None:
            axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return lines


def _figure() -> Figure:
    try:
        from ._picture import Picture
    except ImportError:
        raise missing("matplotlib", "plot", "shiftwork.plot") from None
    return Picture(layout="constrained")


def _chosen(run: Simulation, tasks: Iterable[str] | None) -> list[str]:
    known = run.job_table.names
    if tasks is None:
        return list(known)
    names = list(tasks)
    for name in names:
        if name not in known:
            raise InputError(f"`tasks` names `{name}`; there are {', '.join(known)}")
    return names


def _unit(span_ns: int) -> tuple[int, str]:
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if span_ns >= 2 * size:
            return size, unit
    return 1, "ns"


#: CPU, start and end of a stretch, in nanoseconds.
_Stretch = tuple[int, int, int]


def _stretches(run: Simulation, names: Sequence[str], first: int, last: int) -> dict[str, list[_Stretch]]:
    """Of each task what there is to see between ``first`` and ``last``."""
    table = run.schedule
    seen = (table["end_ns"] > first) & (table["start_ns"] < last)
    count = int(seen.sum())
    if count > _STRETCHES_MAX:
        raise InputError(f"there are {count} stretches to draw; choose `start` and `end` with at most {_STRETCHES_MAX}")
    found = {}
    for name in names:
        chosen = seen & (table["task"] == table.names.index(name))
        starts = np.maximum(table["start_ns"][chosen], first).tolist()
        ends = np.minimum(table["end_ns"][chosen], last).tolist()
        found[name] = list(zip(table["cpu"][chosen].tolist(), starts, ends, strict=True))
    return found


def _look(place: int) -> dict[str, Any]:
    colour = _COLOURS[place % len(_COLOURS)]
    hatch = _HATCHES[place // len(_COLOURS) % len(_HATCHES)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}


def _patch(name: str, look: dict[str, Any]) -> Any:
    from matplotlib.patches import Patch

    return Patch(label=name, **look)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    def mark(marker: str, colour: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=colour, label=label, markersize=6)

    return [
        mark(r"$\uparrow$", "black", "release"),
        mark(r"$\downarrow$", "black", "deadline"),
        mark("X", "#C00000", "missed"),
    ]


def _draw_task(
    cpus: Axes,
    lanes: Axes,
    rows: Sequence[_Stretch],
    lane: int,
    drawn: tuple[int, float, dict[str, Any]],
) -> None:
    scale, width, look = drawn
    _bars(cpus, [(start / scale, end / scale, cpu, 0.4) for cpu, start, end in rows], look)
    _bars(lanes, [(start / scale, end / scale, lane + 0.04, 0.26) for _, start, end in rows], look)
    # Numbers in stretches that are wide enough for them.
    for cpu, start, end in rows:
        if end - start >= width:
            _number(lanes, cpu, (start + end) / 2 / scale, lane)


def _bars(axes: Axes, bars: Sequence[tuple[float, float, float, float]], look: dict[str, Any]) -> None:
    """Bars from left to right around a middle, half as high as said; as one artist, since many are slow."""
    from matplotlib.collections import PolyCollection

    corners = [
        [(left, middle - half), (left, middle + half), (right, middle + half), (right, middle - half)]
        for left, right, middle, half in bars
    ]
    axes.add_collection(PolyCollection(corners, **look), autolim=False)


def _number(lanes: Axes, cpu: int, x: float, lane: int) -> None:
    text = lanes.text(x, lane + 0.04, str(cpu), ha="center", va="center", fontsize=6, clip_on=True)
    text.set_in_layout(False)
    text.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6})


def _draw_jobs(lanes: Axes, run: Simulation, name: str, lane: int, window: tuple[int, int, int]) -> None:
    first, last, scale = window
    jobs = run.job_table.of(name)

    def within(times: Any) -> Any:
        return times[(times >= first) & (times <= last)] / scale

    def marks(times: Any, height: float, marker: str, **how: Any) -> None:
        (line,) = lanes.plot(times, np.full(len(times), lane + height), linestyle="", marker=marker, clip_on=False, **how)
        line.set_in_layout(False)

    # Rows count downwards, so what is above has the smaller ordinate.
    marks(within(jobs["release_ns"]), -0.36, r"$\uparrow$", color="black", markersize=6)
    marks(within(jobs["deadline_ns"]), 0.42, r"$\downarrow$", color="black", markersize=6)
    finish, deadline = jobs["finish_ns"], jobs["deadline_ns"]
    missed = np.where(finish < 0, deadline <= run.horizon_ns, finish > deadline)
    marks(within(deadline[missed]), 0.04, "X", color="#C00000", markersize=7, markeredgecolor="white", zorder=5)


def _lanes(axes: Axes, label: str, names: Sequence[str]) -> None:
    axes.set_ylabel(label)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _curve(name: str, columns: Mapping[str, ArrayLike]) -> tuple[Any, Any, Any, Any]:
    for key in ("x", "ratio"):
        if key not in columns:
            raise InputError(f"the curve `{name}` lacks `{key}`; it needs x and ratio, and may have low and high")
    arrays = [None if key not in columns else np.asarray(columns[key]) for key in ("x", "ratio", "low", "high")]
    lengths = {len(array) for array in arrays if array is not None}
    if len(lengths) > 1:
        raise InputError(f"the columns of the curve `{name}` have {sorted(lengths)} values; give all the same number")
    x, ratio, low, high = arrays
    return x, ratio, low, high
