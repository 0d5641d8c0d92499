"""Several contenders at once, a few tasks each in turns: for what depends on the disk's mood from second to second.

Submits, one at a time and from many clients at once, and the latency of single tasks on an idle queue. All have their
stores and workers open all the time; only one of them is sent tasks at any moment.
"""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.book import Book
from benchmarks.stage import Stage
from benchmarks.starts import Starts
from benchmarks.turn import Entry, TurnFailed, client, percentiles, workers


def submits(entries: Sequence[Entry], stage: Stage, book: Book, number: int, chunks: int, size: int) -> None:
    """Notes `alternating submit`, tasks a second."""
    for entry, rates in _in_turns(entries, stage, book, chunks, ("submit", size)):
        book.note(entry.name, "alternating submit", number, statistics.harmonic_mean(rates))


def together(entries: Sequence[Entry], stage: Stage, book: Book, number: int, chunks: int, size: int) -> None:
    """Notes `together`, tasks a second: as many clients at once as the entry has."""
    for entry, rates in _in_turns(entries, stage, book, chunks, ("together", size)):
        book.note(entry.name, "together", number, statistics.harmonic_mean(rates))


def latencies(entries: Sequence[Entry], stage: Stage, book: Book, number: int, chunks: int, size: int) -> None:
    """Notes `alternating p50` and `alternating p99`, milliseconds."""
    for entry, took in _in_turns(entries, stage, book, chunks, ("latency", size), working=True):
        for measure, value in percentiles(list(chain.from_iterable(took))).items():
            book.note(entry.name, f"alternating {measure}", number, value)


def _in_turns(
    entries: Sequence[Entry],
    stage: Stage,
    book: Book,
    chunks: int,
    command: tuple[str, int],
    *,
    working: bool = False,
) -> Iterator[tuple[Entry, list[Any]]]:
    """Each entry with its answers to the command. One that fails is left out from then on."""
    with ExitStack() as stack:
        asks: dict[str, Any] = {}
        answers: dict[str, list[Any]] = {entry.name: [] for entry in entries}

        @contextmanager
        def or_left_out(name: str) -> Iterator[None]:
            try:
                yield
            except TurnFailed as error:
                book.fail(name, f"side by side: {error}")
                asks.pop(name, None)

        for entry in entries:
            with or_left_out(entry.name):
                asks[entry.name] = _open(entry, stage, stack, chunks * command[1], working)
        for _ in range(chunks):
            for name, ask in list(asks.items()):
                with or_left_out(name):
                    answers[name].append(ask(*command))
        for entry in entries:
            if entry.name in asks:
                yield entry, answers[entry.name]
                asks[entry.name]("close")


def _open(entry: Entry, stage: Stage, stack: ExitStack, count: int, working: bool) -> Any:
    url = stack.enter_context(stage.store(entry.engine))
    file = Path(tempfile.mkstemp(prefix="starts-", dir=stage.folder)[1])
    stack.callback(file.unlink)
    Starts(file, count + 1)
    log = stack.enter_context(tempfile.TemporaryFile("w+b"))  # noqa: SIM115 - the stack closes it
    ask = stack.enter_context(client(entry, url, file, log))
    ask("prepare")
    ask("open")
    if working:
        stack.enter_context(workers(entry, url, file, log))
    return ask
