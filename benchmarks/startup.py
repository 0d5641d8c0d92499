"""Goal 17: how long the import and two commands take, beside an older revision, in turns."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cases import Run, Step
from benchmarks.turn import environment

COMMANDS = {
    "import tasklib": ["-c", "import tasklib"],
    "tasklib --help": ["-m", "tasklib", "--help"],
    "tasklib stats": ["-m", "tasklib", "stats"],
}
"""`stats` on a SQLite file."""


def startup(run: Run, number: int) -> Iterator[Step]:
    """Goal 17: how long `import tasklib`, `tasklib --help` and `tasklib stats` take, beside an older revision."""
    yield Step("start-up", lambda: _startup(run, number, 5 if run.quick else 15))


def _startup(run: Run, number: int, times: int) -> None:
    sources = {"now": None} if run.before is None else {"now": None, "before": run.before}
    took: dict[tuple[str, str], list[float]] = {}
    with run.stage.store("sqlite") as now, run.stage.store("sqlite") as before:
        urls = {"now": now, "before": before}
        for name, source in sources.items():
            _seconds(["-m", "tasklib", "migrate"], source, urls[name])  # makes the file
        for turn in range(times + 1):
            for what, command in COMMANDS.items():
                for name, source in sources.items():
                    seconds = _seconds(command, source, urls[name])
                    if turn:  # the first compiles
                        took.setdefault((what, name), []).append(1000 * seconds)
    for (what, name), values in took.items():
        run.book.note(what, f"start, {name}", number, statistics.median(values))


def _seconds(command: list[str], source: Path | None, url: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *command],
        env=environment(source, {"TASKLIB_DATABASE_URL": url}),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began
