"""Random task sets: the same as those of the command line, one by one or many."""

import hashlib
from itertools import islice

import pytest

import shiftwork as sw


def test_a_key_names_a_task_set() -> None:
    first = sw.generate(4, 6, 2.5, seed=9, cell=2, index=5)
    assert first == sw.generate(4, 6, 2.5, seed=9, cell=2, index=5)
    others = [
        sw.generate(4, 6, 2.5, seed=9),
        sw.generate(4, 6, 2.5, seed=9, cell=2),
        sw.generate(4, 6, 2.5, cell=2, index=5),
    ]
    assert first not in others
    assert first.name == "generated 9-2-5"


def test_task_sets_are_those_of_the_command_line() -> None:
    # shiftwork generate --cpus 8 --tasks 20 --utilization 6 --affinities three-level --seed 3 | sha256sum
    drawn = sw.generate(8, 20, 6, affinities="three-level", seed=3).to_toml()
    assert hashlib.sha256(drawn.encode()).hexdigest()[:16] == "87c2ef6af8b62aa1"


def test_several_are_the_same_as_one_by_one() -> None:
    several = list(sw.generate(4, 6, 2.5, count=600, seed=3, cell=1, index=10))
    assert len(several) == 600
    for place in (0, 1, 2, 255, 511, 599):
        assert several[place] == sw.generate(4, 6, 2.5, seed=3, cell=1, index=10 + place)
    assert list(sw.generate(count=0)) == []


def test_an_iterator_draws_only_what_is_asked_for() -> None:
    endless = sw.generate(count=10**15)
    assert [one.name for one in islice(endless, 3)] == [f"generated 1-0-{index}" for index in range(3)]


@pytest.mark.parametrize(
    "method",
    [
        "randfixedsum",
        "uunifast-discard",
        "uniform-light",
        "uniform-medium",
        "uniform-heavy",
        "bimodal-light",
        "bimodal-medium",
        "bimodal-heavy",
    ],
)
def test_utilizations_are_as_asked(method: sw.generation.Method) -> None:
    one = sw.generate(4, 12, 3, method=method, seed=4)
    assert float(one.utilization) <= 3.001
    if method in ("randfixedsum", "uunifast-discard"):
        assert len(one) == 12 and float(one.utilization) > 2.99


def test_options_are_followed() -> None:
    one = sw.generate(
        8,
        30,
        5,
        affinities="clustered",
        cluster_size=4,
        deadlines="constrained",
        period_min="10ms",
        period_max_ns=50_000_000,
        granularity="5ms",
        periods="uniform",
        min_cost="100us",
        feasible=True,
    )
    assert {task.affinity for task in one} == {"0-3", "4-7", "0-7"}
    assert {task.period_ns // 5_000_000 for task in one} <= set(range(2, 11))
    assert all(task.period_ns % 5_000_000 == 0 and task.cost_ns >= 100_000 for task in one)
    assert any(task.deadline_ns < task.period_ns for task in one)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpus": 0}, "a platform cannot have 0 CPUs; write 1 to"),
        ({"utilization": -1.0}, "`utilization` is -1, which is no load"),
        ({"utilization": float("nan")}, "`utilization` is NaN, which is no load"),
        ({"tasks": 2, "utilization": 3.0}, "write"),
        ({"method": "magic"}, '`method` is "magic"; write one of randfixedsum, uunifast, uunifast-discard, uniform-light'),
        ({"affinities": "square"}, '`affinities` is "square"; write one of global, partitioned'),
        ({"periods": "square"}, '`periods` is "square"; write one of uniform, log-uniform'),
        ({"deadlines": "square"}, '`deadlines` is "square"; write one of implicit'),
        ({"period_min": 5}, "`period_min` is 5, which has no unit"),
        ({"period_min": "2s"}, "periods cannot be from 2s to 1s"),
        ({"seed": -1}, "`seed` is -1"),
        ({"count": -1}, "`count` is -1"),
        ({"affinities": "partitioned", "cpus": 2, "utilization": 2.0, "feasible": True, "attempts": 3}, "none of 3"),
    ],
)
@pytest.mark.parametrize("count", [None, 5])
def test_what_cannot_be_drawn_is_refused_at_once(options: dict[str, object], words: str, count: int | None) -> None:
    with pytest.raises(sw.InputError) as caught:
        sw.generate(**{"count": count, **options})  # type: ignore[call-overload]
    assert words in str(caught.value)


def test_an_iterator_stops_where_nothing_can_be_drawn() -> None:
    options = {"affinities": "partitioned", "feasible": True, "attempts": 4, "seed": 5}
    drawn = []
    with pytest.raises(sw.InputError, match="none of 4"):
        for one in sw.generate(2, 6, 1.6, count=500, **options):  # type: ignore[call-overload]
            drawn.append(one)
    # In the midst of what is drawn at once.
    assert len(drawn) == 9
    with pytest.raises(sw.InputError, match="none of 4"):
        sw.generate(2, 6, 1.6, index=9, **options)  # type: ignore[call-overload]
