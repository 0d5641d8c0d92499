"""Deadlines that share a timer: each is kept to the moment, and nobody's cancellation is taken for one."""

import asyncio

import pytest

from tasklib.stores.sql.postgres.deadlines import Deadline, Deadlines


async def wait_until(deadlines: Deadlines, moment: float) -> float:
    """When the wait was over, counted from its deadline."""
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError), Deadline(deadlines, moment):
        await loop.create_future()
    return loop.time() - moment


@pytest.mark.parametrize("order", [(0.02, 0.04, 0.06), (0.06, 0.04, 0.02), (0.03, 0.03, 0.03)])
async def test_each_is_kept_in_whatever_order_they_come(order: tuple[float, ...]):
    deadlines = Deadlines()
    now = asyncio.get_running_loop().time()
    late = await asyncio.gather(*(wait_until(deadlines, now + seconds) for seconds in order))
    assert min(late) >= 0
    assert max(late) < 1
    assert not deadlines.under_way


async def test_a_call_is_late_though_the_timer_was_set_for_one_that_ended():
    deadlines = Deadlines()
    now = asyncio.get_running_loop().time()
    with Deadline(deadlines, now + 0.01):
        pass
    assert 0 <= await wait_until(deadlines, now + 0.03) < 1


async def test_one_that_comes_later_may_be_the_first_to_pass():
    deadlines = Deadlines()
    now = asyncio.get_running_loop().time()
    async with asyncio.timeout(5):
        with Deadline(deadlines, now + 60):
            assert 0 <= await wait_until(deadlines, now + 0.01) < 1


async def test_one_timer_serves_all_that_end_in_time(monkeypatch: pytest.MonkeyPatch):
    deadlines = Deadlines()
    loop = asyncio.get_running_loop()
    timers = []
    monkeypatch.setattr(loop, "call_at", lambda moment, *_: timers.append(moment))
    for seconds in range(10, 20):
        with Deadline(deadlines, loop.time() + seconds):
            pass
    assert len(timers) == 1


async def test_whoever_cancels_a_call_that_is_late_sees_it_cancelled():
    deadlines = Deadlines()
    loop = asyncio.get_running_loop()
    entered: asyncio.Future[None] = loop.create_future()

    async def call() -> None:
        with Deadline(deadlines, loop.time() + 60):
            entered.set_result(None)
            await loop.create_future()

    task = asyncio.create_task(call())
    await entered
    [deadline] = deadlines.under_way
    deadline.pass_by()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_cancelled_task_that_cleans_up_is_told_of_its_deadline():
    deadlines = Deadlines()
    loop = asyncio.get_running_loop()
    entered: asyncio.Future[None] = loop.create_future()
    told = []

    async def call() -> None:
        entered.set_result(None)
        try:
            await loop.create_future()
        finally:
            told.append(await wait_until(deadlines, loop.time() + 0.01))

    task = asyncio.create_task(call())
    await entered
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert len(told) == 1


async def test_an_error_of_the_call_stays_its_own():
    deadlines = Deadlines()
    with pytest.raises(ValueError, match="mine"), Deadline(deadlines, asyncio.get_running_loop().time() + 60):
        raise ValueError("mine")
    assert not deadlines.under_way
