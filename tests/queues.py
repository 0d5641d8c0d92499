"""A queue as the default one, which this process's own calls use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine

E = TypeVar("E", bound=Engine)


@asynccontextmanager
async def as_default(engine: E) -> AsyncIterator[E]:
    """For as long as the block lasts; closed at its end."""
    before = use_engine(engine)
    try:
        yield engine
    finally:
        use_engine(before)
        await engine.close()
