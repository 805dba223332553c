"""Schedulability studies: what share of random task sets is schedulable, under one policy and another."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _shiftwork
from ._progress import Progress, ProgressOption, watcher
from .errors import InputError, MissingExtraError, StudyError, StudyWarning, missing
from .tables import MISSING, Columns
from .taskset import in_file, read_text

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Cell", "Chunk", "Question", "Shard", "Study", "StudyResults"]

#: ``hard``: all deadlines were shown to be met; ``soft``: tardiness to be bounded; ``simulated``: no deadline was missed.
StudyCriterion = Literal["hard", "soft", "simulated"]

#: Which share of a study, from 1, of how many: ``(1, 8)`` or ``"1/8"``; ``None``: all of it.
Shard = tuple[int, int] | str | None


@dataclass(frozen=True, slots=True)
class Cell:
    """Task sets that are drawn alike."""

    family: str
    cpus: int
    #: The utilization that is asked for, in CPUs.
    cap: float
    #: The places of the questions that are asked about them.
    questions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One thing that is asked about task sets."""

    #: What the contender is called.
    label: str
    policy: str
    criterion: StudyCriterion


@dataclass(frozen=True, slots=True)
class Chunk:
    """Work for one thread: ranges of task sets."""

    #: Of each range the place of the cell, the first index, and the first one after the range.
    ranges: tuple[tuple[int, int, int], ...]

    @property
    def sets(self) -> int:
        """How many task sets these are."""
        return sum(last - first for _, first, last in self.ranges)


class Study:
    """A study, ready to be run: the same as ``shiftwork study``. Does not change.

    >>> import tempfile
    >>> import shiftwork as sw
    >>> study = sw.Study.loads('''
    ... name = "two policies"
    ... sets = 20
    ... [tasks]
    ... cpus = 2
    ... caps = [1, 1.5, 2]
    ... utilizations = "uniform-medium"
    ... [[policy]]
    ... name = "g-edf"
    ... criteria = ["hard"]
    ... [[policy]]
    ... name = "p-edf"
    ... criteria = ["hard"]
    ... ''')
    >>> study
    Study('two policies', cells=3, questions=2, sets=20)
    >>> study.total
    60
    >>> with tempfile.TemporaryDirectory() as out:
    ...     results = study.run(out)
    >>> results
    StudyResults('two policies', 6 rows, complete)
    >>> curve = results.curves(criterion="hard")["p-edf"]
    >>> curve["x"].tolist(), curve["ratio"][0].tolist()
    ([1.0, 1.5, 2.0], 1.0)

    All that is kept of a task set are counts, and every task set has random numbers of its own. So results are the same,
    byte for byte, wherever their parts were computed, here or on a cluster (:mod:`shiftwork.cluster`), and however often
    that was interrupted. A study can be pickled: it takes its text and those of its overhead files along.

    Args:
        path: The study file; overhead files that it names are looked for beside it.
        sets: How many task sets to draw for each cell; default: what the file says.

    Raises:
        InputError: All mistakes, each with the path and its place.
        OSError: The study file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str], *, sets: int | None = None) -> None:
        text = read_text(path)
        try:
            self._set(text, os.fspath(path), None, sets)
        except InputError as error:
            raise (error if error.path or error.line is None else in_file(error, path)) from None

    @classmethod
    def loads(cls, text: str, *, folder: str | os.PathLike[str] = ".", sets: int | None = None) -> Study:
        """A study from the text of a study file; overhead files that it names are looked for in ``folder``.

        Raises:
            InputError: All mistakes, each with its place.
        """
        made = cls.__new__(cls)
        made._set(text, os.fspath(Path(folder) / "the study"), None, sets)
        return made

    def _set(self, text: str, path: str, files: dict[str, str] | None, sets: int | None) -> None:
        if sets is not None and not (isinstance(sets, int) and 1 <= sets < 2**32):
            raise InputError(f"`sets` is {sets!r}; write a whole number, 1 to {2**32 - 1}")
        self._text = text
        self._path = path
        self._core = _shiftwork.Study.read(text, path, files=files, sets=sets)

    @property
    def name(self) -> str:
        """For people."""
        return self._core.name

    @property
    def sets(self) -> int:
        """How many task sets are drawn for each cell."""
        return self._core.sets

    @property
    def total(self) -> int:
        """How many task sets there are in all cells of which anything is asked."""
        return self._core.total

    @property
    def digest(self) -> str:
        """Identifies the study: it stays the same while its answers do, and is in every file of the study."""
        return self._core.digest

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells, in the order of the study: family by family, then by CPUs, then by utilization."""
        cells = self._core.cells()
        return tuple(Cell(family, cpus, cap, tuple(asked)) for family, cpus, cap, asked in cells)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions: policy by policy."""
        return tuple(Question(*fields) for fields in self._core.questions())

    def run(
        self,
        out: str | os.PathLike[str],
        *,
        threads: int | None = None,
        shard: Shard = None,
        progress: ProgressOption = True,
    ) -> StudyResults:
        """Runs what is missing in the folder ``out``, and writes the results there.

        The interpreter is free meanwhile. After Ctrl-C everything that was done is kept before ``KeyboardInterrupt`` is raised;
        the same call goes on from there.

        Args:
            out: The folder; it is made if there is none.
            threads: How many threads; default: as many as there are CPUs.
            shard: Which share of the study; those of all computers together are the study, in one folder.
            progress: True: a bar, in a terminal or a notebook; or a function to call.

        Raises:
            StudyError: The folder cannot be used or written, or has parts of another study.
        """
        if threads is not None and threads < 1:
            raise InputError(f"`threads` is {threads}; write 1 or more, or None for as many as there are CPUs")
        notify = watcher(progress)
        report = None if notify is None else lambda *fields: notify(Progress(*fields))
        found = self._core.run(_folder(out), threads=threads or 0, shard=_shard(shard), progress=report)
        return StudyResults._of(found)

    def results(self, out: str | os.PathLike[str]) -> StudyResults:
        """The results of what is in the folder ``out``, complete or not.

        Raises:
            StudyError: There is no such folder, or it cannot be used.
        """
        if not Path(out).is_dir():
            raise StudyError(f"{os.fspath(out)}: there is no such folder; run the study there first")
        return StudyResults._of(self._core.results(_folder(out)))

    def missing(self, out: str | os.PathLike[str], *, seconds: float = 2.0, shard: Shard = None) -> list[Chunk]:
        """What is missing in the folder ``out``, cut into chunks to be run anywhere; all cells advance together.

        A chunk takes a thread about so many ``seconds``, estimated from a few task sets that are tried for about a second.
        Results do not depend on how a study is cut.

        Raises:
            StudyError: The folder cannot be used.
        """
        chunks = self._core.missing(_folder(out), shard=_shard(shard), seconds=seconds)
        return [Chunk(tuple(ranges)) for ranges in chunks]

    def run_chunk(self, chunk: Chunk) -> bytes:
        """Runs a chunk in one thread, here or where the pickled study was taken to; returns a part, for :meth:`keep`.

        Raises:
            InputError: The chunk is none of this study.
        """
        return self._core.run_chunk(list(chunk.ranges))

    def keep(self, out: str | os.PathLike[str], *parts: bytes) -> int:
        """Keeps parts in the folder ``out``, as one if they fit together; returns how many task sets they have.

        Afterwards they are on disk, also if the machine stops. Parts are checked, and named after their contents: keeping one
        twice is harmless.

        Raises:
            StudyError: A part is damaged or of another study, so that none is kept; or one cannot be written.
        """
        return self._core.keep(_folder(out), list(parts))

    def merge(self, out: str | os.PathLike[str]) -> Path:
        """Puts together what is in the folder ``out``; returns the path of the file with the results.

        It is called ``results.parquet``, or ``partial.parquet`` as long as task sets are missing.

        Raises:
            StudyError: The folder cannot be used or written.
        """
        path, found = self._core.merge(_folder(out))
        _warn(found, stacklevel=3)
        return path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self._content == other._content

    def __hash__(self) -> int:
        return hash((self._text, self.sets))

    @property
    def _content(self) -> tuple[object, ...]:
        return self._text, self.sets, self.digest

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._text, self._path, self._core.files, self.sets)

    def __repr__(self) -> str:
        return (
            f"Study({self.name!r}, cells={len(self.cells)}, questions={len(self.questions)}, sets={self.sets})"
        )


class StudyResults(Columns[NDArray[Any]]):
    """What came of a study: a mapping from names to NumPy columns, with one row for each cell and question.

    The columns, which are attributes, too, are those of ``results.parquet``: ``family``, ``cpus``, ``cap`` (the utilization that
    was asked for), ``policy``, ``label``, ``criterion``; ``overheads``, empty where scheduling cost nothing; ``sets``, and of these
    how many ``met`` the criterion, were ``refuted``, or are ``unknown``; ``ratio`` of those that met it, with ``low`` and ``high``, its
    95% interval of confidence (NaN without sets); ``bounded``, how many have a bound on tardiness, with ``tardiness_mean_ns`` and
    ``tardiness_max_ns`` of these bounds (-1 without any).
    """

    __slots__ = ("digest", "missing", "name", "remarks")

    #: The name of the study.
    name: str
    #: Identifies the study.
    digest: str
    #: How many task sets are missing; 0: the study is complete.
    missing: int
    #: What was noticed in the folder.
    remarks: tuple[str, ...]

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], *, name: str, digest: str, missing: int, remarks: Iterable[str] = ()
    ) -> None:
        super().__init__(columns)
        self.name = name
        self.digest = digest
        self.missing = missing
        self.remarks = tuple(remarks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StudyResults:
        """Reads a file of results, or the one in a folder, as ``shiftwork study run`` writes it, too.

        How many task sets are missing is not in it.

        Raises:
            StudyError: There is no such file, or it is none.
        """
        path = Path(path)
        if path.is_dir():
            names = [path / name for name in ("results.parquet", "partial.parquet")]
            path = next((name for name in names if name.exists()), names[0])
        return cls._of(_shiftwork.read_results(os.fspath(path)))

    @classmethod
    def _of(cls, found: _shiftwork._ResultTable) -> StudyResults:
        _warn(found, stacklevel=4)
        return cls(
            {name: _column(name, values) for name, values in found["columns"].items()},
            name=found["name"],
            digest=found["digest"],
            missing=found["missing"],
            remarks=found["damaged"] + found["remarks"],
        )

    @property
    def figures(self) -> list[tuple[str, int, StudyCriterion]]:
        """Family, CPUs and criterion of everything that belongs into one picture, in the order of the study."""
        keys = zip(self["family"].tolist(), self["cpus"].tolist(), self["criterion"].tolist(), strict=True)
        return list(dict.fromkeys(keys))

    def curves(
        self, family: str | None = None, criterion: StudyCriterion = "hard", *, cpus: int | None = None
    ) -> dict[str, dict[str, NDArray[Any]]]:
        """The curves of one picture, for :func:`shiftwork.plot.curves`: for each label ``x``, the utilization, and ``ratio``,
        ``low``, ``high``.

        Args:
            family: The family of task sets; may be left out if there is only one.
            criterion: What was asked.
            cpus: How many CPUs; may be left out if there is one number only.

        Raises:
            InputError: There is no such family, criterion or number of CPUs, or it is not clear which.
        """
        chosen = self["criterion"] == self._only("criterion", criterion, np.ones(self.rows, dtype=bool))
        chosen &= self["family"] == self._only("family", family, chosen)
        chosen &= self["cpus"] == self._only("cpus", cpus, chosen)
        columns = {"x": "cap", "ratio": "ratio", "low": "low", "high": "high"}
        found = {}
        for label in dict.fromkeys(self["label"][chosen].tolist()):
            rows = chosen & (self["label"] == label)
            found[label] = {name: self[column][rows] for name, column in columns.items()}
        return found

    def _only(self, key: str, wanted: object, chosen: NDArray[np.bool_]) -> object:
        """The value of a key that is wanted, or the only one among the chosen rows."""
        known = list(dict.fromkeys(self[key][chosen].tolist()))
        if wanted is None and len(known) == 1:
            return known[0]
        if wanted not in known:
            found = "is not given" if wanted is None else f"is {wanted!r}"
            raise InputError(f"`{key}` {found}; there are {', '.join(map(repr, known)) or 'none'}")
        return wanted

    def to_arrow(self) -> pyarrow.Table:
        """As a table of Arrow: what there is not is null.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise missing("pyarrow", "arrow", "to_arrow()") from None
        return pyarrow.table({name: pyarrow.array(column, mask=_gaps(name, column)) for name, column in self.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """As a DataFrame of pandas: what there is not is ``NA``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("to_pandas() needs pandas, which is not installed; try: pip install pandas") from None
        frame = {}
        for name, column in self.items():
            series = pandas.Series(column)
            gaps = _gaps(name, column)
            # Whole numbers with gaps have a type of their own.
            whole = column.dtype == np.int64 and gaps.any()
            frame[name] = (series.astype("Int64") if whole else series).mask(gaps)
        return pandas.DataFrame(frame)

    def __reduce__(self) -> tuple[Any, ...]:
        return _results_again, (self._columns, self.name, self.digest, self.missing, self.remarks)

    def __repr__(self) -> str:
        state = f"{self.missing} task sets missing" if self.missing else "complete"
        return f"StudyResults({self.name!r}, {self.rows} rows, {state})"

    def _repr_html_(self) -> str:
        head = "<th>family</th><th>CPUs</th><th>criterion</th><th>policy</th><th>share met over all loads</th>"
        rows = ""
        for family, cpus, criterion in self.figures:
            chosen = (self["family"] == family) & (self["cpus"] == cpus) & (self["criterion"] == criterion)
            for label in dict.fromkeys(self["label"][chosen].tolist()):
                of_label = chosen & (self["label"] == label)
                sets = int(self["sets"][of_label].sum())
                share = f"{int(self['met'][of_label].sum()) / sets:.1%}" if sets else "-"
                cells = (escape(family), cpus, criterion, escape(label), share)
                rows += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        title = f"{escape(self.name)}: " + (f"{self.missing} task sets missing" if self.missing else "complete")
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _again(text: str, path: str, files: dict[str, str], sets: int) -> Study:
    made = Study.__new__(Study)
    made._set(text, path, files, sets)
    return made


def _results_again(
    columns: Mapping[str, NDArray[Any]], name: str, digest: str, missing: int, remarks: tuple[str, ...]
) -> StudyResults:
    return StudyResults(columns, name=name, digest=digest, missing=missing, remarks=remarks)


def _folder(out: str | os.PathLike[str]) -> str:
    return os.fspath(out)


def _shard(shard: Shard) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    try:
        number, of = shard.split("/") if isinstance(shard, str) else shard
        found = int(number), int(of)
    except (TypeError, ValueError):
        found = 0, 0
    if not 1 <= found[0] <= found[1]:
        raise InputError(f"`shard` is {shard!r}; write which share of how many, like (1, 8) up to (8, 8)")
    return found


def _warn(found: _shiftwork._ResultTable, *, stacklevel: int) -> None:
    """Warns of damaged parts, at the place of the call into the package."""
    for remark in found["damaged"]:
        warnings.warn(remark, StudyWarning, stacklevel=stacklevel)


#: What a column has where there is nothing.
_TEXTS = ("family", "policy", "label", "criterion", "overheads")
_REALS = ("cap", "ratio", "low", "high")


def _column(name: str, values: list[Any]) -> NDArray[Any]:
    """A column that cannot be changed."""
    if name in _TEXTS:
        column = np.array([value or "" for value in values], dtype=np.str_)
    elif name in _REALS:
        column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    else:
        column = np.array([MISSING if value is None else value for value in values], dtype=np.int64)
    column.flags.writeable = False
    return column


def _gaps(name: str, column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where there is nothing."""
    gaps: NDArray[np.bool_]
    if name in _REALS:
        gaps = np.isnan(column)
    elif name in _TEXTS:
        gaps = (column == "") & (name == "overheads")
    else:
        gaps = column == MISSING
    return gaps
