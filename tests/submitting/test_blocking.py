"""The bridge from sync code to the loop: what a call comes to, and what is left of one that nobody waits for."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from tasklib.api.sync import Bridge, _Call
from tasklib.core.errors import TaskLibError
from tests.waiting import eventually


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.close()


async def answer(value: int) -> int:
    await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.001)
    return value


class Refused(Exception):
    pass


async def refuse() -> None:
    raise Refused


def test_results_come_back_to_those_who_asked(bridge: Bridge):
    found: dict[int, int] = {}

    def ask(value: int) -> None:
        found[value] = bridge.run(answer(value))

    threads = [threading.Thread(target=ask, args=(value,)) for value in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {value: value for value in range(20)}


def test_errors_come_back_and_are_not_kept(bridge: Bridge):
    gc.disable()  # what is in a circle stays
    try:
        with pytest.raises(Refused) as caught:
            bridge.run(refuse())
        left = weakref.ref(caught.value)
        del caught
        eventually(lambda: left() is None)  # the loop may be a moment behind
    finally:
        gc.enable()


def test_inside_the_loop_itself_nothing_can_be_waited_for(bridge: Bridge):
    async def ask() -> None:
        bridge.run(answer(1))

    with pytest.raises(TaskLibError, match="use the _async form"):
        bridge.run(ask())


def test_a_call_that_is_given_up_before_it_began_leaves_no_warning(bridge: Bridge):
    async def give_up() -> bool:
        call = _Call(answer(1), asyncio.get_running_loop())
        call.start()
        call.cancel()
        assert call._task is not None
        await asyncio.wait([call._task])
        return call._task.cancelled()

    assert bridge.run(give_up())
    gc.collect()


def test_a_call_that_is_given_up_is_cancelled(bridge: Bridge):
    ended = threading.Event()
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    class GivenUp(BaseException):
        pass

    class Impatient:
        def acquire(self) -> None:
            assert begun.wait(10)
            raise GivenUp

        def release(self) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        real = _Call.__init__

        def impatient(self: _Call[None], *arguments: object) -> None:
            real(self, *arguments)  # type: ignore[arg-type]
            self.ended = Impatient()  # type: ignore[assignment]

        patch.setattr(_Call, "__init__", impatient)
        with pytest.raises(GivenUp):
            bridge.run(wait())
    assert ended.wait(10)
