"""The calling thread as a task: its requests to the agent, when it wakes up, and which threads may use it."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import FrameType

import pytest
from fake_agent import FakeAgent, Refusal

import shiftwork as sw
from shiftwork import agent

MS = 1_000_000


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path) as fake:
        monkeypatch.setenv("SHIFTWORK_SOCKET", str(fake.path))
        yield fake


def test_what_is_said_arrives(fake: FakeAgent) -> None:
    with agent.admit(
        "control",
        cost="2ms",
        period=timedelta(milliseconds=10),
        deadline_ns=5 * MS,
        cpus={7, 0, 3},
        priority=4,
        on_overrun="signal",
    ) as task:
        assert (task.number, task.guarantee, repr(task)) == (0, "hard", "OwnTask('control')")
        task.change("1ms", "20ms", cpus="0-3")
    assert fake.calls == [
        (
            "Admit",
            {
                "name": "control",
                "thread": threading.get_native_id(),
                "reservation": {
                    "cost": 2 * MS,
                    "period": 10 * MS,
                    "deadline": 5 * MS,
                    "cpus": "0,3,7",
                    "priority": 4,
                    "on_overrun": "signal",
                },
            },
        ),
        (
            "Change",
            {
                "task": 0,
                "reservation": {"cost": 1 * MS, "period": 20 * MS, "cpus": "0-3", "on_overrun": "throttle"},
            },
        ),
        ("Dismiss", {"task": 0}),
    ]


def test_releases_are_whole_periods_apart(fake: FakeAgent) -> None:
    before = time.monotonic_ns()
    with agent.admit("control", cost="100us", period="3ms") as task:
        first = task.release_ns
        assert before <= first <= time.monotonic_ns()
        passed = 0
        for job in range(12):
            if job % 5 == 4:
                time.sleep(0.008)
            missed = task.wait_next()
            assert missed >= 2 or job % 5 != 4
            passed += missed + 1
            assert task.release_ns == first + passed * 3 * MS <= time.monotonic_ns()
        last = task.release_ns
        task.change(cost="100us", period="7ms")
        missed = task.wait_next()
        assert task.release_ns == last + (missed + 1) * 7 * MS


def test_reservation_that_does_not_fit_is_refused_with_the_reason(fake: FakeAgent) -> None:
    with agent.admit("control", cost="9ms", period="10ms") as task:
        with pytest.raises(agent.RefusedError, match=r"^refused: 1\.00 of 0\.95$") as refused:
            task.change(cost="10ms", period="10ms")
        assert refused.value.kind == "refused"
        again = pickle.loads(pickle.dumps(refused.value))
        assert (type(again), str(again), again.kind) == (agent.RefusedError, "refused: 1.00 of 0.95", "refused")
        with pytest.raises(sw.RefusedError):
            agent.admit("other", cost="1ms", period="10ms")
    assert fake.methods == ["Admit", "Change", "Admit", "Dismiss"]


@pytest.mark.parametrize("name", ["Refused", "Forbidden", "Missing", "Exhausted", "Broken"])
def test_every_no_of_the_agent_has_its_kind(fake: FakeAgent, name: str) -> None:
    said = {"Missing": "what", "Exhausted": "limit"}.get(name, "reason")

    def no(method: str) -> dict[str, object]:
        raise Refusal(name, **{said: "some words"})

    fake.instead = no
    with pytest.raises(agent.AgentError, match="some words") as raised:
        agent.admit("control", cost="2ms", period="10ms")
    assert raised.value.kind == name.lower()
    assert isinstance(raised.value, agent.RefusedError) == (name in ("Refused", "Exhausted"))


def test_without_an_agent_it_is_said_where_one_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(agent.NoAgentError, match="no daemon listens at") as raised:
        agent.admit("control", cost="2ms", period="10ms", socket=tmp_path / "missing")
    assert raised.value.kind == "no-agent"


def test_mistakes_do_not_reach_the_agent(fake: FakeAgent) -> None:
    with pytest.raises(sw.InputError, match="`cost` is lacking"):
        agent.admit("control", period="10ms")
    with pytest.raises(sw.InputError, match="`period` is lacking"):
        agent.admit("control", cost="10ms")
    with pytest.raises(sw.InputError, match="no unit"):
        agent.admit("control", cost=2, period="10ms")  # type: ignore[arg-type]
    with pytest.raises(sw.InputError, match="`on_overrun` is \"stop\""):
        agent.admit("control", cost="2ms", period="10ms", on_overrun="stop")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        agent.admit("control", cost="2ms", period="10ms", priority=-1)
    assert fake.calls == []


def test_a_dismissed_task_is_over(fake: FakeAgent) -> None:
    task = agent.admit("control", cost="2ms", period="10ms")
    task.dismiss()
    task.dismiss()
    for use in (task.wait_next, lambda: task.guarantee, lambda: task.change("1ms", "10ms")):
        with pytest.raises(sw.InputError, match="the task is dismissed"):
            use()
    task = agent.admit("control", cost="2ms", period="10ms")
    del task
    assert fake.methods == ["Admit", "Dismiss", "Admit", "Dismiss"]


def test_what_went_wrong_first_is_raised(fake: FakeAgent) -> None:
    def broken(method: str) -> dict[str, object]:
        raise Refusal("Broken", reason="gone")

    with pytest.raises(ZeroDivisionError), agent.admit("control", cost="2ms", period="10ms"):
        fake.instead = broken
        raise ZeroDivisionError
    fake.instead = None
    with pytest.raises(agent.AgentError, match="gone"), agent.admit("control", cost="2ms", period="10ms"):
        fake.instead = broken


def test_other_threads_get_an_error_that_names_the_owner(fake: FakeAgent) -> None:
    raised: list[agent.AgentError] = []

    def other(task: agent.OwnTask) -> None:
        for use in (task.wait_next, lambda: task.release_ns, lambda: task.change("1ms", "10ms"), task.dismiss):
            try:
                use()
            except agent.AgentError as error:
                raised.append(error)

    with agent.admit("control", cost="2ms", period="10ms") as task:
        thread = threading.Thread(target=other, args=(task,))
        thread.start()
        thread.join()
        assert [error.kind for error in raised] == ["other-thread"] * 4
        assert f"thread {threading.get_native_id()} and" in str(raised[0])
        assert task.wait_next() >= 0
    assert fake.methods == ["Admit", "Dismiss"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_cannot_end_it(fake: FakeAgent) -> None:
    with agent.admit("control", cost="2ms", period="10ms") as task:
        child = os.fork()
        if child == 0:
            # It must not go on with the tests of its parent, whatever happens.
            try:
                task.dismiss()
            except agent.AgentError as error:
                del task
                os._exit(0 if error.kind == "other-thread" else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert fake.methods == ["Admit"]


class Interrupted(Exception):
    pass


def test_while_it_sleeps_other_threads_go_on_and_signals_are_heard(fake: FakeAgent) -> None:
    """The release is far away: only another thread, which needs the interpreter's lock, can end the sleep."""
    over = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        # Others may come before it sleeps, and one after it was woken up.
        if frame is not None and frame.f_code is agent.OwnTask.wait_next.__code__ and not over.is_set():
            over.set()
            raise Interrupted

    def disturb(main: int) -> None:
        while not over.wait(0.01):
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with agent.admit("control", cost="2ms", period="60s") as task:
            release = task.release_ns
            thread = threading.Thread(target=disturb, args=(threading.get_ident(),))
            thread.start()
            with pytest.raises(Interrupted):
                task.wait_next()
            thread.join()
            assert task.release_ns == release, "it was not reached"
    finally:
        over.set()
        signal.signal(signal.SIGUSR1, before)
    assert fake.methods == ["Admit", "Dismiss"]


def example(path: Path, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "examples/programs/control.py"],
        env={**os.environ, "SHIFTWORK_SOCKET": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_does_its_jobs(fake: FakeAgent, root: Path) -> None:
    ended = example(fake.path, root)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("guarantee: hard\nskipped releases: ")
    assert fake.methods == ["Admit", "Change", "Dismiss"]
    costs = [parameters["reservation"]["cost"] for _, parameters in fake.calls[:2]]
    assert costs == [2 * MS, 4 * MS]


def test_the_example_goes_on_and_says_why_it_is_refused(fake: FakeAgent, root: Path, tmp_path: Path) -> None:
    fake.shares[7] = 0.7
    ended = example(fake.path, root)
    assert (ended.returncode, ended.stderr) == (0, "it goes on with 2 ms: refused: 1.10 of 0.95\n")
    fake.shares[7] = 0.9
    ended = example(fake.path, root)
    assert (ended.returncode, ended.stderr) == (1, "refused: 1.10 of 0.95\n")
    ended = example(tmp_path / "missing", root)
    assert ended.returncode == 1
    assert ended.stderr.startswith("no daemon listens at ")
