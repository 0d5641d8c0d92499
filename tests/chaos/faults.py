"""The list of faults that a chaos run strikes, and how to add one.

A fault is an async function of the `World`, registered with its name and the backends it is for:

    from tests.chaos.faults import EVERYWHERE, Missed, fault

    @fault("worker killed in mid-task", EVERYWHERE, brief=True)
    async def kill_busy(world: World) -> None:
        worker = world.busy_worker()          # raises Missed if there is none
        worker.send(signal.SIGKILL)

    - It returns when the fault is over and everything it touched is whole again (server up, lines flowing, processes
      continued; a process that died is replaced by the crew). It may take some seconds: others go on meanwhile, and
      a second fault may strike at the same time. What cannot bear company takes `async with world.alone:`.
    - It returns only if the fault took place. If it could not, it raises `Missed` with the reason; that is not counted,
      and it is tried again. Any other exception fails the run.
    - Random choices come from `world.rng`. It waits with `await world.pause(seconds)`, or with
      `tests.waiting.eventually_async`.
    - What changes rows behind the library's back says so first: `world.history.note("hand", ids=[...])`.
    - `brief=True`: also part of the short form inside `make test`, so it must be over within a few seconds.
    - `soak=False`: not part of `make soak`.

A module of faults is imported by `tests/chaos/deck.py`. What a fault finds in the `World` (tests/chaos/world.py):
`backend` ("sqlite", "postgres", "nats"), `engine` (a recording engine with a line of its own to the database), `crew`
(the processes: `crew.workers`, each a `Member` with `pid`, `send(signal)`, `proxy`, `said`), `server` (PostgresServer),
`cluster` (NatsCluster), `path` (the SQLite file), `sql(text)`, `rng`, `lease`, `dead_after`, `history`, `alone`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.chaos.world import World

EVERYWHERE = ("sqlite", "postgres", "nats")
TABLES = ("sqlite", "postgres")
POSTGRES = ("postgres",)
SQLITE = ("sqlite",)
NATS = ("nats",)


class Fault(Protocol):
    """What a run needs of a fault."""

    @property
    def name(self) -> str: ...

    async def strike(self, world: World) -> None: ...


class Missed(Exception):
    """The fault could not take place now: nobody was running a task, no line was open."""


@dataclass(frozen=True)
class Registered:
    name: str
    backends: tuple[str, ...]
    function: Callable[[World], Awaitable[None]]
    brief: bool
    soak: bool

    async def strike(self, world: World) -> None:
        await self.function(world)


_registry: dict[str, Registered] = {}


def fault(
    name: str, backends: tuple[str, ...] = EVERYWHERE, *, brief: bool = False, soak: bool = True
) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[World], Awaitable[None]]]:
    def register(function: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
        assert name not in _registry, f"two faults are called {name!r}"
        _registry[name] = Registered(name, backends, function, brief, soak)
        return function

    return register


def faults_for(backend: str, *, brief: bool = False, soak: bool = False) -> list[Registered]:
    return [
        each
        for each in _registry.values()
        if backend in each.backends and (each.brief or not brief) and (each.soak or not soak)
    ]
