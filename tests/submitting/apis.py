"""One queue, every API to it, and what each of them makes of the same submit."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import httpx
from hypothesis import HealthCheck, settings
from pydantic.alias_generators import to_camel, to_snake

import tasklib
from tasklib import Config, InvalidInput, RemoteQueue, TaskConflict, TaskQueue, Unique
from tasklib.api.decorator import TaskFunction, task
from tasklib.api.fluent import FluentQueue
from tasklib.api.manager import AsyncTaskManager
from tasklib.cli.main import run
from tasklib.core.registry import Registry
from tasklib.core.task import Task
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app

T = TypeVar("T")

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
    whole = (field or "").removeprefix("options.")
    path = whole.split(".")[0].split("[")[0]
    if path == "unique":  # its parts have names of ours
        return Verdict(code, to_snake(whole))
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
        name, rest = _named(options)
        return await self.manager.submit({"value": value}, name=name, **rest)

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
        rest = {"max_attempts": 4, **options}
        name = rest.pop("name", KEEP)
        said = {_camel(key): _json(each) for key, each in rest.items()}
        body = json.dumps({"type": name, "payload": {"value": value}, "options": said})
        answer = await self.client.post("/api/tasks", content=body, headers={"Content-Type": "application/json"})
        problem = answer.json()
        if answer.status_code in (400, 409):
            field = problem.get("field")
            assert field is None or field.split(".")[0] not in said, "it is among the options"
            raise _Told(problem["code"], field)
        assert answer.status_code in (200, 201), answer.text
        return UUID(problem["id"])

    async def by_cli(self, value: Any, options: dict[str, Any]) -> UUID:
        rest = {"max_attempts": 4, **options}
        name = rest.pop("name", KEEP)
        line = ["submit", "--json", "--database-url", self.url, f"--payload={json.dumps({'value': value})}"]
        for key, each in _of_retries(rest).items():
            line += flags(key, each)
        out, err = io.StringIO(), io.StringIO()

        def submit() -> int:
            with redirect_stdout(out), redirect_stderr(err):
                return run([*line, "--", name])

        code = await asyncio.to_thread(submit)
        if code == 0:
            return UUID(json.loads(out.getvalue())["id"])
        told = json.loads(err.getvalue())["error"]
        assert code == (1 if told["code"] == TaskConflict.code else 2), told
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
        except TaskConflict as error:
            return Verdict(error.code)
        except _Told as told:
            return Verdict(told.code) if told.code == TaskConflict.code else refusal(told.code, told.field)

    async def taken(self, task_id: UUID) -> Task:
        """The task as it was stored. It is gone then: its keys are free, and the next has the same start."""
        task = await self.engine.get_or_raise(task_id)
        with suppress(TaskConflict):
            await self.engine.cancel(task_id)
        with suppress(TaskConflict):  # others wait for it
            await self.engine.delete(task_id)
        return task

    async def stored(self) -> int:
        return sum(each.pending for each in (await self.engine.stats()).values())

    async def agree(self, apis: list[Submit], value: Any, options: dict[str, Any]) -> str | None:
        """The code that all refuse it with; None if all take it."""
        verdicts: dict[str, Verdict] = {}
        stored: list[Task] = []
        for api in apis:
            before = await self.stored()
            found = verdicts[api.__name__] = await self.verdict(api, value, options)
            if found.id is not None:
                stored.append(await self.taken(found.id))
            assert await self.stored() == before, api
        assert len({(each.code, each.field) for each in verdicts.values()}) == 1, verdicts
        assert len({_said(each, options) for each in stored}) <= 1, stored
        return verdicts[apis[0].__name__].code


class _Told(Exception):
    def __init__(self, code: str, field: str | None) -> None:
        self.code, self.field = code, field


_FLAGS = {"idempotency_key": "key", "timeout_seconds": "timeout"}


def _retries(options: dict[str, Any]) -> dict[str, Any]:
    """For Python, where attempts are said in the words of those who count retries; 4 attempts unless said otherwise."""
    return _of_retries({"max_attempts": 4, **_python(options)})


def _of_retries(options: dict[str, Any]) -> dict[str, Any]:
    attempts = options["max_attempts"]
    rest = {name: value for name, value in options.items() if name != "max_attempts"}
    return {**rest, "max_retries": attempts - 1 if type(attempts) is int else attempts}


def _named(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    rest = {"max_attempts": 4, **_python(options)}
    return rest.pop("name", KEEP), rest


class Rule(dict[str, Any]):
    """The parts of a Unique."""


def _python(options: dict[str, Any]) -> dict[str, Any]:
    return {name: Unique(**value) if isinstance(value, Rule) else value for name, value in options.items()}


def _json(value: Any) -> Any:
    if isinstance(value, Rule):
        return {to_camel(name): part for name, part in value.items()}
    if isinstance(value, list):
        return [str(getattr(each, "id", each)) if not isinstance(each, (int, list)) else each for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def flags(option: str, value: Any) -> list[str]:
    """What says it on the command line."""
    if option == "tags":
        return [f"--tag={tag}:={json.dumps(said)}" for tag, said in value.items()]
    if option == "after":
        return [f"--after={each}" for each in _json(value)]
    if option == "unique":
        length = "throttle" if value.get("until") == "elapsed" else "debounce"
        names = {"key": "unique", "seconds": length, "at_most": "at-most"}
        rest = {names.get(name, name): part for name, part in value.items() if part is not None}
        if rest.pop("conflict", "join") == "replace":
            return [*(f"--{name}={part}" for name, part in rest.items()), "--replace"]
        return [f"--{name}={part}" for name, part in rest.items()]
    said = value.isoformat() if isinstance(value, datetime) else value
    return [f"--{_FLAGS.get(option, option.replace('_', '-'))}={said}"]


def _after(options: dict[str, Any]) -> dict[str, Any]:
    return {"run_after" if key == "run_at" else key: value for key, value in options.items()}


def _camel(key: str) -> str:
    first, *rest = ("run_after" if key == "run_at" else key).split("_")
    return first + "".join(word.title() for word in rest)


def _said(task: Task, options: dict[str, Any]) -> str:
    """All that a submit says, for comparison."""
    due: Any = task.scheduled_at if task.scheduled_at != task.created_at else None
    if "run_at" not in options and due is not None:  # due so long after the submit, or at the end of all days
        due = due.year > 9000 or round((due - task.created_at).total_seconds(), 3)
    links = (task.after, task.waits, task.unique_key, task.unique_until)
    told = (task.name, task.kwargs, task.max_retries, task.timeout_seconds, task.priority, task.tags, due, *links)
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

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


quick = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
