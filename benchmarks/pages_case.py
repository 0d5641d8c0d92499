"""Goal 16 as a part of a run."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict

from benchmarks.cases import Run, Step
from benchmarks.pages import ask, filled


def pages(run: Run, number: int) -> Iterator[Step]:
    """Goal 16: server time of every REST request, with one and ten million finished tasks. Not in a quick run."""
    for rows in () if run.quick else (1_000_000, 10_000_000):
        for engine in ("postgres", "sqlite"):
            yield Step(f"pages, {rows:,}, {engine}", lambda engine=engine, rows=rows: _pages(run, engine, rows))


def _pages(run: Run, engine: str, rows: int) -> None:
    server = run.stage.postgres if engine == "postgres" else None
    with filled(engine, run.stage.folder, rows, server) as url:
        run.book.pages += [asdict(timing) for timing in asyncio.run(ask(url, rows))]
