"""Type checkers see the package as its users do: from outside, with the settings of nobody but the checker itself."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TYPING = Path(__file__).parent / "typing"
MARK = "  # error: "
_IGNORE = re.compile(r"  # type: ignore\[[a-z-]+\]")
_MYPY_ERROR = re.compile(r"^(\w+\.py):(\d+): error:", re.MULTILINE)

Complaints = dict[str, set[int]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project: the two files, without the ignores, and no configuration but where Python is."""
    folder = tmp_path_factory.mktemp("project")
    for source in TYPING.glob("*.py"):
        (folder / source.name).write_text(_IGNORE.sub("", source.read_text()))
    return folder


@pytest.fixture(scope="module")
def mypy(project: Path) -> Complaints:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-pretty", "--no-color-output", "."]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Complaints = {}
    for file, line in _MYPY_ERROR.findall(done.stdout):
        found.setdefault(file, set()).add(int(line))
    return found


@pytest.fixture(scope="module")
def pyright(project: Path) -> Complaints:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "."]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: Complaints = {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        if item["severity"] == "error":
            found.setdefault(Path(item["file"]).name, set()).add(item["range"]["start"]["line"] + 1)
    return found


@pytest.fixture(params=["mypy", "pyright"])
def complaints(request: pytest.FixtureRequest) -> Complaints:
    found: Complaints = request.getfixturevalue(request.param)
    return found


def test_right_calls_are_accepted(complaints: Complaints):
    assert complaints.get("right.py", set()) == set()


def test_each_wrong_call_is_rejected_and_nothing_else(complaints: Complaints):
    source = (TYPING / "wrong.py").read_text().splitlines()
    marked = {number for number, line in enumerate(source, 1) if MARK in line}
    assert len(marked) > 40
    assert complaints["wrong.py"] == marked, [source[number - 1] for number in complaints["wrong.py"] ^ marked]


def test_the_package_says_that_it_is_typed(project: Path):
    """Without py.typed a checker would take everything from tasklib for Any, and reject nothing."""
    probe = "import importlib.resources; print(importlib.resources.files('tasklib').joinpath('py.typed').is_file())"
    done = subprocess.run([sys.executable, "-c", probe], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_checkers_are_there():
    """They come with the development tools; a checker that is missing must not look like one that found nothing."""
    folder = str(Path(sys.executable).parent)
    assert shutil.which("mypy", path=folder)
    assert shutil.which("pyright", path=folder)
