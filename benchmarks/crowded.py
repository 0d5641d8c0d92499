"""Goals 8 and 9: the same drain with a full table, many task types, other types' backlog, idle workers."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg

from benchmarks import plan, servers
from benchmarks.cases import Run, Step
from benchmarks.crowd import Crowd, fill, live
from benchmarks.turn import Entry, Sizes, TurnFailed, take, workers

EMPTY = "empty table"
FULL = "a million finished, a million future"
FULLEST = "ten million finished"
BESIDE = "a rare type beside a million others"
TYPES = "256 types registered"
IDLE = "64 idle workers"
CROWDS = {
    FULL: Crowd(finished=1_000_000, future=1_000_000, ready=0, running=0, waiting=0),
    FULLEST: Crowd(finished=10_000_000, future=0, ready=0, running=0, waiting=0),
    BESIDE: Crowd(ready=1_000_000, future=0, running=0, waiting=0),
}
IDLE_WORKERS = 64


def crowded(run: Run, number: int) -> Iterator[Step]:
    """Goals 8 and 9: the drain of goal 1 in a crowd. Not in a quick run."""
    if run.quick:
        return
    entry = Entry("", "ours.queue:Tasklib", "postgres", Sizes(submit=0, bulk=50_000), options={"concurrency": 100})
    for what in (EMPTY, FULL, BESIDE, TYPES, IDLE, FULLEST):
        yield Step(f"drain, {what}", lambda what=what: _drain(run, number, what, entry))


def _drain(run: Run, number: int, what: str, entry: Entry) -> None:
    name = "drain of tasklib, empty table" if what == EMPTY else f"drain, {what}"
    if what == TYPES:
        entry = replace(entry, options={**entry.options, "types": 255})
    template = _template(run, what) if what in CROWDS else None
    with ExitStack() as stack:
        url = stack.enter_context(run.stage.store("postgres", template=template))

        def before() -> None:
            if what == IDLE:
                _idle_workers(stack, url, run.stage.folder)
            servers.settle_down(run.stage.postgres)

        try:
            figures, _ = take(entry, url, run.stage.folder, before)
        except TurnFailed as error:
            run.book.fail(name, f"round {number}: {error}")
        else:
            run.book.note(name, "drain", number, figures["drain"])


def _template(run: Run, what: str) -> str:
    """A database with the crowd in it, made once and copied for each turn."""
    name = f"crowd_{sum(map(ord, what))}"
    with psycopg.connect(run.stage.postgres) as connection:
        found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone()
    if found is None:
        with servers.database(run.stage.postgres, name, keep=True) as url:
            fill(url, CROWDS[what])
            live(url, "noop")
    return name


def _idle_workers(stack: ExitStack, url: str, folder: Path) -> None:
    entry = Entry("idle", "ours.idle:IdleWorkers", "postgres", plan.QUICK_SLOW, options={"count": IDLE_WORKERS})
    log = stack.enter_context(tempfile.TemporaryFile("w+b"))  # noqa: SIM115 - the stack closes it
    stack.enter_context(workers(entry, url, folder / "none", log))
    give_up = time.monotonic() + 120
    with psycopg.connect(url, autocommit=True) as connection:
        while (connection.execute("SELECT count(*) FROM task_workers").fetchone() or [0])[0] < IDLE_WORKERS:
            if time.monotonic() > give_up:
                raise TurnFailed(f"{IDLE_WORKERS} idle workers did not start")
            time.sleep(0.1)
    time.sleep(5)  # until they have come to rest
