"""The programs that docs/studies.md shows for clusters run; the one for SLURM with a SLURM of one node: this computer."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shiftwork as sw

pytest.importorskip("distributed")
pytest.importorskip("dask_jobqueue")

ROOT = Path(__file__).resolve().parents[3]

#: The whole study would take long in a build for tests.
SETS = 3

#: Takes a copy of a job, as SLURM does, and runs it at once.
SBATCH = """#!/bin/sh
for script; do :; done
cp "$script" "$FAKE_SLURM/job.sh"
setsid sh "$FAKE_SLURM/job.sh" >"$FAKE_SLURM/job.log" 2>&1 </dev/null &
echo $! >>"$FAKE_SLURM/jobs"
echo "Submitted batch job $!"
"""

SCANCEL = """#!/bin/sh
for job; do kill -- "-$job"; done
"""


def programs() -> list[str]:
    """The programs in the section about clusters."""
    document = (ROOT / "docs" / "studies.md").read_text("utf-8")
    section = re.split(r"^## ", document.split("\n## On a cluster\n")[1], flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def run(program: str, folder: Path, **more: str) -> str:
    """Runs a program in a folder that sees the studies; returns what it prints."""
    read = 'sw.Study("studies/example.toml")'
    assert read in program
    (folder / "program.py").write_text(program.replace(read, f'sw.Study("studies/example.toml", sets={SETS})'))
    (folder / "studies").symlink_to(ROOT / "studies")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=os.environ | more, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run without any cluster."""
    out = tmp_path_factory.mktemp("here")
    sw.Study(ROOT / "studies" / "example.toml", sets=SETS).run(out)
    return (out / "results.parquet").read_bytes()


def test_the_program_for_one_computer_runs(here: bytes, tmp_path: Path) -> None:
    said = run(programs()[0], tmp_path)
    assert "complete)" in said
    assert (tmp_path / "example" / "results.parquet").read_bytes() == here


def test_the_program_for_slurm_runs(here: bytes, tmp_path: Path) -> None:
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (slurm / name).write_text(text)
        (slurm / name).chmod(0o755)
    program = programs()[1]
    assert "cluster.adapt(maximum_jobs=20)" in program
    # Twenty jobs are too many for one computer.
    program = program.replace("maximum_jobs=20", "maximum_jobs=1")
    try:
        said = run(program, tmp_path, PATH=f"{slurm}:{os.environ['PATH']}", FAKE_SLURM=str(slurm))
        # Its worker has all CPUs of the job, and the time that it has.
        assert "#SBATCH --cpus-per-task=32" in said and "#SBATCH -p compute" in said and "#SBATCH -t 02:00:00" in said
        assert "--nthreads 32" in said and "--lifetime 110m" in said
        assert "complete)" in said
        assert (tmp_path / "example" / "results.parquet").read_bytes() == here
        assert "#SBATCH" in (slurm / "job.sh").read_text(), "the job was submitted"
    finally:
        end_jobs(slurm)


def end_jobs(slurm: Path) -> None:
    """Ends what is left of the jobs, each a group of processes of its own."""
    jobs = slurm / "jobs"
    for job in map(int, jobs.read_text().split() if jobs.exists() else []):
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(job, how)
            except ProcessLookupError:
                break
            time.sleep(0.2)
