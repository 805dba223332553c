"""The compiled half of the package; private."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, final

__all__ = [
    "Overheads",
    "OwnTask",
    "Study",
    "TaskSet",
    "VERSION",
    "analyze",
    "generate",
    "policies",
    "read_results",
    "simulate",
    "span_ns",
]

_Range: TypeAlias = tuple[int, int, int]

VERSION: str

#: Name; cost, period, deadline, offset and jitter in nanoseconds; the list of CPUs; priority; how jobs arrive, and the
#: instants of releases if they are given.
_TaskFields: TypeAlias = tuple[
    str,
    tuple[int, int, int, int, int],
    str,
    int | None,
    tuple[Literal["periodic", "sporadic", "releases"], list[int] | None],
]

@final
class TaskSet:
    @staticmethod
    def read(text: str) -> TaskSet: ...
    def write(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def overheads(self) -> str | None: ...
    @property
    def utilization(self) -> str: ...
    @property
    def affinity_kind(
        self,
    ) -> Literal["global", "partitioned", "bi-level", "clustered", "laminar", "arbitrary"]: ...
    def tasks(self) -> list[_TaskFields]: ...
    def __eq__(self, other: object, /) -> bool: ...

#: Cost, period and deadline in nanoseconds; the list of CPUs; priority; what happens on an overrun.
_ReservationFields: TypeAlias = tuple[int, int, int | None, str | None, int | None, str]

@final
class OwnTask:
    @staticmethod
    def admit(name: str, reservation: _ReservationFields, socket: Path | None) -> OwnTask: ...
    def change(self, reservation: _ReservationFields) -> None: ...
    def wait_next(self) -> int: ...
    def dismiss(self) -> bool: ...
    def number(self) -> int: ...
    def guarantee(self) -> str: ...
    def release_ns(self) -> int: ...

@final
class Overheads:
    @staticmethod
    def read(text: str) -> Overheads: ...
    def write(self) -> str: ...
    @property
    def name(self) -> str: ...
    def tables(self) -> list[tuple[Literal["worst", "average"], str]]: ...
    def __eq__(self, other: object, /) -> bool: ...

class _Run(TypedDict):
    json: str
    jobs: dict[str, bytes] | None
    segments: dict[str, bytes] | None
    packing: list[str] | None
    refused: list[tuple[int, int, str]]

def policies() -> str: ...
def span_ns(text: str, positive: bool) -> int: ...
def analyze(
    set: TaskSet,
    policies: list[str],
    *,
    criterion: str,
    releases: str,
    max_steps: int,
    scale: bool,
    assign: bool,
    remedies: bool,
    overheads: tuple[str, Overheads] | None,
) -> str: ...
def simulate(
    set: TaskSet,
    policy_name: str,
    *,
    horizon_ns: int,
    seed: int,
    overheads: tuple[str, Overheads] | None,
    purpose: str,
    reserve_server: bool,
    jobs: bool,
    schedule: bool,
) -> _Run: ...
def generate(
    wanted: dict[str, object],
    *,
    seed: int,
    cell: int,
    index: int,
    count: int,
) -> list[TaskSet]: ...

class _ResultTable(TypedDict):
    name: str
    digest: str
    missing: int
    damaged: list[str]
    remarks: list[str]
    columns: dict[str, list[Any]]

@final
class Study:
    @staticmethod
    def read(text: str, path: str, *, files: dict[str, str] | None, sets: int | None) -> Study: ...
    @property
    def files(self) -> dict[str, str]: ...
    @property
    def name(self) -> str: ...
    @property
    def sets(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def digest(self) -> str: ...
    def cells(self) -> list[tuple[str, int, float, list[int]]]: ...
    def questions(self) -> list[tuple[str, str, Literal["hard", "soft", "simulated"]]]: ...
    def run(
        self,
        folder: str,
        *,
        threads: int,
        shard: tuple[int, int],
        progress: Callable[[int, int, float, float | None], object] | None,
    ) -> _ResultTable: ...
    def missing(self, folder: str, *, shard: tuple[int, int], seconds: float) -> list[list[_Range]]: ...
    def run_chunk(self, ranges: list[_Range]) -> bytes: ...
    def keep(self, folder: str, parts: list[bytes]) -> int: ...
    def merge(self, folder: str) -> tuple[Path, _ResultTable]: ...
    def results(self, folder: str) -> _ResultTable: ...

def read_results(path: str) -> _ResultTable: ...
