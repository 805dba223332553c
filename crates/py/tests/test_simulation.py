"""Simulations: what the command line says, as columns; and what people may do meanwhile."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import shiftwork as sw


def test_columns_agree_with_the_counts(rover: sw.TaskSet) -> None:
    run = sw.simulate(rover, "strong-edf", "1s")
    jobs, schedule = run.job_table, run.schedule
    assert jobs.rows == run.jobs == sum(task.jobs for task in run.tasks)
    assert list(jobs) == [
        "task",
        "job",
        "release_ns",
        "deadline_ns",
        "start_ns",
        "finish_ns",
        "response_ns",
        "tardiness_ns",
    ]
    assert list(schedule) == ["task", "job", "cpu", "start_ns", "end_ns"]
    done = jobs.finish_ns >= 0
    assert int(done.sum()) == run.completed
    assert np.array_equal(jobs.response_ns[done], (jobs.finish_ns - jobs.release_ns)[done])
    assert np.array_equal(jobs.tardiness_ns[done], np.maximum(jobs.finish_ns - jobs.deadline_ns, 0)[done])
    for task in run.tasks:
        response = jobs.of(task.name).response_ns
        assert task.response_ns is not None
        assert (task.response_ns.min, task.response_ns.max) == (response[response >= 0].min(), response.max())


def test_every_job_is_served_for_its_cost_by_cpus_that_it_may_use(rover: sw.TaskSet) -> None:
    run = sw.simulate(rover, "hpa-edf", "2s")
    served: dict[tuple[int, int], int] = {}
    schedule = run.schedule
    for task, job, cpu, start, end in zip(*schedule.values(), strict=True):
        assert 0 <= start < end <= run.horizon_ns
        if rover[int(task)].affinity == "0":
            assert cpu == 0
        served[int(task), int(job)] = served.get((int(task), int(job)), 0) + int(end - start)
    jobs = run.job_table
    for task, job, finish in zip(jobs.task, jobs.job, jobs.finish_ns, strict=True):
        if finish >= 0:
            assert served[int(task), int(job)] == rover[int(task)].cost_ns
    for cpu in range(run.cpus):
        mine = schedule.cpu == cpu
        assert (schedule.start_ns[mine][1:] >= schedule.end_ns[mine][:-1]).all(), "one job at a time"


def test_unfinished_jobs_have_no_times(rover: sw.TaskSet) -> None:
    late = sw.TaskSet([sw.Task("a", "3ms", "4ms"), sw.Task("b", "3ms", "4ms")], cpus=1)
    run = sw.simulate(late, "p-edf", "10ms")
    jobs = run.job_table
    open_ = jobs.finish_ns < 0
    assert int(open_.sum()) == run.jobs - run.completed > 0
    for column in ("finish_ns", "response_ns", "tardiness_ns"):
        assert (jobs[column][open_] == -1).all()
    assert run.deadline_misses > 0
    table = jobs.to_arrow()
    assert table.column("finish_ns").null_count == int(open_.sum())
    assert set(table.column("task").to_pylist()) == {"a", "b"}
    assert table.column("release_ns").null_count == 0


def test_the_dictionary_has_the_keys_of_the_command_line(rover: sw.TaskSet) -> None:
    run = sw.simulate(rover, "g-edf".replace("g-", "strong-"), "100ms")
    found = run.to_dict()
    assert list(found)[:5] == ["schema_version", "policy", "cpus", "horizon_ns", "jobs"]
    assert found["tasks"][0]["response_ns"].keys() == {"min", "mean", "p99", "max"}
    assert json.loads(json.dumps(found)) == found
    found["tasks"].clear()
    assert run.to_dict()["tasks"], "a copy"


def test_the_same_seed_gives_the_same_run() -> None:
    random = sw.TaskSet([sw.Task("a", "3ms", "4ms", arrival="sporadic", work={"run": ["1ms", "3ms"]})], cpus=1)
    first, same, other = (sw.simulate(random, "p-edf", "1s", seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert hash(first) == hash(same)
    assert first.job_table == same.job_table != other.job_table
    assert first.schedule != first.job_table
    assert not np.array_equal(first.job_table.release_ns, other.job_table.release_ns)


def test_results_can_be_sent_elsewhere(rover: sw.TaskSet) -> None:
    run = sw.simulate(rover, "p-edf", "100ms")
    again = pickle.loads(pickle.dumps(run))
    assert again.to_dict() == run.to_dict()
    assert again.packing == run.packing == ("0", "0", "1")
    for name, column in run.job_table.items():
        assert np.array_equal(again.job_table[name], column)
    assert again.job_table.names == ("control", "vision", "logging")


def test_columns_cannot_be_changed(rover: sw.TaskSet) -> None:
    jobs = sw.simulate(rover, "p-edf", "100ms").job_table
    with pytest.raises(ValueError, match="read-only"):
        jobs.task[0] = 7
    with pytest.raises(AttributeError, match="no column `colour`; there are task, job"):
        _ = jobs.colour
    with pytest.raises(KeyError):
        jobs.of("missing")
    assert "finish_ns" in dir(jobs)


def test_what_is_not_kept_is_missed_politely(rover: sw.TaskSet) -> None:
    run = sw.simulate(rover, "p-edf", "100ms", jobs=False, schedule=False)
    with pytest.raises(sw.ShiftworkError, match="jobs=True"):
        _ = run.job_table
    with pytest.raises(sw.ShiftworkError, match="schedule=True"):
        _ = run.schedule
    assert run.jobs == 15


def test_servers_have_deadlines_of_their_own() -> None:
    one = sw.TaskSet([sw.Task("a", "3ms", "4ms", work={"run": "5ms"})], cpus=1)
    assert "server_deadline_ns" in sw.simulate(one, "dl-linux", "100ms").job_table
    assert "server_deadline_ns" not in sw.simulate(one, "p-edf", "100ms").job_table


def test_policies_are_refused_with_reasons(rover: sw.TaskSet) -> None:
    with pytest.raises(sw.PolicyError, match="g-edf"):
        sw.simulate(rover, "g-edf", "1s")
    with pytest.raises(sw.PolicyError, match="nonsense"):
        sw.simulate(rover, "nonsense", "1s")
    with pytest.raises(sw.PolicyError, match="names no policy"):
        sw.simulate(rover)
    named = sw.TaskSet(rover.tasks, cpus=2, policy="P-EDF")
    assert sw.simulate(named, duration="10ms").policy == "p-edf"


def test_arguments_are_refused_with_reasons(rover: sw.TaskSet) -> None:
    with pytest.raises(sw.InputError, match="`duration` is 5, which has no unit"):
        sw.simulate(rover, "p-edf", 5)  # type: ignore[arg-type]
    with pytest.raises(sw.InputError, match="`seed` is -1"):
        sw.simulate(rover, "p-edf", seed=-1)
    with pytest.raises(sw.InputError, match="write \"worst\" or \"average\""):
        sw.simulate(rover, "p-edf", overheads_use="best")  # type: ignore[arg-type]


def test_refused_changes_are_reported() -> None:
    tasks = [sw.Task("a", "1ms", "4ms"), sw.Task("b", "9ms", "10ms")]
    changed = sw.TaskSet(
        tasks,
        cpus=2,
        clusters=["0", "1"],
        policy="dl-sp",
        actions=[{"at": "2ms", "set-attr": {"task": "a", "cost": "4ms"}}, {"at": "5ms", "move": {"task": "a", "cluster": 1}}],
    )
    with pytest.raises(sw.PolicyError):
        sw.simulate(changed, duration="20ms")
    kept = sw.TaskSet(
        [sw.Task("a", "3ms", "4ms", affinity="0"), sw.Task("b", "9ms", "10ms", affinity="1")],
        cpus=2,
        policy="dl-sp",
        clusters=["0", "1"],
        actions=[{"at": "5ms", "move": {"task": "a", "cluster": 1}}],
    )
    run = sw.simulate(kept, duration="20ms")
    assert [(refused.at_ns, refused.action) for refused in run.refused] == [(5_000_000, 0)]
    assert run.refused[0].reason


def test_overheads_slow_things_down(root: Path) -> None:
    server = sw.load(root / "examples/server/server.toml")
    assert server.overheads == "overheads.toml", "found beside the file"
    slow = sw.simulate(server, duration="1s")
    free = sw.simulate(server, duration="1s", overheads="none")
    path = root / "examples/server/overheads.toml"
    same = sw.simulate(server, duration="1s", overheads=path)
    loaded = sw.simulate(server, duration="1s", overheads=sw.Overheads.load(path))
    assert slow.to_dict() == same.to_dict() == loaded.to_dict() != free.to_dict()
    sent = pickle.loads(pickle.dumps(server))
    assert sw.simulate(sent, duration="1s").to_dict() == slow.to_dict(), "still found"


def test_free_scheduling_is_never_taken_for_measured(rover: sw.TaskSet) -> None:
    costs = sw.Overheads.loads('name = "mine"\n[worst.g-edf]\nschedule = { base = "10us" }\n')
    assert pickle.loads(pickle.dumps(costs)) == costs
    with pytest.raises(sw.InputError, match=r"mine: has no overheads for p-edf; write a table \[worst.p-edf\]"):
        sw.simulate(rover, "p-edf", overheads=costs)
    with pytest.raises(sw.InputError, match=r"\(there are: none\)"):
        sw.simulate(rover, "p-edf", overheads=costs, overheads_use="average")


def busy() -> sw.TaskSet:
    """So much to do that no machine simulates an hour of it in seconds."""
    return sw.TaskSet([sw.Task(f"t{n}", "50us", "100us") for n in range(8)], cpus=8)


def test_other_threads_go_on_meanwhile() -> None:
    lead = 200
    seen: list[bool] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set() and len(seen) < lead:
            seen.append(True)
            time.sleep(0)

    watcher = threading.Thread(target=watch)
    original = signal.getsignal(signal.SIGINT)
    watcher.start()
    sw.simulate(busy(), "g-edf", "60s", jobs=False, schedule=False)
    over.set()
    watcher.join()
    assert signal.getsignal(signal.SIGINT) is original
    assert len(seen) == lead


LONG = {
    "simulate": "sw.simulate(busy, 'g-edf', '3600s', jobs=False, schedule=False)",
    "analyze": "sw.analyze(sw.generate(16, 200, 15, deadlines='constrained', affinities='arbitrary'), scale=True)",
    # Nothing is feasible here, and to see that takes many attempts.
    "generate": "sw.generate(64, 400, 63.9, affinities='partitioned', feasible=True, attempts=2_000_000)",
}


@pytest.mark.parametrize("verb", LONG)
def test_an_interrupt_is_heard(verb: str) -> None:
    program = f"""
import signal, threading
import shiftwork as sw
busy = sw.loads({busy().to_toml()!r})
threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
try:
    {LONG[verb]}
except KeyboardInterrupt:
    # The process is as good as new.
    print(sw.simulate(busy, "g-edf", "1ms").jobs)
"""
    # What may go on unseen ends with the process.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "80\n", "")


def test_protocol_of_a_mutex_bounds_priority_inversion() -> None:
    lock, unlock = {"lock": "bus"}, {"unlock": "bus"}

    def longest(protocol: str) -> int:
        tasks = [
            sw.Task("high", "2ms", "20ms", offset="2ms", work={"phases": [lock, {"run": "2ms"}, unlock]}),
            sw.Task("middle", "9ms", "40ms", offset="2ms"),
            sw.Task("low", "4ms", "50ms", work={"phases": [lock, {"run": "4ms"}, unlock]}),
        ]
        bus = {"name": "bus", "protocol": protocol}
        found = sw.simulate(sw.TaskSet(tasks, cpus=1, resources=[bus]), "p-fp", "20ms")
        response = found.task("high").response_ns
        assert response is not None
        return response.max

    assert [longest(name) for name in ("none", "inheritance", "ceiling")] == [13_000_000, 4_000_000, 4_000_000]


def test_time_in_which_jobs_spin_is_counted() -> None:
    section = [{"lock": "queue"}, {"run": "3ms"}, {"unlock": "queue"}]
    tasks = [
        sw.Task("writer", "3ms", "20ms", affinity="0", work={"phases": section}),
        sw.Task("reader", "3ms", "20ms", affinity="1", offset="1ms", work={"phases": section}),
    ]
    queue = {"name": "queue", "protocol": "spin"}
    run = sw.simulate(sw.TaskSet(tasks, cpus=2, resources=[queue]), "p-fp", "40ms")
    assert [task.spinning_ns for task in run.tasks] == [0, 4_000_000]
