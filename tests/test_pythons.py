"""Which Pythons `make test-all-pythons` finds."""

from pathlib import Path

import pytest

from tests.pythons import find


def test_the_newest_of_each_minor_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On PATH and among pyenv's versions; no shims of what is not there, no pre-releases, nothing old."""

    def python(path: str, answer: str) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{answer}\n")
        file.chmod(0o755)
        return file

    python("bin/python3.11", "echo 3 11 2 final")
    python("bin/python3.12", "exit 127")
    python("bin/python3.14", "echo 3 14 0 candidate")
    newer = python("pyenv/versions/3.11.9/bin/python3", "echo 3 11 9 final")
    newest = python("pyenv/versions/3.13.1/bin/python3", "echo 3 13 1 final")
    python("pyenv/versions/3.10.4/bin/python3", "echo 3 10 4 final")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert [(each.minor, each.path) for each in find()] == [("3.11", newer), ("3.13", newest)]
