"""One suite of behaviour, run on the engine itself and through HTTP: what a queue promises, whichever way one asks."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID, uuid4

import httpx
import pytest

from tasklib import (
    Config,
    Fail,
    InvalidInput,
    RemoteQueue,
    StoreUnavailable,
    Task,
    TaskNotFailed,
    TaskNotFound,
    TaskNotTerminal,
    TaskQueue,
    TaskState,
    WaitTimeout,
)
from tasklib.core.errors import TaskConflict
from tasklib.engine.engine import Engine
from tasklib.server.app import create_app
from tasklib.stores.values import Filter

TOKEN = "the-admin-token-of-this-test"


class Queue(Protocol):
    async def submit_async(self, name: str, payload: Any, **options: Any) -> UUID: ...
    async def get_async(self, task_id: UUID) -> Task | None: ...
    async def list_async(self, *, state: str | None = None, name: str | None = None, limit: int = 50) -> list[Task]: ...
    async def wait_async(self, task_id: UUID, timeout: float) -> Task: ...
    async def retry_async(self, task_id: UUID) -> None: ...
    async def cancel_async(self, task_id: UUID) -> None: ...
    async def delete_async(self, task_id: UUID) -> None: ...


class LocalQueue:
    """The engine under the client's names."""

    def __init__(self, engine: Engine, handlers: TaskQueue) -> None:
        self._engine, self._handlers = engine, handlers

    async def submit_async(self, name: str, payload: Any, **options: Any) -> UUID:
        options["run_after"] = options.pop("run_at", None)
        given = {key: value for key, value in options.items() if value is not None}
        return await self._handlers.enqueue_async(name, payload, **given)

    async def get_async(self, task_id: UUID) -> Task | None:
        return await self._engine.get(task_id)

    async def list_async(self, *, state: str | None = None, name: str | None = None, limit: int = 50) -> list[Task]:
        where = Filter(states=None if state is None else [state], names=None if name is None else [name])
        return (await self._engine.page(where, limit=limit)).tasks

    async def wait_async(self, task_id: UUID, timeout: float) -> Task:
        return await self._engine.wait(task_id, timeout)

    async def retry_async(self, task_id: UUID) -> None:
        await self._engine.retry(task_id)

    async def cancel_async(self, task_id: UUID) -> None:
        await self._engine.cancel(task_id)

    async def delete_async(self, task_id: UUID) -> None:
        await self._engine.delete(task_id)


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    engine = Engine(Config(database_url=backend_url))
    yield engine
    await engine.close()


@pytest.fixture
def work(engine: Engine) -> TaskQueue:
    """Runs what is due, when the test says so."""

    def handle(payload: Any) -> Any:
        if payload == "fail":
            raise Fail("as asked")
        return {"echo": payload}

    queue = TaskQueue(engine=engine, enable_worker=False)
    queue.register_handler("echo", handle)
    return queue


@pytest.fixture(params=["engine", "http"])
async def queue(
    request: pytest.FixtureRequest, engine: Engine, work: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Queue]:
    if request.param == "engine":
        yield LocalQueue(engine, work)
        return
    monkeypatch.setenv("TASKLIB_TOKEN", TOKEN)
    transport = httpx.ASGITransport(create_app(engine))
    remote = RemoteQueue("http://127.0.0.1:8700", token=TOKEN, transport=transport)
    yield remote  # type: ignore[misc]
    await remote.close_async()


@pytest.mark.parametrize("payload", [{"a": [1, 2.5, None, True, "ä"]}, [], 0, False, "", 10**30, None], ids=repr)
async def test_what_goes_in_comes_out(queue: Queue, work: TaskQueue, payload: Any):
    task_id = await queue.submit_async("echo", payload)
    waiting = await queue.get_async(task_id)
    assert waiting is not None
    assert (waiting.state, waiting.kwargs, waiting.attempts, waiting.max_attempts) == ("pending", payload, 0, 3)
    assert await work.process_batch_async() == 1
    done = await queue.wait_async(task_id, 10)
    assert (done.state, done.result, done.attempts) == (TaskState.COMPLETED, {"value": {"echo": payload}}, 1)


async def test_options_are_kept(queue: Queue, engine: Engine):
    later = datetime(2999, 1, 1, tzinfo=UTC)
    task_id = await queue.submit_async(
        "echo", {}, max_attempts=0, run_at=later, priority=-7, tags={"team": "blue"}, timeout_seconds=9
    )
    for found in (await queue.get_async(task_id), await engine.get(task_id)):
        assert found is not None
        assert (found.max_attempts, found.scheduled_at, found.priority) == (0, later, -7)
        assert (found.tags, found.timeout_seconds) == ({"team": "blue"}, 9)


async def test_one_key_is_one_task(queue: Queue):
    first = await queue.submit_async("echo", 1, idempotency_key="order-1")
    assert await queue.submit_async("echo", 2, idempotency_key="order-1") == first
    found = await queue.get_async(first)
    assert found is not None
    assert (found.kwargs, found.idempotency_key) == (1, "order-1")


async def test_a_failed_task_is_retried_and_a_finished_one_deleted(queue: Queue, work: TaskQueue):
    task_id = await queue.submit_async("echo", "fail")
    with pytest.raises(TaskNotFailed):
        await queue.retry_async(task_id)
    with pytest.raises(TaskNotTerminal):
        await queue.delete_async(task_id)
    await work.process_batch_async()
    failed = await queue.wait_async(task_id, 10)
    assert failed.state == TaskState.FAILED
    assert "as asked" in (failed.error or "")
    await queue.retry_async(task_id)
    again = await queue.get_async(task_id)
    assert again is not None
    assert (again.state, again.attempts, len(again.history)) == (TaskState.PENDING, 0, 1)
    await work.process_batch_async()
    await queue.delete_async(task_id)
    assert await queue.get_async(task_id) is None
    with pytest.raises(TaskNotFound):
        await queue.delete_async(task_id)


async def test_cancel(queue: Queue):
    task_id = await queue.submit_async("echo", 1)
    await queue.cancel_async(task_id)
    cancelled = await queue.wait_async(task_id, 10)
    assert cancelled.state == TaskState.CANCELLED
    with pytest.raises(TaskConflict):
        await queue.cancel_async(task_id)


async def test_lists(queue: Queue, work: TaskQueue):
    ids = [await queue.submit_async("echo", number) for number in range(3)]
    await work.process_batch_async()
    other = await queue.submit_async("other", 1)
    assert [task.id for task in await queue.list_async(name="echo")] == ids[::-1]
    assert [task.id for task in await queue.list_async(state="pending")] == [other]
    assert len(await queue.list_async(limit=2)) == 2


async def test_waiting_ends_in_time(queue: Queue):
    task_id = await queue.submit_async("nobody", 1)
    with pytest.raises(WaitTimeout, match=r"nobody is pending, 0 of \d+ attempts begun") as late:
        await queue.wait_async(task_id, 0.05)
    assert (late.value.task_id, late.value.state) == (task_id, "pending")
    with pytest.raises(TaskNotFound):
        await queue.wait_async(uuid4(), 5)


@pytest.mark.parametrize(
    ("name", "payload", "options", "field"),
    [
        ("", 1, {}, "name"),
        ("x" * 256, 1, {}, "name"),
        ("echo", float("nan"), {}, "payload"),
        ("echo", "nul\0", {}, "payload"),
        ("echo", 1, {"idempotency_key": ""}, "idempotency_key"),
        ("echo", 1, {"timeout_seconds": 0}, "timeout_seconds"),
        ("echo", 1, {"priority": 2**31}, "priority"),
        ("echo", 1, {"max_attempts": -1}, "max_attempts"),
        ("echo", 1, {"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001 - without a zone, on purpose
    ],
    ids=str,
)
async def test_bad_input_is_refused_and_nothing_is_stored(
    queue: Queue, engine: Engine, name: str, payload: Any, options: dict[str, Any], field: str
):
    with pytest.raises(InvalidInput) as caught:
        await queue.submit_async(name, payload, **options)
    said = f"{caught.value.field} {caught.value}".lower().replace("_", "")
    words = {"name": ("name", "type"), "run_at": ("runat", "runafter")}.get(field, (field.replace("_", ""),))
    assert any(word in said for word in words)
    assert (await engine.count(Filter(), 10)).value == 0


async def test_a_server_that_is_away_is_said_so():
    remote = RemoteQueue("http://127.0.0.1:1", token="x", timeout=2)
    with pytest.raises(StoreUnavailable):
        await remote.get_async(uuid4())
    await remote.close_async()


def test_the_sync_form_works_without_a_loop(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TASKLIB_TOKEN", TOKEN)
    app = create_app(Config(database_url=sqlite_url))
    remote = RemoteQueue("http://127.0.0.1:8700", token=TOKEN, transport=httpx.ASGITransport(app))
    task_id = remote.submit("echo", {"n": "x" * 1000}, run_at=datetime.now(UTC) + timedelta(days=1))
    assert remote.get(str(task_id)) == remote.list(name="echo")[0]
    assert remote.stats()["pending"] == 1
    remote.cancel(task_id)
    assert remote.wait(task_id, 5).state == TaskState.CANCELLED
    remote.delete(task_id)
    assert remote.get(task_id) is None
    remote.close()
