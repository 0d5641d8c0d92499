"""One read for many callers: nobody is given what is older than their question, and nobody pays for another."""

import asyncio
from collections.abc import Sequence

import pytest

from tasklib.engine.batch_loader import Together
from tests.waiting import eventually_async


class Shelf:
    """Reads wait until they are let go."""

    def __init__(self) -> None:
        self.reads: list[Sequence[int]] = []
        self.gates: list[asyncio.Event] = []
        self.error: Exception | None = None

    async def read(self, keys: Sequence[int]) -> Sequence[str]:
        self.reads.append(keys)
        self.gates.append(asyncio.Event())
        await self.gates[-1].wait()
        if self.error is not None:
            raise self.error
        return [f"book {key}" for key in keys]

    async def until(self, number: int) -> None:
        await eventually_async(lambda: len(self.reads) == number)

    def let_go(self) -> None:
        for gate in self.gates:
            gate.set()


async def crowd(shelf: Shelf, together: Together[int, str], *keys: int) -> list[asyncio.Task[str]]:
    """One read under way, and these callers behind it, in one more."""
    first = asyncio.create_task(together.get(0))
    await shelf.until(1)
    callers = [first, *(asyncio.create_task(together.get(key)) for key in keys)]
    await shelf.until(2)
    return callers


async def test_a_crowd_is_served_by_one_read():
    shelf = Shelf()
    callers = await crowd(shelf, Together(shelf.read), 1, 2, 1, 3)
    shelf.let_go()
    assert await asyncio.gather(*callers) == ["book 0", "book 1", "book 2", "book 1", "book 3"]
    assert shelf.reads == [[0], [1, 2, 1, 3]]


async def test_nobody_waits_for_a_read_that_was_under_way():
    shelf = Shelf()
    slow, quick = await crowd(shelf, Together(shelf.read), 1)
    shelf.gates[1].set()
    assert await quick == "book 1"
    assert not slow.done()
    shelf.let_go()
    assert await slow == "book 0"


async def test_nobody_is_given_what_was_read_before_they_asked():
    shelf = Shelf()
    together = Together(shelf.read)
    callers = await crowd(shelf, together, 1)
    callers.append(asyncio.create_task(together.get(1)))
    await shelf.until(3)
    shelf.let_go()
    await asyncio.gather(*callers)


async def test_a_caller_alone_reads_at_once():
    shelf = Shelf()
    together = Together(shelf.read)
    for key in (1, 2):
        asking = together.get(key)
        asking.send(None)  # no turn of the loop in between
        assert shelf.reads[-1] == [key]
        asking.close()


@pytest.mark.parametrize("leaving", [0, 1])
async def test_a_caller_who_gives_up_does_not_end_it_for_the_others(leaving: int):
    shelf = Shelf()
    callers = await crowd(shelf, Together(shelf.read), 1, 2)
    callers.pop(leaving).cancel()
    shelf.let_go()
    assert await asyncio.gather(*callers) == (["book 1", "book 2"] if leaving == 0 else ["book 0", "book 2"])


async def test_a_failure_is_told_to_all_who_are_there():
    shelf = Shelf()
    shelf.error = OSError("gone")
    together = Together(shelf.read)
    _, left, stays = callers = await crowd(shelf, together, 1, 2)
    left.cancel()
    shelf.let_go()
    await asyncio.gather(*callers, return_exceptions=True)
    assert stays.exception() is shelf.error
    shelf.error = None
    again = asyncio.create_task(together.get(3))
    await shelf.until(3)
    shelf.let_go()
    assert await again == "book 3"


async def test_it_ends_with_its_loop():
    """A read that is cancelled leaves nobody behind who waits for it."""
    shelf = Shelf()
    together = Together(shelf.read)
    _, waiting = await crowd(shelf, together, 1)
    for reader in together._readers:
        reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    shelf.let_go()
