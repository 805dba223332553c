"""What can go wrong. Every message says where, what, and what would be accepted."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "AgentError",
    "ClusterError",
    "InputError",
    "MissingExtraError",
    "NoAgentError",
    "PolicyError",
    "RefusedError",
    "ShiftworkError",
    "StudyError",
    "StudyWarning",
]


Mistake = tuple[str, int | None, int | None]


class ShiftworkError(ValueError):
    """The base of all errors of this package."""


class InputError(ShiftworkError):
    """A text, a file or a value that is refused.

    ``detail`` is the message without the place; ``line`` and ``column`` count from 1 and are ``None``
    if the mistake is in no text; ``path`` is the file, if it is in one. A text may have more mistakes:
    ``others`` are those that follow, each as ``(detail, line, column)``, and ``mistakes`` are all.
    """

    def __init__(
        self,
        detail: str,
        line: int | None = None,
        column: int | None = None,
        path: str | None = None,
        others: Sequence[Mistake] = (),
    ) -> None:
        self.detail = detail
        self.line = line
        self.column = column
        self.path = path
        self.others = tuple(others)
        super().__init__("\n".join(_line(path, *mistake) for mistake in self.mistakes))

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """All mistakes, ordered by line."""
        return ((self.detail, self.line, self.column), *self.others)

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        return type(self), (self.detail, self.line, self.column, self.path, self.others)


def _line(path: str | None, detail: str, line: int | None, column: int | None) -> str:
    file = "" if path is None else f"{path}: "
    place = "" if line is None else f"line {line}, column {column}: "
    return f"{file}{place}{detail}"


class PolicyError(ShiftworkError):
    """A policy that there is not, that does not take the task set, or of which nothing is known."""


class StudyError(ShiftworkError):
    """The folder of a study cannot be used, or not be written. What is kept in it stays, and runs go on from there."""


class ClusterError(StudyError):
    """Workers or the scheduler of a cluster failed; the message says what is kept."""


class StudyWarning(UserWarning):
    """Something in the folder of a study was damaged; it is set aside, and what it had is run again."""


class AgentError(ShiftworkError):
    """The daemon did not do what it was asked; what was so before is so still.

    ``kind`` is ``refused``, ``exhausted``, ``forbidden``, ``invalid``, ``missing``, ``broken``, ``no-agent``, ``not-permitted``,
    ``silent``, ``lost``, ``garbled``, ``other-thread`` or ``internal``.
    """

    def __init__(self, detail: str, kind: str) -> None:
        super().__init__(detail)
        self.kind = kind

    def __reduce__(self) -> tuple[type[AgentError], tuple[str, str]]:
        return type(self), (str(self), self.kind)


class RefusedError(AgentError):
    """There is no room, or the user or control group has as much as it may; the message says what would be let in."""


class NoAgentError(AgentError):
    """No daemon listens at the socket; the message says how to start one."""


class MissingExtraError(ShiftworkError, ImportError):
    """Something needs a package that is not installed; the message names the extra to install."""


def missing(package: str, extra: str, what: str) -> MissingExtraError:
    """The error of ``what``, which needs ``package``."""
    return MissingExtraError(
        f'{what} needs {package}, which is not installed; try: pip install "shiftwork[{extra}]"'
    )
