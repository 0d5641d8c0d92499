"""Starts workers as real processes and reads what they left behind."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.worker.journal import JOURNAL

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.worker.program"


class WorkerProcess:
    def __init__(
        self,
        url: str,
        folder: Path,
        concurrency: int,
        burst: bool,
        settings: dict[str, Any],
        env: Mapping[str, str] | None = None,
        program: str = PROGRAM,
    ) -> None:
        config = {
            "database_url": url,
            "heartbeat_seconds": 0.2,
            "dead_after_seconds": 1.0,
            "lock_timeout_seconds": 30,
            **settings,
        }
        self.log = folder / f"worker-{len(list(folder.glob('worker-*.log')))}.log"
        command = [sys.executable, "-m", program, json.dumps(config), str(concurrency)]
        env = {**os.environ, "PYTHONPATH": "", **(env or {}), JOURNAL: str(folder / "journal")}
        # This tree's own source first, which need not be the one that is installed.
        env["PYTHONPATH"] = f"{env['PYTHONPATH']}:{ROOT / 'src'}:{ROOT}".lstrip(":")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "burst"] if burst else command,
                cwd=ROOT,
                env=env,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        return self.process.wait(timeout)


class Fleet:
    """Workers on one queue, and the journal that their tasks write."""

    def __init__(self, url: str, folder: Path, program: str = PROGRAM) -> None:
        self._url, self._folder, self._program = url, folder, program
        self.workers: list[WorkerProcess] = []

    def start(
        self, concurrency: int = 4, *, burst: bool = False, env: Mapping[str, str] | None = None, **settings: Any
    ) -> WorkerProcess:
        worker = WorkerProcess(self._url, self._folder, concurrency, burst, settings, env, self._program)
        self.workers.append(worker)
        return worker

    @property
    def journal(self) -> list[list[str]]:
        path = self._folder / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def starts(self, word: str) -> Counter[str]:
        """How often each task noted this word, by id."""
        return Counter(line[-2] for line in self.journal if line[0] == word)

    def stop(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.send(signal.SIGKILL)
            worker.wait()


@contextmanager
def fleet_on(url: str, folder: Path, program: str = PROGRAM) -> Iterator[Fleet]:
    fleet = Fleet(url, folder, program)
    os.environ[JOURNAL] = str(folder / "journal")
    try:
        yield fleet
    finally:
        fleet.stop()
