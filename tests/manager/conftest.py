"""A manager on each store."""

from collections.abc import Iterator

import pytest

from tasklib import TaskManager

MINUTE = 60.0


@pytest.fixture
def manager(backend_url: str) -> Iterator[TaskManager]:
    with TaskManager(backend_url, claim_ttl=MINUTE) as manager:
        yield manager


@pytest.fixture
def other(backend_url: str, manager: TaskManager) -> Iterator[TaskManager]:
    """A second manager on the same queue, as another process would have it: it knows of no claims."""
    with TaskManager(manager.engine, claim_ttl=MINUTE) as other:
        yield other
