"""A small study for several tests, and what is the same however it was run."""

from pathlib import Path

STUDY = """
name = "small"
seed = 5
sets = {sets}
overheads = "costs.toml"

[tasks]
cpus = 2
caps = {{ from = 1, to = 2, step = 0.25 }}
tardiness = true

[[family]]
name = "medium"
utilizations = "uniform-medium"

[[family]]
name = "heavy"
utilizations = "uniform-heavy"

[[policy]]
name = "g-edf"
label = "G-EDF"

[[policy]]
name = "p-edf"
label = "P-EDF, free"
overheads = "none"
criteria = ["hard"]
"""

COSTS = """
[worst.g-edf]
schedule = { base = "20us", per-task = "1us" }
[average.g-edf]
schedule = "5us"
"""


def write(folder: Path, *, sets: int) -> Path:
    """Writes the study with so many task sets a cell, and its overheads; returns its path."""
    folder.mkdir(exist_ok=True)
    (folder / "costs.toml").write_text(COSTS)
    path = folder / "small.toml"
    path.write_text(STUDY.format(sets=sets))
    return path


def parts(out: Path) -> list[Path]:
    """All parts in the folder of a study."""
    return sorted(out.glob("part-*.parquet"))
