"""Tables of equally long columns, for NumPy, Arrow and everything that takes a mapping of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import missing

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Column", "Columns", "Table"]

#: A column of 64-bit integers, which cannot be changed.
Column = NDArray[np.int64]

#: What stands for a time that there is not.
MISSING = -1

_C = TypeVar("_C", bound=NDArray[Any])


class Columns(Mapping[str, _C]):
    """A mapping from names to equally long NumPy columns, which are attributes, too."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, _C]) -> None:
        self._columns = dict(columns)

    def __getitem__(self, name: str) -> _C:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """How many columns there are; :attr:`rows` is the number of rows."""
        return len(self._columns)

    def __getattr__(self, name: str) -> _C:
        try:
            # Not while it is being made, or unpickled.
            return object.__getattribute__(self, "_columns")[name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"no column `{name}`; there are {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self._columns.values())))


class Table(Columns[Column]):
    """A table: a mapping from names to NumPy columns, which are attributes, too.

    ``task`` is the place of the task in its set, ``names`` has the names. A time that there is not, as the
    finish of an unfinished job, is -1.

    >>> import shiftwork as sw
    >>> one = sw.TaskSet([sw.Task("a", cost="1ms", period="5ms")], cpus=1)
    >>> jobs = sw.simulate(one, "p-edf", "12ms").job_table
    >>> jobs
    Table(3 rows: task, job, release_ns, deadline_ns, start_ns, finish_ns, response_ns, tardiness_ns)
    >>> jobs.release_ns.tolist()
    [0, 5000000, 10000000]
    >>> int(jobs["response_ns"].max())
    1000000
    """

    __slots__ = ("names",)

    def __init__(self, columns: Mapping[str, Column], names: tuple[str, ...]) -> None:
        super().__init__(columns)
        #: The names of the tasks, in the order of the task set.
        self.names = names

    def of(self, task: str) -> Table:
        """The rows of the task with this name.

        Raises:
            KeyError: There is no such task.
        """
        if task not in self.names:
            raise KeyError(task)
        chosen = self["task"] == self.names.index(task)
        return Table({name: column[chosen] for name, column in self.items()}, self.names)

    def to_arrow(self) -> pyarrow.Table:
        """As a table of Arrow: ``task`` has the names, and times that there are not are null.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise missing("pyarrow", "arrow", "to_arrow()") from None
        arrays = {name: pyarrow.array(column, mask=column == MISSING) for name, column in self.items()}
        places = pyarrow.array(self["task"].astype(np.int32))
        names = pyarrow.array(self.names, pyarrow.string())
        arrays["task"] = pyarrow.DictionaryArray.from_arrays(places, names)
        return pyarrow.table(arrays)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        same = list(self) == list(other) and self.names == other.names
        return same and all(np.array_equal(self[name], other[name]) for name in self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Table({self.rows} rows: {', '.join(self)})"


def from_bytes(columns: Mapping[str, bytes], names: tuple[str, ...]) -> Table:
    """A table of columns in the order of bytes of this machine."""
    arrays = {name: np.frombuffer(column, dtype=np.int64) for name, column in columns.items()}
    return Table(arrays, names)
