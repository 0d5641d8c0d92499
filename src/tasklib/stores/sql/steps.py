"""Verbs without I/O: generators that yield named queries and are sent the rows. A driver plays them, on a connection of
its own or on a caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar
from uuid import UUID

from tasklib.stores.sql.columns import Batch, Shape

T = TypeVar("T")

READING_SECONDS = 10.0
"""So long a list or a figure for people may take, whatever the store's own deadline is."""


class Query:
    """One statement by its name in the `.sql` files, with its parameters by name.

    Parameters are plain values (ids, instants, durations, texts, lists of them); how they are written is the driver's
    business, and so is `:offset`, which every statement may use. Rows come back as `shape` makes them (`ROW_COUNT`: how
    many were written); without a shape, as tuples of what the database gave."""

    __slots__ = ("batch", "name", "parameters", "parts", "shape")

    def __init__(
        self,
        name: str,
        shape: Shape[Any] | None = None,
        /,
        *,
        batch: Batch | None = None,
        parts: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> None:
        self.name = name
        self.shape = shape
        self.batch = batch
        """Rows that go in: the statement begins `WITH {batch}` and reads them from `batch`."""
        self.parts = parts
        """What stands for marks of the statement, each in words of ours: see `dialect.composed`."""
        self.parameters = parameters


class Bound(datetime):
    """An instant that a column is compared with. Where times are kept less exactly it is rounded up: what lies between
    two of them is the edge of the later one."""

    @classmethod
    def of(cls, instant: datetime) -> Self:
        return cls.combine(instant.date(), instant.timetz())


BEGIN = Query("begin")
"""From here on all statements are one transaction. An engine whose writes always are one has nothing to do."""

IN_DOUBT = Query("in_doubt")
"""Asks whether these steps were played before and their reply was lost: then what they wrote may be there."""


class Notify(NamedTuple):
    """Tells those who listen, once what was written is committed. Where a statement can tell of what it writes, as in
    PostgreSQL, it has done so: a change of controls and a word to one worker are left to tell."""

    names: Sequence[str] = ()
    """Of these task types something may be claimable."""
    finished: Sequence[UUID] = ()
    """These tasks are over, and somebody waits for them."""
    cancel_requested: Sequence[UUID] = ()
    """These running tasks were asked to stop."""
    drain_requested: str | None = None
    """This worker was asked to drain."""
    everybody: bool = False
    """Anything may be claimable: a pause or a limit was changed."""


class Script(NamedTuple):
    """Statements without parameters or rows, as they stand in a file."""

    sql: str


Steps: TypeAlias = Generator[Query | Notify | Script, Any, T]


class Play(Generic[T]):
    """Steps on their way: the query that is to be answered next, or the result."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.query: Query | Notify | Script | None = None
        self.result: T
        self.send(None)

    def send(self, rows: Any) -> None:
        try:
            self.query = self._steps.send(rows)
        except StopIteration as end:
            self.query, self.result = None, end.value


class Driver(Protocol):
    """What an engine brings: connections, transactions, and its dialect of the named queries."""

    async def read(self, steps: Callable[[], Steps[T]], *, seconds: float | None = None) -> T:
        """`seconds`: for people, who would rather be told that it takes too long; it may scan."""
        ...

    async def write(self, steps: Callable[[], Steps[T]], *, repeat: bool = True, atomic: bool = False) -> T:
        """Steps are played again from their start when the database asks for it, or, with `repeat`, when a connection
        was lost and their reply with it. `atomic`: they are a single statement, its own transaction."""
        ...

    def play_on(self, connection: object, steps: Callable[[], Steps[T]]) -> T | Awaitable[T]:
        """On a caller's connection, inside the caller's transaction: at once and in this thread on a sync one, to be
        awaited on an async one. Raises Unsupported by name."""
        ...
