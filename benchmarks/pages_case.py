"""Goal 16 as a part of a run."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict

from benchmarks import wire
from benchmarks.cases import Run, Step
from benchmarks.pages import ask, filled
from benchmarks.stage import remove_sqlite


def pages(run: Run, number: int) -> Iterator[Step]:
    """Goal 16: server time of every REST request, with one and ten million finished tasks (not in a quick run), and the
    bytes that a viewer pulls."""
    yield Step("pages, bytes of a viewer", lambda: _wire(run))
    for rows in () if run.quick else (1_000_000, 10_000_000):
        for engine in ("postgres", "sqlite"):
            yield Step(f"pages, {rows:,}, {engine}", lambda engine=engine, rows=rows: _pages(run, engine, rows))


def _wire(run: Run) -> None:
    file = run.stage.folder / "wire.db"
    found = asyncio.run(wire.measure(f"sqlite:///{file}", 3 if run.quick else 10))
    remove_sqlite(file)
    run.book.wire += [asdict(each) for each in found]


def _pages(run: Run, engine: str, rows: int) -> None:
    server = run.stage.postgres if engine == "postgres" else None
    with filled(engine, run.stage.folder, rows, server) as url:
        run.book.pages += [asdict(timing) for timing in asyncio.run(ask(url, rows))]
