"""Who goes next: actors stop before each call to their store, and a schedule decides whose call it is and who dies."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tasklib.stores.protocol import Store

Choose: TypeAlias = Callable[[int], int]
"""Picks one of so many."""

_WRITES = {"claim", "settle", "request_cancel", "delete", "extend"}


class Stepping:
    """A store whose every verb waits for its actor's turn."""

    def __init__(self, store: Store, turns: "Turns", actor: str) -> None:
        self._store, self._turns, self._actor = store, turns, actor

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **options: Any) -> Any:
            await self._turns.wait(self._actor, verb)
            answer = await getattr(self._store, verb)(*args, **options)
            if verb in _WRITES:
                self._turns.calls.append((self._actor, verb, args, answer))
            return answer

        return call


@dataclass
class Turns:
    calls: list[tuple[str, str, tuple[Any, ...], Any]] = field(default_factory=list)
    """Writes in the order they were made: actor, verb, arguments, answer."""
    trace: list[str] = field(default_factory=list)
    _parked: dict[str, tuple[str, asyncio.Future[None]]] = field(default_factory=dict)
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, actor: str, verb: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._parked[actor] = (verb, turn)
        self._quiet.set()
        await turn

    async def run(
        self, actors: Mapping[str, Callable[[], Awaitable[None]]], choose: Choose, mortal: Sequence[str] = ()
    ) -> None:
        """One call at a time until all are done. One of the `mortal` may die instead of making its call."""
        tasks: dict[str, asyncio.Task[None]] = {}
        deaths = list(mortal)
        for name, actor in actors.items():
            tasks[name] = asyncio.create_task(_run(actor))
            await self._settles_down(tasks[name])
        while self._parked:
            names = sorted(self._parked)
            options = [(name, False) for name in names] + [(name, True) for name in names if name in deaths]
            name, dies = options[choose(len(options))]
            verb, turn = self._parked.pop(name)
            self.trace.append(f"{name} {'dies before' if dies else 'does'} {verb}")
            if dies:
                deaths.clear()
                tasks[name].cancel()
            else:
                turn.set_result(None)
            await self._settles_down(tasks[name])
        for name, task in tasks.items():
            if not task.cancelled() and (error := task.exception()) is not None:
                raise AssertionError(f"{name} ended with {error!r}") from error

    async def _settles_down(self, task: asyncio.Task[None]) -> None:
        """Until the one that goes has come to its next call, or to its end."""
        task.add_done_callback(lambda _: self._quiet.set())
        await self._quiet.wait()
        self._quiet.clear()


async def _run(actor: Callable[[], Awaitable[None]]) -> None:
    await actor()


class EverySchedule:
    """All that could be chosen, one run after another: each begins as the one before and differs in its last choice
    that leaves another."""

    def __init__(self) -> None:
        self._prefix: list[int] = []
        self._made: list[tuple[int, int]] = []
        self.runs = 0

    def __iter__(self) -> Iterator[Choose]:
        while True:
            self._made = []
            self.runs += 1
            yield self._choose
            while self._made and self._made[-1][0] + 1 == self._made[-1][1]:
                self._made.pop()
            if not self._made:
                return
            self._prefix = [choice for choice, _ in self._made[:-1]] + [self._made[-1][0] + 1]

    def _choose(self, number: int) -> int:
        place = len(self._made)
        choice = self._prefix[place] if place < len(self._prefix) else 0
        self._made.append((choice, number))
        return choice
