"""What scheduling itself costs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from . import _shiftwork
from .errors import InputError
from .taskset import TaskSet, in_file, read_text

__all__ = ["OverheadSource", "Overheads"]


class Overheads:
    """What scheduling costs on some machine, per policy and use: everything that an overhead file says.

    >>> import shiftwork as sw
    >>> costs = sw.Overheads.loads('''
    ... name = "example"
    ... [worst.g-edf]
    ... schedule = { base = "10us", per-task = "100ns" }
    ... ''')
    >>> costs
    Overheads('example', tables=[('worst', 'g-edf')])
    """

    def __init__(self, text: str) -> None:
        self._core = _shiftwork.Overheads.read(text)

    @classmethod
    def loads(cls, text: str) -> Overheads:
        """Reads the text of an overhead file.

        Raises:
            InputError: All mistakes, with their places.
        """
        return cls(text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Overheads:
        """Reads an overhead file.

        Raises:
            InputError: All mistakes, with the path and their places.
            OSError: The file cannot be read.
        """
        try:
            return cls(read_text(path))
        except InputError as error:
            raise (error if error.path else in_file(error, path)) from None

    @property
    def name(self) -> str:
        """For people."""
        return self._core.name

    @property
    def tables(self) -> list[tuple[Literal["worst", "average"], str]]:
        """``worst`` or ``average`` with a policy's name, for each table."""
        return self._core.tables()

    def to_toml(self) -> str:
        """The same as an overhead file."""
        return self._core.write()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Overheads) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_toml(),)

    def __repr__(self) -> str:
        return f"Overheads({self.name!r}, tables={self.tables})"


#: What verbs take: overheads, the path of a file, ``"none"`` (scheduling costs nothing), or ``None``: the file
#: that the task set names, if it names one.
OverheadSource = Overheads | str | os.PathLike[str] | None


def resolve(task_set: TaskSet, source: OverheadSource) -> tuple[str, _shiftwork.Overheads] | None:
    """The overheads that count, with what they are called; ``None``: scheduling costs nothing."""
    if source == "none":
        return None
    if isinstance(source, Overheads):
        return source.name or "overheads", source._core
    if source is None:
        if task_set.overheads is None:
            return None
        source = (task_set._folder or Path()) / task_set.overheads
    return os.fspath(source), Overheads.load(source)._core
