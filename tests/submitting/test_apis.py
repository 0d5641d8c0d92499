"""What one API refuses every API refuses, under the same code and for the same field; what one takes,
all take, and it is the same task."""

import asyncio
import io
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tasklib
from tasklib import Config, InvalidInput, RemoteQueue, TaskQueue
from tasklib.api.decorator import TaskFunction, task
from tasklib.api.fluent import FluentQueue
from tasklib.api.manager import AsyncTaskManager
from tasklib.cli.main import run
from tasklib.core.registry import Registry
from tasklib.core.task import Task
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app

TOKEN = "an-admin-token-of-the-tests"
KEEP = "keep one text"
"""No other test has a type of this name: it would be that one's arguments that count."""
ROOTS = ("payload", "kwargs", "value", "body")
"""What the APIs call the whole of a payload."""
FIELDS = {"type": "name", "--tag": "tags", "max_retries": "max_attempts", "run_after": "run_at", "runAfter": "run_at"}
CAMEL = {"maxAttempts": "max_attempts", "timeoutSeconds": "timeout_seconds", "idempotencyKey": "idempotency_key"}


class Verdict(NamedTuple):
    """Accepted, with the task's id; or the code of the refusal and the field."""

    code: str | None
    field: str | None = None
    id: UUID | None = None


def refusal(code: str, field: str | None) -> Verdict:
    path = (field or "").removeprefix("options.").split(".")[0].split("[")[0]
    return Verdict(code, "payload" if path in ROOTS else CAMEL.get(path, FIELDS.get(path, path)))


Submit = Callable[[Any, dict[str, Any]], Awaitable[UUID]]


class House:
    """One queue in memory, and every API to it."""

    def __init__(self) -> None:
        self.url = f"memory://{uuid4().hex}"
        self.engine = Engine(Config(database_url=self.url))
        registry = Registry()

        @task(registry=registry, name=KEEP)
        def keep(value: Any) -> None: ...

        self.keep: TaskFunction[..., Any, Any] = keep
        app = create_app(self.engine, registry=Registry(), settings=ServerSettings(token=TOKEN))
        transport = httpx.ASGITransport(app)
        self.client = httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        self.remote = RemoteQueue("http://localhost", token=TOKEN, transport=transport)
        self.manager = AsyncTaskManager(self.engine)
        self.queue = TaskQueue(engine=self.engine, enable_worker=False)
        self.fluent = FluentQueue()
        self.fluent.init(engine=self.engine, enable_worker=False)

    # -- arguments of a function, whose name is not the caller's to choose --------------------------------------------

    async def submit_task(self, value: Any, options: dict[str, Any]) -> UUID:
        return await tasklib.submit_task(self.keep, value=value, **_retries(options))

    async def submit_sync(self, value: Any, options: dict[str, Any]) -> UUID:
        return self.keep.options(**_retries(options)).submit(value=value).id

    async def submit_async(self, value: Any, options: dict[str, Any]) -> UUID:
        return (await self.keep.options(**_retries(options)).submit_async(value)).id

    async def submit_many(self, value: Any, options: dict[str, Any]) -> UUID:
        return (await tasklib.submit_many(self.keep, [{"value": value}], **_retries(options)))[0]

    # -- by name ------------------------------------------------------------------------------------------------------

    async def by_manager(self, value: Any, options: dict[str, Any]) -> UUID:
        return await self.manager.submit({"value": value}, **{"name": KEEP, "max_attempts": 4, **options})

    async def by_queue(self, value: Any, options: dict[str, Any]) -> UUID:
        name, rest = _named(options)
        return await self.queue.enqueue_async(name, {"value": value}, _after(rest))

    async def by_tq(self, value: Any, options: dict[str, Any]) -> UUID:
        name, rest = _named(options)
        return self.fluent(name).add({"value": value}, _after(rest)).ids[-1]

    async def by_remote(self, value: Any, options: dict[str, Any]) -> UUID:
        name, rest = _named(options)
        return await self.remote.submit_async(name, {"value": value}, **rest)

    async def by_rest(self, value: Any, options: dict[str, Any]) -> UUID:
        name, rest = _named(options)
        said = {_camel(key): each.isoformat() if isinstance(each, datetime) else each for key, each in rest.items()}
        body = json.dumps({"type": name, "payload": {"value": value}, "options": said})
        answer = await self.client.post("/api/tasks", content=body, headers={"Content-Type": "application/json"})
        problem = answer.json()
        if answer.status_code == 400:
            raise _Told(problem["code"], problem.get("field"))
        assert answer.status_code in (200, 201), answer.text
        return UUID(problem["id"])

    async def by_cli(self, value: Any, options: dict[str, Any]) -> UUID:
        name, rest = _named(options)
        line = ["submit", "--json", "--database-url", self.url, f"--payload={json.dumps({'value': value})}"]
        for key, each in _retries(rest).items():
            if key == "tags":
                line += [f"--tag={tag}:={json.dumps(said)}" for tag, said in each.items()]
            else:
                said = each.isoformat() if isinstance(each, datetime) else each
                line.append(f"--{_FLAGS.get(key, key.replace('_', '-'))}={said}")
        out, err = io.StringIO(), io.StringIO()

        def submit() -> int:
            with redirect_stdout(out), redirect_stderr(err):
                return run([*line, "--", name])

        code = await asyncio.to_thread(submit)
        if code == 0:
            return UUID(json.loads(out.getvalue())["id"])
        told = json.loads(err.getvalue())["error"]
        assert code == 2, told
        raise _Told(told["code"], told["message"].replace(":", " ").split(" ")[0])

    def library(self) -> list[Submit]:
        return [self.submit_task, self.submit_sync, self.submit_async, self.submit_many]

    def by_name(self) -> list[Submit]:
        return [self.by_manager, self.by_queue, self.by_tq, self.by_remote]

    def written(self) -> list[Submit]:
        """Where a value has to be written down."""
        return [self.by_rest, self.by_cli]

    def apis(self) -> list[Submit]:
        return [*self.library(), *self.by_name(), *self.written()]

    async def close(self) -> None:
        await self.client.aclose()
        await self.remote.close_async()
        await self.fluent.stop_async()
        await self.engine.close()

    async def verdict(self, api: Submit, value: Any, options: dict[str, Any]) -> Verdict:
        try:
            return Verdict(None, None, await api(value, options))
        except InvalidInput as error:
            return refusal(error.code, error.field)
        except _Told as told:
            return refusal(told.code, told.field)

    async def task(self, task_id: UUID) -> Task:
        return await self.engine.get_or_raise(task_id)

    async def stored(self) -> int:
        return sum(each.pending for each in (await self.engine.stats()).values())

    async def agree(self, apis: list[Submit], value: Any, options: dict[str, Any]) -> str | None:
        """The code that all refuse it with; None if all take it."""
        before = await self.stored()
        verdicts = {api.__name__: await self.verdict(api, value, options) for api in apis}
        assert len({(each.code, each.field) for each in verdicts.values()}) == 1, verdicts
        first = verdicts[apis[0].__name__]
        if first.code is not None:
            assert await self.stored() == before
            return first.code
        stored = [await self.task(each.id) for each in verdicts.values() if each.id is not None]
        assert len({_said(each) for each in stored}) == 1, stored
        return None


class _Told(Exception):
    def __init__(self, code: str, field: str | None) -> None:
        self.code, self.field = code, field


_FLAGS = {"idempotency_key": "key", "timeout_seconds": "timeout"}


def _retries(options: dict[str, Any]) -> dict[str, Any]:
    """Attempts, in the words of those who count retries; 4 attempts unless said otherwise."""
    found = {**options}
    attempts = found.pop("max_attempts", 4)
    return {**found, "max_retries": attempts - 1 if type(attempts) is int else attempts}


def _named(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    rest = {"max_attempts": 4, **options}
    return rest.pop("name", KEEP), rest


def _after(options: dict[str, Any]) -> dict[str, Any]:
    return {"run_after" if key == "run_at" else key: value for key, value in options.items()}


def _camel(key: str) -> str:
    first, *rest = ("run_after" if key == "run_at" else key).split("_")
    return first + "".join(word.title() for word in rest)


def _said(task: Task) -> str:
    """All that a submit says, for comparison."""
    due = task.scheduled_at if task.scheduled_at != task.created_at else None
    told = (task.name, task.kwargs, task.max_retries, task.timeout_seconds, task.priority, task.tags, due)
    return json.dumps(told, sort_keys=True, default=str)


class Court:
    """A house, and the loop it lives in, for all examples of a test."""

    def __init__(self, house: House, runner: asyncio.Runner) -> None:
        self.house = house
        self._runner = runner

    def agrees(self, apis: list[Submit], value: Any, options: dict[str, Any]) -> str | None:
        return self._runner.run(self.house.agree(apis, value, options))

    def verdict(self, api: Submit, value: Any, options: dict[str, Any]) -> Verdict:
        return self._runner.run(self.house.verdict(api, value, options))


@pytest.fixture
def court() -> Iterator[Court]:
    with asyncio.Runner() as runner:
        house = House()
        before = use_engine(house.engine)
        yield Court(house, runner)
        use_engine(before)
        runner.run(house.close())


# -- what is generated --------------------------------------------------------------------------------------------

quick = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", "a\0b", "\ud800", "\udfff\ud83d", "\u202e", "$json", "__class__", "x" * 255, "x" * 256]),
    # One at a time: two halves of a character are that character once they are JSON, and so another value.
    st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl"]), max_size=1),
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 2**63, 10**4299]),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.one_of(
    st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
        max_leaves=8,
    ),
    st.sampled_from([62, 63, 64, 65, 500]).map(nested),
)
unwritable = st.recursive(
    st.sampled_from([object(), {1: 2}, {None: 1}, {"a": {2: 3}}, math.nan]),
    lambda inner: st.one_of(st.lists(inner, min_size=1, max_size=2), st.fixed_dictionaries({"k": inner})),
    max_leaves=3,
)
"""What only Python can say."""
zones = st.one_of(
    st.none(), st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12, minutes=30))])
)
whole = st.one_of(st.integers(-3, 3), st.integers(2**31 - 3, 2**31 + 3), st.just(-(2**31)), st.just(10**400))
wrong = st.one_of(st.booleans(), st.sampled_from([1.5, math.nan, "3", "", "x", [], {}]))
"""No whole numbers. A number like 3.0 is one where it comes as JSON."""
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "max_attempts": whole,
    "timeout_seconds": whole.filter(lambda number: number >= 0),  # the command line has no negative durations
    "priority": whole,
    "idempotency_key": texts,
    "name": texts,
    "tags": st.fixed_dictionaries(
        {"k": values.filter(lambda value: "nan" not in str(value) and "inf" not in str(value))}
    ),
    "run_at": st.datetimes(timezones=zones).map(lambda moment: moment.replace(microsecond=0)),
}


@given(value=values)
@quick
def test_any_value(court: Court, value: Any):
    court.agrees(court.house.apis(), value, {})


@given(value=unwritable)
@quick
def test_what_is_no_json(court: Court, value: Any):
    apis = [*court.house.library(), *court.house.by_name()]
    assert court.agrees(apis, value, {}) == "invalid_value"


@pytest.mark.parametrize("option", OPTIONS)
def test_any_option(court: Court, option: str):
    @given(value=OPTIONS[option])
    @settings(quick, max_examples=20)
    def check(value: Any) -> None:
        house = court.house
        apis = [*house.by_name(), *house.written()] if option == "name" else house.apis()
        if isinstance(value, datetime) and value.tzinfo is None:  # where it is written, that is wrong usage
            apis = [api for api in apis if api not in house.written()]
        court.agrees(apis, "fine", {option: value})

    check()


@pytest.mark.parametrize("option", ["max_attempts", "timeout_seconds", "priority"])
def test_what_is_no_whole_number(court: Court, option: str):
    @given(value=wrong)
    @settings(quick, max_examples=10)
    def check(value: Any) -> None:
        house = court.house
        assert court.agrees([*house.library(), *house.by_name()], "fine", {option: value}) == "invalid_option"
        is_json = not isinstance(value, float) or not math.isnan(value)
        told = court.verdict(house.by_rest, "fine", {option: value})
        assert told == (Verdict("invalid_option", option) if is_json else Verdict("invalid_value", "payload"))

    check()
