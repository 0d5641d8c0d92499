"""`unique=` through the APIs: what a type says, what a caller says, and what each answers."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tasklib import InvalidOption, RemoteQueue, Unique, debounce, throttle
from tasklib.api.decorator import task
from tasklib.api.manager import AsyncTaskManager
from tasklib.cli.main import run
from tasklib.core.published import publish
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.server import ServerSettings, create_app
from tests.queues import as_default

TOKEN = "a-token-of-the-tests-of-unique-tasks"


async def test_a_type_says_the_key_of_its_arguments(sqlite_url: str):
    registry = Registry()

    @task(registry=registry, unique=lambda p: f"shop-{p.shop}")
    def reindex(shop: int, full: bool = False) -> None: ...

    @task(registry=registry, unique=lambda p: Unique("one", until="started") if p.number else None)
    def sometimes(number: int) -> None: ...

    async with as_default(Engine(Config(database_url=sqlite_url))):
        first = await reindex.submit_async(7)
        again = await reindex.submit_async(7, full=True)
        other = await reindex.submit_async(8)
        assert (first.created, again.created, again.id, other.created) == (True, False, first.id, True)
        own = await reindex.options(unique=Unique("mine", conflict="replace")).submit_async(7)
        replaced = await reindex.options(unique=Unique("mine", conflict="replace")).submit_async(9)
        assert (own.created, replaced.created, replaced.replaced) == (True, False, True)
        assert (await own.get_async()).kwargs == {"shop": 9, "full": False}

        many = await reindex.submit_many_async([{"shop": shop} for shop in (7, 20, 21, 20)], handles=True)
        assert [handle.created for handle in many] == [False, True, True, False]
        assert (many[0].id, many[3].id) == (first.id, many[1].id)
        none = await sometimes.submit_many_async([{"number": number} for number in (0, 0, 1, 1)], handles=True)
        assert [handle.created for handle in none] == [True, True, True, False]
        assert (await none[2].get_async()).unique_until == "started"


async def test_a_function_that_fails_refuses_the_submit(sqlite_url: str):
    registry = Registry()

    @task(registry=registry, unique=lambda p: p.missing)
    def broken(number: int) -> None: ...

    @task(registry=registry, unique=lambda p: 7)  # type: ignore[arg-type, return-value]
    def wrong(number: int) -> None: ...

    async with as_default(Engine(Config(database_url=sqlite_url))) as engine:
        with pytest.raises(InvalidOption, match="unique: the function of broken failed: AttributeError"):
            await broken.submit_async(1)
        with pytest.raises(InvalidOption, match="unique must be Unique"):
            await wrong.submit_async(1)
        assert await engine.stats() == {}
    with pytest.raises(InvalidOption, match="unique must be Unique"):
        task(registry=registry, unique="shop")(lambda shop: None)  # type: ignore[call-overload]


async def test_without_the_code_a_rule_holds_and_a_function_is_asked_for(sqlite_url: str):
    registry = Registry()

    @task(registry=registry, unique=throttle("all", timedelta(minutes=1)))
    def ping() -> None: ...

    @task(registry=registry, unique=lambda p: str(p.shop))
    def reindex(shop: int) -> None: ...

    engine = Engine(Config(database_url=sqlite_url))
    try:
        await (await engine.store()).publish(publish(registry))
        first = await engine.submit(Call("ping", {}))
        again = await engine.submit(Call("ping", {}))
        assert (first.created, again.created, again.id) == (True, False, first.id)
        with pytest.raises(InvalidOption, match="reindex makes its key by code that is not here"):
            await engine.submit(Call("reindex", {"shop": 1}))
        assert (await engine.submit(Call("reindex", {"shop": 1}, {"unique": Unique("1")}))).created
    finally:
        await engine.close()


async def test_over_http_and_by_the_manager(sqlite_url: str):
    engine = Engine(Config(database_url=sqlite_url))
    transport = httpx.ASGITransport(create_app(engine, registry=Registry(), settings=ServerSettings(token=TOKEN)))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"Authorization": f"Bearer {TOKEN}"}
    ) as client:

        async def post(**unique: Any) -> httpx.Response:
            body = {"type": "index_shop", "payload": {}, "options": {"unique": {"key": "shop-7", **unique}}}
            return await client.post("/api/tasks", json=body)

        made = await post(until="started", conflict="replace")
        assert made.status_code == 201
        again = await post(until="started", conflict="replace")
        assert (again.status_code, again.json()["id"], again.json()["replaced"]) == (200, made.json()["id"], True)
        assert again.json()["uniqueKey"] == "shop-7"
        for unique, field, text in (
            ({"until": "started", "conflict": "replace", "seconds": 5, "atMost": 2}, "atMost", "at least seconds"),
            ({"until": "elapsed"}, "seconds", "takes seconds"),
            ({"seconds": 0, "until": "elapsed"}, "seconds", "greater than 0"),
            ({"until": "later"}, "until", "started"),
            ({"key": ""}, "key", "1"),
            ({"key": "x" * 256}, "key", "255"),
        ):
            refused = await post(**unique)
            assert refused.status_code == 400, refused.text
            assert text in refused.text
            assert refused.json()["field"] == f"options.unique.{field}"

        remote = RemoteQueue("http://localhost", token=TOKEN, transport=transport)
        joined = await remote.submit_async("index_shop", {}, unique=Unique("shop-7", until="started"))
        assert (str(joined), joined.created, joined.replaced) == (made.json()["id"], False, False)
        manager = AsyncTaskManager(engine)
        by_manager = await manager.submit({}, name="index_shop", unique=debounce("shop-8", 5, at_most=60))
        assert (await engine.get_or_raise(by_manager)).unique_key == "shop-8"
    await engine.close()


def test_on_the_command_line(sqlite_url: str, capsys):
    def submit(*options: str) -> dict[str, Any]:
        command = ["submit", "index_shop", "--database-url", sqlite_url, "--json", "--payload", "{}", *options]
        assert run(command) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    made = submit("--unique", "shop-7", "--until", "started")
    assert submit("--unique", "shop-7", "--until", "started")["id"] == made["id"]
    assert submit("--unique", "shop-7", "--until", "started", "--replace")["replaced"] is True
    throttled = submit("--unique", "shop-9", "--throttle", "1m")
    assert throttled["created"] is True
    assert submit("--unique", "shop-9", "--throttle", "1m") == {**throttled, "created": False}
    assert run(["submit", "index_shop", "--database-url", sqlite_url, "--until", "started"]) == 2
