"""An operator's action and its audit entry are one transaction: both are there, or neither."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, NamedTuple

import apsw
import httpx
import psycopg
import pytest

from tasklib import Config
from tasklib.core.lifecycle import Phase
from tasklib.engine.engine import Engine
from tasklib.server import bulk as server_bulk
from tasklib.stores.protocol import Store
from tasklib.stores.values import AuditFilter, Filter
from tests.conformance.builders import WORKER_A, heartbeat_of, in_phase
from tests.server.conftest import client_of, make_app, refused

Hindrance = Callable[[], AbstractContextManager[None]]


class Action(NamedTuple):
    """A request, what is there before it, and the entries that it leaves."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    phase: Phase | None = None
    audited: tuple[str, ...] = ()

    async def send(self, api: httpx.AsyncClient, task_id: object) -> httpx.Response:
        return await api.request(self.method, self.path.format(id=task_id), json=self.body)


LONG_AFTER = "/api/tasks?olderThan=2999-01-01T00:00:00Z"

ACTIONS = {
    "cancel": Action("POST", "/api/tasks/{id}/cancel", None, Phase.PENDING, ("cancel",)),
    "cancel a running one": Action("POST", "/api/tasks/{id}/cancel", None, Phase.RUNNING, ("cancel",)),
    "retry": Action("POST", "/api/tasks/{id}/retry", None, Phase.FAILED, ("retry",)),
    "revive": Action("POST", "/api/tasks/{id}/revive", None, Phase.CANCELLED, ("revive",)),
    "run again": Action("POST", "/api/tasks/{id}/copy", {}, Phase.COMPLETED, ("copy",)),
    "drain": Action("POST", "/api/workers/anna/drain", audited=("drain",)),
    "delete": Action("DELETE", "/api/tasks/{id}", None, Phase.COMPLETED, ("delete",)),
    "clean up": Action("DELETE", LONG_AFTER, None, Phase.COMPLETED, ("cleanup",)),
    "pause": Action("POST", "/api/tasks/pause", audited=("pause",)),
    "rate limit": Action("POST", "/api/tasks/rate-limit", {"tasksPerSecond": 5}, audited=("rate-limit",)),
    "set type": Action("PUT", "/api/types/work", {"paused": True, "concurrency": 2}, audited=("set-type",)),
    "set schedule": Action(
        "PUT", "/api/schedules/s", {"type": "work", "payload": {}, "every": 60}, audited=("schedule-set",)
    ),
    "bulk cancel": Action("POST", "/api/tasks/bulk/cancel", {"filter": {}}, Phase.PENDING, ("bulk-cancel", "cancel")),
    "bulk cancel of running ones": Action(
        "POST", "/api/tasks/bulk/cancel", {"filter": {}}, Phase.RUNNING, ("bulk-cancel", "cancel")
    ),
    "bulk run now": Action(
        "POST", "/api/tasks/bulk/run-now", {"filter": {}}, Phase.WAITING, ("bulk-run-now", "run-now")
    ),
    "bulk retry": Action("POST", "/api/tasks/bulk/retry", {"filter": {}}, Phase.FAILED, ("bulk-retry", "retry")),
    "bulk delete": Action("POST", "/api/tasks/bulk/delete", {"filter": {}}, Phase.COMPLETED, ("bulk-delete", "delete")),
}

each_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())


async def seen(store: Store, task_id: uuid.UUID | None) -> tuple[object, ...]:
    """All that these actions change."""
    schedules = [(each.name, each.version) for each in await store.schedules()]
    workers = [each.drain for each in await store.workers()]
    copies = (await store.count(Filter(), 10)).value
    return (await store.get([task_id]) if task_id else [], await store.controls(), schedules, workers, copies)


@contextmanager
def locked(server: str, schema: str) -> Iterator[None]:
    with psycopg.connect(server) as connection:
        connection.execute(f"LOCK TABLE {schema}.task_audit IN SHARE MODE".encode())  # it can be read
        yield


@contextmanager
def not_granted(server: str, schema: str, role: str) -> Iterator[None]:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"REVOKE INSERT ON {schema}.task_audit FROM {role}".encode())
        yield
        connection.execute(f"GRANT INSERT ON {schema}.task_audit TO {role}".encode())


@contextmanager
def refused_by_postgres(server: str, schema: str) -> Iterator[None]:
    with psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}") as connection:
        connection.execute(
            "CREATE FUNCTION no_entry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no entry'; END $$"
        )
        connection.execute("CREATE TRIGGER no_entry BEFORE INSERT ON task_audit EXECUTE FUNCTION no_entry()")
        yield
        connection.execute("DROP FUNCTION no_entry CASCADE")


@contextmanager
def refused_by_sqlite(path: str) -> Iterator[None]:
    # By apsw, as the store: a second SQLite library in this process would undo its locks.
    with closing(apsw.Connection(path)) as connection:
        connection.execute(
            "CREATE TRIGGER no_entry BEFORE INSERT ON task_audit BEGIN SELECT RAISE(ABORT, 'no entry'); END"
        )
        yield
        connection.execute("DROP TRIGGER no_entry")


class Refusing(NamedTuple):
    api: httpx.AsyncClient
    store: Store
    hindered: Hindrance


@pytest.fixture(params=["postgres-lock", "postgres-grant", "postgres-trigger", "sqlite-trigger"])
async def refusing(request: pytest.FixtureRequest, postgres_server: str) -> AsyncIterator[Refusing]:
    """A queue whose audit trail takes no entries for a while."""
    kind, _, way = request.param.partition("-")
    url: str = request.getfixturevalue(f"{kind}_url")
    schema = url.rpartition("schema=")[2]
    role = f"r_{uuid.uuid4().hex}"
    owner = Engine(Config(database_url=url))
    store = await owner.store()
    hindered: Hindrance = {
        "postgres-lock": lambda: locked(postgres_server, schema),
        "postgres-grant": lambda: not_granted(postgres_server, schema, role),
        "postgres-trigger": lambda: refused_by_postgres(postgres_server, schema),
        "sqlite-trigger": lambda: refused_by_sqlite(url.removeprefix("sqlite:///")),
    }[request.param]
    if way == "grant":
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {role} LOGIN".encode())
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}".encode())
            connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}".encode())
        url = url.replace("postgres@", f"{role}@")
        assert role in url
    engine = Engine(Config(database_url=url, call_timeout_seconds=0.7 if way == "lock" else 30))
    async with client_of(make_app(engine)) as api:
        yield Refusing(api, store, hindered)
    await engine.close()
    await owner.close()
    if way == "grant":
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())


@each_action
async def test_what_cannot_be_kept_in_the_audit_trail_is_not_done(refusing: Refusing, action: Action):
    api, store, hindered = refusing
    await store.controls()
    await store.heartbeat(heartbeat_of(WORKER_A))
    task_id = None if action.phase is None else (await in_phase(store, action.phase, "work")).id
    before = await seen(store, task_id)
    with hindered():
        answer = await action.send(api, task_id)
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json"), answer.text
    assert await seen(store, task_id) == before
    assert await store.list_audit() == []
    assert (await action.send(api, task_id)).status_code in (200, 201, 204)
    assert await seen(store, task_id) != before
    assert tuple(sorted(entry.action for entry in await store.list_audit())) == action.audited


@each_action
async def test_what_is_done_is_in_the_audit_trail(api: httpx.AsyncClient, engine: Engine, action: Action):
    store = await engine.store()
    await store.heartbeat(heartbeat_of(WORKER_A))
    task_id = None if action.phase is None else (await in_phase(store, action.phase, "work")).id
    assert (await action.send(api, task_id)).status_code in (200, 201, 204)
    assert tuple(sorted(entry.action for entry in await store.list_audit())) == action.audited
    if task_id is not None and "cleanup" not in action.audited:
        (entry,) = await store.list_audit(AuditFilter(task_id=task_id))
        assert (entry.actor, entry.action, entry.name) == ("TASKLIB_TOKEN", action.audited[-1], "work")


@pytest.mark.parametrize("action", [each for each in ACTIONS.values() if each.phase], ids=lambda each: each.path)
async def test_what_is_refused_or_finds_nothing_leaves_no_entry(api: httpx.AsyncClient, engine: Engine, action: Action):
    store = await engine.store()
    assert (await action.send(api, uuid.uuid4())).status_code in (200, 404)
    assert await store.list_audit() == []


async def test_two_who_cancel_one_task_leave_one_entry(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    task = await in_phase(store, Phase.PENDING)
    answers = await asyncio.gather(*(api.post(f"/api/tasks/{task.id}/cancel") for _ in range(5)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert [entry.action for entry in await store.list_audit(AuditFilter(task_id=task.id))] == ["cancel"]


async def test_each_batch_of_a_bulk_action_tells_its_filter_and_its_count(
    api: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tasklib.engine.bulk.BATCH", 2)
    store = await engine.store()
    tasks = [await in_phase(store, Phase.FAILED, "work") for _ in range(3)]
    answer = (await api.post("/api/tasks/bulk/retry", json={"filter": {"type": ["work"]}})).json()
    assert answer["done"] == 3
    entries = (await api.get("/api/audit")).json()["entries"]
    assert [entry["detail"] for entry in entries if entry["action"] == "bulk-retry"] == [
        {"filter": {"type": ["work"]}, "done": 1},
        {"filter": {"type": ["work"]}, "done": 2},
    ]
    about = [(entry["taskId"], entry["detail"]) for entry in entries if entry["action"] == "retry"]
    assert sorted(about) == sorted((str(task.id), {"bulk": True}) for task in tasks)


async def test_a_mass_action_is_found_by_type_whatever_its_filter(api: httpx.AsyncClient, engine: Engine):
    """Somebody cancelled everything: whoever looks at one of the types has to see it."""
    store = await engine.store()
    for name in ("mail", "pay", "pay"):
        await in_phase(store, Phase.PENDING, name)
    failure = await in_phase(store, Phase.FAILED, "build")
    await api.post("/api/tasks/bulk/cancel", json={"filter": {}})
    await api.post("/api/tasks/bulk/retry", json={"filter": {"ids": [str(failure.id)]}})

    async def listed(**query: Any) -> list[tuple[str, str | None, int]]:
        body = (await api.get("/api/audit", params={"folded": "true", **query})).json()
        return [(entry["action"], entry["type"], entry["done"]) for entry in body["entries"]]

    assert await listed() == [("bulk-retry", "build", 1), ("bulk-cancel", None, 3)]
    assert await listed(type="pay") == [("bulk-cancel", "pay", 2)]
    assert await listed(type="build") == [("bulk-retry", "build", 1)]


async def test_a_bulk_action_that_ends_half_way_has_told_how_far_it_came(
    memory_engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """By what is in the trail: exactly what was done."""
    monkeypatch.setattr("tasklib.engine.bulk.BATCH", 1)
    monkeypatch.setattr(server_bulk, "WORK_SECONDS", 0.0)
    store = await memory_engine.store()
    for _ in range(2):
        await in_phase(store, Phase.PENDING, "work")
    async with client_of(make_app(memory_engine)) as api:
        assert (await api.post("/api/tasks/bulk/cancel", json={"filter": {}})).json()["more"]
    assert [entry.action for entry in await store.list_audit()] == ["bulk-cancel", "cancel"]


async def test_a_clean_up_tells_what_it_deleted(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    for phase in (Phase.COMPLETED, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED):
        await in_phase(store, phase, "work")
    answer = await api.delete(f"{LONG_AFTER}&status=completed&status=failed")
    assert answer.json()["deleted"] == 3
    (entry,) = (await api.get("/api/audit")).json()["entries"]
    assert (entry["action"], entry["detail"]) == (
        "cleanup",
        {
            "olderThan": "2999-01-01T00:00:00+00:00",
            "status": ["completed", "failed"],
            "deleted": 3,
            "byStatus": {"completed": 2, "failed": 1},
        },
    )


async def test_the_trail_is_listed_by_filter_and_page_by_page(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    tasks = [await in_phase(store, Phase.FAILED, "work") for _ in range(3)]
    for task in tasks:
        await api.post(f"/api/tasks/{task.id}/retry")
    await api.put("/api/types/pay", json={"paused": True})
    await api.post("/api/tasks/pause")

    async def listed(**query: Any) -> list[tuple[str, str | None]]:
        body = (await api.get("/api/audit", params=query)).json()
        return [(entry["action"], entry["type"]) for entry in body["entries"]]

    assert await listed() == [("pause", None), ("set-type", "pay"), *[("retry", "work")] * 3]
    assert await listed(action="retry", type="work", actor="TASKLIB_TOKEN") == [("retry", "work")] * 3
    assert await listed(type="pay") == [("set-type", "pay")]
    assert await listed(actor="nobody") == []
    assert await listed(before="2000-01-01T00:00:00Z") == []
    assert len(await listed(after="2000-01-01T00:00:00Z")) == 5
    seen, cursor = [], None
    while True:
        query: dict[str, Any] = {"action": "retry", "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await api.get("/api/audit", params=query)).json()
        seen += [entry["taskId"] for entry in page["entries"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == [str(task.id) for task in reversed(tasks)]
    refused(await api.get("/api/audit?cursor=elsewhere"), 400, "invalid_value", "cursor")
    refused(await api.get("/api/audit?after=yesterday"), 400, "invalid_input", "after")
