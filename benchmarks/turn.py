"""One contender's turn: an empty store, tasks submitted one by one and in bulk, drained by worker processes, then
single tasks on the idle queue. Everything that was sent is counted in the store at the end, or the turn has failed."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.starts import VARIABLE, Starts

ROOT = Path(__file__).parent.parent
STOPS_WITHIN = 20.0


class TurnFailed(Exception):
    pass


@dataclass(frozen=True)
class Sizes:
    """How many tasks a turn takes. Those of slow contenders are fewer: rates are compared, and a smaller backlog is no
    disadvantage."""

    submit: int
    bulk: int
    latency: int = 0
    batch: int = 1000
    seconds: float = 180.0
    """A drain that takes longer has failed."""

    @property
    def total(self) -> int:
        return self.submit + self.bulk


@dataclass(frozen=True)
class Entry:
    """Who takes part: `module:Class` below `benchmarks`, and what it is given."""

    name: str
    path: str
    engine: str
    sizes: Sizes
    packages: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    workers: int = 1
    source: Path | None = None
    """Where tasklib itself is imported from; None: this checkout."""


def take(entry: Entry, url: str, folder: Path, before_drain: Any = None) -> tuple[dict[str, float], str]:
    """One turn's figures (submit, bulk, drain in tasks a second; p50, p99 in milliseconds) and the settings."""
    sizes = entry.sizes
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        file = Path(tempfile.mkstemp(prefix="starts-", dir=folder)[1])
        stack.callback(file.unlink)
        starts = Starts(file, sizes.total + sizes.latency + 1)
        log = stack.enter_context(tempfile.TemporaryFile("w+b"))
        ask = stack.enter_context(client(entry, url, file, log))
        settings = ask("settings")
        ask("prepare")
        ask("open")
        if sizes.submit:
            figures["submit"] = ask("submit", sizes.submit)
        if sizes.bulk:
            figures["bulk"] = ask("bulk", sizes.bulk, sizes.batch)
        if before_drain is not None:
            before_drain()
        with workers(entry, url, file, log) as processes:
            figures["drain"] = _drained(ask, starts, sizes, processes, log)
            if sizes.latency:
                figures.update(percentiles(ask("latency", sizes.latency)))
            _until_done(ask, sizes.total + sizes.latency, time.monotonic() + sizes.seconds, processes, log)
        ask("close")
    return figures, settings


def percentiles(took: list[float]) -> dict[str, float]:
    """The first tenth, in which a worker comes to rest after its backlog, is left out."""
    took = took[len(took) // 10 :]
    return {"p50": statistics.median(took), "p99": statistics.quantiles(took, n=100)[98]}


def _drained(ask: Any, starts: Starts, sizes: Sizes, processes: list[Any], log: Any) -> float:
    """From the first line of the first task until the store has all of them completed."""
    give_up = time.monotonic() + sizes.seconds
    seen, since = 0, time.monotonic()
    # Asking the store costs it time, so it is asked only when the tasks have run.
    while (now := starts.started(0, sizes.total)) < sizes.total:
        _check(processes, log)
        if now != seen:
            seen, since = now, time.monotonic()
        if time.monotonic() > give_up or time.monotonic() - since > 30:
            raise TurnFailed(f"only {now:,} of {sizes.total:,} tasks had run after {sizes.seconds:g} s")
        time.sleep(0.005)
    _until_done(ask, sizes.total, give_up, processes, log)
    return sizes.total / (time.monotonic() - starts.earliest(0, sizes.total) / 1e9)


def _until_done(ask: Any, count: int, give_up: float, processes: list[Any], log: Any) -> None:
    while (done := ask("done")) < count:
        _check(processes, log)
        if time.monotonic() > give_up:
            raise TurnFailed(f"the store has {done:,} of {count:,} tasks completed")
        time.sleep(0.005)
    if done > count:
        raise TurnFailed(f"the store has {done:,} tasks completed, and {count:,} were sent")


def _check(processes: list[subprocess.Popen[bytes]], log: Any) -> None:
    for process in processes:
        if process.poll() is not None:
            raise TurnFailed(f"a worker ended with {process.returncode}: {_last(log)}")


@contextmanager
def client(entry: Entry, url: str, starts: Path, log: Any) -> Iterator[Any]:
    """A process that submits, and counts what is done."""
    process = _start(entry, url, starts, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout

    def ask(*command: Any) -> Any:
        try:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline() or b"null")
        except BrokenPipeError:
            answer = None
        if answer is None:
            raise TurnFailed(f"{command[0]}: the client ended: {_last(log)}")
        if "error" in answer:
            raise TurnFailed(f"{command[0]}: {answer['error']}")
        return answer["ok"]

    try:
        yield ask
    finally:
        process.stdin.close()
        _end(process)
        process.stdout.close()


@contextmanager
def workers(entry: Entry, url: str, starts: Path, log: Any) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [_start(entry, url, starts, log, "work") for _ in range(entry.workers)]
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            _end(process)


def _start(entry: Entry, url: str, starts: Path, log: Any, *role: str, **streams: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.child", entry.path, url, json.dumps(entry.options), *role]
    # A group of its own: a peer's children are ended with it.
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(entry.source, {VARIABLE: str(starts), "PYTHONWARNINGS": "ignore"}),
        stderr=log,
        start_new_session=True,
        **{"stdin": subprocess.DEVNULL, "stdout": log, **streams},
    )


def environment(source: Path | None, variables: dict[str, str]) -> dict[str, str]:
    """Of a child process that imports tasklib from there, and keeps what it has compiled."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, **variables, **({} if source is None else {"PYTHONPATH": str(source)})}


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOPS_WITHIN)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(log: Any) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
