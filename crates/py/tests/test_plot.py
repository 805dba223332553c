"""Pictures: what is in them, without a display, as PNG and as PDF."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from studies import write

import shiftwork as sw

pytest.importorskip("matplotlib")


@pytest.fixture
def late() -> sw.Simulation:
    tasks = [sw.Task("a", "3ms", "4ms", affinity="0"), sw.Task("b", "3ms", "8ms", affinity="0"), sw.Task("c", "2ms", "8ms")]
    return sw.simulate(sw.TaskSet(tasks, cpus=2, name="late"), "weak-edf", "40ms")


def test_a_schedule_shows_every_stretch_and_every_miss(late: sw.Simulation) -> None:
    figure = sw.plot.schedule(late, end="40ms")
    cpus, tasks = figure.axes
    assert [label.get_text() for label in tasks.get_yticklabels()] == ["a", "b", "c"]
    bars = sum(len(collection.get_paths()) for collection in tasks.collections)
    assert bars == late.schedule.rows == sum(len(collection.get_paths()) for collection in cpus.collections)

    def count(marker: str) -> int:
        return sum(np.size(line.get_xdata()) for line in tasks.lines if line.get_marker() == marker)

    assert count("X") == late.deadline_misses
    assert late.deadline_misses > 0
    assert count(r"$\uparrow$") == late.jobs


def test_bars_are_where_jobs_ran(late: sw.Simulation) -> None:
    figure = sw.plot.schedule(late, start="4ms", end_ns=12_000_000, tasks=["c"], title="")
    (collection,) = figure.axes[1].collections
    boxes = [path.get_extents() for path in collection.get_paths()]
    rows = late.schedule.of("c")
    seen = (rows["end_ns"] > 4_000_000) & (rows["start_ns"] < 12_000_000)
    # So short a picture is in microseconds or milliseconds; which, its label says.
    size = {"time [us]": 1_000, "time [ms]": 1_000_000}[figure.axes[1].get_xlabel()]
    starts, ends = (rows[column][seen].clip(4_000_000, 12_000_000) / size for column in ("start_ns", "end_ns"))
    assert len(boxes) == len(starts) > 0
    assert [box.x0 for box in boxes] == pytest.approx(starts.tolist())
    assert [box.x1 for box in boxes] == pytest.approx(ends.tolist())


def test_late_jobs_are_crossed_and_bars_end_with_the_picture() -> None:
    tasks = [sw.Task("a", "3ms", "5ms"), sw.Task("b", "3ms", "5ms")]
    run = sw.simulate(sw.TaskSet(tasks, cpus=1), "p-edf", "40ms")
    jobs = run.job_table
    tardy = (jobs.finish_ns > jobs.deadline_ns) | ((jobs.finish_ns < 0) & (jobs.deadline_ns <= 40_000_000))
    tardy &= (jobs.deadline_ns >= 2_000_000) & (jobs.deadline_ns <= 13_000_000)
    expected = zip(jobs.task[tardy].tolist(), (jobs.deadline_ns[tardy] / 1e6).tolist(), strict=True)
    axes = sw.plot.schedule(run, start="2ms", end="13ms").figure.axes[1]
    crosses = [
        (round(y), x)
        for line in axes.lines
        if line.get_marker() == "X"
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
    ]
    assert sorted(crosses) == sorted(expected)
    assert 0 < len(crosses) < run.jobs
    edges = [path.get_extents() for bars in axes.collections for path in bars.get_paths()]
    assert (min(edge.x0 for edge in edges), max(edge.x1 for edge in edges)) == (2, 13)


@pytest.mark.parametrize("form", ["png", "pdf", "svg"])
def test_pictures_are_written_without_a_display(late: sw.Simulation, form: str) -> None:
    for figure in (sw.plot.schedule(late), sw.plot.curves({"a": {"x": [1, 2], "ratio": [1, 0.5]}})):
        file = BytesIO()
        figure.savefig(file, format=form)
        assert len(file.getvalue()) > 3_000


def test_pictures_that_cannot_be_are_refused(late: sw.Simulation) -> None:
    with pytest.raises(sw.InputError, match="`tasks` names `z`; there are a, b, c"):
        sw.plot.schedule(late, tasks=["z"])
    with pytest.raises(sw.InputError, match="write a start before the end"):
        sw.plot.schedule(late, start="30ms", end="20ms")
    long = sw.simulate(late.task_set, "weak-edf", "60s")
    with pytest.raises(sw.InputError, match="stretches to draw; choose"):
        sw.plot.schedule(long, end="60s")
    assert sw.plot.schedule(long, start="59s")
    with pytest.raises(sw.InputError, match="the curve `g` lacks `ratio`"):
        sw.plot.curves({"g": {"x": [1]}})
    with pytest.raises(sw.InputError, match=r"the columns of the curve `g` have \[1, 2\] values"):
        sw.plot.curves({"g": {"x": [1], "ratio": [1, 2]}})


def test_curves_differ_by_more_than_colour() -> None:
    columns = {"x": range(30), "ratio": [0.5] * 30, "low": [0.4] * 30, "high": [0.6] * 30}
    figure = sw.plot.curves({f"policy {n}": columns for n in range(9)}, title="many", xlabel="load")
    (axes,) = figure.axes
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == len(axes.lines) == len(axes.collections) == 9
    assert len({line.get_marker() for line in axes.lines[:8]}) == 8


def test_what_is_not_installed_is_named_with_its_extra() -> None:
    program = """
import sys
sys.modules["matplotlib.figure"] = sys.modules["matplotlib"] = sys.modules["pyarrow"] = None
import shiftwork as sw
run = sw.simulate(sw.TaskSet([sw.Task("a", "1ms", "2ms")], cpus=1), "p-edf", "4ms")
for what in (lambda: sw.plot.schedule(run), lambda: sw.plot.curves({}), run.job_table.to_arrow):
    try:
        what()
    except ImportError as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[0] == (
        'MissingExtraError shiftwork.plot needs matplotlib, which is not installed; try: pip install "shiftwork[plot]"'
    )
    assert lines[2].endswith('to_arrow() needs pyarrow, which is not installed; try: pip install "shiftwork[arrow]"')


def test_a_study_has_a_picture_for_each_family_and_criterion(tmp_path: Path) -> None:
    results = sw.Study(write(tmp_path, sets=4)).run(tmp_path / "out")
    figure = sw.plot.study(results)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "medium, 2 CPUs: hard",
        "heavy, 2 CPUs: hard",
        "medium, 2 CPUs: soft",
        "heavy, 2 CPUs: soft",
    ]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["G-EDF", "P-EDF, free"]
    drawn = {line.get_label(): line for line in figure.axes[1].lines}
    curve = results.curves("heavy", "hard")["P-EDF, free"]
    assert np.array_equal(np.asarray(drawn["P-EDF, free"].get_xydata()), np.column_stack((curve["x"], curve["ratio"])))
    for form, beginning in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        file = BytesIO()
        figure.savefig(file, format=form)
        assert file.getvalue().startswith(beginning)


def test_what_a_study_does_not_have_is_not_drawn(tmp_path: Path) -> None:
    study = sw.Study(write(tmp_path, sets=4))
    results = study.run(tmp_path / "out", shard="1/2")
    figure = sw.plot.study(results, families="heavy", criteria=["soft"])
    assert len(figure.axes) == 1 and "20 task sets missing" in figure.get_suptitle()
    with pytest.raises(sw.InputError, match="`families` names 'heavi'; there are medium, heavy"):
        sw.plot.study(results, families=["heavi"])
    with pytest.raises(sw.InputError, match="nothing to draw"):
        sw.plot.study(results, families=[])


def test_a_policy_looks_the_same_in_all_pictures(tmp_path: Path) -> None:
    text = """
    name = "the second is asked more"
    sets = 2
    [tasks]
    cpus = 2
    caps = [1, 2]
    utilizations = "uniform-heavy"
    [[policy]]
    name = "p-edf"
    criteria = ["hard"]
    [[policy]]
    name = "g-edf"
    """
    hard, soft = sw.plot.study(sw.Study.loads(text).run(tmp_path)).axes
    assert [line.get_label() for line in hard.lines] == ["p-edf", "g-edf"]
    assert [line.get_label() for line in soft.lines] == ["g-edf"]
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in (*hard.lines, *soft.lines)]
    assert looks[1] == looks[2] != looks[0]
