"""The contract that tasklib, its peers and the bare floors are measured by: one file each, run in child processes.

A contender's methods may be plain or `async`. Its task is `mark(number)`, and nothing else; one that stores results
returns the number. What is counted as done is read from the store, never from the worker's own word.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar


class Contender:
    settings: str = ""
    """What was set, and what for: printed in the report."""
    knob: ClassVar[tuple[str, int, Sequence[int]] | None] = None
    """The setting that matters most for its throughput: name, what was chosen, and what `benchmarks.tune` tries."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.url = url
        self.options = options

    @property
    def chosen(self) -> int:
        """Where the knob stands."""
        assert self.knob is not None
        name, value, _ = self.knob
        return int(self.options.get(name, value))

    def prepare(self) -> Awaitable[None] | None:
        """The schema, in an empty database."""
        return None

    def open(self) -> Awaitable[None] | None:
        """What a program does once before it submits."""
        return None

    def send(self, number: int) -> Awaitable[Any] | None:
        """Submits one task; it is stored when this returns."""
        raise NotImplementedError

    def send_many(self, numbers: Sequence[int]) -> Awaitable[Any] | None:
        """Submits many in the fastest way that is documented."""
        raise NotImplementedError

    def cancel(self, number: int) -> Awaitable[Any] | None:
        """Asks a running task to stop."""
        raise NotImplementedError

    def close(self) -> Awaitable[None] | None:
        return None

    def done(self) -> Awaitable[int] | int:
        """How many tasks the store says are completed."""
        raise NotImplementedError

    def work(self) -> None:
        """Is a worker process, until SIGTERM."""
        raise NotImplementedError
