"""Insert. Tasks without keys go by typed parameters, the quickest way; tasks with keys by one JSON document, in steps
that know nothing of the driver, so that callers' own connections take the same road (callers.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tasklib.core.errors import StoreRefused, TaskConflict
from tasklib.core.rows import Rows
from tasklib.core.task import NewTask
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.values import Inserted

ANYTHING = ""
"""The wake-up that names no task type. Others carry `=` and the name, a change of controls is `!`."""

_NO_DELAY = timedelta(0)
_SOON = 60.0
"""Workers are told of what is due within this, so that they sleep no longer than until then."""
_ROUNDS = 20
_DOCUMENT_LIMIT = 16 * 1024 * 1024
"""Characters of payloads that go as one document; PostgreSQL's own limit is far beyond."""


class Query(NamedTuple):
    name: str
    parameters: tuple[Any, ...]


Steps: TypeAlias = Generator[Query, Sequence[Sequence[Any]], list[Inserted]]


async def insert(calls: Calls, tasks: Sequence[NewTask], *, dated: bool) -> Sequence[Inserted]:
    if not tasks:
        return []
    try:
        if any(task.idempotency_key is not None for task in _samples(tasks)):
            return await _drive(calls, inserting(tasks, calls.clock_offset))
        return await _insert_plain(calls, tasks, dated)
    except TaskConflict:
        # An id that is there is of this very submit, whose reply was lost. All of it was stored then, and what is not
        # there any more was deleted since. Otherwise it is somebody's unique index.
        if not await calls.run(_any_stored(calls, tasks)):
            raise
    keyed = [task for task in tasks if task.idempotency_key is not None]
    found = await _drive(calls, inserting(keyed, calls.clock_offset)) if keyed else []
    answers = {task.id: answer for task, answer in zip(keyed, found, strict=True)}
    return [answers.get(task.id) or Inserted(task.id, True) for task in tasks]


async def _insert_plain(calls: Calls, tasks: Sequence[NewTask], dated: bool) -> Sequence[Inserted]:
    if len(tasks) == 1:
        return [await calls.run(_one(calls, tasks[0], dated))]
    if isinstance(tasks, Rows) and _are_alike(tasks):
        await calls.run(_alike(calls, tasks))
        return Rows(Inserted(tasks.first.id, True), id=tasks.columns["id"])
    await calls.run(_many(calls, tasks))
    return [Inserted(task.id, True) for task in tasks]


def _samples(tasks: Sequence[NewTask]) -> Sequence[NewTask]:
    """One of each kind as far as keys are concerned."""
    return [tasks.first] if isinstance(tasks, Rows) and "idempotency_key" not in tasks.columns else tasks


def inserting(tasks: Sequence[NewTask], clock_offset: float) -> Steps:
    """What to ask, and what to make of the answers. A key that another transaction holds makes the insert wait for that
    one's end; whether its row is then to be seen or gone, the next round knows."""
    found: dict[str, UUID] = {}
    left = _first_of_each_key(tasks)
    for _ in range(_ROUNDS):
        rows = yield Query("insert_keyed", (_document(left), clock_offset, wake_up(left)))
        made = {UUID(task_id) for task_id, _, is_new in rows if is_new}
        found.update((key, UUID(task_id)) for task_id, key, _ in rows if key is not None)
        lost = [task for task in left if task.idempotency_key is None and task.id not in made]
        if lost:
            raise _dropped(len(lost), len(tasks))
        left = [task for task in left if task.idempotency_key is not None and task.idempotency_key not in found]
        if left:
            rows = yield Query("find_keys", (json.dumps([task.idempotency_key for task in left]),))
            found.update((key, UUID(task_id)) for task_id, key in rows)
            left = [task for task in left if task.idempotency_key not in found]
        if not left:
            return [_inserted(task, found) for task in tasks]
    # In theory somebody else stores and deletes the same keys in each of the rounds, between two statements.
    raise _dropped(len(left), len(tasks))


def wake_up(tasks: Sequence[NewTask]) -> str | None:
    """Whom to wake, in the form the channel carries; None: nothing of this is due soon."""
    if all(task.delay_seconds is not None and task.delay_seconds > _SOON for task in tasks):
        return None
    name = tasks[0].name
    return f"={name}" if all(task.name == name for task in tasks) else ANYTHING


def _one(calls: Calls, task: NewTask, dated: bool) -> Callable[[Connection, float], Any]:
    sql = calls.sql["insert_one_dated" if dated else "insert_one"]
    values = (
        task.id,
        task.name,
        task.kwargs,
        task.max_retries,
        task.timeout_seconds,
        task.priority,
        task.tags,
        calls.offset if calls.clock_offset else _NO_DELAY,
        _delay(task.delay_seconds),
        task.run_at,
        task.retry_policy,
        task.trace,
    )

    async def send(connection: Connection, timeout: float) -> Inserted:
        statement = connection.kept.get(sql) or await connection.keep(sql)
        created_at = await statement.fetchval(*values)
        if created_at is None and statement.get_statusmsg() != "INSERT 0 1":
            raise _dropped(1, 1)
        return Inserted(task.id, True, created_at)

    return send


def _are_alike(tasks: Rows[NewTask]) -> bool:
    """But for ids and payloads, which fit into one document."""
    if tasks.columns.keys() != {"id", "kwargs"}:
        return False
    return sum(map(len, tasks.columns["kwargs"])) < _DOCUMENT_LIMIT


def _alike(calls: Calls, tasks: Rows[NewTask]) -> Callable[[Connection, float], Any]:
    first = tasks.first
    values = (
        tasks.columns["id"],
        f"[{','.join(tasks.columns['kwargs'])}]",
        first.name,
        first.max_retries,
        first.timeout_seconds,
        first.priority,
        first.tags,
        _delay(first.delay_seconds),
        first.run_at,
        first.retry_policy,
        first.trace,
        calls.offset,
        wake_up([first]),
    )
    return _batch(calls.sql["insert_alike"], values, len(tasks))


def _many(calls: Calls, tasks: Sequence[NewTask]) -> Callable[[Connection, float], Any]:
    ids, names, payloads, retries, delays, times, timeouts, priorities, tags, _, policies, traces = zip(
        *tasks, strict=True
    )
    delays = tuple(map(_delay, delays))
    columns = (ids, payloads, names, retries, timeouts, priorities, tags, delays, times, policies, traces)
    return _batch(calls.sql["insert_many"], (*columns, calls.offset, wake_up(tasks)), len(tasks))


def _batch(sql: str, values: tuple[Any, ...], number: int) -> Callable[[Connection, float], Any]:
    async def send(connection: Connection, timeout: float) -> None:
        status = await connection.execute(sql, *values, timeout=timeout)
        stored = int(status.rpartition(" ")[2])
        if stored != number:
            raise _dropped(number - stored, number)

    return send


def _any_stored(calls: Calls, tasks: Sequence[NewTask]) -> Callable[[Connection, float], Any]:
    ids = [task.id for task in tasks]

    async def send(connection: Connection, timeout: float) -> bool:
        return bool(await connection.fetchval(calls.sql["any_stored"], ids, timeout=timeout))

    return send


def _dropped(number: int, of: int) -> StoreRefused:
    """The statement went well, and rows are missing."""
    others = "" if number == of else "; the others are stored"
    return StoreRefused(
        f"{number} of {of} tasks were not stored: a trigger or a rule on the table tasks dropped them{others}"
    )


def _delay(seconds: float | None) -> timedelta:
    return timedelta(seconds=seconds) if seconds else _NO_DELAY


async def _drive(calls: Calls, steps: Steps) -> list[Inserted]:
    query = next(steps)
    while True:
        rows = await calls.run(_sender(calls, query))
        try:
            query = steps.send(rows)
        except StopIteration as end:
            result: list[Inserted] = end.value
            return result


def _sender(calls: Calls, query: Query) -> Callable[[Connection, float], Any]:
    async def send(connection: Connection, timeout: float) -> Any:
        return await connection.fetch(calls.sql[query.name], *query.parameters, timeout=timeout)

    return send


def _first_of_each_key(tasks: Sequence[NewTask]) -> list[NewTask]:
    seen: set[str] = set()
    kept = []
    for task in tasks:
        if task.idempotency_key is None:
            kept.append(task)
        elif task.idempotency_key not in seen:
            seen.add(task.idempotency_key)
            kept.append(task)
    return kept


def _inserted(task: NewTask, found: dict[str, UUID]) -> Inserted:
    task_id = task.id if task.idempotency_key is None else found[task.idempotency_key]
    return Inserted(task_id, task_id == task.id)


def _document(tasks: Sequence[NewTask]) -> str:
    """The batch as one JSON text. What is JSON already goes in as it is, so that it is not parsed here."""
    return f"[{','.join(map(_entry, tasks))}]"


def _entry(task: NewTask) -> str:
    plain = json.dumps(
        {
            "id": str(task.id),
            "name": task.name,
            "max_retries": task.max_retries,
            "timeout_seconds": task.timeout_seconds,
            "priority": task.priority,
            "delay": task.delay_seconds,
            "run_at": task.run_at.isoformat() if task.run_at is not None else None,
            "idempotency_key": task.idempotency_key,
            "trace": task.trace,
        }
    )
    return f'{plain[:-1]},"kwargs":{task.kwargs},"tags":{task.tags},"retry_policy":{task.retry_policy or "null"}}}'
