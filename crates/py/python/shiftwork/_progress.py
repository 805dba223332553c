"""A bar that shows how far a study is: in a line of a terminal, or in the output of a notebook's cell.

Of its own, because it is short: what others have would be one more dependency, and needs widgets in notebooks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from .errors import InputError

__all__ = ["Progress", "ProgressOption", "Watcher", "watcher"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study is."""

    #: How many task sets are done, those of earlier runs included.
    done: int
    #: How many there are.
    total: int
    #: For how long it has been running this time.
    elapsed_s: float
    #: How long it will still take; ``None`` as long as nothing is known.
    left_s: float | None

    def __str__(self) -> str:
        share = self.done / self.total if self.total else 1.0
        filled = int(share * _WIDTH)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        text = f"{bar} {share:4.0%} {self.done} of {self.total} task sets, {_clock(self.elapsed_s)}"
        if self.done < self.total and self.left_s is not None:
            text += f", {_clock(self.left_s)} left"
        return text


#: A function that is called several times a second with how far a study is.
Watcher = Callable[[Progress], object]

#: What verbs take: whether to show a bar, or a function to call instead.
ProgressOption = bool | None | Watcher

_WIDTH = 24
#: A terminal takes a line as soon as it comes; notebooks send each one to a browser.
_TERMINAL_EVERY_S = 0.1
_NOTEBOOK_EVERY_S = 0.5


def watcher(progress: ProgressOption) -> Watcher | None:
    """The function to call, if any. A bar is shown only in a notebook or a terminal."""
    if callable(progress):
        return progress
    if not isinstance(progress, bool | None):
        raise InputError(f"`progress` is {progress!r}; write True for a bar, False for none, or a function to call")
    if not progress:
        return None
    if (show := _notebook()) is not None:
        return _Bar(show, _NOTEBOOK_EVERY_S)
    if sys.stderr is not None and sys.stderr.isatty():
        return _Bar(_line, _TERMINAL_EVERY_S)
    return None


class _Bar:
    """Shows progress now and then, and in any case when all is done."""

    def __init__(self, show: Callable[[str, bool], None], every_s: float) -> None:
        self._show = show
        self._every_s = every_s
        self._shown: float | None = None

    def __call__(self, progress: Progress) -> None:
        now = monotonic()
        is_last = progress.done >= progress.total
        if is_last or self._shown is None or now - self._shown >= self._every_s:
            self._shown = now
            self._show(str(progress), is_last)


def _line(text: str, is_last: bool) -> None:
    # To the end of the line nothing is left of a longer text.
    sys.stderr.write(f"\r{text}\x1b[K" + ("\n" if is_last else ""))
    sys.stderr.flush()


def _notebook() -> Callable[[str, bool], None] | None:
    """What shows a text in the cell of a notebook that is running; ``None`` outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    handle: Any = None

    def show(text: str, _: bool) -> None:
        nonlocal handle
        content = {"text/plain": text}
        if handle is None:
            handle = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            handle.update(content, raw=True)

    return show


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
