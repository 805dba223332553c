"""What the documents show is what Python prints."""

import doctest
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[3]


def sessions(name: str) -> list[str]:
    """The sessions with Python's prompt in this document."""
    return re.findall(r"^```pycon\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "crates/py/README.md", "docs/python.md"])
def test_the_sessions_are_real(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = sessions(name)
    assert found
    parsed = doctest.DocTestParser().get_doctest("\n".join(found), {}, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(parsed, out=said.append)
    result = runner.summarize(verbose=False)
    assert result.attempted >= 4
    assert not result.failed, "".join(said)
    assert os.listdir(tmp_path), "every document draws something"
