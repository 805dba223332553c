"""The calling thread as a task of the daemon: processor time in each period, and releases to sleep until.

    from shiftwork import agent

    with agent.admit("control", cost="2ms", period="10ms") as task:
        while True:
            control()
            if task.wait_next():
                print("too late")

The daemon is the long-lived scheduler of the machine (``shiftwork daemon``); it is found at the socket that the environment
variable ``SHIFTWORK_SOCKET`` names, by default ``/run/shiftwork/daemon.sock``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Literal

from . import _shiftwork
from ._spans import Duration, span_ns
from .errors import AgentError, InputError, NoAgentError, RefusedError

__all__ = ["AgentError", "NoAgentError", "OnOverrun", "OwnTask", "RefusedError", "admit"]

#: What happens when the cost is used up before the period ends: the thread waits for the next period; its process gets
#: SIGXCPU, of which it dies unless it handles it; or nothing.
OnOverrun = Literal["throttle", "signal", "continue"]


class OwnTask:
    """A thread with a reservation; made by :func:`admit`.

    A job is what the thread does between waking up and going to sleep. The first begins when it is admitted;
    :meth:`wait_next` ends one and sleeps until the next is released.

    It is of its thread alone: all others get :class:`AgentError` of kind ``other-thread``, and so does a child after
    ``fork``. As a context manager it is dismissed at the end; otherwise the reservation ends with the thread, or when
    the thread drops the last reference.
    """

    def __init__(self, core: _shiftwork.OwnTask, name: str) -> None:
        self._core = core
        self._name = name

    def change(
        self,
        cost: Duration | None = None,
        period: Duration | None = None,
        deadline: Duration | None = None,
        *,
        cpus: str | Iterable[int] | None = None,
        priority: int | None = None,
        on_overrun: OnOverrun = "throttle",
        cost_ns: int | None = None,
        period_ns: int | None = None,
        deadline_ns: int | None = None,
    ) -> None:
        """Asks for another reservation, which holds from the next job on; keywords as of :func:`admit`.

        The next release is the new period after the last one.

        Raises:
            RefusedError: There is no room; the reservation is as before.
            AgentError: The daemon did not do it.
        """
        self._core.change(
            (
                *_spans((cost, cost_ns), (period, period_ns), (deadline, deadline_ns)),
                _list(cpus),
                priority,
                on_overrun,
            )
        )

    def wait_next(self) -> int:
        """Ends the job, and sleeps until the next release that is still ahead, a whole number of periods after the first.

        Returns how many releases there were since the last one that are past by now: 0 as long as jobs end before
        the next is released. Other threads go on meanwhile. Handlers of signals run; what they raise, as Ctrl-C does,
        ends the sleep, and then the same release is still to be waited for.

        Raises:
            AgentError: The task is another thread's.
        """
        return self._core.wait_next()

    def dismiss(self) -> None:
        """Ends the reservation; the thread goes on as ordinary work. Nothing happens to a task that is dismissed.

        Raises:
            AgentError: The daemon did not answer, or the task is another thread's.
        """
        self._core.dismiss()

    @property
    def number(self) -> int:
        """The number of the task, as ``shiftwork status`` shows it."""
        return self._core.number()

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in the words of ``shiftwork analyze``: ``hard``, ``bounded-tardiness``, ``share`` or ``none``."""
        return self._core.guarantee()

    @property
    def release_ns(self) -> int:
        """When the present job was released, on the clock of ``time.monotonic_ns()``."""
        return self._core.release_ns()

    def __repr__(self) -> str:
        return f"OwnTask({self._name!r})"

    def __enter__(self) -> OwnTask:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.dismiss()
        except AgentError:
            # What went wrong first is what is to be known.
            if error is None:
                raise


def admit(
    name: str,
    cost: Duration | None = None,
    period: Duration | None = None,
    deadline: Duration | None = None,
    *,
    cpus: str | Iterable[int] | None = None,
    priority: int | None = None,
    on_overrun: OnOverrun = "throttle",
    socket: str | os.PathLike[str] | None = None,
    cost_ns: int | None = None,
    period_ns: int | None = None,
    deadline_ns: int | None = None,
) -> OwnTask:
    """Reserves processor time for the calling thread: ``cost`` in each ``period``, due ``deadline`` after each release.

    Durations are texts with a unit, ``timedelta``, or whole nanoseconds under the keyword with ``_ns``; without a deadline it is
    the period. ``cpus`` is a list like ``"0-3,7"`` or any collection of numbers, by default those that the thread may use.
    ``priority`` counts where the daemon goes by priorities; 1 is the most urgent. ``name`` is for people.

    >>> import shiftwork as sw
    >>> sw.agent.admit("control", cost="2ms", period="10ms", socket="/nowhere/daemon.sock")
    Traceback (most recent call last):
    ...
    shiftwork.errors.NoAgentError: no daemon listens at /nowhere/daemon.sock: start it with `systemctl start shiftwork` or \
`shiftwork daemon`, or name its socket in SHIFTWORK_SOCKET

    Raises:
        RefusedError: There is no room; the message has the sum that does not fit, and what would.
        NoAgentError: No daemon listens.
        AgentError: The daemon did not do it.
        InputError: A value makes no sense.
    """
    fields = (
        *_spans((cost, cost_ns), (period, period_ns), (deadline, deadline_ns)),
        _list(cpus),
        priority,
        on_overrun,
    )
    core = _shiftwork.OwnTask.admit(name, fields, None if socket is None else Path(socket))
    return OwnTask(core, name)


def _spans(*given: tuple[Duration | None, int | None]) -> tuple[int, int, int | None]:
    cost_ns, period_ns, deadline_ns = (
        span_ns(key, *value) for key, value in zip(("cost", "period", "deadline"), given, strict=True)
    )
    if cost_ns is None or period_ns is None:
        lacking = "cost" if cost_ns is None else "period"
        raise InputError(f'`{lacking}` is lacking; write for instance {lacking}="2ms"')
    return cost_ns, period_ns, deadline_ns


def _list(cpus: str | Iterable[int] | None) -> str | None:
    if cpus is None or isinstance(cpus, str):
        return cpus
    return ",".join(str(cpu) for cpu in sorted(set(cpus)))
