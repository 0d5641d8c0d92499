"""The clock: each machine's own, corrected by the server's."""

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tasklib.stores.nats import NatsStore
from tasklib.stores.nats.clock import EPOCH, Clock, wall_shift, written
from tests.conformance.builders import WORKER_A, claim, claim_one, submit


def test_a_clock_that_is_right_is_not_moved():
    clock = Clock(0.0)
    before = clock._shift
    now = clock.now()
    clock.learn(written(now), *_asked_around(now, clock, 0.001))
    assert clock._shift == before


def test_a_clock_that_is_wrong_is_moved_no_further_than_it_must():
    for hours in (-1, 1):
        clock = Clock(0.0)
        now = clock.now()
        sent, received = _asked_around(now, clock, 0.001)
        clock.learn(written(now.replace(year=now.year + hours)), sent, received)
        assert abs(abs(clock.correction) - 365.25 * 86400) < 86400 * 1.5
        assert abs((clock.now() - now.replace(year=now.year + hours)).total_seconds()) < 0.5


def test_a_slow_answer_takes_nothing_back_of_what_a_quick_one_told():
    """As after a server was frozen: its answers are late, and their bounds wide."""
    clock = Clock(0.0)
    clock._shift -= 0.3  # as if it had started wrong
    truth = _truth()
    clock.learn(written(truth), *_asked_at(0.001, 0.001))
    assert abs(_error(clock)) < 0.01
    for before, after in ((0.001, 1.0), (1.0, 0.001), (2.0, 2.0)):
        clock.learn(written(_truth()), *_asked_at(before, after))
        assert abs(_error(clock)) < 0.01
        assert (_truth() - clock.earliest()).total_seconds() < 0.02, "the quick answer still counts"


def test_bounds_widen_with_time_and_a_server_with_another_clock_is_believed(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(0.0)
    clock.learn(written(_truth()), *_asked_at(0.001, 0.001))
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 100)
    assert 0.04 < (clock.now() - clock.earliest()).total_seconds() < 0.1
    monkeypatch.undo()
    for hours in (1, -1):
        there = timedelta(hours=hours)
        clock.learn(written(_truth() + there), *_asked_at(0.001, 0.001))
        assert abs(_error(clock) - there.total_seconds()) < 0.01


def test_the_earliest_time_is_never_later_than_the_servers():
    for shift in (-0.5, 0.0, 0.5):
        clock = Clock(0.0)
        clock._shift += shift
        for before, after in ((0.4, 0.001), (0.001, 0.4), (0.2, 0.2)):
            clock.learn(written(_truth()), *_asked_at(before, after))
            assert clock.earliest() <= _truth()


def test_a_process_that_loses_its_turn_while_it_looks_starts_right(monkeypatch: pytest.MonkeyPatch):
    """Between the two clocks half a second passes, all but once."""
    looks = 0
    real = time.time
    right = wall_shift()
    monotonic, passed = time.monotonic, 0.0

    def paused() -> float:
        return monotonic() + passed

    def turn_lost() -> float:
        nonlocal looks, passed
        looks += 1
        wall = real() + passed
        if looks != 7:
            passed += 0.5
        return wall

    monkeypatch.setattr(time, "monotonic", paused)
    monkeypatch.setattr(time, "time", turn_lost)
    assert abs(wall_shift() - right) < 0.01


def _truth() -> datetime:
    """The server's time: this machine's wall clock, as it started."""
    return EPOCH + timedelta(seconds=time.monotonic() + wall_shift())


def _asked_at(before: float, after: float) -> tuple[float, float]:
    now = time.monotonic()
    return now - before, now + after


def _error(clock: Clock) -> float:
    return (clock.now() - _truth()).total_seconds()


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
    assert await wrong.extend(WORKER_A, [], 60) == []
    assert abs((running.started_at - await wrong.now()).total_seconds()) < 5
    await wrong.close()


async def test_a_task_that_was_put_off_never_starts_early_by_a_clock_that_is_not_sure(
    store: NatsStore, monkeypatch: pytest.MonkeyPatch
):
    """The bounds of the measurement decide: as long as the server's time may be before the task's, nobody starts it."""
    delayed, at_once = await submit(store, delay_seconds=30), await submit(store)
    clock = store._clock
    clock._bounds = (clock._shift - 5, clock._shift + 5)
    monkeypatch.setattr(clock, "learn", lambda *_: None)
    store.clock_offset += 31
    assert [claimed.id for claimed in await claim(store, 10)] == [at_once], "what was not put off does not wait"
    assert await store.claim_by_id(delayed, 0, WORKER_A, 60) is None
    store.clock_offset += 10
    assert [claimed.id for claimed in await claim(store, 10)] == [delayed]
