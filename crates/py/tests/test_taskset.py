"""Task sets: what goes in comes out again, and mistakes are refused with words that help."""

import copy
import pickle
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import shiftwork as sw


def test_distances_stand_for_a_period_and_survive_writing() -> None:
    burst = sw.Task("burst", "1ms", distances=["2ms", "30ms"], deadline="50ms")
    random = sw.Task("random", "1ms", distances_ns=[5, 2_000_000_000], deadline="3ms", arrival="sporadic")
    made = sw.TaskSet([burst, random], cpus=1)
    assert made.utilization == Fraction(1, 15) + Fraction(1, 1000)
    for read in (made, sw.loads(made.to_toml())):
        assert (read["burst"].distances_ns, read["burst"].period_ns) == ((2_000_000, 30_000_000), 2_000_000)
        assert (read["random"].arrival, read["random"].utilization) == ("sporadic", Fraction(1, 1000))
    with pytest.raises(sw.InputError, match="`period` and `distances`"):
        sw.Task("a", cost="1ms", period="9ms", distances=["9ms"])


def test_durations_are_texts_timedeltas_or_nanoseconds() -> None:
    same = [
        sw.Task("a", cost="1500us", period="2ms"),
        sw.Task("a", cost=timedelta(microseconds=1500), period=timedelta(milliseconds=2)),
        sw.Task("a", cost_ns=1_500_000, period_ns=2_000_000),
        sw.Task("a", "1.5ms", "2ms", "2ms"),
    ]
    assert same == [same[0]] * 4
    assert len(set(same)) == 1
    assert same[0].utilization == Fraction(3, 4)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"cost": 5}, "`cost` is 5, which has no unit"),
        ({"cost": "5"}, "`cost`: `5` has no unit; write a number with its unit"),
        ({"cost": "0ms"}, "`cost`: `0ms` is no time at all"),
        ({"cost": "soon"}, "`cost`: `soon` is no span of time"),
        ({"cost": timedelta(0)}, "`cost` is 0 ns; write 1 to"),
        ({"cost": timedelta(-1)}, "`cost` is -86400000000000 ns; write 1 to"),
        ({"cost": "1ms", "cost_ns": 5}, "`cost` and `cost_ns` are both given"),
        ({"cost_ns": 1.5}, "`cost_ns` is 1.5; write a whole number of nanoseconds"),
        ({"cost_ns": True}, "`cost_ns` is True; write a whole number"),
        ({"cost_ns": 2**62}, "write 1 to 4611686018427387903"),
        ({}, "task `a` lacks `cost`"),
        ({"cost": "1ms", "offset": 3}, "`offset` is 3, which has no unit"),
        ({"cost": "1ms", "releases": [4]}, "`releases` is 4, which has no unit"),
    ],
)
def test_what_is_no_duration_is_refused(keywords: dict[str, object], words: str) -> None:
    with pytest.raises(sw.InputError) as caught:
        sw.Task("a", period="9ms", **keywords)  # type: ignore[arg-type]
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (sw.Task("a", "5ms", "4ms"), "task `a` costs 5ms in each period of 4ms"),
        (sw.Task("a", "1ms", "4ms", affinity="7"), "task `a`: `affinity`"),
        (sw.Task("a", "1ms", "4ms", affinity="big"), "task `a`: `affinity`"),
        (sw.Task("a", "1ms", "4ms", affinity=[]), "task `a`: `affinity`"),
        (sw.Task("a", "1ms", "4ms", priority=0), "task `a`: `priority` is the number 0"),
        (sw.Task("a", "1ms", "4ms", start_cpu=9), "task `a`: `start-cpu` is the number 9"),
        (sw.Task("a", "1ms", "4ms", work={"walk": "1ms"}), "task `a`: `work` has no key `walk`"),
        (sw.Task("a", "1ms", "4ms", arrival="sometimes"), "task `a`: `arrival` is \"sometimes\""),  # type: ignore[arg-type]
        ("a", "'a' is no task"),
    ],
)
def test_a_task_that_cannot_be_is_named_without_a_line(task: sw.Task, words: str) -> None:
    with pytest.raises(sw.InputError) as caught:
        sw.TaskSet([sw.Task("fine", "1ms", "2ms"), task], cpus=2)
    assert words in str(caught.value)
    assert caught.value.line is None
    assert "line " not in str(caught.value)


def test_two_tasks_have_different_names() -> None:
    with pytest.raises(sw.InputError, match="`a`"):
        sw.TaskSet([sw.Task("a", "1ms", "2ms"), sw.Task("a", "1ms", "3ms")], cpus=1)


def test_everything_that_a_file_says_comes_back() -> None:
    tasks = [
        sw.Task("a, \"b\"\n\u00b5\x7f", "1ms", "4ms", "3ms", offset="1us", jitter="5us", affinity="little", priority=3),
        sw.Task("s", "1ms", "4ms", arrival="sporadic", on_overrun="continue", start_cpu=1),
        sw.Task("r", "1ms", "4ms", releases=["1ms", timedelta(milliseconds=9)], affinity=[3, 0, 0]),
        sw.Task("u", "1ms", "4ms", work={"run": ["300us", timedelta(microseconds=400)]}),
        sw.Task("t", "1ms", "4ms", thread={"process": "rover", "name": "camera", "number": 2}),
        sw.Task("p", "1ms", "4ms", work={"phases": [{"run": "1ms"}, {"sleep": "2ms"}]}, command=["./p", "-x"]),
    ]
    made = sw.TaskSet(
        tasks,
        cpus=4,
        name="all",
        policy="dl-sp",
        sets={"little": "0-1"},
        clusters=["0-1", "2-3"],
        capacities=[1.0, 1, 0.5, 0.5],
        frequency="grub-pa",
        tick_unit="1us",
        reserve=0.1,
        quantum="2ms",
        repairs=["admission"],
        lagging="reset",
        actions=[{"at": "92ms", "set-affinity": {"task": "s", "to": "1"}}, {"at": "1s", "leave": "u"}],
    )
    assert sw.loads(made.to_toml()) == made
    assert (made.name, made.cpus, made.policy, len(made)) == ("all", 4, "dl-sp", 6)
    for written, read in zip(tasks, made.tasks, strict=True):
        assert read.name == written.name
        assert read.releases_ns == written.releases_ns
        assert (read.deadline_ns, read.offset_ns) == (written.deadline_ns, written.offset_ns)
        assert read.jitter_ns == written.jitter_ns
        assert (read.arrival, read.on_overrun) == (written.arrival, written.on_overrun)
        assert (read.priority, read.start_cpu, read.command) == (written.priority, written.start_cpu, written.command)
        assert read.thread == written.thread
    assert [task.affinity for task in made] == ["0,1", "0-3", "0,3", "0-3", "0-3", "0-3"]
    assert made["u"].work == {"run": ["300us", "400us"]}
    # What is read can be written again, task by task.
    again = sw.TaskSet(made.tasks, cpus=4)
    assert again.tasks == made.tasks
    for line in ('tick-unit = "1us"', 'at = "92ms"', 'lagging = "reset"', 'frequency = "grub-pa"', 'quantum = "2ms"'):
        assert line in made.to_toml()


def test_task_sets_are_values(rover: sw.TaskSet) -> None:
    same = pickle.loads(pickle.dumps(rover))
    assert same == rover and hash(same) == hash(rover) and copy.deepcopy(rover) == rover
    other = sw.TaskSet(rover.tasks, cpus=2)
    assert other != rover, "the name differs"
    assert rover != "rover"
    assert {rover: 1}[same] == 1


def test_tasks_are_found_by_place_and_by_name(rover: sw.TaskSet) -> None:
    assert rover[0] is rover["control"]
    assert [task.name for task in rover[1:]] == ["vision", "logging"]
    with pytest.raises(KeyError):
        rover["missing"]
    with pytest.raises(IndexError):
        rover[3]


def test_utilization_is_exact() -> None:
    thirds = [sw.Task(name, cost_ns=1, period_ns=3) for name in "abc"]
    assert sw.TaskSet(thirds, cpus=1).utilization == 1
    assert sw.TaskSet(cpus=1).utilization == 0


@pytest.mark.parametrize(
    ("affinities", "kind"),
    [
        ([None, None], "global"),
        (["0", "3"], "partitioned"),
        (["0", None], "bi-level"),
        (["0-1", "2-3"], "clustered"),
        (["0-1", "0"], "laminar"),
        (["0-1", "1-2"], "arbitrary"),
    ],
)
def test_the_kind_of_affinities_is_known(affinities: list[str | None], kind: str) -> None:
    tasks = [sw.Task(f"t{n}", "1ms", "9ms", affinity=cpus) for n, cpus in enumerate(affinities)]
    assert sw.TaskSet(tasks, cpus=4).affinity_kind == kind


def test_a_mistake_in_a_text_has_a_place() -> None:
    with pytest.raises(sw.InputError) as caught:
        sw.loads('[platform]\ncpus = 2\n[[task]]\nname = "a"\ncost = "1ms"\nperod = "2ms"\n')
    error = caught.value
    assert (error.line, error.column, error.path) == (6, 1, None)
    assert str(error).startswith("line 6, column 1: `task` has no key `perod`; did you mean `period`? accepted: name, cost")
    assert isinstance(error, sw.ShiftworkError) and isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line, again.column) == (str(error), 6, 1)


def test_all_mistakes_of_a_text_are_raised_in_its_order() -> None:
    with pytest.raises(sw.InputError) as caught:
        sw.loads('[platform]\ncpus = 0\n[scheduler]\npolicy = "g-efd"\n[[task]]\nname = "a"\ncost = 1\nperiod = "2ms"\n')
    error = caught.value
    assert [(line, column) for _, line, column in error.mistakes] == [(2, 8), (4, 10), (7, 8)]
    assert len(str(error).splitlines()) == 3
    assert "did you mean `g-edf`?" in error.others[0][0]
    assert pickle.loads(pickle.dumps(error)).mistakes == error.mistakes


def test_a_mistake_in_a_file_has_a_path(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text("cpus = 2", encoding="utf-8")
    with pytest.raises(sw.InputError) as caught:
        sw.load(path)
    assert str(caught.value).startswith(f"{path}: line 1, column 1: ")
    assert caught.value.path == str(path)
    path.write_bytes(b"\xff")
    with pytest.raises(sw.InputError, match="byte 0 is no UTF-8"):
        sw.load(path)
    with pytest.raises(FileNotFoundError):
        sw.load(tmp_path / "nowhere.toml")


def test_files_are_written_and_read(rover: sw.TaskSet, tmp_path: Path) -> None:
    path = tmp_path / "rover.toml"
    rover.save(path)
    assert sw.load(str(path)) == rover
    path.write_text("\ufeff" + rover.to_toml(), encoding="utf-8")
    assert sw.load(path) == rover


def test_every_example_is_read(root: Path) -> None:
    files = sorted((root / "examples").rglob("*.toml"))
    sets = [sw.load(path) for path in files if "overheads" not in path.name and "niagara" not in path.name]
    assert len(sets) >= 10
    for one in sets:
        assert sw.loads(one.to_toml()) == one
        assert pickle.loads(pickle.dumps(one)).tasks == one.tasks


def test_task_sets_are_shown(rover: sw.TaskSet) -> None:
    assert repr(rover) == "TaskSet('rover', cpus=2, tasks=3, utilization=1.025, affinities='bi-level')"
    page = sw.TaskSet([sw.Task("<b>", "1500us", "2s")], cpus=1)._repr_html_()
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert "<td>1.5 ms</td><td>2 s</td>" in page


def test_triggered_tasks_have_the_period_of_their_sources_in_a_set() -> None:
    camera = sw.Task("camera", cost="2ms", period="33ms")
    lidar = sw.Task("lidar", cost="1ms", period="50ms")
    fusion = sw.Task("fusion", cost="3ms", triggered_by={"all": ["camera", "lidar"]}, queue=2)
    planner = sw.Task("planner", cost="4ms", deadline="20ms", triggered_by="fusion")
    assert (fusion.period_ns, fusion.utilization) == (0, Fraction(0))
    chain = {"name": "drive", "tasks": ["camera", "fusion", "planner"], "reaction": "200ms"}
    made = sw.TaskSet([camera, lidar, fusion, planner], cpus=2, chains=[chain])
    assert [task.period_ns for task in made] == [33_000_000, 50_000_000, 50_000_000, 50_000_000]
    assert (made["fusion"].deadline_ns, made["planner"].deadline_ns) == (50_000_000, 20_000_000)
    assert (made["fusion"].queue, made["planner"].triggered_by) == (2, "fusion")
    assert 'tasks = ["camera", "fusion", "planner"]' in made.to_toml()
    assert sw.loads(made.to_toml()) == made
    assert sw.TaskSet(made.tasks, cpus=2, chains=[chain]) == made
    with pytest.raises(sw.InputError, match="`period` and `triggered_by`"):
        sw.Task("a", cost="1ms", period="9ms", triggered_by="b")
    with pytest.raises(sw.InputError, match="task `a` triggers itself"):
        sw.TaskSet([sw.Task("a", cost="1ms", triggered_by="a")], cpus=1)
