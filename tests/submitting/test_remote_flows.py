"""Flows through RemoteQueue, in the words of the library's own; and `tq(...).then`."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tasklib import Config, FlowNotFound, FlowNotSent, InvalidOption, RemoteQueue, TaskQueue, WaitTimeout
from tasklib.api.fluent import TypeContext
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app

TOKEN = "an-admin-token-of-the-tests"


@pytest.fixture
async def engine(shared_url: str) -> AsyncIterator[Engine]:
    engine = Engine(Config(database_url=shared_url))
    yield engine
    await engine.close()


@pytest.fixture
async def remote(engine: Engine) -> AsyncIterator[RemoteQueue]:
    app = create_app(engine, registry=Registry(), settings=ServerSettings(token=TOKEN))
    remote = RemoteQueue("http://localhost", token=TOKEN, transport=httpx.ASGITransport(app))
    yield remote
    await remote.close_async()


async def test_a_flow_over_http(remote: RemoteQueue, engine: Engine):
    queue = TaskQueue(engine=engine, enable_worker=False, batch_size=100)
    fails = True

    def merge(payload: dict[str, list[int]]) -> int:
        if fails:
            raise ValueError("not yet")
        return sum(payload["parts"])

    queue.register_handler("extract", lambda payload: payload["n"])
    queue.register_handler("double", lambda payload: payload["raw"] * 2 + payload["n"])
    queue.register_handler("merge", merge)
    queue.register_handler("tell", lambda payload: "told")
    early = await remote.submit_async("extract", {"n": 5})

    async with remote.flow("import 42", idempotency_key="import-42") as f:
        raw = f.submit("extract", {"n": 20}, priority=3)
        parts = [f.submit("double", {"raw": raw.output, "n": n}) for n in range(2)]
        total = f.submit("merge", {"parts": [*(part.output for part in parts), early.output]}, max_attempts=1)
        f.submit("tell", {}, after=[total, early], on="end")
        with pytest.raises(FlowNotSent, match="before the end of its flow's block"):
            _ = raw.id
    assert f.created
    status = await f.status_async()
    assert (status.name, status.status, status.counts["waiting"], status.total) == ("import 42", "running", 4, 5)
    with pytest.raises(WaitTimeout, match=f"flow {f.id} was not finished within 0 s: tell .* is pending$"):
        await f.wait_async(0)
    waiting = await remote.get_async(total.id)
    assert waiting is not None
    assert (waiting.waits, waiting.flow_id, waiting.kwargs) == (3, f.id, {"parts": [None, None, None]})

    await queue.process_batch_async()
    assert (await f.wait_async(10)).status == "failed"
    fails = False
    assert await f.retry_async() == 1
    waited = asyncio.create_task(f.wait_async(10))
    await queue.process_batch_async()
    assert (await waited).status == "completed"
    tasks = {task.name: task for task in await f.tasks_async()}
    assert [task.name for task in await f.tasks_async()] == ["extract", "double", "double", "merge", "tell"]
    assert tasks["merge"].result == {"value": 40 + 41 + 5}
    assert tasks["extract"].priority == 3

    async with remote.flow("import 42", idempotency_key="import-42") as again:
        same = again.submit("extract", {"n": 20})
    assert (again.id, again.created, same.id) == (f.id, False, raw.id)
    assert (await remote.get_flow(f.id).status_async()).status == "completed"
    assert await again.cancel_async() == 0


async def test_what_cannot_be_is_refused_and_nothing_is_stored(remote: RemoteQueue, engine: Engine):
    f = remote.flow()
    lost = f.submit("t", {})
    with pytest.raises(ZeroDivisionError):
        async with f:
            raise ZeroDivisionError
    with pytest.raises(FlowNotSent, match="has raised ZeroDivisionError"):
        _ = lost.id
    with pytest.raises(InvalidOption, match="before: not inside a flow"):
        async with remote.flow() as f:
            f.submit("t", {}, before=[lost])
    with pytest.raises(InvalidOption, match="nothing was submitted"):
        async with remote.flow():
            pass
    for after in ("x", ["x"], 5):
        with pytest.raises(InvalidOption, match="after"):
            async with remote.flow() as f:
                f.submit("t", {}, after=after)  # type: ignore[arg-type]
    with pytest.raises(FlowNotFound):
        await remote.get_flow("0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10").status_async()
    with pytest.raises(InvalidOption) as caught:
        await remote.submit_async("t", {}, after=["0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"])
    assert caught.value.field == "options.after"
    assert await engine.stats() == {}


async def test_tq_goes_on_with_what_waits(engine: Engine):
    queue = TaskQueue(engine=engine, enable_worker=False, batch_size=100)
    order: list[str] = []
    for name in ("crawl", "index", "tell"):
        queue.register_handler(name, lambda payload, name=name: order.append(f"{name} {payload}"))
    crawl = TypeContext[str](queue, "crawl")
    with pytest.raises(InvalidOption, match="nothing was added"):
        crawl.then("index", 0)
    index = await (await (await crawl.add_async("a")).add_async("b")).then_async("index", 7, priority=9)
    tell = await index.then_async("tell", 8, {"on": "end"}, after=crawl.ids[:1])
    waiting = await engine.get_or_raise(tell.ids[0])
    assert (index.type, tell.type, waiting.waits) == ("index", "tell", 2)
    assert waiting.after == {"on": "end", "parents": [str(index.ids[0]), str(crawl.ids[0])]}
    await queue.process_batch_async()
    assert order == ["crawl a", "crawl b", "index 7", "tell 8"]
