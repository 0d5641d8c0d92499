"""The suite with every Python of this machine: `make test-all-pythons`.

They are looked for on PATH (`python3.12`) and among pyenv's versions; of each minor version the newest counts. Each
gets a virtualenv of its own, `.venv-3.12`. With `--short`, for every change: the newest beside the one that everything
else runs with, in a virtualenv that goes again, and of the tests those of core and stores that need no server.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OLDEST = (3, 11)
NEWEST_TRIED = 20
"""python3.20 is the last that is asked for."""
ASK = "import sys; print(*sys.version_info[:3], sys.version_info.releaselevel)"
SHORT = [
    "tests/core",
    "tests/stores/test_conformance.py",
    "tests/submitting/test_definitions.py",
    "tests/worker/test_retry_lists.py",
]
ON_SQLITE = "not memory and not nats and not postgres"
"""Cases of these, by their names: they need no server."""
NEEDED = {"httpx", "hypothesis", "psutil", "psycopg", "pytest", "pytest-asyncio", "pytest-timeout"}
"""Of the development tools, by these tests."""


class Python(NamedTuple):
    version: tuple[int, ...]
    path: Path

    @property
    def minor(self) -> str:
        return ".".join(map(str, self.version[:2]))


def find() -> list[Python]:
    """The newest of each minor version, oldest first."""
    newest: dict[str, Python] = {}
    for path in _candidates():
        found = _ask(path)
        if found is not None and (found.minor not in newest or newest[found.minor].version < found.version):
            newest[found.minor] = found
    return sorted(newest.values())


def _candidates() -> Iterator[Path]:
    for minor in range(OLDEST[1], NEWEST_TRIED + 1):
        on_path = shutil.which(f"python3.{minor}")
        if on_path is not None:
            yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from pyenv.glob("versions/*/bin/python3")


def _ask(path: Path) -> Python | None:
    """Asked by running it: a pyenv shim may be on PATH for a version that is not there."""
    answer = subprocess.run([path, "-c", ASK], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None
    *numbers, level = answer.stdout.split()
    version = tuple(map(int, numbers))
    return Python(version, path) if version >= OLDEST and level == "final" else None


def run(python: Python) -> bool:
    """All of it, as `make test` does."""
    make = ["make", "--no-print-directory", "test", f"VENV=.venv-{python.minor}", f"PYTHON={python.path}"]
    return subprocess.run(make, check=False).returncode == 0


def run_short(python: Python) -> bool:
    """In one process, as the servers are started for several."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    tools = [each for each in project["optional-dependencies"]["dev"] if re.split(r"[\[<>=]", each)[0] in NEEDED]
    with tempfile.TemporaryDirectory() as folder:
        inside = f"{folder}/bin/python"
        commands = [
            [str(python.path), "-m", "venv", folder],
            [inside, "-m", "pip", "install", "--quiet", "-e", ".[nats,postgres,server]", *tools],
            [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", ON_SQLITE, *SHORT],
        ]
        env = {**os.environ, "TASKLIB_SKIP_UI": "1"}
        return all(subprocess.run(command, check=False, env=env).returncode == 0 for command in commands)


def main() -> int:
    asked = argparse.ArgumentParser(prog="make test-all-pythons")
    asked.add_argument("--short", action="store_true", help="the newest other than this one, without servers")
    short = asked.parse_args().short
    pythons = find()
    if short:
        pythons = [python for python in pythons if python.version[:2] != sys.version_info[:2]][-1:]
    said = "".join(f" {python.minor} ({python.path})" for python in pythons)
    sys.stdout.write(f"Pythons found:{said or ' none but the one that everything else runs with'}\n")
    results: list[str] = []
    for python in pythons:
        begun = time.monotonic()
        passed = run_short(python) if short else run(python)
        results.append(f"{python.minor:<6}{'passed' if passed else 'FAILED'}  {time.monotonic() - begun:.0f} s")
    sys.stdout.write("".join(f"{line}\n" for line in results))
    return any("FAILED" in line for line in results)


if __name__ == "__main__":
    raise SystemExit(main())
