"""What several tests share."""

import signal
from pathlib import Path

import pytest

import shiftwork as sw


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard() -> None:
    """Also where the parent process ignores Ctrl-C, as shells do for background jobs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return Path(__file__).resolve().parents[3]


@pytest.fixture
def rover() -> sw.TaskSet:
    """Three tasks on two CPUs, one of them bound to CPU 0."""
    return sw.TaskSet(
        name="rover",
        cpus=2,
        tasks=[
            sw.Task("control", cost="2ms", period="10ms", affinity="0"),
            sw.Task("vision", cost="25ms", period="40ms"),
            sw.Task("logging", cost="10ms", period="50ms"),
        ],
    )
