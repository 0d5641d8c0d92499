"""Goal 11: what a limit on one type costs the others, and how closely the limited type keeps to it."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import plan
from benchmarks.cases import Run, Step
from benchmarks.ours.limited import CONCURRENCY, NAP_SECONDS, RATE
from benchmarks.starts import Starts
from benchmarks.turn import Entry, Sizes, TurnFailed, client, workers

LIMITED = 3_000
WINDOW = 10.0
"""Seconds for which the limited type is watched, after the others are done."""


def limits(run: Run, number: int) -> Iterator[Step]:
    """Goal 11: a rate and a concurrency limit on one type. Not in a quick run."""
    if not run.quick:
        yield Step("limits", lambda: _limits(run, number, 50_000))


def _limits(run: Run, number: int, others: int) -> None:
    try:
        without, _ = _drain(run, others, "none")
        for kind, expected in (("rate", RATE), ("concurrency", CONCURRENCY / NAP_SECONDS)):
            rate, limited_rate = _drain(run, others, kind)
            name = f"{kind} limit on one type"
            run.book.note(name, "others", number, rate / without)
            run.book.note(name, "limited rate", number, limited_rate)
            run.book.note(name, "off", number, 100 * abs(limited_rate - expected) / expected)
        reached, _ = _drain(run, others, "concurrency", limited_first=True)
        run.book.note("concurrency limit on one type", "others, limit reached", number, reached / without)
    except TurnFailed as error:
        run.book.fail("limits", f"round {number}: {error}")


def _drain(run: Run, others: int, limit: str, *, limited_first: bool = False) -> tuple[float, float]:
    """Tasks a second of the other type, and then of the limited one. The limited ones wait behind the others, so that
    there is room under their limit all the time; or before them, so that as many run as may."""
    options = {"concurrency": 100, "limit": limit, "limited": LIMITED, "first": others}
    entry = Entry(plan.OURS, "ours.limited:Limited", "postgres", Sizes(0, 0), options=options)
    with ExitStack() as stack:
        url = stack.enter_context(run.stage.store("postgres"))
        file = run.stage.folder / "limits"
        starts = Starts(file, others + LIMITED + 1)
        log = stack.enter_context(tempfile.TemporaryFile("w+b"))
        ask = stack.enter_context(client(entry, url, file, log))
        ask("open")
        if limited_first:
            ask("prepare")
        ask("bulk", others, 1000)
        if not limited_first:
            ask("prepare")
        run.stage.settle_down("postgres")
        stack.enter_context(workers(entry, url, file, log))
        give_up = time.monotonic() + 180
        while starts.started(0, others) < others or ask("done") < others:
            if time.monotonic() > give_up:
                raise TurnFailed(f"with limit {limit}: {starts.started(0, others):,} of {others:,} after 180 s")
            time.sleep(0.01)
        rate = others / (time.monotonic() - starts.earliest(0, others) / 1e9)
        if limit == "none" or limited_first:
            return rate, 0.0
        time.sleep(1)
        before, began = starts.started(others), time.monotonic()
        time.sleep(WINDOW)
        after, ended = starts.started(others), time.monotonic()
        return rate, (after - before) / (ended - began)
