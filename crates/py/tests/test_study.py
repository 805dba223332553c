"""Studies from Python: run, interrupted, cut into chunks, and what comes of them."""

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from studies import parts, write

import shiftwork as sw


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> sw.Study:
    return sw.Study(write(tmp_path_factory.mktemp("study"), sets=40))


@pytest.fixture(scope="module")
def whole(study: sw.Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert study.run(out).missing == 0
    return out


def results_of(out: Path) -> bytes:
    return (out / "results.parquet").read_bytes()


def test_a_study_lists_its_questions(study: sw.Study) -> None:
    assert (study.name, study.sets, study.total, len(study.cells)) == ("small", 40, 400, 10)
    assert study.cells[6].family == "heavy" and study.cells[6].cap == 1.25 and study.cells[6].cpus == 2
    asked = [(one.label, one.policy, one.criterion) for one in study.questions]
    assert asked == [("G-EDF", "g-edf", "hard"), ("G-EDF", "g-edf", "soft"), ("P-EDF, free", "p-edf", "hard")]
    assert study.cells[0].questions == (0, 1, 2)


def test_counts_are_those_of_task_sets_asked_one_by_one(tmp_path: Path) -> None:
    """The definition: generated and analysed by the package's other functions."""
    study = sw.Study.loads(
        """
        name = "one cell"
        seed = 11
        sets = 30
        [tasks]
        cpus = 3
        loads = [0.75]
        utilizations = "randfixedsum"
        tasks = 5
        [[policy]]
        name = "g-edf"
        criteria = ["hard"]
        """
    )
    drawn = sw.generate(cpus=3, tasks=5, utilization=2.25, seed=11, cell=0, count=30)
    verdicts = [sw.analyze(one, "g-edf", max_steps=200_000).verdict("g-edf").verdict for one in drawn]
    met = verdicts.count("schedulable")
    assert 0 < met < 30, "otherwise this shows nothing"
    study.keep(tmp_path, study.run_chunk(sw.study.Chunk(((0, 0, 17),))))
    assert study.run(tmp_path).met.tolist() == [met]


def test_results_are_columns(study: sw.Study, whole: Path) -> None:
    results = study.results(whole)
    assert results.rows == 30 and results.missing == 0 and results.digest == study.digest
    assert (results.sets == 40).all()
    assert (results.met + results.refuted + results.unknown == results.sets).all()
    assert np.array_equal(results.ratio, results.met / 40)
    assert ((results.low <= results.ratio) & (results.ratio <= results.high)).all()
    assert set(results.overheads.tolist()) == {"", "costs.toml"}
    is_soft = results.criterion == "soft"
    assert (results.bounded[~is_soft] == 0).all() and (results.tardiness_max_ns[~is_soft] == -1).all()
    with pytest.raises(ValueError, match="read-only"):
        results.met[0] = 7
    with pytest.raises(AttributeError, match="no column `nets`; there are family, cpus"):
        results.nets  # noqa: B018
    again = sw.StudyResults.load(whole)
    assert all(np.array_equal(again[name], column, equal_nan=column.dtype == float) for name, column in results.items())
    copy = pickle.loads(pickle.dumps(results))
    assert (copy.name, copy.missing, copy.met.tolist()) == ("small", 0, results.met.tolist())
    assert "<td>G-EDF</td>" in results._repr_html_()
    assert repr(results) == "StudyResults('small', 30 rows, complete)"


def test_results_as_arrow_are_those_of_the_file(study: sw.Study, whole: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(whole / "results.parquet")
    assert table.to_pydict() == study.results(whole).to_arrow().to_pydict()


def test_results_as_a_data_frame(study: sw.Study, whole: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = study.results(whole).to_pandas()
    assert frame["met"].tolist() == study.results(whole).met.tolist()
    assert frame["overheads"].isna().sum() == 10
    assert isinstance(frame, pandas.DataFrame) and frame["tardiness_max_ns"].isna().any()


def test_curves_are_rows_of_the_results(study: sw.Study, whole: Path) -> None:
    results = study.results(whole)
    assert results.figures == [("medium", 2, "hard"), ("medium", 2, "soft"), ("heavy", 2, "hard"), ("heavy", 2, "soft")]
    curves = results.curves("heavy", "hard")
    assert list(curves) == ["G-EDF", "P-EDF, free"]
    assert curves["G-EDF"]["x"].tolist() == [1, 1.25, 1.5, 1.75, 2]
    assert curves["P-EDF, free"]["ratio"][0] >= curves["P-EDF, free"]["ratio"][-1]
    with pytest.raises(sw.InputError, match="`family` is not given; there are 'medium', 'heavy'"):
        results.curves()
    with pytest.raises(sw.InputError, match="`criterion` is 'harsh'; there are 'hard', 'soft'"):
        results.curves("medium", "harsh")  # type: ignore[arg-type]


def test_interrupted_shared_and_resumed_runs_give_the_same_file(study: sw.Study, whole: Path, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    for seed in range(3):
        draw = random.Random(seed)
        out = tmp_path / f"seed-{seed}"
        ended = False
        for _ in range(40):
            patience = draw.randrange(1, 6)

            def note(progress: sw.Progress) -> None:
                nonlocal patience
                patience -= 1
                if patience == 0 and progress.done < progress.total:
                    raise Enough

            shard = draw.choice([None, "1/2", (2, 2)])
            try:
                ended = study.run(out, threads=draw.choice([1, 2]), shard=shard, progress=note).missing == 0
            except Enough as error:
                assert "task sets are kept in" in error.__notes__[0], f"seed {seed}"
            if ended:
                break
        assert ended, f"seed {seed}"
        assert results_of(out) == results_of(whole), f"seed {seed}"


def test_chunks_in_any_order_and_twice_give_the_same_file(study: sw.Study, whole: Path, tmp_path: Path) -> None:
    chunks = study.missing(tmp_path, seconds=0.005)
    assert sum(chunk.sets for chunk in chunks) == study.total and len(chunks) > 3
    random.Random(1).shuffle(chunks)
    elsewhere: sw.Study = pickle.loads(pickle.dumps(study))
    for chunk in chunks:
        part = elsewhere.run_chunk(chunk)
        assert study.keep(tmp_path, part) == chunk.sets
        count = len(parts(tmp_path))
        study.keep(tmp_path, part, part)
        assert len(parts(tmp_path)) == count
    assert study.missing(tmp_path) == []
    assert study.merge(tmp_path) == tmp_path / "results.parquet"
    assert results_of(tmp_path) == results_of(whole)


def test_a_damaged_part_is_set_aside_and_run_again(study: sw.Study, whole: Path, tmp_path: Path) -> None:
    for chunk in study.missing(tmp_path, seconds=0.005):
        study.keep(tmp_path, study.run_chunk(chunk))
    victim = parts(tmp_path)[1]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with pytest.warns(sw.StudyWarning, match=f"{victim.name} is damaged .* run again") as caught:
        path = study.merge(tmp_path)
    assert caught[0].filename == __file__, "the warning is at the caller's place"
    assert path.name == "partial.parquet"
    lost = study.results(tmp_path).missing
    assert 0 < lost < study.total
    assert study.run(tmp_path).missing == 0
    assert results_of(tmp_path) == results_of(whole)
    assert [file.name for file in tmp_path.glob("*.damaged")] == [f"{victim.name}.damaged"]


def test_parts_that_cannot_be_used_are_refused(study: sw.Study, tmp_path: Path) -> None:
    chunk = study.missing(tmp_path)[0]
    part = study.run_chunk(chunk)
    with pytest.raises(sw.StudyError, match="was not kept: it is damaged"):
        study.keep(tmp_path, part[:-30] + part[-29:])
    other = sw.Study.loads((study._text).replace("seed = 5", "seed = 6"), folder=Path(study._path).parent)
    with pytest.raises(sw.StudyError, match="was not kept: it is of another study"):
        other.keep(tmp_path, part)
    study.keep(tmp_path, part)
    with pytest.raises(sw.StudyError, match="is a part of another study"):
        other.run(tmp_path)
    with pytest.raises(sw.InputError, match="no range of this study"):
        study.run_chunk(sw.study.Chunk(((0, 30, 41),)))
    with pytest.raises(sw.InputError, match="a task set twice"):
        study.run_chunk(sw.study.Chunk(((0, 3, 5), (0, 4, 6))))


def test_a_pickled_study_needs_no_files(tmp_path: Path) -> None:
    path = write(tmp_path / "here", sets=3)
    study = sw.Study(path, sets=2)
    pickled = pickle.dumps(study)
    for file in path.parent.iterdir():
        file.unlink()
    copy: sw.Study = pickle.loads(pickled)
    assert copy == study and hash(copy) == hash(study) and copy.digest == study.digest and copy.sets == 2
    chunk = study.missing(tmp_path / "out")[0]
    assert copy.run_chunk(chunk) == study.run_chunk(chunk)


def test_mistakes_name_the_file_and_the_place(tmp_path: Path) -> None:
    path = write(tmp_path, sets=3)
    text = path.read_text()
    path.write_text(text.replace("caps", "cap"))
    with pytest.raises(sw.InputError, match=r"small.toml: line \d+, column 1: .*`cap`") as caught:
        sw.Study(path)
    assert caught.value.path == str(path) and caught.value.line == 9
    path.write_text(text)
    (tmp_path / "costs.toml").write_text("[worst.g-edf]\nshedule = '1us'")
    with pytest.raises(sw.InputError, match="costs.toml: line 2, column 1: .*`shedule`"):
        sw.Study(path)
    (tmp_path / "costs.toml").unlink()
    with pytest.raises(sw.InputError, match=r"costs.toml: .*No such file"):
        sw.Study(path)
    with pytest.raises(OSError):
        sw.Study(tmp_path / "none.toml")
    with pytest.raises(sw.InputError, match="`sets` is 0"):
        sw.Study(path, sets=0)


def test_options_that_make_no_sense_are_refused(study: sw.Study, tmp_path: Path) -> None:
    for shard in ["0/3", "4/3", "a/b", "3", (1, 0), 7]:
        with pytest.raises(sw.InputError, match="`shard` is .*which share of how many"):
            study.run(tmp_path, shard=shard)  # type: ignore[arg-type]
    with pytest.raises(sw.InputError, match="`threads` is 0"):
        study.run(tmp_path, threads=0)
    with pytest.raises(sw.InputError, match="`seconds` is 0"):
        study.missing(tmp_path, seconds=0)
    with pytest.raises(sw.InputError, match="`progress` is 'yes'"):
        study.run(tmp_path, progress="yes")  # type: ignore[arg-type]
    with pytest.raises(sw.StudyError, match="there is no such folder"):
        study.results(tmp_path / "none")
    with pytest.raises(sw.StudyError, match="cannot be written"):
        (tmp_path / "file").write_text("")
        study.run(tmp_path / "file" / "out")


def test_other_threads_go_on_and_progress_is_reported(study: sw.Study, tmp_path: Path) -> None:
    big = sw.Study.loads(study._text, folder=Path(study._path).parent, sets=4_000)
    seen: list[sw.Progress] = []
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    class Enough(Exception):
        pass

    def note(progress: sw.Progress) -> None:
        seen.append(progress)
        if len(seen) == 4:
            raise Enough

    ticker = threading.Thread(target=tick)
    ticker.start()
    with pytest.raises(Enough):
        big.run(tmp_path, progress=note)
    done.set()
    ticker.join()
    assert ticks > 10
    assert all(one.total == 40_000 and 0 <= one.done <= one.total for one in seen)
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert big.results(tmp_path).missing == 40_000 - big.results(tmp_path).sets[::3].sum()


INTERRUPTED = """
import sys
import shiftwork as sw
study = sw.Study(sys.argv[1], sets=1_000_000)
try:
    study.run(sys.argv[2], progress=lambda progress: print("going", flush=True))
except KeyboardInterrupt as error:
    print(error.__notes__[0])
"""


def test_after_ctrl_c_everything_that_was_done_is_kept(study: sw.Study, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, study._path, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "going\n"
        process.send_signal(signal.SIGINT)
        last = process.stdout.read().splitlines()[-1]
    assert process.returncode == 0
    kept = int(last.split()[0])
    assert kept > 0 and last.endswith("task sets are kept in 1 parts; the same call goes on from there")
    results = sw.Study(study._path, sets=1_000_000).results(tmp_path)
    assert results.missing == 10_000_000 - kept


def test_a_bar_is_shown_only_in_a_terminal(study: sw.Study, tmp_path: Path) -> None:
    code = "import sys, shiftwork as sw; sw.Study(sys.argv[1], sets=2).run(sys.argv[2])"
    command = [sys.executable, "-c", code, study._path]
    piped = subprocess.run([*command, str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert piped.stdout == piped.stderr == ""
    ours, theirs = os.openpty()
    subprocess.run([*command, str(tmp_path / "b")], stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "100% 20 of 20 task sets" in shown and shown.endswith("\n")


def test_progress_in_words() -> None:
    assert str(sw.Progress(1, 4, 61.2, 3_723.0)) == "█" * 6 + "░" * 18 + "  25% 1 of 4 task sets, 1:01, 1:02:03 left"
    assert str(sw.Progress(4, 4, 2.0, 0.0)).endswith(" 100% 4 of 4 task sets, 0:02".lstrip())
    assert "left" not in str(sw.Progress(0, 4, 0.0, None))
