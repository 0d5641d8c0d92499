"""The clock: each machine's own, corrected by the server's."""

from typing import Any

import pytest

from tasklib.stores.nats import NatsStore
from tasklib.stores.nats.clock import Clock, written
from tasklib.testing.suite.builders import ANNA, claim_one, submit


def test_a_clock_that_is_right_is_not_moved():
    clock = Clock(0.0)
    before = clock.correction
    now = clock.now()
    clock.learn(written(now), *_asked_around(now, clock, 0.001))
    assert clock.correction == before


def test_a_clock_that_is_wrong_is_moved_no_further_than_it_must():
    for hours in (-1, 1):
        clock = Clock(0.0)
        now = clock.now()
        sent, received = _asked_around(now, clock, 0.001)
        clock.learn(written(now.replace(year=now.year + hours)), sent, received)
        assert abs(abs(clock.correction) - 365.25 * 86400) < 86400 * 1.5
        assert abs((clock.now() - now.replace(year=now.year + hours)).total_seconds()) < 0.5


def _asked_around(moment: Any, clock: Clock, width: float) -> tuple[float, float]:
    at = moment.timestamp() - clock._shift
    return at - width, at + width


async def test_a_machine_whose_clock_is_wrong_agrees_with_the_others(
    store: NatsStore, nats_url: str, monkeypatch: pytest.MonkeyPatch
):
    """Fault 18 on NATS: a wrong clock is corrected by the server's."""
    monkeypatch.setattr("tasklib.stores.nats.clock._START", 0.0)  # 1970
    wrong = NatsStore(nats_url)
    await wrong.open()
    assert abs((await wrong.now() - await store.now()).total_seconds()) < 1
    await submit(wrong)
    running = await claim_one(store, lease=60)
    assert await wrong.lost_leases(30, 10) == []
    assert await wrong.extend(ANNA, [], 60) == []
    assert abs((running.started_at - await wrong.now()).total_seconds()) < 5
    await wrong.close()
