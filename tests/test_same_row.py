"""The same call is the same row, whichever API it came through: with the code at hand, and without it, where a worker
has published what the type takes."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from pydantic_core import core_schema

from tasklib import (
    AsyncTaskManager,
    Config,
    RemoteQueue,
    RetryPolicy,
    TaskManager,
    TaskQueue,
    TaskValidationError,
    TaskWorker,
    submit_many_sync,
    submit_task,
    submit_task_sync,
    task,
)
from tasklib.api.fluent import TypeContext
from tasklib.api.remote import RemoteTask
from tasklib.api.sync import run_in_new_thread, run_sync
from tasklib.cli.main import run
from tasklib.core import schemas
from tasklib.core.published import PublishedType, publish
from tasklib.core.registry import Registry, TaskOptions, default_registry
from tasklib.engine import engine as engine_module
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.server import ServerSettings, create_app
from tasklib.stores.values import Filter
from tests.waiting import eventually

NAME = "same.row ✓"
TOKEN = "a token that is long enough for a test"
TIMES = ("id", "scheduled_at", "created_at", "updated_at", "trace")


class Item(BaseModel):
    sku: str
    count: int = 1


registry = Registry()


@task(
    name=NAME,
    max_retries=7,
    timeout_seconds=40,
    priority=3,
    tags={"team": "a", "level": 1},
    retry=RetryPolicy(base=9.0),
    registry=registry,
)
def charge(
    order: int,
    items: list[Item],
    note: str = "none ✓",
    first: Item | None = None,
    due: datetime | None = None,
    patience: timedelta = timedelta(seconds=0.5),
    by_name: dict[str, Item] = {},  # noqa: B006
) -> int:
    return order


ARGUMENTS: dict[str, Any] = {
    "order": 17,
    "items": [{"sku": "a"}, {"sku": "b", "count": 2}],
    "first": {"sku": "c"},
    "by_name": {"d": {"sku": "d"}},
}
STORED = {
    "order": 17,
    "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}],
    "note": "none ✓",
    "first": {"sku": "c", "count": 1},
    "due": None,
    "patience": "PT0.5S",
    "by_name": {"d": {"sku": "d", "count": 1}},
}
SAID: dict[str, dict[str, Any]] = {
    "nothing": {},
    "all": {"retries": 4, "timeout_seconds": 12, "priority": -2, "tags": {"level": 2, "x": "y"}},
}


class Queue:
    """A queue, and every way to submit one call to it."""

    def __init__(self, url: str) -> None:
        self.engine = Engine(Config(database_url=url))

    def publish(self) -> None:
        """As a worker does that has the code."""
        run_sync(self.engine.publish(registry))

    def row(self, way: Callable[["Queue", dict[str, Any]], object], said: dict[str, Any]) -> dict[str, Any]:
        """What a submit stored: all that is not different each time."""
        before = {task.id for task in self._tasks()}
        way(self, said)
        [made] = [task for task in self._tasks() if task.id not in before]
        return {name: value for name, value in asdict(made).items() if name not in TIMES}

    def _tasks(self) -> list[Any]:
        return run_sync(self.engine.page(Filter(), limit=100)).tasks


@pytest.fixture
def queue(backend_url: str) -> Iterator[Queue]:
    found = Queue(backend_url)
    before = use_engine(found.engine)
    try:
        yield found
    finally:
        use_engine(before)
        run_sync(found.engine.shutdown())


@pytest.fixture
def code_here() -> Iterator[None]:
    default_registry.add(charge.task_type)
    yield
    default_registry.remove(NAME)


def _library(said: dict[str, Any]) -> dict[str, Any]:
    return {"max_retries" if name == "retries" else name: value for name, value in said.items()}


def _attempts(said: dict[str, Any]) -> dict[str, Any]:
    given = dict(said)
    return {"max_attempts": given.pop("retries") + 1, **given} if "retries" in given else given


def _submitter(said: dict[str, Any]) -> Any:
    return charge.options(**_library(said)) if said else charge


def _fluent(queue: Queue) -> TypeContext[Any]:
    return TypeContext(TaskQueue(engine=queue.engine, enable_worker=False), NAME)


def _transport(queue: Queue) -> httpx.ASGITransport:
    return httpx.ASGITransport(app=create_app(queue.engine, settings=ServerSettings(token=TOKEN)))


def _by_rest(queue: Queue, said: dict[str, Any]) -> None:
    names = {"max_attempts": "maxAttempts", "timeout_seconds": "timeoutSeconds"}
    options = {names.get(name, name): value for name, value in _attempts(said).items()}
    answer = post(queue, {"type": NAME, "payload": ARGUMENTS, "options": options})
    assert (answer.status_code, answer.json()["validated"]) == (201, True), answer.text


def post(queue: Queue, body: Any) -> httpx.Response:
    async def post() -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        base = {"transport": _transport(queue), "base_url": "http://localhost", "headers": headers}
        async with httpx.AsyncClient(**base) as client:  # type: ignore[arg-type]
            return await client.post("/api/tasks", json=body)

    return run_in_new_thread(post())


def remote_submit(queue: Queue, name: str, payload: Any, said: dict[str, Any]) -> RemoteTask:
    async def submit() -> RemoteTask:
        remote = RemoteQueue("http://localhost", token=TOKEN, transport=_transport(queue))
        try:
            return await remote.submit_async(name, payload, **_attempts(said))
        finally:
            await remote.close_async()

    return run_in_new_thread(submit())


def _by_remote(queue: Queue, said: dict[str, Any]) -> None:
    made = remote_submit(queue, NAME, ARGUMENTS, said)
    assert (made.created, made.validated) == (True, True)


def command(queue: Queue, *words: str) -> int:
    """In a thread of its own, as it brings its own event loop."""
    with ThreadPoolExecutor(1) as apart:
        code = apart.submit(run, ["--database-url", queue.engine.config.database_url, *words]).result()
    use_engine(queue.engine)  # one with a module leaves its own
    return code


def _by_command(queue: Queue, said: dict[str, Any], *more: str) -> None:
    names = {"retries": "--max-retries", "timeout_seconds": "--timeout", "priority": "--priority"}
    options = [f"{names[name]}={value}" for name, value in said.items() if name in names]
    tags = [f"--tag={name}:={json.dumps(value)}" for name, value in said.get("tags", {}).items()]
    assert command(queue, "submit", NAME, f"--payload={json.dumps(ARGUMENTS)}", *options, *tags, *more) == 0


Way = Callable[[Queue, dict[str, Any]], object]

WITH_CODE: dict[str, Way] = {
    "submit": lambda queue, said: _submitter(said).submit(**ARGUMENTS),
    "submit by place": lambda queue, said: _submitter(said).submit(
        17, ARGUMENTS["items"], first=ARGUMENTS["first"], by_name=ARGUMENTS["by_name"]
    ),
    "submit_async": lambda queue, said: run_in_new_thread(_submitter(said).submit_async(**ARGUMENTS)),
    "submit_many": lambda queue, said: _submitter(said).submit_many([ARGUMENTS]),
    "submit_task": lambda queue, said: run_in_new_thread(submit_task(charge, **_library(said), **ARGUMENTS)),
    "submit_task_sync": lambda queue, said: submit_task_sync(charge, **_library(said), **ARGUMENTS),
    "submit_many_sync": lambda queue, said: submit_many_sync(charge, [ARGUMENTS], **_library(said)),
    "command with its module": lambda queue, said: _by_command(queue, said, f"--module={__name__}"),
}
BY_NAME: dict[str, Way] = {
    "tq": lambda queue, said: _fluent(queue).add(ARGUMENTS, _attempts(said)),
    "tq, async": lambda queue, said: run_in_new_thread(_fluent(queue).add_async(ARGUMENTS, _attempts(said))),
    "manager": lambda queue, said: TaskManager(queue.engine).submit(ARGUMENTS, name=NAME, **_attempts(said)),
    "manager, async": lambda queue, said: run_in_new_thread(
        AsyncTaskManager(queue.engine).submit(ARGUMENTS, name=NAME, **_attempts(said))
    ),
    "REST": _by_rest,
    "RemoteQueue": _by_remote,
    "command": _by_command,
}


@pytest.mark.parametrize("said", SAID)
def test_with_the_code_every_api_stores_the_same_row(queue: Queue, code_here: None, said: str):
    rows = {way: queue.row(submit, SAID[said]) for way, submit in {**WITH_CODE, **BY_NAME}.items() if way != "command"}
    _same(rows, said)


@pytest.mark.parametrize("said", SAID)
def test_without_the_code_it_is_the_row_that_a_worker_has_published(queue: Queue, said: str):
    rows = {"submit": queue.row(WITH_CODE["submit"], SAID[said])}
    queue.publish()
    rows |= {way: queue.row(submit, SAID[said]) for way, submit in BY_NAME.items()}
    _same(rows, said)


def _same(rows: dict[str, dict[str, Any]], said: str) -> None:
    own = rows["submit"]
    assert {way: row for way, row in rows.items() if row != own} == {}
    assert own["kwargs"] == STORED
    options = (own["max_retries"], own["timeout_seconds"], own["priority"], own["tags"])
    assert (
        options
        == {
            "nothing": (7, 40, 3, {"team": "a", "level": 1}),
            "all": (4, 12, -2, {"team": "a", "level": 2, "x": "y"}),
        }[said]
    )
    assert own["retry_policy"]["base"] == 9.0


def test_a_worker_publishes_when_it_starts_and_what_it_learns_later(queue: Queue):
    worker = TaskWorker(engine=queue.engine, registry=registry, burst=True, handle_signals=False)
    run_in_new_thread(worker.run())
    assert _published(queue) == {NAME}
    background = TaskQueue(engine=queue.engine)
    try:
        background.register_handler("first", lambda payload: None)
        eventually(lambda: _published(queue) == {NAME, "first"})
        background.register_handler("second", lambda payload: None, Item)
        background.set_timeout("first", 5)
        eventually(lambda: _published(queue) == {NAME, "first", "second"})
        eventually(lambda: _options(queue, "first") == {"timeout_seconds": 5, "max_retries": 2})
    finally:
        background.stop()


def _published(queue: Queue) -> set[str]:
    return set(_types(queue))


def _types(queue: Queue) -> dict[str, PublishedType]:
    async def look() -> list[PublishedType]:
        return await (await queue.engine.store()).published()

    return {each.name: each for each in run_sync(look())}


def _options(queue: Queue, name: str) -> dict[str, Any]:
    found = json.loads(_types(queue)[name].options)
    return {name: found[name] for name in ("timeout_seconds", "max_retries")}


BAD: dict[str, tuple[Any, str]] = {
    "missing": ({"items": []}, "order"),
    "of another type": ({"order": "many", "items": []}, "order"),
    "too much": ({"order": 1, "items": [], "colour": "red"}, "colour"),
    "further in": ({"order": 1, "items": [{"sku": 7}]}, "items.0.sku"),
    "no date": ({"order": 1, "items": [], "due": "tomorrow"}, "due"),
    "no object": ([1], NAME),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("knows", ["code", "schema"])
def test_bad_arguments_are_refused_alike(sqlite_url: str, request: pytest.FixtureRequest, case: str, knows: str):
    """Whoever knows the type: the field is named, 400 over HTTP, nothing is stored."""
    queue = Queue(sqlite_url)
    if knows == "code":
        request.getfixturevalue("code_here")
    else:
        queue.publish()
    payload, field = BAD[case]
    answer = post(queue, {"type": NAME, "payload": payload})
    said = answer.json()
    assert (answer.status_code, said["code"]) == (400, "invalid_arguments"), answer.text
    with pytest.raises(TaskValidationError) as refused:
        TaskQueue(engine=queue.engine, enable_worker=False).enqueue(NAME, payload)
    fields = {refused.value.field, said["field"]}
    assert case == "no object" or all(field in str(each) for each in fields), fields
    assert "tomorrow" not in str(refused.value), "what was given is nobody's business"
    module = [f"--module={__name__}"] if knows == "code" else []
    assert command(queue, "submit", NAME, f"--payload={json.dumps(payload)}", *module) == 2
    assert run_sync(queue.engine.page(Filter(), limit=10)).tasks == []
    run_sync(queue.engine.shutdown())


def test_what_nobody_has_published_is_not_validated_and_says_so(queue: Queue, capsys: pytest.CaptureFixture[str]):
    answer = post(queue, {"type": "stranger", "payload": [1], "options": {"idempotencyKey": "once"}})
    assert (answer.status_code, answer.json()["validated"]) == (201, False)
    again = post(queue, {"type": "stranger", "payload": [1], "options": {"idempotencyKey": "once"}})
    assert (again.status_code, again.json()["validated"]) == (200, False)
    made = remote_submit(queue, "stranger", [1], {})
    assert (made.created, made.validated) == (True, False)
    assert pickle.loads(pickle.dumps(made)).validated is False
    capsys.readouterr()
    assert command(queue, "--json", "submit", "stranger") == 0
    assert json.loads(capsys.readouterr().out)["validated"] is False
    [first, *_] = run_sync(queue.engine.page(Filter(names=["stranger"]), limit=10, oldest_first=True)).tasks
    assert (first.max_attempts, first.timeout_seconds, first.priority, first.tags) == (3, None, 0, {})


def test_what_is_published_counts_within_seconds(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    """What a process knows of published types is kept for a short time: a submit costs no look."""
    queue, elsewhere = Queue(sqlite_url), Queue(sqlite_url)
    looks = 0

    def submit() -> bool:
        return run_sync(queue.engine.submit(Call(NAME, ARGUMENTS))).validated

    assert not submit()
    store = run_sync(queue.engine.store())
    published = store.published

    async def counted() -> list[PublishedType]:
        nonlocal looks
        looks += 1
        return await published()

    monkeypatch.setattr(store, "published", counted)
    elsewhere.publish()
    assert [submit() for _ in range(5)] == [False] * 5
    assert looks == 0
    monkeypatch.setattr(engine_module, "TYPES_KEPT_SECONDS", 0.0)
    assert submit()
    assert looks == 1
    for each in (queue, elsewhere):
        run_sync(each.engine.shutdown())


def test_without_the_package_options_count_and_arguments_are_not_checked(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schemas.argument_schema.cache_clear()
    queue = Queue(memory_url)
    queue.publish()
    submitted = run_sync(queue.engine.submit(Call(NAME, {"order": "many"})))
    assert not submitted.validated
    found = run_sync(queue.engine.get_or_raise(submitted.id))
    assert (found.kwargs, found.max_retries, found.tags) == ({"order": "many"}, 7, {"team": "a", "level": 1})
    schemas.argument_schema.cache_clear()
    run_sync(queue.engine.shutdown())


def test_a_type_that_no_schema_describes_is_published_with_its_options(memory_url: str):
    class Odd:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return core_schema.is_instance_schema(cls)

    def odd(value: Odd) -> None: ...

    kinds = Registry()
    task(name="odd", max_retries=1, registry=kinds)(odd)
    [published] = publish(kinds)
    assert published.schema is None
    assert published.task_options().max_retries == 1


@pytest.mark.parametrize("options", ["[]", "{", '{"max_retries": "x"}', '{"later": 1}', '{"tags": 3}'])
def test_options_that_somebody_broke_do_not_stop_a_submit(options: str):
    assert PublishedType("a", options, None).task_options() == TaskOptions()


@pytest.mark.parametrize("schema", ["5", '{"type": "nope"}', '{"$ref": "http://127.0.0.1:9/x"}', "{"])
def test_a_schema_that_is_none_checks_nothing(schema: str):
    assert schemas.argument_schema(schema) is None


def test_a_schema_fetches_nothing():
    """Whoever can write into the table must not make a process ask elsewhere."""
    asked = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        reference = f"http://127.0.0.1:{server.server_port}/schema.json"
        schema = json.dumps({"$ref": reference})
        program = f"from tasklib.core import schemas; assert schemas.argument_schema({schema!r}) is None"
        ended = subprocess.run([sys.executable, "-c", program], timeout=60)
        server.shutdown()
        serving.join()
    assert ended.returncode == 0
    assert asked == []
