"""Flows as a worker runs them: a child starts after all it waits for, with their results among its arguments."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from tasklib import (
    AsyncTaskManager,
    Fail,
    Flow,
    StoreUnavailable,
    TaskFailed,
    TaskHandle,
    TaskNotDue,
    current_task,
    flow,
    get_flow,
    task,
)
from tasklib.core.flows import After
from tasklib.core.registry import Registry, default_registry
from tasklib.engine import parents
from tasklib.engine.audit import Auditor
from tasklib.engine.engine import Engine
from tasklib.engine.repeating import SAME, repeat
from tasklib.worker import fetcher
from tests.conformance.builders import apply, claim, completed, new_task
from tests.worker import app
from tests.worker.conftest import Serve


class Raw(BaseModel):
    rows: list[int]


async def test_a_flow_runs_in_order_and_results_go_where_their_outputs_stood(
    engine: Engine, registry: Registry, serve: Serve
):
    ran: list[str] = []

    @task(registry=registry)
    def extract(url: str) -> Raw:
        ran.append("extract")
        return Raw(rows=[1, 2, 3])

    @task(registry=registry)
    async def clean(raw: Raw, n: int) -> int:
        ran.append("clean")
        return raw.rows[n] * 10

    @task(registry=registry)
    def merge(parts: list[int], about: dict[str, Any]) -> int:
        ran.append("merge")
        assert about == {"raw": {"rows": [1, 2, 3]}, "note": "sum"}
        return sum(parts)

    @task(registry=registry)
    def notify(who: str) -> str:
        ran.append("notify")
        return who

    async with flow("import 42") as f:
        raw = await extract.submit_async("s3://bucket/42")
        parts = [await clean.submit_async(raw.output, n) for n in range(3)]
        total = merge.submit([part.output for part in parts], {"raw": raw.output, "note": "sum"})
        last = notify.options(after=[total], on="end").submit("42")
    assert f.created
    assert f.id == raw.id
    before = await f.status_async()
    assert (before.name, before.status, before.counts) == ("import 42", "running", {"pending": 1, "waiting": 5})
    async with serve():
        assert (await f.wait_async(20)).status == "completed"
        assert await total.result_async() == 60
        assert await last.result_async() == "42"
    assert ran == ["extract", "clean", "clean", "clean", "merge", "notify"]
    tasks = await get_flow(str(f.id)).tasks_async()
    assert [each.name for each in tasks] == ran
    assert {each.flow_id for each in tasks} == {f.id}
    assert (await total.get_async()).kwargs == {"parts": [None, None, None], "about": {"raw": None, "note": "sum"}}


async def test_parents_tell_what_became_of_them_however_many(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tasklib.engine.parents.PAGE", 2)

    @task(registry=registry, max_retries=0)
    def part(n: int) -> int:
        if n == 2:
            raise Fail("no such part")
        return n

    def told(parent: Any) -> tuple[Any, ...]:
        return parent.name, parent.state, parent.value, (parent.error or "").splitlines()[-1:]

    @task(registry=registry)
    def report() -> list[Any]:
        return [told(parent) for parent in current_task().parents()]

    @task(registry=registry)
    async def report_async() -> list[Any]:
        with pytest.raises(Exception, match="use `async for`"):
            next(iter(current_task().parents()))
        return [told(parent) async for parent in current_task().parents()]

    async with serve(concurrency=2):
        with flow() as f:
            parts = part.submit_many([{"n": n} for n in range(5)], handles=True)
            both = [each.options(after=parts, on="end").submit() for each in (report, report_async)]
        for handle in both:
            assert await handle.result_async(20) == [
                ["part", "completed", 0, []],
                ["part", "completed", 1, []],
                ["part", "failed", None, ["tasklib.Fail: no such part"]],
                ["part", "completed", 3, []],
                ["part", "completed", 4, []],
            ]
        assert (await f.status_async()).counts == {"completed": 6, "failed": 1}


async def test_a_result_that_does_not_fit_fails_the_task_at_once_and_names_field_and_parent(
    engine: Engine, registry: Registry, serve: Serve
):
    @task(registry=registry, name="extract")
    def loose() -> Any:
        return {"rows": ["x"]}

    @task(registry=registry, max_retries=5)
    def clean(raw: Raw, others: list[Raw]) -> None: ...

    @task(registry=registry, max_retries=0)
    def broken() -> Raw:
        raise Fail("broken")

    with flow() as f:
        raw, failing = loose.submit(), broken.submit()
        wrong = clean.submit(raw.output, [])
        missing = clean.options(on="end").submit(Raw(rows=[]), [failing.output])
    async with serve():
        await f.wait_async(20)
    ended = await wrong.get_async()
    assert (ended.state, ended.attempts) == ("failed", 1)
    assert "raw.rows.0: Input should be a valid integer" in (ended.error or "")
    assert f"raw is the result of task {raw.id} (extract)" in (ended.error or "")
    ended = await missing.get_async()
    assert (ended.state, ended.attempts) == ("failed", 1)
    assert f"others.0 is the result of task {failing.id} (broken), which has none: it is failed" in (ended.error or "")


async def test_a_flow_is_cut_off_retried_and_cancelled_as_a_whole(engine: Engine, registry: Registry, serve: Serve):
    broken = True

    @task(registry=registry, max_retries=0)
    def head() -> int:
        if broken:
            raise ValueError("not yet")
        return 1

    @task(registry=registry)
    def middle(n: int) -> int:
        return n + 1

    @task(registry=registry)
    def last(n: int) -> int:
        return n + 1

    def put_together() -> tuple[Flow, TaskHandle[int]]:
        with flow() as f:
            return f, last.submit(middle.submit(head.submit().output).output)

    f, end = put_together()
    async with serve():
        cut_off = await f.wait_async(20)
        assert (cut_off.status, cut_off.counts) == ("failed", {"failed": 1, "cancelled": 2})
        [_, cut, _] = await f.tasks_async()
        assert (await end.get_async()).error == f"DependencyFailed: task {cut.id} (middle) was cancelled"
        broken = False
        assert await f.retry_async() == 1
        assert (await f.wait_async(20)).counts == {"completed": 3}
        assert await end.result_async() == 3
    f, _ = put_together()
    assert await f.cancel_async() > 0
    assert (await f.status_async()).counts == {"cancelled": 3}


async def test_whoever_is_awaited_may_add_to_what_is_awaited(engine: Engine, registry: Registry, serve: Serve):
    ran: list[str] = []

    @task(registry=registry)
    def extra(n: int) -> None:
        ran.append(f"extra {n}")

    @task(registry=registry)
    def find(total: str) -> None:
        ran.append("find")
        for n in range(2):
            extra.options(before=[total]).submit(n)

    @task(registry=registry)
    def total() -> int:
        ran.append("total")
        return len(list(current_task().parents()))

    with flow() as f:
        # What is to come last is submitted first, so that the others can name it.
        last = total.options(after=[]).submit()
        find.options(before=[last]).submit(str(last.id))
    async with serve(concurrency=3):
        assert await last.result_async(20) == 3
    assert (ran[0], ran[-1]) == ("find", "total")
    assert {each.flow_id for each in await f.tasks_async()} == {f.id}
    assert len(await f.tasks_async()) == 4


async def test_tasks_in_processes_get_results_and_parents(engine: Engine, serve: Serve):
    async with serve(concurrency=2, registry=default_registry, names=["doubled", "sum_of_parents"]):
        with flow() as f:
            one = app.doubled.submit(2)
            two = app.doubled.submit(one.output)
            whole = app.sum_of_parents.options(after=[one, two]).submit()
        if engine.config.database_url.startswith("memory:"):
            with pytest.raises(TaskFailed, match="Unsupported: a queue in memory cannot be seen from a child process"):
                await whole.result_async(40)
        else:
            assert await whole.result_async(40) == [str(f.id), 12]
        assert await two.result_async(40) == 8


async def test_claims_by_hand_get_results_and_wait_like_all_others(engine: Engine, registry: Registry, serve: Serve):
    @task(registry=registry)
    def extract() -> Raw:
        return Raw(rows=[7])

    manager = AsyncTaskManager(engine)
    raw = await extract.submit_async()
    task_id = await manager.submit({"raw": raw.output, "n": 1}, name="agent", after=[raw])
    with pytest.raises(TaskNotDue, match="waits for 1 tasks"):
        await manager.claim(task_id, "agent-1")
    async with serve():
        await raw.result_async(20)
    [claimed] = await manager.claim_next("agent-1", names=["agent"], wait_seconds=20)
    assert claimed.payload == {"raw": {"rows": [7]}, "n": 1}
    assert (await manager.claim(task_id, "agent-1")).payload == claimed.payload
    await manager.complete(task_id, worker_id="agent-1")


async def test_the_results_for_a_whole_claim_are_read_at_once(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    store = await engine.store()
    heads = [new_task("head") for _ in range(3)]
    inputs = [(("/a", head.id), ("/b", heads[0].id)) for head in heads]
    empty = {"a": None, "b": None}
    children = [new_task(payload=empty)._replace(after=After((), "success", own)) for own in inputs]
    await store.insert([*heads, *children])
    await apply(store, *(completed(each, f"of {each.id}") for each in await claim(store, 3, names=["head"])))
    read, asked = store.parents, list[Any]()

    async def counted(ids: Any) -> Any:
        asked.append(set(ids))
        return await read(ids)

    monkeypatch.setattr(store, "parents", counted)
    found = await parents.fill_claims(store, await claim(store, 4))
    assert asked == [{head.id for head in heads}]
    got = {filled.id: json.loads(filled.kwargs) for filled, _ in found}
    assert got == {
        child.id: {"a": f"of {head.id}", "b": f"of {heads[0].id}"} for child, head in zip(children, heads, strict=True)
    }


async def test_a_worker_that_cannot_read_the_results_gives_the_task_back(
    engine: Engine, registry: Registry, serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    @task(registry=registry)
    def first() -> int:
        return 1

    @task(registry=registry)
    def second(n: int) -> int:
        return n

    fill, failures = parents.fill_claims, iter([True])

    async def unlucky(store: Any, claims: Any) -> Any:
        if any(claim.name == "second" for claim in claims) and next(failures, False):
            raise StoreUnavailable("away")
        return await fill(store, claims)

    monkeypatch.setattr(fetcher, "fill_claims", unlucky)
    async with serve():
        handle = second.submit(first.submit().output)
        assert await handle.result_async(20) == 1
    assert "cannot read what tasks have waited for: away" in caplog.text
    assert (await handle.get_async()).attempts == 1


async def test_a_copy_of_a_task_has_the_results_that_it_got(engine: Engine, registry: Registry, serve: Serve):
    @task(registry=registry)
    def first() -> int:
        return 1

    @task(registry=registry)
    def second(n: int, m: int) -> int:
        return n + m

    async with serve():
        handle = await second.submit_async((await first.submit_async()).output, 10)
        await handle.result_async(20)
        auditor = Auditor("ada", lambda value: value)
        for payload, result in ((SAME, 11), ({"n": None, "m": 20}, 21), ({"n": 5, "m": 20}, 25)):
            made = await repeat(engine, handle.id, payload=payload, registry=registry, auditor=auditor)
            ended = await engine.wait(made.id, 20)
            assert (ended.result, ended.after) == ({"value": result}, None)
