"""What type checkers must accept, and what they must infer. Never run: `test_typing.py` has it checked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, assert_type
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypedDict

import tasklib
from tasklib import (
    AsyncTaskManager,
    Config,
    FlowSummary,
    ManagedTask,
    Middleware,
    RemoteQueue,
    RetryPolicy,
    RunningTask,
    ScheduleHandle,
    Submission,
    Task,
    TaskEvent,
    TaskFunction,
    TaskHandle,
    TaskManager,
    TaskQueue,
    TaskStatus,
    TaskWorker,
    cron,
    every,
    flow,
    get_flow,
    schedules,
    task,
    tq,
)
from tasklib.api.fluent import TypeContext
from tasklib.api.remote import RemoteTask


class Invoice(BaseModel):
    number: int
    customer: str


@task
def send_email(to: str, subject: str = "Hello") -> bool:
    return bool(to and subject)


@task(max_retries=5, timeout_seconds=30)
def process_image(path: str) -> str:
    return f"processed_{path}"


@task
async def fetch(url: str, *, pages: int = 1) -> list[str]:
    return [url] * pages


@task(
    name="billing.invoice",
    priority=3,
    tags={"team": "billing"},
    retry=RetryPolicy(base=1.0),
    executor="process",
    retry_for=OSError,
)
async def make_invoice(customer: str) -> Invoice:
    return Invoice(number=1, customer=customer)


@task
def forget(user_id: UUID) -> None:
    pass


@task(retry_for=[ConnectionError, TimeoutError], no_retry_for=(ConnectionRefusedError,))
def with_lists(number: int) -> int:
    return number


@task()
def with_empty_brackets(number: int) -> int:
    return number


def plain_calls() -> None:
    assert_type(send_email("user@example.com"), bool)
    assert_type(send_email(to="user@example.com", subject="Hi"), bool)
    assert_type(process_image("cat.png"), str)
    assert_type(with_empty_brackets(1), int)
    as_callable: Callable[[str], bool] = send_email
    as_callable("user@example.com")


async def plain_async_calls() -> None:
    assert_type(await fetch("https://example.com", pages=2), list[str])
    assert_type(await make_invoice("ACME"), Invoice)
    assert_type(await asyncio.create_task(fetch("https://example.com")), list[str])


def blocking_submits() -> None:
    assert_type(send_email.submit("user@example.com", subject="Hi"), TaskHandle[bool])
    assert_type(process_image.submit(path="cat.png"), TaskHandle[str])
    assert_type(fetch.submit("https://example.com", pages=2), TaskHandle[list[str]])
    assert_type(make_invoice.submit("ACME"), TaskHandle[Invoice])
    assert_type(forget.submit(UUID(int=1)).result(), None)


async def async_submits() -> None:
    assert_type(await send_email.submit_async("user@example.com"), TaskHandle[bool])
    assert_type(await fetch.submit_async("https://example.com"), TaskHandle[list[str]])
    assert_type(await make_invoice.submit_async(customer="ACME"), TaskHandle[Invoice])


def submits_with_options() -> None:
    soon = send_email.options(
        delay_seconds=1.5,
        max_retries=-1,
        timeout_seconds=60,
        priority=10,
        tags={"batch": "daily"},
        idempotency_key="welcome-1",
        retry=RetryPolicy(base=1, multiplier=3),
        connection=object(),
    )
    assert_type(soon.submit("user@example.com", subject="Hi"), TaskHandle[bool])
    assert_type(fetch.options(run_at=datetime(2030, 1, 1, tzinfo=UTC)).submit("https://a"), TaskHandle[list[str]])
    assert_type(send_email.submit_many([{"to": "a@example.com"}, {"to": "b@example.com"}]), list[UUID])


async def results(handle: TaskHandle[Invoice]) -> None:
    assert_type(handle.id, UUID)
    assert_type(handle.created, bool)
    assert_type(handle.result(timeout=5), Invoice)
    assert_type(await handle.result_async(), Invoice)
    assert_type(handle.result().number, int)
    assert_type(handle.wait(1.5), Task)
    assert_type(await handle.wait_async(), Task)
    assert_type(handle.cancel(), Task)
    wider: TaskHandle[BaseModel] = handle
    wider.result().model_dump()


async def the_functions_of_the_library() -> None:
    tasklib.init(Config(database_url="sqlite:///tasks.db", max_retries=1, lock_timeout_seconds=60))
    tasklib.init()
    task_id = await tasklib.submit_task(send_email, to="user@example.com", delay_seconds=5, priority=1, tags={"a": 1})
    assert_type(task_id, UUID)
    assert_type(tasklib.submit_task_sync(fetch, url="https://example.com"), UUID)
    assert_type(await tasklib.submit_many(send_email, [{"to": "a@example.com"}], priority=1), list[UUID])
    assert_type(tasklib.get_task(task_id), Task | None)
    assert_type(await tasklib.get_task_async(str(task_id)), Task | None)
    assert_type(tasklib.list_tasks(state="failed", name="send_email", limit=10), list[Task])
    found = tasklib.wait_for(task_id, timeout=10)
    assert_type(tasklib.is_completed(found), bool)
    assert_type(found.scheduled_at, datetime)
    assert_type(found.locked_until, datetime | None)
    for name, (function, params, options) in tasklib.get_registered_tasks().items():
        assert_type(name, str)
        assert_type(function, Callable[..., Any])
        assert_type(params, type[BaseModel])
        assert_type(options.max_retries, int | None)


async def a_worker() -> None:
    worker = TaskWorker(Config(), concurrency=4, poll_interval_seconds=0.5)
    assert_type(worker.worker_id, str)
    assert_type(await worker.run(), None)
    await TaskWorker(names=["send_email"], burst=True, handle_signals=False, parallelism={"send_email": 2}).run()


def functions_that_take_tasks(
    job: TaskFunction[[str], bool, bool], later: TaskFunction[[str], Coroutine[Any, Any, int], int]
) -> None:
    assert_type(job("x"), bool)
    assert_type(job.submit("x").result(), bool)
    assert_type(later.submit("x").result(), int)
    assert_type(later.name, str)


class CrawlPayload(BaseModel):
    url: str
    depth: int = 1


class Mail(TypedDict):
    to: str


def crawl(payload: CrawlPayload) -> int:
    return payload.depth


async def crawl_async(payload: CrawlPayload) -> None:
    pass


def send_mail(mail: Mail) -> str:
    return mail["to"]


async def the_fluent_door() -> None:
    tq.init("sqlite:///tasks.db", poll_interval=0.5, batch_size=5, enable_worker=False, task_timeout=60)
    tq.init(pollInterval=500, batchSize=5, enableWorker=False, taskTimeout=60)
    chain = tq("crawl", CrawlPayload).set_worker(crawl).set_worker_count(3).set_rate_limit(10).set_timeout(300)
    assert_type(chain, TypeContext[CrawlPayload])
    assert_type(chain.add(CrawlPayload(url="https://example.com"), max_attempts=5).ids, list[UUID])
    assert_type(await chain.add_async(CrawlPayload(url="https://example.com")), TypeContext[CrawlPayload])
    tq("crawl", CrawlPayload).setWorker(crawl_async).setWorkerCount(1).setRateLimit(0.5).setTimeout(9)
    tq("mail", Mail).set_worker(send_mail).add({"to": "ada@example.com"}, {"maxAttempts": 5, "priority": 3})
    assert_type(tq("anything"), TypeContext[Any])
    tq("anything").set_worker(lambda payload: payload["url"]).add({"url": 1}).add([1], run_after=datetime.now(UTC)).add(
        None
    )
    assert_type(tq.stats()["processing"], int)
    assert_type(tq.stats()["byType"]["crawl"]["failed"], int)
    await tq.stop_async()


async def a_queue_of_ones_own() -> None:
    queue = TaskQueue("memory://", enable_worker=False)
    queue.register_handler("crawl", crawl, CrawlPayload)
    task_id = queue.enqueue("crawl", {"url": "u"}, max_attempts=0, runAfter="2030-01-01T00:00:00Z", tags={"a": 1})
    assert_type(task_id, UUID)
    assert_type(queue.get_task(task_id), Task | None)
    assert_type(queue.process_batch(), int)
    assert_type(await queue.process_batch_async(), int)
    assert_type(queue.is_paused(), bool)


async def over_http(queue: RemoteQueue) -> None:
    assert_type(queue.submit("mail", {"n": 1}, max_attempts=0, tags={"a": 1}, idempotency_key="k"), RemoteTask)
    assert_type(await queue.submit_async("mail", [], run_at=datetime.now(UTC), timeout_seconds=5), RemoteTask)


def claims_by_hand() -> None:
    with TaskManager("memory://", claim_ttl=60) as manager:
        assert_type(manager, TaskManager)
        task_id = manager.submit({"n": 1}, idempotency_key="k", max_attempts=3, name="mail", priority=1, tags={"a": 1})
        assert_type(task_id, UUID)
        for payload in (b"bytes", "text", 0, False, 1.5, [1, "two"], {"mail": Mail(to="ada@example.com")}):
            manager.submit(payload)
        manager.submit(Mail(to="ada@example.com"))
        claimed = manager.claim(task_id, "agent-1")
        assert_type(claimed, ManagedTask)
        assert_type(claimed.claimed_by, str | None)
        assert_type(claimed.version, int)
        assert_type(manager.claim_next("agent-1", names=["mail"], limit=5, wait_seconds=1.5), list[ManagedTask])
        assert_type(manager.extend(str(task_id), worker_id="agent-1", ttl=5), ManagedTask)
        manager.complete(task_id, {"sent": True}, worker_id="agent-1", version=claimed.version)
        manager.complete(task_id, b"done", worker_id="agent-1")
        manager.complete(task_id, worker_id="agent-1")
        manager.fail(task_id, ValueError("no"), worker_id="agent-1", retryable=False)
        manager.fail(task_id, "no", worker_id="agent-1")
        manager.release(task_id, worker_id="agent-1")
        assert_type(manager.retry(task_id), ManagedTask)
        assert_type(manager.get_by_idempotency_key("k").payload, Any)
        assert_type(manager.list(TaskStatus.PENDING), list[ManagedTask])
        assert_type(manager.list("pending", name="mail", limit=3), list[ManagedTask])
        manager.delete(task_id)
    TaskManager(Config())
    TaskManager()


async def claims_by_hand_awaited() -> None:
    async with AsyncTaskManager("memory://") as manager:
        assert_type(manager, AsyncTaskManager)
        task_id = await manager.submit(b"bytes")
        assert_type(task_id, UUID)
        assert_type(await manager.claim_next("agent-1"), list[ManagedTask])
        assert_type((await manager.get(task_id)).status, str)
        await manager.complete(task_id, [1], worker_id="agent-1")


class Timing(Middleware):
    def before_submit(self, task: Submission) -> Mapping[str, Any] | None:
        assert_type(task.id, UUID)
        return {"asked_by": task.name} if task.tags else None

    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        assert_type(task.attempt, int)
        yield

    @asynccontextmanager
    async def around_async(self, task: RunningTask) -> AsyncIterator[None]:
        yield

    def on_completed(self, event: TaskEvent) -> None:
        assert_type(event.seconds, float | None)

    async def on_failed(self, event: TaskEvent) -> None:
        assert_type(event.exception, BaseException | None)


def middleware() -> None:
    config = Config(middleware=[Timing()])
    tasklib.init(config)
    for each in config.middleware:
        assert_type(each, Middleware)


class Raw(BaseModel):
    rows: list[str]


@task
def extract(url: str) -> Raw:
    return Raw(rows=[url])


@task
async def clean(raw: Raw, number: int) -> str:
    return raw.rows[number]


@task
def merge(parts: list[str]) -> int:
    return len(parts)


async def flows() -> None:
    with flow("import 42", idempotency_key="42", connection=object()) as f:
        raw = extract.submit("s3://bucket/42")
        assert_type(raw, TaskHandle[Raw])
        assert_type(raw.output, Raw)
        parts = [clean.submit(raw.output, number) for number in range(8)]
        total = merge.submit([part.output for part in parts])
        assert_type(total.output, int)
        send_email.options(after=[total, raw.id, str(raw.id)], on="end", before=parts).submit("a@example.com")
        assert_type(clean.submit_many([{"raw": raw.output, "number": 1}], handles=True), list[TaskHandle[str]])
        tasklib.submit_task_sync(merge, parts=[part.output for part in parts], after=[raw], on="success")
    assert_type(f.id, UUID)
    assert_type(f.status(), FlowSummary)
    assert_type(f.wait(timeout=5).status, Literal["running", "failed", "cancelled", "completed"])
    assert_type(f.tasks(), list[Task])
    assert_type(f.retry(), int)
    async with flow() as g:
        raw = await extract.submit_async("u")
        await clean.submit_async(raw=raw.output, number=1)
    assert_type(await g.cancel_async(), int)
    assert_type(await get_flow(g.id).status_async(), FlowSummary)
    for parent in tasklib.current_task().parents():
        assert_type(parent.state, str)
    async for parent in tasklib.current_task().parents():
        assert_type(parent.id, UUID)
    with TaskManager("memory://") as manager:
        manager.submit({"raw": 1}, after=[raw], on="end")


@task(schedule=cron("30 3 * * *", timezone="Europe/Berlin"))
def nightly(kind: str = "all") -> None: ...


async def scheduling() -> None:
    assert_type(nightly.schedule("a", every(minutes=5))("some"), ScheduleHandle)
    assert_type(await nightly.schedule_async("a", every(minutes=5))(kind="some"), ScheduleHandle)
    assert_type(nightly.options(priority=1).schedule("a", cron("@daily"))(), ScheduleHandle)
    assert_type(schedules["a"].trigger(), UUID)
    assert_type(schedules["a"].next(5), list[datetime])
    assert_type(tq("crawl", Invoice).every(60, Invoice(number=1, customer="a")), TypeContext[Invoice])
