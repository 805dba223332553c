"""Studies on many computers, by Dask: on a ``LocalCluster``, or on SLURM, PBS and others through dask-jobqueue.

Dask hands out chunks and runs those of lost workers again; what comes back is kept in the folder of the study, as
:meth:`shiftwork.Study.run` does it. So results are the same, byte for byte, and either of them goes on where the other one was
interrupted.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from . import _shiftwork
from ._progress import Progress, ProgressOption, Watcher, watcher
from .errors import ClusterError, InputError, StudyError, missing
from .study import Chunk, Shard, Study, StudyResults

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["run"]


def run(
    study: Study,
    out: str | os.PathLike[str],
    client: Client | None = None,
    *,
    chunk_seconds: float = 2.0,
    shard: Shard = None,
    progress: ProgressOption = True,
) -> StudyResults:
    """Runs what is missing in the folder ``out`` on a cluster, and writes the results there.

    Only this process touches the folder; workers need ``shiftwork`` of the same version and nothing else: the study travels with
    all its files. A chunk runs in one thread, so that a worker has as many at once as Dask gives it threads: workers
    with many threads and few processes are right, because nothing holds the interpreter's lock.

    A worker that is lost costs what it had begun, which Dask runs again elsewhere. Whatever else happens, also Ctrl-C, what came
    back is kept first, and the same call goes on from there.

    Args:
        study: The study.
        out: The folder; it is made if there is none.
        client: The cluster; default: the current client, and without one, all CPUs of this computer.
        chunk_seconds: How long a chunk takes a thread, about. Longer ones suit thousands of threads, shorter ones lose less.
        shard: Which share of the study.
        progress: True: a bar, in a terminal or a notebook; or a function to call.

    Raises:
        ClusterError: Workers failed again and again, have another version, or the scheduler is gone.
        StudyError: The folder cannot be used or written, or has parts of another study.
        MissingExtraError: Dask is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise missing("dask.distributed", "cluster", "shiftwork.cluster") from None
    with ExitStack() as stack:
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                local = stack.enter_context(distributed.LocalCluster(dashboard_address=None))
                client = stack.enter_context(distributed.Client(local))
        if client.asynchronous:
            raise InputError("`client` is asynchronous; give one that is not, Client(..., asynchronous=False)")
        chunks = study.missing(out, seconds=chunk_seconds, shard=shard)
        _Run(study, out, client, watcher(progress)).go(chunks)
        study.merge(out)
        return study.results(out)


#: How often the size of the cluster is checked, how long to wait for results before anything else is checked, and how
#: often progress is reported.
_LOOK_S = 1.0
_TAKE_S = 0.1
_TELL_S = 0.1

#: So many chunks are under way for each thread: one that runs, and the next, so that no thread waits for us.
_AHEAD = 2

#: So many are under way while there are no workers yet.
_LEAST = 4

#: What came back is written no more often than this, and than every hundredth of the time so far: so there are some hundreds of
#: parts, however large the cluster.
_WRITE_S = 5.0
_WRITE_SHARE = 0.01


class _Run:
    """Chunks on their way to a cluster and back."""

    def __init__(self, study: Study, out: str | os.PathLike[str], client: Client, notify: Watcher | None) -> None:
        self._study = study
        self._out = out
        self._client = client
        self._notify = notify
        self._job = (_shiftwork.VERSION, study.digest, pickle.dumps(study))
        #: Chunks under way, by the key of the future.
        self._flying: dict[Any, tuple[Future[bytes], Chunk]] = {}
        #: Futures of which something is known: they are done, or lost.
        self._landed: SimpleQueue[Future[bytes]] = SimpleQueue()
        #: What came back and is not on disk yet.
        self._parts: list[bytes] = []
        self._started = monotonic()
        self._written = self._started
        self._threads = 0
        self._looked = -_LOOK_S
        self._shown = -_TELL_S

    def go(self, chunks: list[Chunk]) -> None:
        """Until all is done."""
        missing = sum(chunk.sets for chunk in chunks)
        self._missing = self._left = missing
        waiting = iter(chunks)
        try:
            self._fill(waiting)
            while self._flying:
                self._take()
                self._fill(waiting)
                self._write()
                self._tell()
        except BaseException as error:
            self._give_up(error)
            raise
        self._write(at_once=True)
        self._tell(at_once=True)

    def _fill(self, waiting: Iterator[Chunk]) -> None:
        """Sends chunks until there are enough under way."""
        now = monotonic()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            with _reaching():
                self._threads = sum(self._client.nthreads().values())
        while len(self._flying) < max(_LEAST, _AHEAD * self._threads):
            chunk = next(waiting, None)
            if chunk is None:
                return
            with _reaching():
                future = self._client.submit(_work, *self._job, chunk.ranges, pure=False)
            self._flying[future.key] = future, chunk
            future.add_done_callback(self._landed.put)

    def _take(self) -> None:
        """Takes what came back, if anything did within a moment."""
        landed = []
        with suppress(Empty):
            landed.append(self._landed.get(timeout=_TAKE_S))
            while True:
                landed.append(self._landed.get_nowait())
        for future in landed:
            if future.status in ("error", "cancelled"):
                raise self._failure(future)
        # A worker may be lost after all, with what it had to send; then this waits until others have it.
        with _reaching():
            self._parts += self._client.gather(landed)
        for future in landed:
            _, chunk = self._flying.pop(future.key)
            self._left -= chunk.sets

    def _failure(self, future: Future[bytes]) -> ClusterError:
        if future.status == "cancelled":
            return ClusterError(_GONE)
        cause = future.exception()
        if isinstance(cause, ClusterError):
            return cause
        if type(cause).__name__ == "KilledWorker":
            problem = (
                f"workers that had the same chunk were lost again and again ({cause}); look into their logs, and at their memory, "
                "or raise `distributed.scheduler.allowed-failures`"
            )
        elif isinstance(cause, ModuleNotFoundError) and (cause.name or "").startswith("shiftwork"):
            problem = f"a worker has no shiftwork: {cause}; install the same version everywhere"
        else:
            problem = f"a worker failed: {cause!r}"
        failure = ClusterError(problem)
        failure.__cause__ = cause
        return failure

    def _write(self, *, at_once: bool = False) -> None:
        now = monotonic()
        is_due = now - self._written >= max(_WRITE_S, _WRITE_SHARE * (now - self._started))
        if self._parts and (at_once or is_due):
            self._study.keep(self._out, *self._parts)
            self._parts.clear()
            self._written = now

    def _tell(self, *, at_once: bool = False) -> None:
        now = monotonic()
        if self._notify is None or not (at_once or now - self._shown >= _TELL_S):
            return
        self._shown = now
        elapsed, came = now - self._started, self._missing - self._left
        left_s = elapsed * self._left / came if came else None
        total = self._study.total
        self._notify(Progress(total - self._left, total, elapsed, left_s))

    def _give_up(self, error: BaseException) -> None:
        """Keeps what came back, and says what is kept."""
        with suppress(Exception):
            for future, _ in self._flying.values():
                if future.status == "finished":
                    self._parts.append(future.result(timeout=_LOOK_S))
        with suppress(StudyError):
            self._write(at_once=True)
        with suppress(Exception):
            self._client.cancel([future for future, _ in self._flying.values()])
        with suppress(StudyError):
            kept = self._study.total - self._study.results(self._out).missing
            where = os.fspath(self._out)
            error.add_note(f"{kept} of {self._study.total} task sets are kept in {where}; the same call goes on from there")


_GONE = "the scheduler is gone, or another client cancelled the work"


@contextmanager
def _reaching() -> Iterator[None]:
    """Whatever goes wrong between here and the scheduler is the cluster's failure."""
    try:
        yield
    except Exception as error:
        raise ClusterError(f"{_GONE}: {error!r}") from error


def _work(version: str, digest: str, study: bytes, ranges: tuple[tuple[int, int, int], ...]) -> bytes:
    """What a worker does: runs a chunk of the pickled study."""
    if version != _shiftwork.VERSION:
        raise _other_version(f"shiftwork {_shiftwork.VERSION}", f"shiftwork {version}")
    found = _study(study)
    if found.digest != digest:
        raise _other_version("other answers to this study", f"shiftwork {version}")
    return found.run_chunk(Chunk(ranges))


_reading = Lock()


def _study(pickled: bytes) -> Study:
    """The study; once for all chunks and threads of a worker."""
    with _reading:
        return _unpickled(pickled)


@lru_cache(maxsize=4)
def _unpickled(pickled: bytes) -> Study:
    found = pickle.loads(pickled)
    assert isinstance(found, Study)
    return found


def _other_version(has: str, wanted: str) -> ClusterError:
    from distributed import get_worker

    address: Any = "a worker"
    with suppress(ValueError):
        address = f"the worker {get_worker().address}"
    return ClusterError(f"{address} has {has}, and the client {wanted}; install the same version everywhere")
