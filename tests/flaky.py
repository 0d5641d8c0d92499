"""Runs slow tests again and again and names those that vary: `python -m tests.flaky --runs 20 tests/cli`, `make flaky`.

The first run is of everything that was asked for. The others are of what took a while or failed in it: tests that start
processes, servers and browsers, or wait. What waits for nothing does not vary. With more jobs than the machine has
cores, tests have to wait for it, too, and more of them show.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
REPORT = "TASKLIB_FLAKY_REPORT"
SLOW_SECONDS = 0.5

Results = Mapping[str, tuple[bool, float]]
"""Of each test: whether it failed, and its seconds."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """This file is a plugin of the runs that it starts. The process that collects all results writes them down."""
    if REPORT in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[REPORT]).open("a") as file:
            print(json.dumps([report.nodeid, report.failed, report.duration]), file=file)


def run(selection: Sequence[str], jobs: int, folder: Path, number: int) -> Results:
    told = folder / f"run-{number}.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "-p", "tests.flaky", *selection]
    with (folder / f"run-{number}.txt").open("w") as out:
        env = {**os.environ, REPORT: str(told)}
        subprocess.run(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT, check=False)
    if not told.exists():
        sys.exit(Path(out.name).read_text())
    failed: dict[str, bool] = defaultdict(bool)
    seconds: Counter[str] = Counter()
    for line in told.read_text().splitlines():
        name, has_failed, took = json.loads(line)
        failed[name] |= has_failed
        seconds[name] += took
    return {name: (has_failed, seconds[name]) for name, has_failed in failed.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("tests", nargs="*", default=["tests"], help="what the first run is of, as pytest takes it")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tasklib-flaky-"))
    selection: list[str] = given.tests
    runs: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for number in range(1, given.runs + 1):
        begun = time.monotonic()
        found = run(selection, given.jobs, folder, number)
        runs.update(found.keys())
        failed = [name for name, (has_failed, _) in found.items() if has_failed]
        failures.update(failed)
        took = time.monotonic() - begun
        print(f"run {number} of {given.runs}: {len(found)} tests, {len(failed)} failed, {took:.0f} s", flush=True)
        if number == 1:
            again = [name for name, (has_failed, seconds) in found.items() if has_failed or seconds > SLOW_SECONDS]
            (folder / "again.txt").write_text("".join(f"{name}\n" for name in again))
            selection = [f"@{folder / 'again.txt'}"]
            if not again:
                break
    for name, count in failures.most_common():
        print(f"failed {count} of {runs[name]} times: {name}")
    print(f"{len(failures)} tests did not pass every time" if failures else "nothing varied", f"({folder})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
