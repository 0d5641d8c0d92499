"""The queue behind the command line, by its other side, and tasks to put into it."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from tasklib import Config, RetryPolicy, Task, task
from tasklib.core.options import SubmitOptions
from tasklib.core.outputs import pointer
from tasklib.core.registry import Registry, TaskOptions
from tasklib.engine import bulk, flows
from tasklib.engine.bulk import Action
from tasklib.engine.engine import Engine
from tasklib.engine.flows import Part
from tasklib.engine.submission import Call
from tasklib.stores.values import AuditEntry, AuditFilter, Filter
from tasklib.testing.drain import drain
from tests.conformance.builders import heartbeat_of

registry = Registry()


@task(registry=registry)
def greet(name: str) -> str:
    return f"hello {name}"


@task(registry=registry)
def log_in(user: str) -> dict[str, object]:
    return {"user": user, "session_token": {"value": "geheim"}}


@task(registry=registry, max_retries=0)
def break_down(text: str) -> None:
    raise ValueError(text)


@task(registry=registry, max_retries=1, retry=RetryPolicy.AT_ONCE)
def break_twice(text: str) -> None:
    raise ValueError(text)


@task(registry=registry)
def wait_for_retry() -> None:
    raise ConnectionError("not now")


class Queue:
    """On the same file."""

    def __init__(self, url: str) -> None:
        self._engine = Engine(Config(database_url=url))

    def submit(self, name: str, /, *, options: SubmitOptions | None = None, **kwargs: object) -> UUID:
        kind = registry.get(name)
        assert kind is not None
        return asyncio.run(self._engine.submit(Call(name, kwargs, options or SubmitOptions(), kind))).id

    def submit_many(self, count: int) -> None:
        kind = registry.get("greet")
        assert kind is not None
        arguments = [{"name": str(number)} for number in range(count)]
        asyncio.run(self._engine.submit_many(Call("greet", None, task_type=kind), arguments))

    def add(self, name: str, /, *, options: SubmitOptions | None = None, **kwargs: object) -> UUID:
        """A task that is not defined here."""
        call = Call(name, kwargs, options or SubmitOptions(), unknown=TaskOptions(max_retries=0))
        return asyncio.run(self._engine.submit(call)).id

    def states(self) -> dict[str, str]:
        """Name -> state of everything in it."""
        page = asyncio.run(self._engine.page(Filter(), limit=1000))
        return {task.name: task.state for task in page.tasks}

    def empty(self) -> None:
        async def work() -> None:
            for action in (Action.CANCEL, Action.DELETE):
                async for _ in bulk.perform(self._engine, action, Filter()):
                    pass

        asyncio.run(work())

    def drain(self) -> None:
        drain(self._engine, registry=registry)

    def finished(self, name: str, /, **kwargs: object) -> UUID:
        """A task that has run."""
        task_id = self.submit(name, options=None, **kwargs)
        self.drain()
        return task_id

    def flow(self, name: str, places: Sequence[str]) -> tuple[str, str]:
        """A flow of this name, and a task of it that gets the result of its first at these places of its payload."""

        async def work() -> tuple[str, str]:
            inputs = {pointer([place]): "first" for place in places}
            calls = {ref: Call(ref, {}, unknown=TaskOptions()) for ref in ("first", "second")}
            parts = [Part("first", calls["first"]), Part("second", calls["second"], inputs=inputs)]
            batch = await flows.put_together(self._engine, parts, name=name)
            await self._engine.insert(batch.tasks)
            return str(batch.ids["first"]), str(batch.ids["second"])

        return asyncio.run(work())

    def audit(self) -> list[AuditEntry]:
        """What is in the trail, newest first, a mass action as one."""

        async def work() -> list[AuditEntry]:
            return await (await self._engine.store()).list_audit(AuditFilter(folded=True))

        return asyncio.run(work())

    def beat(self, worker: str) -> None:
        async def work() -> None:
            await (await self._engine.store()).heartbeat(heartbeat_of(worker))

        asyncio.run(work())

    def get(self, task_id: UUID | str) -> Task | None:
        return asyncio.run(self._engine.get(UUID(str(task_id))))
