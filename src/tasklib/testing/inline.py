"""Tasks run in the thread that asks for it: the same checks, JSON, decisions and records as in a worker, one at a time.

Written once, as coroutines. In sync code they find all they need without waiting, and are played to their end in place.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

from tasklib.api.sync import run_in_new_thread, run_sync
from tasklib.core import decide
from tasklib.core.decide import Change
from tasklib.core.errors import InvalidConfig, Unsupported
from tasklib.core.flows import After, Parent
from tasklib.core.outcome import Completed, Outcome
from tasklib.core.registry import Registry, TaskType
from tasklib.core.task import Claim, Task
from tasklib.engine import task_log
from tasklib.engine.current import running
from tasklib.engine.engine import Engine
from tasklib.engine.listeners import Settled, flush, flush_blocking, listening, tell
from tasklib.engine.middleware import AROUND, defining
from tasklib.engine.parents import Parents, Sources, after_of, fill_claims
from tasklib.engine.waits import Waits
from tasklib.stores.values import ClaimRequest
from tasklib.testing.savepoints import Undo, savepoint
from tasklib.worker import runner
from tasklib.worker.in_flight import Execution, InFlight

if TYPE_CHECKING:
    from tasklib.stores.sql.postgres import PostgresStore
    from tasklib.stores.sql.postgres.inside import Inside

T = TypeVar("T")


class Inline:
    """Runs tasks of a queue here. With a connection each runs in a savepoint of it; where the queue is in that
    connection's database, it is claimed and settled there, too."""

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        connection: object | None,
        *,
        waits: bool,
        note: Callable[[Sequence[Task]], None] = lambda tasks: None,
    ) -> None:
        """`waits`: in a running event loop, for code that awaits this. `note`: is told how a task is after its run,
        if only this connection can see it; so that listeners find it."""
        self._note = note
        self._engine = engine
        self._registry = registry
        self._connection = connection
        self._waits = waits
        self._inside = None if connection is None else _inside(engine, connection)
        self._worker_id = f"inline-{secrets.token_hex(6)}"
        self._lease = engine.config.lock_timeout_seconds
        waiting = Waits(self._worker_id, lambda: 1, registry.names)
        self._in_flight = InFlight(engine.config.database_url, self._lease, waiting, self._parents)

    async def drain(self, names: Sequence[str] | None) -> list[Task]:
        """Runs all that is due, and what that submits in turn. Returns how the tasks are then, if only this connection
        can see them."""
        known = self._registry.names()
        unknown = [] if names is None else [name for name in names if name not in known]
        if unknown:
            raise InvalidConfig(f"names: no task type is called {', '.join(unknown)}", field="names")
        ran: dict[UUID, None] = {}
        linked = False
        while (claim := await self._next(known if names is None else names)) is not None:
            ran[claim.id] = None
            linked = linked or claim.flow is not None
            await self._run(claim)
        if linked:  # what became of those that waited for them
            return [task for task in await self.tasks(None) or [] if task.id in ran or task.after is not None]
        return [task for task_id in ran for task in await self.seen(task_id)]

    async def run(self, task_id: UUID, name: str) -> bool:
        """This task, which was just submitted, if it is due and known here. Whether it is."""
        claim = None if self._registry.get(name) is None else await self._take(task_id)
        if claim is not None:
            await self._run(claim)
        return claim is not None

    async def seen(self, task_id: UUID) -> list[Task]:
        """The task, if it is one that only this connection can see."""
        return [] if self._inside is None else await self._answered(self._inside.tasks(task_id=task_id))

    async def tasks(self, name: str | None) -> list[Task] | None:
        """All that the connection's transaction sees; None where tasks are not in the connection's database."""
        return None if self._inside is None else await self._answered(self._inside.tasks(name=name))

    # -- the queue ----------------------------------------------------------------------------------------------------

    async def _next(self, names: Sequence[str]) -> Claim | None:
        if self._inside is not None:
            return await self._answered(self._inside.claim_next(names, self._worker_id, self._lease))
        request = ClaimRequest(worker_id=self._worker_id, names=names, slots=1, lease_seconds=self._lease)

        async def claim() -> list[Claim]:
            return (await (await self._engine.store()).claim(request)).claims

        return next(iter(await self._asked(claim())), None)

    async def _take(self, task_id: UUID) -> Claim | None:
        if self._inside is not None:
            return await self._answered(self._inside.claim(task_id, self._worker_id, self._lease))

        async def take() -> Claim | None:
            version = (await self._engine.get_or_raise(task_id)).version
            return await (await self._engine.store()).claim_by_id(task_id, version, self._worker_id, self._lease)

        return await self._asked(take())

    async def _settle(self, change: Change) -> None:
        if self._inside is not None:
            await self._answered(self._inside.settle(change))
            return

        async def settle() -> None:
            await (await self._engine.store()).settle([change])

        await self._asked(settle())

    async def parents(self, ids: Sequence[UUID]) -> list[Parent]:
        if self._inside is not None:
            return await self._answered(self._inside.parents(ids))

        async def read() -> list[Parent]:
            return await (await self._engine.store()).parents(ids)

        return await self._asked(read())

    async def after_of(self, task_id: UUID) -> After | None:
        if self._inside is not None:
            return await self._answered(self._inside.after_of(task_id))

        async def read() -> After | None:
            return await (await self._engine.store()).after_of(task_id)

        return await self._asked(read())

    def _parents(self, claim: Claim) -> Parents:
        async def here() -> Inline:
            return self

        return Parents(claim.id, after_of(claim), here, play)

    async def _asked(self, work: Coroutine[Any, Any, T]) -> T:
        return await work if self._waits else run_sync(work)

    async def _answered(self, answer: T | Awaitable[T]) -> T:
        if not isinstance(answer, Awaitable):
            return answer
        if not self._waits:
            if asyncio.iscoroutine(answer):
                answer.close()
            kind = type(self._connection).__name__
            raise Unsupported(f"{kind} is an async connection: await drain_async, or the awaitable form of submit")
        return await answer

    # -- the task -----------------------------------------------------------------------------------------------------

    async def _run(self, claim: Claim) -> None:
        task_type = self._registry.get(claim.name)
        assert task_type is not None, claim.name
        task_log.started(claim)
        outcome = await self._called(claim, task_type)
        config = self._engine.config
        change = decide.settle(claim, outcome, config.default_retry, random.uniform(-1.0, 1.0))
        await self._settle(change)
        self._note(await self.seen(claim.id))
        task_log.ended(claim, outcome, due_in=change.due_in)
        if listening(config.middleware):
            tell(config.middleware, Settled(claim, change, outcome))
            if self._waits:
                await flush()
            else:
                flush_blocking()

    async def _called(self, claim: Claim, task_type: TaskType) -> Outcome:
        if self._connection is None:
            return await self._call(claim, task_type)
        outcome: Outcome | None = None
        try:
            async with savepoint(self._connection):
                outcome = await self._call(claim, task_type)
                if not isinstance(outcome, Completed):
                    raise Undo
        except Undo:
            pass
        assert outcome is not None
        return outcome

    async def _call(self, claim: Claim, task_type: TaskType) -> Outcome:
        sources: Sources | None = None
        if claim.flow is not None:
            [(claim, sources)] = await fill_claims(self, [claim])
        config = self._engine.config
        execution = Execution(claim, task_type, 0, time.monotonic() + self._lease, self._in_flight, sources)
        around = defining(config.middleware, *AROUND)
        given = (task_type, claim.kwargs, config.max_result_bytes, around, claim.trace, sources)
        execution.started = time.monotonic()

        async def call_async() -> Outcome:
            running.set(execution.tell)
            return await runner.call_async(*given)

        if task_type.is_async:
            if self._waits:
                return await asyncio.create_task(call_async())
            return run_in_new_thread(call_async()) if _in_loop() else asyncio.run(call_async())
        token = running.set(execution.tell)
        try:
            return runner.call(*given)
        finally:
            running.reset(token)


def play(work: Coroutine[Any, Any, T]) -> T:
    """A coroutine that never waits, to its end."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise AssertionError("it waited")


def _inside(engine: Engine, connection: object) -> Inside | None:
    """The queue as a connection's transaction sees it; None where tasks are not in the connection's database."""
    if is_in_memory(engine):
        return None
    store = engine.new_store()
    if not store.traits.drains_in_transactions:
        raise store.traits.unsupported("be drained on a connection", "use PostgreSQL, or a queue in memory")
    return cast("PostgresStore", store).inside(connection)


def is_in_memory(engine: Engine) -> bool:
    return engine.config.database_url.startswith("memory:")


def is_async(connection: object) -> bool:
    kinds = type(connection).__mro__
    return any(kind.__name__.lower().startswith("async") or kind.__module__.startswith("asyncpg") for kind in kinds)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
