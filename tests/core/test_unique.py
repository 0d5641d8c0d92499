"""Whose key it is, as values alone say."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tasklib import Unique, throttle
from tasklib.core.unique import Holder

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WAITS = Holder(
    id=UUID(int=1),
    name="index",
    unique_key="k",
    unique_until="finished",
    created_at=NOW - timedelta(seconds=30),
    started=False,
    running=False,
    over=False,
    now=NOW,
)
RUNS = WAITS._replace(started=True, running=True)
OVER = RUNS._replace(running=False, over=True)
RETRIED = RUNS._replace(running=False)


@pytest.mark.parametrize(
    ("until", "holder", "is_free"),
    [
        ("started", WAITS, False),
        ("started", RUNS, True),
        ("started", RETRIED, True),
        ("started", OVER, True),
        ("finished", WAITS, False),
        ("finished", RUNS, False),
        ("finished", RETRIED, False),
        ("finished", OVER, True),
    ],
)
def test_a_key_that_an_older_worker_left_behind_is_free(until: str, holder: Holder, is_free: bool):
    """Workers of the schema's version 1 run unique tasks, and clear no keys."""
    held = holder._replace(unique_until=until)
    for rule in (Unique("k"), Unique("k", until="started", conflict="replace"), throttle("k", 60)):
        assert held.gives_way_to(rule) is is_free
