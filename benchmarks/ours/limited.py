"""Two task types, one of them limited for the whole fleet."""

import threading
from collections.abc import Sequence
from typing import Any

from benchmarks.ours.queue import Tasklib
from benchmarks.starts import mark
from tasklib import submit_many, task
from tasklib.engine.default import default_engine
from tasklib.stores.values import ControlChange

RATE = 100.0
CONCURRENCY = 4
NAP_SECONDS = 0.25


@task
def limited(number: int) -> int:
    mark(number)
    return number


@task
def limited_nap(number: int) -> int:
    mark(number)
    threading.Event().wait(NAP_SECONDS)
    return number


class Limited(Tasklib):
    """Options: `limit` (rate, concurrency or none), `limited` (how many tasks of the limited type wait, numbered from
    `first` on)."""

    async def prepare(self) -> None:
        kind = self.options["limit"]
        if kind == "none":
            return
        change = (
            ControlChange(name=limited.name, operator_rate=RATE)
            if kind == "rate"
            else ControlChange(name=limited_nap.name, concurrency=CONCURRENCY)
        )
        await default_engine().control(change)
        first, count = self.options["first"], self.options["limited"]
        which: Any = limited if kind == "rate" else limited_nap
        numbers: Sequence[int] = range(first, first + count)
        await submit_many(which, [{"number": number} for number in numbers])
