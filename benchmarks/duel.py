"""Several contenders at once, a few tasks each in turns: for what depends on the disk's mood from second to second.

Submits one at a time, and the latency of single tasks on an idle queue. All have their stores and workers open all the
time; only one of them is sent tasks at any moment.
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.book import Book
from benchmarks.stage import Stage
from benchmarks.starts import Starts
from benchmarks.turn import Entry, client, percentiles, workers


def submits(entries: Sequence[Entry], stage: Stage, book: Book, number: int, chunks: int, size: int) -> None:
    """Notes `alternating submit`, tasks a second."""
    with ExitStack() as stack:
        asks = [_open(entry, stage, stack, chunks * size) for entry in entries]
        seconds = [0.0] * len(entries)
        for _ in range(chunks):
            for index, ask in enumerate(asks):
                seconds[index] += size / ask("submit", size)
        for entry, took, ask in zip(entries, seconds, asks, strict=True):
            book.note(entry.name, "alternating submit", number, chunks * size / took)
            ask("close")


def latencies(entries: Sequence[Entry], stage: Stage, book: Book, number: int, chunks: int, size: int) -> None:
    """Notes `alternating p50` and `alternating p99`, milliseconds."""
    with ExitStack() as stack:
        asks = [_open(entry, stage, stack, chunks * size, working=True) for entry in entries]
        took: list[list[float]] = [[] for _ in entries]
        for _ in range(chunks):
            for index, ask in enumerate(asks):
                took[index] += ask("latency", size)
        for entry, each, ask in zip(entries, took, asks, strict=True):
            for measure, value in percentiles(each).items():
                book.note(entry.name, f"alternating {measure}", number, value)
            ask("close")


def _open(entry: Entry, stage: Stage, stack: ExitStack, count: int, working: bool = False):
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
