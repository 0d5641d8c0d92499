"""Running the command line as a process of its own, and what came of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasklib.worker.signals import ECHO_SECONDS
from tests.waiting import eventually

COMMAND = [sys.executable, "-m", "tasklib.cli"]

SHOP = """
import os, threading
from pathlib import Path
from tasklib import task

@task
def add(a: int, b: int = 2) -> int:
    return a + b

@task(max_retries=0)
def boom(text: str) -> None:
    raise ValueError(text)

@task(max_retries=0)
def note_pid(folder: Path, wait: bool = False) -> int:
    (folder / f"{os.getpid()}.pid").touch()
    while wait and not (folder / "go").exists():
        threading.Event().wait(0.02)
    return os.getpid()
"""


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what the developer's shell says about tasklib. The default queue is one in an empty folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TASKLIB_")}
    return {**clean, "TASKLIB_TESTING": "0", **(extra or {})}


def run_process(
    arguments: Sequence[str], cwd: Path, *, env: Mapping[str, str] | None = None, stdin: str = "", timeout: float = 60
) -> Ran:
    process = subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ran(process.returncode, process.stdout, process.stderr)


@contextmanager
def background(
    arguments: Sequence[str], cwd: Path, *, env: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on; killed at the end if it still does. Its stderr goes to `stderr.txt`."""
    with (cwd / "stderr.txt").open("w") as log:
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": log, **options}
        process = subprocess.Popen([*COMMAND, *arguments], cwd=cwd, env=environment(env), text=True, **options)
    with process:
        try:
            yield process
        finally:
            process.kill()


def insist(process: subprocess.Popen[str]) -> int:
    """A second signal to a process that has heard the first: later than the instant in which both would be one."""
    first = time.monotonic()
    eventually(lambda: time.monotonic() > first + ECHO_SECONDS)
    process.send_signal(signal.SIGINT)
    return process.wait(20)
