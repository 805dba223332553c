"""The compiled half of the package; private."""

from typing import Literal, TypeAlias, TypedDict, final

__all__ = ["Overheads", "TaskSet", "VERSION", "analyze", "generate", "policies", "simulate", "span_ns"]

VERSION: str

#: Name; cost, period, deadline and offset in nanoseconds; the list of CPUs; priority; how jobs arrive, and the
#: instants of releases if they are given.
_TaskFields: TypeAlias = tuple[
    str,
    tuple[int, int, int, int],
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
    criterion: str | None,
    max_steps: int,
    scale: bool,
    assign: bool,
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
