"""Studies on a cluster of Dask: the same file as here, whichever process is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from studies import parts, write

import shiftwork as sw

distributed = pytest.importorskip("distributed")

pytestmark = [
    # What others leave open when processes are killed is not ours.
    pytest.mark.filterwarnings("ignore"),
]

SETS = 120


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> sw.Study:
    return sw.Study(write(tmp_path_factory.mktemp("study"), sets=SETS))


@pytest.fixture(scope="module")
def here(study: sw.Study, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run without any cluster."""
    out = tmp_path_factory.mktemp("here")
    study.run(out)
    return (out / "results.parquet").read_bytes()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Three worker processes with a thread each."""
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


#: Many more chunks than are under way at once, so that there is a moment when a third of the study is done, and not all of it.
SHORT_S = 0.005


@pytest.fixture(autouse=True)
def report_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every result that comes back is reported, however fast."""
    monkeypatch.setattr(sw.cluster, "_TELL_S", 0.0)


class Midway:
    """Does something once, when a third of the study is done."""

    def __init__(self, deed: Any) -> None:
        self.deed = deed
        self.did: Any = None

    def __call__(self, progress: sw.Progress) -> None:
        if self.did is None and progress.total / 3 <= progress.done < progress.total:
            self.did = self.deed() or True


def kill_one(client: Any) -> int:
    """Kills the process of a worker, as a machine would that fails."""
    pid: int = min(client.run(os.getpid).values())
    os.kill(pid, signal.SIGKILL)
    return pid


def test_a_worker_that_is_killed_changes_nothing(study: sw.Study, here: bytes, client: Any, tmp_path: Path) -> None:
    before = set(client.run(os.getpid).values())
    midway = Midway(lambda: kill_one(client))
    results = sw.cluster.run(study, tmp_path, client, chunk_seconds=SHORT_S, progress=midway)
    assert midway.did in before, "it was killed while there was work to do"
    assert results.missing == 0
    assert (tmp_path / "results.parquet").read_bytes() == here
    after = time.monotonic() + 20
    while len(now := set(client.run(os.getpid).values())) < 3 and time.monotonic() < after:
        time.sleep(0.05)
    assert midway.did not in now and len(now) == 3, "Dask starts another one in its place"


def test_interrupted_run_keeps_its_parts_and_goes_on_anywhere(
    study: sw.Study, here: bytes, client: Any, tmp_path: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        sw.cluster.run(study, tmp_path, client, chunk_seconds=SHORT_S, progress=Midway(interrupt))
    kept = int(caught.value.__notes__[0].split()[0])
    assert study.total / 3 <= kept < study.total
    assert "the same call goes on from there" in caught.value.__notes__[0]
    assert study.results(tmp_path).missing == study.total - kept
    # Here a share of it, on the cluster the rest. What was kept is any part, of this share too.
    partly = study.run(tmp_path, shard="1/2")
    share = study.total // 2
    assert study.total - kept - share <= partly.missing <= min(study.total - kept, share)
    assert sw.cluster.run(study, tmp_path, client, chunk_seconds=0.1).missing == 0
    assert (tmp_path / "results.parquet").read_bytes() == here


def test_the_current_client_is_taken(study: sw.Study, here: bytes, client: Any, tmp_path: Path) -> None:
    with client.as_current():
        assert sw.cluster.run(study, tmp_path).missing == 0
    assert (tmp_path / "results.parquet").read_bytes() == here
    assert len(parts(tmp_path)) == 1, "what comes back soon becomes one part"


def test_shards_come_together(study: sw.Study, here: bytes, client: Any, tmp_path: Path) -> None:
    assert sw.cluster.run(study, tmp_path, client, shard=(1, 3)).missing == study.total - 10 * (SETS // 3)
    sw.cluster.run(study, tmp_path, client, shard="2/3")
    assert sw.cluster.run(study, tmp_path, client, shard="3/3").missing == 0
    assert (tmp_path / "results.parquet").read_bytes() == here


def test_another_version_is_refused(
    study: sw.Study, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork._shiftwork.VERSION", "9.9.9")
    message = "the worker tcp://.* has shiftwork .*, and the client shiftwork 9.9.9; install the same version"
    with pytest.raises(sw.ClusterError, match=message) as caught:
        sw.cluster.run(study, tmp_path, client)
    assert caught.value.__notes__[0].startswith(f"0 of {study.total} task sets are kept")


def test_other_answers_are_refused(
    study: sw.Study, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sw.Study, "digest", "0" * 16)
    with pytest.raises(sw.ClusterError, match="has other answers to this study"):
        sw.cluster.run(study, tmp_path, client)


def test_workers_that_die_repeatedly_are_reported(
    study: sw.Study, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sw.cluster, "_work", _die)
    with pytest.raises(sw.ClusterError, match="lost again and again .*allowed-failures") as caught:
        sw.cluster.run(study, tmp_path, client, chunk_seconds=60)
    assert caught.value.__notes__


def _die(*_: object) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_killed_scheduler_is_reported(study: sw.Study, here: bytes, tmp_path: Path) -> None:
    address_file = tmp_path / "scheduler.json"
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(address_file)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address_file)]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    out = tmp_path / "out"
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(subprocess.Popen([*scheduler, "--no-dashboard", "--port", "0"], **options))  # type: ignore[call-overload]
        started.append(subprocess.Popen([*worker, "--nthreads", "2", "--no-nanny", "--no-dashboard"], **options))  # type: ignore[call-overload]
        with distributed.Client(scheduler_file=str(address_file), timeout="20s") as client:
            midway = Midway(started[0].kill)
            with pytest.raises(sw.ClusterError, match="the scheduler is gone") as caught:
                sw.cluster.run(study, out, client, chunk_seconds=SHORT_S, progress=midway)
    finally:
        for process in started:
            process.kill()
            process.wait()
    kept = int(caught.value.__notes__[0].split()[0])
    assert study.total / 3 <= kept < study.total
    assert study.results(out).missing == study.total - kept
    assert study.run(out).missing == 0
    assert (out / "results.parquet").read_bytes() == here


def test_asynchronous_clients_are_refused(study: sw.Study, tmp_path: Path) -> None:
    class Asynchronous:
        asynchronous = True

    with pytest.raises(sw.InputError, match="`client` is asynchronous"):
        sw.cluster.run(study, tmp_path, Asynchronous())  # type: ignore[arg-type]


def test_without_dask_the_extra_is_named(study: sw.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sw.MissingExtraError, match=r'pip install "shiftwork\[cluster\]"'):
        sw.cluster.run(study, tmp_path)


class Lost:
    """A future with a worker that is lost, with the answer, before the answer is taken; another one fares the same."""

    def __init__(self, key: int, answer: bytes) -> None:
        self.key, self.answer = key, answer
        self.status = "lost"

    def add_done_callback(self, call: Any) -> None:
        call(self)


class Forgetful:
    """A client with workers that are lost as soon as they are done."""

    asynchronous = False

    def __init__(self) -> None:
        self.sent: list[Lost] = []

    def nthreads(self) -> dict[str, int]:
        return {"tcp://here": 1}

    def submit(self, work: Any, *job: Any, pure: bool) -> Lost:
        assert not pure, "two runs of the same chunk are not one"
        self.sent.append(Lost(len(self.sent), work(*job)))
        return self.sent[-1]

    def gather(self, futures: list[Lost]) -> list[bytes]:
        return [future.answer for future in futures]


def test_what_is_lost_before_it_is_taken_is_waited_for(study: sw.Study, here: bytes, tmp_path: Path) -> None:
    client = Forgetful()
    results = sw.cluster.run(study, tmp_path, client, chunk_seconds=0.2)  # type: ignore[arg-type]
    assert client.sent and results.missing == 0
    assert (tmp_path / "results.parquet").read_bytes() == here
