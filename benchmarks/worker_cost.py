"""Goals 12 and 13: what a worker costs that has nothing to do, and whether it holds on to memory."""

import asyncio
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil
import psycopg

from benchmarks import plan
from benchmarks.cases import Run, Step
from benchmarks.schedules import define
from benchmarks.starts import Starts
from benchmarks.turn import Entry, Sizes, TurnFailed, client, workers
from tasklib import cron

MEGABYTE = 1024 * 1024
STARTS_WITHIN = 120.0
IDLE = "idle worker"
IDLE_WITH_SCHEDULES = "idle worker, 1,000 schedules that are not due"


def idle(run: Run, number: int) -> Iterator[Step]:
    """Goal 12: statements and processor time of an idle worker."""
    for what in (IDLE, IDLE_WITH_SCHEDULES):
        yield Step(what, lambda what=what: _idle(run, number, what, 10 if run.quick else 60))


def memory(run: Run, number: int) -> Iterator[Step]:
    """Goal 13: memory of a worker over 200,000 tasks, and with 100,000 waiting. Not in a quick run."""
    if not run.quick:
        yield Step("memory over many tasks", lambda: _over_many(run, number, 200_000))
        yield Step("memory with many waiting", lambda: _with_waiting(run, number, 100_000))
        yield Step("memory with many waiting, NATS", lambda: _with_waiting_on_nats(run, number, 100_000))


def _idle(run: Run, number: int, what: str, seconds: int) -> None:
    scheduled = what == IDLE_WITH_SCHEDULES
    # Counted in the server's log: its statistics of transactions come late, and lump in what is not ours.
    log = run.stage.folder / "postgres" / "log"
    with _working(run, 1, {"concurrency": 100}, [], logged=True, scheduled=scheduled) as (process, _):
        time.sleep(6)  # past its first, busier moments
        run.book.note("worker's memory", "at the start", number, process.memory_info().rss / MEGABYTE)
        size, used, began = log.stat().st_size, sum(process.cpu_times()[:2]), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        with log.open("rb") as file:
            file.seek(size)
            statements = len(re.findall(rb"LOG:  (?:execute|statement)", file.read()))
        run.book.note(what, "statements", number, statements / took)
        run.book.note(what, "cpu", number, 100 * (sum(process.cpu_times()[:2]) - used) / took)


def _over_many(run: Run, number: int, count: int) -> None:
    with _working(run, count, {"concurrency": 100}, [("bulk", count, 1000)]) as (process, starts):
        marks: dict[int, float] = {}
        while starts.started() < count:
            done = starts.started()
            marks.setdefault(done * 10 // count, process.memory_info().rss / MEGABYTE)
            time.sleep(0.02)
        last = process.memory_info().rss / MEGABYTE
        # The first tenth warms up: pools, caches, the largest batch.
        run.book.note("worker's memory", "growth", number, last - marks.get(1, min(marks.values())))
        run.book.note("worker's memory", "size", number, last)


def _with_waiting(run: Run, number: int, count: int) -> None:
    run.book.note("worker's memory", "waiting", number, _grown(run, count, "postgres") / MEGABYTE)


def _with_waiting_on_nats(run: Run, number: int, count: int) -> None:
    """There a worker keeps an index of what waits."""
    run.book.note("worker's memory", "waiting on NATS", number, _grown(run, count, "nats") / count)


def _grown(run: Run, count: int, engine: str) -> float:
    """By how many bytes a worker is larger that many tasks wait for."""
    sizes = []
    for waiting in (20, count):
        options = {"concurrency": 2, "kind": "nap"}
        with _working(run, waiting, options, [("bulk", waiting, 1000)], engine=engine) as (process, starts):
            # On NATS its first claim comes when it has read what waits: not before, however slow the machine.
            _until_started(starts)
            time.sleep(10)
            sizes.append(process.memory_info().rss)
    return float(sizes[1] - sizes[0])


def _until_started(starts: Starts) -> None:
    give_up = time.monotonic() + STARTS_WITHIN
    while not starts.started():
        if time.monotonic() > give_up:
            raise TurnFailed(f"no task had started after {STARTS_WITHIN:g} s")
        time.sleep(0.1)


@contextmanager
def _working(
    run: Run,
    count: int,
    options: dict[str, Any],
    commands: list[Any],
    *,
    engine: str = "postgres",
    logged: bool = False,
    scheduled: bool = False,
) -> Iterator[tuple[psutil.Process, Starts]]:
    """One worker on a queue that was sent these tasks."""
    entry = Entry(plan.OURS, "ours.queue:Tasklib", engine, Sizes(0, 0), options=options)
    with ExitStack() as stack:
        url = stack.enter_context(run.stage.store(engine))
        file = run.stage.folder / "worker-cost"
        starts = Starts(file, count + 1)
        log = stack.enter_context(tempfile.TemporaryFile("w+b"))
        ask = stack.enter_context(client(entry, url, file, log))
        for command in (("prepare",), ("open",), *commands, ("close",)):
            ask(*command)
        if scheduled:
            asyncio.run(define(url, cron("0 0 29 2 *")))  # on a day in years
        if logged:
            with psycopg.connect(run.stage.postgres, autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET log_statement = 'all'")
        (process,) = stack.enter_context(workers(entry, url, file, log))
        yield psutil.Process(process.pid), starts
