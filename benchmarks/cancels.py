"""Goal 15: how soon a running task is stopped after somebody cancelled it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import plan
from benchmarks.cases import Run, Step
from benchmarks.starts import Starts
from benchmarks.turn import Entry, Sizes, TurnFailed, client, percentiles, workers

ENGINES = {"postgres": "PostgreSQL", "sqlite": "SQLite", "nats": "NATS"}


def name_of(engine: str) -> str:
    return f"cancel of a running async def task, {ENGINES[engine]}"


def cancels(run: Run, number: int) -> Iterator[Step]:
    """Goal 15: from the cancel to the exception inside a running `async def` task."""
    for engine in ("postgres", "sqlite") if run.quick else ENGINES:
        yield Step(f"cancel, {engine}", lambda engine=engine: _cancels(run, number, engine, 50 if run.quick else 300))


def _cancels(run: Run, number: int, engine: str, count: int) -> None:
    entry = Entry(plan.OURS, "ours.cancelled:Cancelled", engine, Sizes(0, 0))
    try:
        with ExitStack() as stack:
            url = stack.enter_context(run.stage.store(engine))
            file = run.stage.folder / "cancels"
            Starts(file, 2 * count)
            log = stack.enter_context(tempfile.TemporaryFile("w+b"))
            ask = stack.enter_context(client(entry, url, file, log))
            ask("prepare")
            ask("open")
            stack.enter_context(workers(entry, url, file, log))
            for measure, value in percentiles(ask("cancel", count)).items():
                run.book.note(name_of(engine), measure, number, value)
            ask("close")
    except TurnFailed as error:
        run.book.fail(name_of(engine), f"round {number}: {error}")
