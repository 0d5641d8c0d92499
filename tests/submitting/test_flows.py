"""`flow(...)`: what is submitted in its block is stored at its end, all or nothing; what cannot work is refused."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import date
from typing import Annotated, Any
from uuid import uuid4

import apsw
import asyncpg
import psycopg
import pytest
from annotated_types import Gt
from pydantic import BaseModel

import tasklib
from tasklib import (
    Config,
    FlowNotFound,
    FlowNotSent,
    InvalidInput,
    InvalidOption,
    Middleware,
    Submission,
    TaskConflict,
    TaskHandle,
    TaskLibError,
    TaskManager,
    TaskQueue,
    TaskValidationError,
    Unique,
    WaitTimeout,
    debounce,
    every,
    flow,
    get_flow,
    schedules,
    submit_many_sync,
    submit_task_sync,
    task,
)
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tests.queues import as_default

OWN = Registry()


class Raw(BaseModel):
    rows: int


@task(registry=OWN)
def extract(url: str) -> Raw:
    return Raw(rows=len(url))


@task(registry=OWN)
def clean(raw: Raw, n: Annotated[int, Gt(0)] = 1, day: date | None = None) -> int:
    return raw.rows + n


@task(registry=OWN)
def merge(parts: list[int], **named: int) -> int:
    return sum(parts) + sum(named.values())


def stored() -> list[str]:
    return [each.name for each in reversed(tasklib.list_tasks())]


async def test_nothing_is_stored_before_the_end_and_nothing_if_the_block_raises(memory: Engine):
    f = flow("broken")
    handles: list[TaskHandle[Raw]] = []

    def break_off() -> None:
        with f:
            handles.append(extract.submit("u"))
            assert (handles[0].created, f.id, stored()) == (True, handles[0].id, [])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    [raw] = handles
    assert stored() == []
    for use in (raw.get, raw.result, raw.wait, raw.cancel, f.status, f.wait, f.tasks, f.cancel, f.retry):
        with pytest.raises(FlowNotSent, match="the block of its flow has raised ZeroDivisionError"):
            use()
    for link in (lambda: clean.submit(raw.output), lambda: clean.options(after=[raw]).submit(Raw(rows=1))):
        with pytest.raises(FlowNotSent, match="has raised ZeroDivisionError"):
            link()
    assert stored() == []
    async with flow("whole") as g:
        first = await extract.submit_async("u")
        both = await asyncio.gather(*(clean.submit_async(first.output, n) for n in (1, 2)))
        assert await merge.submit_many_async([{"parts": [each.output for each in both]}, {"parts": [1]}]) != []
        assert stored() == []
    assert stored() == ["extract", "clean", "clean", "merge", "merge"]
    assert (g.name, g.created, (await g.status_async()).total) == ("whole", True, 5)


def test_handles_are_of_no_use_inside_the_block_but_for_other_submits(memory: Engine):
    with flow():
        raw = extract.submit("u")
        for use in (raw.result, raw.wait, raw.get, raw.cancel):
            with pytest.raises(FlowNotSent, match=f"task {raw.id} is not sent before the end of its flow's block"):
                use()
        with pytest.raises(FlowNotSent, match="this flow is not sent before the end"):
            flow_status()
        clean.submit(raw.output)


def flow_status() -> object:
    return flow().status()


def test_what_is_known_of_the_arguments_is_checked_and_outputs_are_null(memory: Engine):
    raw = extract.submit("u")
    for wrong, field in (
        (lambda: clean.submit(raw.output, 0), "n"),
        (lambda: clean.submit(raw.output, day="never"), "day"),  # type: ignore[arg-type]
        (lambda: clean.submit(raw=raw.output, m=1), "m"),  # type: ignore[call-arg]
        (lambda: clean.submit(n=1, day=raw.output), "raw"),  # type: ignore[call-arg, arg-type]
        (lambda: merge.submit_many([{"parts": [raw.output]}, {"parts": ["x"]}]), "parts.0"),
    ):
        with pytest.raises(TaskValidationError) as refused:
            wrong()
        assert refused.value.field == field
    for misplaced in (lambda: merge.submit({raw.output}), lambda: merge.submit([], a={raw.output: 1})):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="an output cannot be"):
            misplaced()
    assert stored() == ["extract"]
    whole = clean.submit(raw.output, day=date(2026, 1, 2)).get()
    assert whole.kwargs == {"raw": None, "n": 1, "day": "2026-01-02"}
    assert whole.after == {"on": "success", "parents": [str(raw.id)], "inputs": {"/raw": str(raw.id)}}
    parts = [clean.submit(raw.output, n).output for n in (1, 2)]
    named: dict[str, Any] = {"a/b~c": parts[0]}
    task_id = submit_task_sync(merge, parts=[*parts, 3], after=[str(raw.id)], on="end", **named)
    found = tasklib.get_task(task_id)
    assert found is not None
    assert found.kwargs == {"parts": [None, None, 3], "a/b~c": None}
    assert set((found.after or {})["inputs"]) == {"/parts/0", "/parts/1", "/a~1b~0c"}
    assert ((found.after or {})["on"], len((found.after or {})["parents"]), found.waits) == ("end", 3, 3)


def test_an_output_cannot_be_looked_at(memory: Engine):
    output: Any = extract.submit("u").output
    for use in (str, bool, len, list, lambda each: each.rows, lambda each: each["rows"], lambda each: f"{each}"):
        with pytest.raises(TaskLibError, match="is not known yet: give it to another submit"):
            use(output)
    assert "output of task" in repr(output)


REFUSED: dict[str, tuple[Callable[[TaskHandle[Raw]], object], str | None, str]] = {
    "one handle": (lambda raw: clean.options(after=raw), "after", "after must be a list of handles or ids"),  # type: ignore[arg-type]
    "a text": (lambda raw: clean.options(after=str(raw.id)), "after", "after must be a list of handles or ids"),
    "no id": (lambda raw: clean.options(before=["x"]), "before", "before takes handles or ids of tasks, got 'x'"),
    "a number": (lambda raw: clean.options(after=[7]), "after", "after takes handles or ids of tasks, got 7"),  # type: ignore[list-item]
    "on": (lambda raw: clean.options(after=[raw], on="failure"), "on", "on must be 'success' or 'end'"),  # type: ignore[arg-type]
    "on alone": (lambda raw: clean.options(on="end").submit(Raw(rows=1)), "on", "give after="),
    "unknown": (lambda raw: clean.options(after=[uuid4()]).submit(Raw(rows=1)), "after", "there is no task"),
    "before nothing": (lambda raw: clean.options(before=[uuid4()]).submit(Raw(rows=1)), "before", "there is no task"),
    "replaces": (
        lambda raw: clean.options(after=[raw], unique=debounce("k", 5)).submit(Raw(rows=1)),
        "unique",
        "cannot replace a task",
    ),
    "schedule": (lambda raw: clean.schedule("s", every(minutes=1))(raw.output), "schedule", "wait for no others"),
    "schedule after": (
        lambda raw: clean.options(after=[raw]).schedule("s", every(minutes=1))(Raw(rows=1)),
        "after",
        "",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_links_are_refused_and_nothing_is_stored(memory: Engine, case: str):
    submit, field, text = REFUSED[case]
    raw = extract.submit("u")
    with pytest.raises(InvalidOption) as refused:
        submit(raw)
    assert (refused.value.field, text in str(refused.value)) == (field, True), refused.value
    assert stored() == ["extract"]


def test_before_what_is_released_is_a_conflict(memory: Engine):
    raw = extract.submit("u")
    with pytest.raises(TaskConflict, match=f"before: task {raw.id} was released already"):
        clean.options(before=[raw]).submit(Raw(rows=1))
    assert stored() == ["extract"]


async def test_a_parent_in_another_queue_is_refused(memory: Engine):
    async with as_default(Engine(Config(database_url="memory://another"))):
        elsewhere = await extract.submit_async("u")
    for submit in (
        lambda: clean.submit(elsewhere.output),
        lambda: clean.options(after=[elsewhere]).submit(Raw(rows=1)),
    ):
        with pytest.raises(InvalidOption, match=f"task {elsewhere.id} is in another queue"):
            submit()
    manager = TaskManager(Config(database_url="memory://another"))
    with pytest.raises(InvalidOption, match="goes to another queue than the flow"), flow():
        manager.submit({})
    assert stored() == []


def nothing() -> None: ...


def nested() -> None:
    extract.submit("u")
    with flow():
        extract.submit("v")


def each_for_the_next() -> None:
    first = extract.submit("u")
    second = clean.submit(first.output)
    merge.options(after=[second], before=[first]).submit([])


BLOCKS: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (nothing, "nothing was submitted in it"),
    "nested": (nested, "a flow cannot stand inside another flow's block"),
    "in a circle": (each_for_the_next, "tasks cannot wait for each other"),
    "connection": (lambda: extract.options(connection=object()).submit("u"), "connection: say it of the flow"),
    "schedule": (lambda: extract.schedule("s", every(minutes=1))("u"), "a schedule is not part of a flow"),
    "schedule's task": (lambda: schedules["nightly"].trigger(), "a schedule's task is not part of a flow"),
    "keys only": (lambda: extract.options(idempotency_key="k").submit("u"), "each task of it has a key of its own"),
}


@pytest.mark.parametrize("case", BLOCKS)
def test_blocks_that_cannot_be_sent_store_nothing(memory: Engine, case: str):
    block, text = BLOCKS[case]
    f = flow()
    with pytest.raises(TaskLibError, match=text), f:
        block()
    assert stored() == []
    with pytest.raises(TaskLibError, match="this flow was used before"):
        f.__enter__()
    with pytest.raises(FlowNotSent):
        f.status()


def test_a_wait_for_a_flow_says_what_is_still_to_end(memory: Engine):
    with flow() as f:
        last = clean.submit(extract.submit("u").output)
    with pytest.raises(WaitTimeout) as refused:
        f.wait(timeout=0)
    assert str(refused.value) == f"flow {f.id} was not finished within 0 s: clean {last.id} is pending"


def test_flows_are_named_and_found_as_tasks_are(memory: Engine):
    for wrong in (lambda: flow(""), lambda: flow("x" * 256), lambda: flow(idempotency_key="")):
        with pytest.raises(InvalidOption):
            wrong()
    with pytest.raises(FlowNotFound):
        get_flow(uuid4()).status()
    with pytest.raises(InvalidInput):
        get_flow("x")


def test_every_api_submits_into_the_flow_and_middleware_sees_each(memory: Engine):
    seen: list[str] = []

    class Stamp(Middleware):
        def before_submit(self, task: Submission) -> dict[str, Any]:
            seen.append(task.name)
            return {"stamp": True}

    memory.config = Config(database_url=memory.config.database_url, middleware=[Stamp()])
    queue = TaskQueue(engine=memory, enable_worker=False)
    with flow("all") as f:
        first = extract.submit("u")
        submit_many_sync(merge, [{"parts": [1]}, {"parts": [2]}], after=[first])
        queue.enqueue("by name", {"raw": first.output}, after=[first])
        TaskManager(memory).submit({"raw": first.output}, name="by hand")
        assert stored() == []
    assert stored() == ["extract", "merge", "merge", "by name", "by hand"]
    assert seen == stored()
    assert {each.flow_id for each in f.tasks()} == {f.id}
    assert all(each.tags == {"stamp": True} for each in f.tasks())
    assert [each.waits for each in f.tasks()] == [0, 1, 1, 1, 1]


def test_the_key_of_a_flow_stands_for_all_of_it(memory: Engine):
    def send() -> tuple[flow, TaskHandle[Raw], TaskHandle[int]]:
        with flow("import 42", idempotency_key="import 42") as f:
            raw = extract.submit("u")
            return f, raw, clean.submit(raw.output)

    first, again = send(), send()
    assert (first[0].created, again[0].created) == (True, False)
    assert [each.id for each in again] == [each.id for each in first]
    assert [handle.created for handle in again[1:]] == [False, False]
    assert stored() == ["extract", "clean"]
    with flow(idempotency_key="import 42") as f:
        handles = [extract.submit("u") for _ in range(3)]
    assert f.id == first[0].id
    with pytest.raises(FlowNotSent, match="idempotency_key is there, and has fewer tasks"):
        handles[2].result()


def test_tasks_of_a_flow_may_have_keys_of_their_own(memory: Engine):
    there = extract.options(idempotency_key="k").submit("u")
    with flow() as f:
        again = extract.options(idempotency_key="k").submit("u")
        joined = clean.options(unique=Unique("u")).submit(again.output)
        total = merge.submit([joined.output])
    assert (again.id, again.created, f.id) == (there.id, False, total.id)
    assert (joined.get().after or {})["inputs"] == {"/raw": str(there.id)}
    by_code: Any = task(registry=OWN, unique=lambda call: str(call.n), name="by_code")(clean.task_type.function)
    with pytest.raises(InvalidOption, match="from arguments that are not known yet"):
        by_code.submit(there.output)


@pytest.mark.parametrize("backend_url", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("commits", [True, False])
def test_a_flow_in_the_callers_transaction_is_stored_with_it_or_not_at_all(
    engine: Engine, backend_url: str, commits: bool
):
    there = extract.submit("there")
    with closing(connected(backend_url)) as connection:
        connection.execute("BEGIN")
        with flow("import", connection=connection) as f:
            parts = [clean.submit(there.output, n) for n in (1, 2)]
            merge.submit([part.output for part in parts])
        assert stored() == ["extract"], "nobody else sees it yet"
        connection.execute("COMMIT" if commits else "ROLLBACK")
    check_import(f, commits)


@pytest.mark.parametrize("backend_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("commits", [True, False])
async def test_the_same_in_async_code(engine: Engine, backend_url: str, commits: bool):
    there = await extract.submit_async("there")
    connection = await asyncpg.connect(backend_url.partition("?")[0])
    transaction = connection.transaction()
    await transaction.start()
    async with flow("import", connection=connection) as f:
        parts = [await clean.submit_async(there.output, n) for n in (1, 2)]
        await merge.submit_async([part.output for part in parts])
    assert stored() == ["extract"], "nobody else sees it yet"
    await (transaction.commit() if commits else transaction.rollback())
    await connection.close()
    check_import(f, commits)


def connected(url: str) -> Any:
    if url.startswith("sqlite"):
        return apsw.Connection(url.removeprefix("sqlite:///"))
    address, _, schema = url.rpartition("schema=")
    return psycopg.connect(address.rstrip("?&"), options=f"-c search_path={schema}")


def check_import(f: flow, committed: bool) -> None:
    if committed:
        assert stored() == ["extract", "clean", "clean", "merge"]
        assert (f.status().name, f.status().counts) == ("import", {"waiting": 3})
    else:
        assert stored() == ["extract"]
        with pytest.raises(FlowNotFound):
            f.status()
