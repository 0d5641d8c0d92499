"""A queue with everybody who works on it, and the handles by which faults get at them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import apsw
import psycopg

from tasklib import Config, is_terminal
from tasklib.api.decorator import call_of
from tasklib.core.errors import TRANSIENT, TaskNotFound
from tasklib.core.options import check_options
from tasklib.stores.values import ControlChange, Count, Filter
from tests.chaos import ledger, timetable
from tests.chaos.crew import Crew, Member
from tests.chaos.faults import Missed
from tests.chaos.history import History
from tests.chaos.recording import RecordingEngine
from tests.nats_servers import NatsCluster
from tests.servers import PostgresServer
from tests.waiting import turns

LEASE = 4.0
DEAD_AFTER = 3.0
SETTINGS: dict[str, Any] = {
    "lock_timeout_seconds": LEASE,
    "dead_after_seconds": DEAD_AFTER,
    "heartbeat_seconds": 0.8,
    "call_timeout_seconds": 8.0,
    "shutdown_grace_seconds": 1.0,
    "base_retry_delay_seconds": 0.1,
    "retry_backoff_multiplier": 1.5,
    "retry_jitter": 0.2,
    "pool_size": 4,
}
ACTIVE = ["pending", "running", "failed"]


class World:
    lease = LEASE
    dead_after = DEAD_AFTER

    def __init__(
        self,
        backend: str,
        folder: Path,
        seed: int,
        *,
        settings: Mapping[str, Any] | None = None,
        server: Mapping[str, str] | None = None,
        ledger: bool = True,
    ) -> None:
        self.backend, self.folder = backend, folder
        self.has_ledger = ledger and backend != "nats"
        self.settings = {**SETTINGS, **(settings or {})}
        self._server_settings = server
        self.rng = random.Random(seed)
        self.history = History(folder / "history.jsonl")
        self.path: Path | None = None
        self.server: PostgresServer | None = None
        self.cluster: NatsCluster | None = None
        self.alone = asyncio.Lock()
        """For faults that would spoil one another."""
        self.over = asyncio.Event()
        self.url = self._found()
        self.engine = RecordingEngine(Config(database_url=self.url, **self.settings), self.history)
        self.crew = Crew(folder, self.history, {**self.settings, "database_url": self.url}, seed)
        self.crew.upstream = self.url if backend == "postgres" else None
        self._watching: asyncio.Task[None] | None = None

    def _found(self) -> str:
        match self.backend:
            case "sqlite":
                self.path = self.folder / "tasks.db"
                return f"sqlite:///{self.path}"
            case "postgres":
                self.server = PostgresServer(settings=self._server_settings).start()
                return self.server.dsn
            case "nats":
                self.cluster = NatsCluster()
                self.cluster.__enter__()
                return f"{self.cluster.url}?replicas=3&bucket=chaos"
            case other:
                raise ValueError(f"no such backend: {other}")

    # -- life ---------------------------------------------------------------------------------------------------------

    async def open(self, roles: dict[str, int]) -> None:
        await self.engine.store()
        if self.has_ledger:
            await asyncio.to_thread(self.sql, *ledger.statements(self.backend))
        # With a limit, claims take the longer road: a transaction of several statements.
        await self.engine.control(ControlChange(name="snoozes", concurrency=2))
        await timetable.write(self.engine)
        for role, number in roles.items():
            for _ in range(number):
                await self.crew.start(role)

        async def all_up() -> bool:
            return len(await self.engine.workers()) >= roles["worker"]

        await self.until(all_up, 60, "the workers did not come up")
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while not self.over.is_set():
            await self.crew.replace_dead()
            await self.pause(0.1)

    async def drain(self, timeout: float) -> None:
        """Nobody submits any more; all that is there is worked off; then everybody goes listener."""
        await self.crew.retire_all("submitter", "operator")
        await timetable.stop(self.engine)
        for name in await self.engine.controls():
            await self.unpause(name)
        try:
            async with asyncio.timeout(timeout):
                while (await self.active()).value:
                    await self.pause(0.2)
        finally:
            self.over.set()
            if self._watching is not None:
                await self._watching
            await self.crew.retire_all()

    async def close(self) -> None:
        self.over.set()
        if self._watching is not None:
            with suppress(Exception):
                await self._watching
        self.crew.kill_all()
        for member in self.crew.members:
            if member.proxy is not None:
                await member.proxy.__aexit__(None, None, None)
        with suppress(*TRANSIENT):
            await self.engine.close()
        if self.server is not None:
            self.server.close()
        if self.cluster is not None:
            self.cluster.__exit__(None, None, None)
        self.history.close()

    # -- for faults ---------------------------------------------------------------------------------------------------

    async def pause(self, seconds: float) -> None:
        """Waits, but not beyond the end of the run."""
        await turns(1)  # also when the end has come: whoever waits in a circle must let others in
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.over.wait()

    async def unpause(self, name: str) -> None:
        await self.engine.control(ControlChange(name=name, paused=False))

    async def active(self) -> Count:
        return await self.engine.count(Filter(states=ACTIVE, terminal=False), 1_000_000)

    async def submit(self, function: Any, *arguments: Any, delay: float | None = None, key: str | None = None) -> UUID:
        options = check_options({"delay_seconds": delay, "idempotency_key": key, "priority": 100})
        call = call_of(function.task_type, function.task_type.bind(arguments, {}), options)
        try:
            return (await self.engine.submit(call)).id
        except TRANSIENT as error:
            raise Missed(f"could not submit: {error}") from error

    async def occupied(self, function: Any, *arguments: Any) -> tuple[Member, UUID]:
        """A worker that runs this task now."""
        task_id = await self.submit(function, *arguments)

        async def holder() -> Member | None:
            task = await self.engine.get(task_id)
            return None if task is None or task.state != "running" else self.crew.holder(task.worker_id)

        return await self.until(holder, 10, f"nobody ran {function.name}"), task_id

    async def finished(self, task_id: UUID, timeout: float) -> None:
        async def over() -> bool:
            task = await self.engine.get(task_id)
            return task is None or is_terminal(task)

        await self.until(over, timeout, f"task {task_id} was not finished")

    async def until(self, condition: Callable[[], Awaitable[Any]], timeout: float, otherwise: str) -> Any:
        """What the condition gives once it is true; Missed if that does not come about in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not self.over.is_set():
            with suppress(*TRANSIENT, TaskNotFound):
                if value := await condition():
                    return value
            if loop.time() > deadline:
                break
            await self.pause(0.02)
        raise Missed(otherwise)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Behind the library's back, in one transaction; the rows of the last statement. Blocks: use a thread."""
        rows: list[tuple[Any, ...]] = []
        if self.path is not None:
            connection = apsw.Connection(str(self.path))
            try:
                connection.set_busy_timeout(10_000)
                with connection:
                    for statement in statements:
                        rows = connection.execute(statement).fetchall()
            finally:
                connection.close()
        else:
            assert self.server is not None, "NATS speaks no SQL"
            with psycopg.connect(self.server.dsn, connect_timeout=5) as session:
                for statement in statements:
                    cursor = session.execute(statement.encode())
                    rows = cursor.fetchall() if cursor.description else []
        return rows
