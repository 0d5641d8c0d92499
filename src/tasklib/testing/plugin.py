"""The pytest plugin: makes the fixture `tasklib_queue` known to every project that has tasklib installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tasklib.testing.queue import QueueForTests, fresh_queue


@pytest.fixture
def tasklib_queue() -> Iterator[QueueForTests]:
    """A fresh in-memory queue as the default one; `tasklib_queue.drain()` runs all that is due."""
    with fresh_queue() as queue:
        yield queue
