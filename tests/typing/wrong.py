"""What type checkers must reject: every line marked `# error:`, and no other. Never run: `test_typing.py` has it
checked, without the ignores, which are there for the checks of the project as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypedDict

import tasklib
from tasklib import (
    AsyncTaskManager,
    Config,
    Middleware,
    RemoteQueue,
    RunningTask,
    Submission,
    TaskEvent,
    TaskManager,
    TaskQueue,
    TaskWorker,
    cron,
    every,
    flow,
    task,
    tq,
)


@task
def send_email(to: str, subject: str) -> bool:
    return bool(to and subject)


@task(max_retries=5, timeout_seconds=30)
def process_image(path: str) -> str:
    return f"processed_{path}"


@task
async def count_words(text: str, *, language: str = "en") -> int:
    return len(text.split()) if language else 0


def retry_lists() -> None:
    task(retry_for=["OSError"])  # type: ignore[list-item]  # error: classes, not their names
    task(no_retry_for=OSError())  # type: ignore[call-overload]  # error: a class, not one of its exceptions


def names() -> None:
    print(tasklib.submit_tsk)  # type: ignore[attr-defined]  # error: no such name, though names are imported when used


def submits() -> None:
    send_email.submit(123, "Hello")  # type: ignore[arg-type]  # error: wrong type
    send_email.submit("user@example.com")  # type: ignore[call-arg]  # error: missing argument
    send_email.submit("user@example.com", "Hello", body="...")  # type: ignore[call-arg]  # error: unknown argument
    send_email.submit("user@example.com", "Hello", "again")  # type: ignore[call-arg]  # error: too many arguments
    send_email.submit(to="user@example.com", subject=None)  # type: ignore[arg-type]  # error: wrong type
    process_image.submit(path=b"cat.png")  # type: ignore[arg-type]  # error: wrong type, decorated with options
    process_image.submit()  # type: ignore[call-arg]  # error: missing argument, decorated with options
    process_image.submit("cat.png", priority=3)  # type: ignore[call-arg]  # error: options go through .options()
    count_words.submit(7)  # type: ignore[arg-type]  # error: wrong type, async def
    count_words.submit("two words", "en")  # type: ignore[call-arg]  # error: keyword only


async def async_submits() -> None:
    await send_email.submit_async(to="user@example.com", subject=5)  # type: ignore[arg-type]  # error: wrong type
    await count_words.submit_async(words="two")  # type: ignore[call-arg]  # error: unknown argument
    await count_words.submit_async()  # type: ignore[call-arg]  # error: missing argument
    handle = await count_words.submit_async("two words")
    handle.result().upper()  # type: ignore[attr-defined]  # error: the result is an int
    flag: bool = await handle.result_async()  # type: ignore[assignment]  # error: an int is no bool
    text: str = await send_email.submit_async("user@example.com", "Hello")  # type: ignore[assignment]  # error: a handle
    print(flag, text)


def plain_calls() -> None:
    send_email("user@example.com")  # type: ignore[call-arg]  # error: missing argument
    send_email(to=1, subject="Hello")  # type: ignore[arg-type]  # error: wrong type
    process_image("cat.png", "dog.png")  # type: ignore[call-arg]  # error: too many arguments
    number: int = process_image("cat.png")  # type: ignore[assignment]  # error: it returns text
    words: int = count_words("two words")  # type: ignore[assignment]  # error: a coroutine must be awaited
    print(number, words)


def options() -> None:
    send_email.options(priority="x")  # type: ignore[arg-type]  # error: a priority is a whole number
    send_email.options(delay_seconds="5")  # type: ignore[arg-type]  # error: a delay is seconds or a timedelta
    send_email.options(run_at="tomorrow")  # type: ignore[arg-type]  # error: run_at is a datetime
    send_email.options(tags=["daily"])  # type: ignore[arg-type]  # error: tags are a mapping
    send_email.options(urgent=True)  # type: ignore[call-arg]  # error: unknown option
    send_email.options(10)  # type: ignore[call-arg]  # error: options are given by name
    send_email.options(priority=10).submit("user@example.com")  # type: ignore[call-arg]  # error: missing argument after options
    send_email.options(priority=10)("user@example.com", "Hello")  # type: ignore[operator]  # error: with options it can only be submitted


def results() -> None:
    path: bytes = process_image.submit("cat.png").result()  # type: ignore[assignment]  # error: the result is text
    process_image.submit("cat.png").result(timeout="5")  # type: ignore[arg-type]  # error: a timeout is in seconds
    print(send_email.submit("user@example.com", "Hello").state)  # type: ignore[attr-defined]  # error: a handle has no state
    print(path)


def definitions() -> None:
    task(max_retries="5")(len)  # type: ignore[call-overload]  # error: max_retries is a whole number
    task(timeout_seconds=1.5)(len)  # type: ignore[call-overload]  # error: timeout_seconds is a whole number
    task(executor="rocket")(len)  # type: ignore[call-overload]  # error: unknown executor
    task(retries=5)(len)  # type: ignore[call-overload]  # error: unknown option
    task("send_email")  # type: ignore[call-overload]  # error: a name is given as name=


async def the_functions_of_the_library(task_id: UUID) -> None:
    await tasklib.submit_task("send_email", to="user@example.com")  # type: ignore[arg-type]  # error: a function, not its name
    await tasklib.submit_task(send_email, to="user@example.com", priority="high")  # type: ignore[arg-type]  # error: wrong type
    await tasklib.submit_many(send_email, [], urgent=True)  # type: ignore[call-arg]  # error: unknown option
    tasklib.submit_many_sync(send_email, [], priority="high")  # type: ignore[arg-type]  # error: wrong type
    tasklib.submit_task_sync(send_email, max_retries="3")  # type: ignore[arg-type]  # error: wrong type
    tasklib.get_task(5)  # type: ignore[arg-type]  # error: ids are UUIDs or their text
    print(tasklib.get_task(task_id).state)  # type: ignore[union-attr]  # error: it may be None
    tasklib.list_tasks(limit="10")  # type: ignore[arg-type]  # error: a limit is a number
    tasklib.wait_for(task_id, timeout="10")  # type: ignore[arg-type]  # error: a timeout is in seconds
    tasklib.is_completed(task_id)  # type: ignore[arg-type]  # error: a task, not its id


def workers() -> None:
    TaskWorker("sqlite:///tasks.db")  # type: ignore[arg-type]  # error: a Config, not a URL
    TaskWorker(concurrency="4")  # type: ignore[arg-type]  # error: concurrency is a whole number
    TaskWorker(poll_interval_seconds=None)  # type: ignore[arg-type]  # error: seconds are needed
    TaskWorker(threads=4)  # type: ignore[call-arg]  # error: unknown argument


def configurations() -> None:
    Config(database_url=5)  # type: ignore[arg-type]  # error: a URL is text
    Config(max_retries="3")  # type: ignore[arg-type]  # error: max_retries is a whole number
    Config(retries=3)  # type: ignore[call-arg]  # error: unknown setting
    Config("sqlite:///tasks.db")  # type: ignore[call-arg]  # error: settings are given by name
    Config(shutdown_grace_seconds=None)  # type: ignore[arg-type]  # error: seconds are needed


class CrawlPayload(BaseModel):
    url: str


class Mail(TypedDict):
    to: str


def crawl(payload: CrawlPayload) -> None:
    pass


def the_fluent_door() -> None:
    tq("crawl", CrawlPayload).add({"wrong": "field"})  # type: ignore[arg-type]  # error: a CrawlPayload is needed
    tq("crawl", CrawlPayload).add("https://example.com")  # type: ignore[arg-type]  # error: text is no CrawlPayload
    tq("mail", Mail).add({"wrong": "field"})  # type: ignore[typeddict-item]  # error: not the keys of a Mail
    tq("mail", Mail).set_worker(crawl)  # type: ignore[arg-type]  # error: a handler for another payload
    tq("crawl").add({}, max_attempts="3")  # type: ignore[arg-type]  # error: max_attempts is a whole number
    tq("crawl").add({}, retries=3)  # type: ignore[call-arg]  # error: unknown option
    tq("crawl").set_worker_count("3")  # type: ignore[arg-type]  # error: a count is a whole number
    tq("crawl").set_rate_limit("10")  # type: ignore[arg-type]  # error: a rate is a number
    tq("crawl").set_worker(5)  # type: ignore[arg-type]  # error: a handler is a function
    tq(5)  # type: ignore[call-overload]  # error: a type's name is text
    tq.init(threads=4)  # type: ignore[call-arg]  # error: unknown setting
    TaskQueue(pollInterval="1")  # type: ignore[arg-type]  # error: milliseconds are a number
    TaskQueue("sqlite:///tasks.db").enqueue("crawl")  # type: ignore[call-arg]  # error: a payload is needed
    text: str = TaskQueue().process_batch()  # type: ignore[assignment]  # error: a number
    print(text)


def claims_by_hand(manager: TaskManager, task_id: UUID) -> None:
    manager.submit()  # type: ignore[call-arg]  # error: a task needs a payload
    manager.submit(None)  # type: ignore[arg-type]  # error: None is no payload
    manager.submit(object())  # type: ignore[arg-type]  # error: no JSON value
    manager.submit(1, max_attempts="3")  # type: ignore[arg-type]  # error: wrong type
    manager.submit(1, max_retries=3)  # type: ignore[call-arg]  # error: this API counts attempts
    manager.claim(task_id)  # type: ignore[call-arg]  # error: who claims it?
    manager.claim(7, "agent-1")  # type: ignore[arg-type]  # error: no id
    manager.complete(task_id, 1)  # type: ignore[call-arg]  # error: who completes it?
    manager.complete(task_id, 1, "agent-1")  # type: ignore[call-arg]  # error: keyword only
    manager.fail(task_id, worker_id="agent-1")  # type: ignore[call-arg]  # error: an error is needed
    manager.fail(task_id, 404, worker_id="agent-1")  # type: ignore[arg-type]  # error: neither exception nor text
    print(manager.claim_next("agent-1", limit=2).payload)  # type: ignore[attr-defined]  # error: a list
    print(manager.get(task_id).state)  # type: ignore[attr-defined]  # error: it is called status
    manager.get(task_id).attempts = 3  # type: ignore[misc]  # error: frozen
    TaskManager(7)  # type: ignore[arg-type]  # error: no queue


async def over_http(queue: RemoteQueue) -> None:
    queue.submit("mail", {}, priority="high")  # type: ignore[arg-type]  # error: wrong type
    await queue.submit_async("mail", {}, max_retries=3)  # type: ignore[call-arg]  # error: this API counts attempts


async def claims_by_hand_awaited(manager: AsyncTaskManager, task_id: UUID) -> None:
    await manager.submit(1, run_after="tomorrow")  # type: ignore[call-arg]  # error: here it is run_at
    print(manager.get(task_id).payload)  # type: ignore[attr-defined]  # error: must be awaited
    with manager:  # type: ignore[attr-defined]  # error: async with
        pass


class NoContextManager(Middleware):
    def around(self, task: RunningTask) -> Iterator[None]:  # type: ignore[override]  # error: no context manager
        yield


class WrongTags(Middleware):
    def before_submit(self, task: Submission) -> list[str]:  # type: ignore[override]  # error: tags are a mapping
        return [task.name]


class WrongEvent(Middleware):
    def on_failed(self, event: TaskEvent, error: str) -> None:  # type: ignore[override]  # error: one argument
        print(event.result)  # type: ignore[attr-defined]  # error: no such fact


class Fine(Middleware):
    @contextmanager
    def around(self, task: RunningTask) -> Iterator[None]:
        task.attempt = 2  # type: ignore[misc]  # error: frozen
        yield


def middleware() -> None:
    Config(middleware=[Fine])  # type: ignore[list-item]  # error: an instance, not the class
    Config(middleware=Fine())  # type: ignore[arg-type]  # error: a list


def scheduling() -> None:
    send_email.schedule("a", every(minutes=5))("user@example.com")  # type: ignore[call-arg]  # error: missing argument
    send_email.schedule("a", "0 8 * * *")("user@example.com", "Hello")  # type: ignore[arg-type]  # error: not a timing
    cron("0 8 * * *", missed="some")  # type: ignore[arg-type]  # error: no such word


class Raw(BaseModel):
    rows: list[str]


@task
def extract(url: str) -> Raw:
    return Raw(rows=[url])


@task
def merge(parts: list[str]) -> int:
    return len(parts)


def flows() -> None:
    with flow("import 42") as f:
        raw = extract.submit("u")
        process_image.submit(raw.output)  # type: ignore[arg-type]  # error: a Raw, where a str is wanted
        process_image.submit(raw)  # type: ignore[arg-type]  # error: a handle is not its result
        merge.submit([raw.output])  # type: ignore[list-item]  # error: a Raw among the texts
        merge.submit(raw.output.rows.index)  # type: ignore[arg-type]  # error: a method
        process_image.options(after=raw)  # type: ignore[arg-type]  # error: not a list
        process_image.options(after=[1])  # type: ignore[list-item]  # error: not a task
        process_image.options(on="failure")  # type: ignore[arg-type]  # error: no such time
    f.wait("soon")  # type: ignore[arg-type]  # error: not a number
    f.output()  # type: ignore[attr-defined]  # error: a flow has none
