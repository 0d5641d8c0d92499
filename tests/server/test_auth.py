"""The gate: who gets in, and who may do what."""

import asyncio
import re
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.websockets import WebSocket

from tasklib.core.errors import InvalidConfig, StoreUnavailable
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, tokens
from tasklib.server.app import ROUTERS
from tasklib.server.auth import PUBLIC, need_of
from tasklib.server.dashboard import PAGES
from tasklib.server.sessions import Sessions
from tasklib.server.tokens import GRANTS, Need, Role, TokenStore
from tasklib.stores.values import Token
from tests.server.conftest import BROWSER, TOKEN, client_of, make_app, mounted, refused, token_for


def routes() -> list[tuple[str, str]]:
    """Every method and path there is, the schema's and the files' too."""
    found = [
        (method, re.sub(r"{task_id}", "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10", route.path))
        for part in ROUTERS
        for route in part.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]
    found = [(method, re.sub(r"{action}", "delete", re.sub(r"{type:type_name}", "t", path))) for method, path in found]
    return [*found, ("GET", "/openapi.json"), ("GET", "/assets/login.js"), ("GET", "/nowhere"), ("POST", "/")]


@pytest.mark.parametrize("how", ["alone", "starlette", "fastapi"])
async def test_every_route_needs_a_token(memory_engine: Engine, how: str):
    app, prefix = mounted(make_app(memory_engine, stream_seconds=0.1), how)
    public: set[tuple[str, str]] = set()
    async with client_of(app, token=None) as client:
        for method, path in routes():
            answer = await client.request(method, prefix + path, headers=BROWSER)
            if answer.status_code != 401:
                public.add((method, path))
            else:
                refused(answer, 401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
    assert public == {*PUBLIC, ("GET", "/assets/login.js")}
    assert len(routes()) > 25


def test_the_walk_sees_every_route(memory_engine: Engine):
    """Nothing is added to the application beside the routers that the walk knows."""
    walked = {route.path for part in ROUTERS for route in part.router.routes if isinstance(route, APIRoute)}
    schema = make_app(memory_engine).openapi()
    any_text = {
        "{type}": "{type:type_name}",
        "{worker}": "{worker:text}",
        "/api/schedules/{name}": "/api/schedules/{name:type_name}",
    }
    described = set(schema["paths"])
    for plain, converted in any_text.items():
        described = {path.replace(plain, converted) for path in described}
    assert {*described, "/login", *PAGES} == walked


@pytest.mark.parametrize(
    "path", ["/assets/../api/tasks", "/assets/..%2fapi%2ftasks", "//api/tasks", "/api/tasks/", "/API/tasks"]
)
async def test_no_path_gets_around_the_gate(memory_engine: Engine, path: str):
    async with client_of(make_app(memory_engine), token=None) as client:
        request = client.build_request("GET", "http://localhost/")
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = await client.send(request)
        assert answer.status_code in (401, 404), answer.text
        assert "tasks" not in answer.text.replace("urn:tasklib", "") or answer.status_code == 401


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer \xff"]
)
async def test_wrong_tokens(memory_engine: Engine, header: str):
    async with client_of(make_app(memory_engine), token=None) as client:
        answer = await client.get("/api/tasks", headers={b"Authorization": header.encode("latin-1")})
        refused(answer, 401, "unauthorized")


REQUESTS = {
    ("GET", "/api/tasks"): Need.READ,
    ("GET", "/metrics"): Need.READ,
    ("GET", "/api/audit"): Need.READ,
    ("POST", "/api/tasks"): Need.SUBMIT,
    ("POST", "/api/claims"): Need.CLAIM,
    ("POST", "/api/tasks/pause"): Need.OPERATE,
    ("POST", "/api/tasks/rate-limit"): Need.OPERATE,
    ("POST", "/api/tasks/bulk/cancel"): Need.OPERATE,
    ("PUT", "/api/types/t"): Need.OPERATE,
    ("PUT", "/api/schedules/s"): Need.SUBMIT,
    ("DELETE", "/api/tasks"): Need.OPERATE,
}
BODIES: dict[str, Any] = {
    "/api/tasks": {"type": "t", "payload": 1},
    "/api/claims": {"workerId": "w", "types": ["nothing"]},
    "/api/tasks/rate-limit": {"tasksPerSecond": 1},
    "/api/tasks/bulk/cancel": {"filter": {}},
    "/api/types/t": {"concurrency": 1},
    "/api/schedules/s": {"type": "t", "payload": 1, "every": 60},
}


@pytest.mark.parametrize("role", list(Role))
async def test_roles(engine: Engine, role: Role):
    token = await token_for(engine, role)
    async with client_of(make_app(engine), token) as client:
        session = (await client.get("/api/session")).json()
        assert (session["role"], session["label"]) == (role.value, "somebody")
        for (method, path), need in REQUESTS.items():
            body = BODIES.get(path) if method in ("POST", "PUT") else None
            answer = await client.request(
                method, path, json=body, params={"olderThan": "2020-01-01T00:00:00Z"} if method == "DELETE" else None
            )
            if need in GRANTS[role]:
                assert answer.status_code in (200, 201), (path, answer.text)
            else:
                refused(answer, 403, "forbidden")


def test_what_is_not_listed_needs_an_operator():
    assert need_of("POST", "/api/anything") is Need.OPERATE
    assert need_of("DELETE", "/healthz") is Need.OPERATE
    assert need_of("GET", "/api/anything") is Need.READ
    assert need_of("POST", "/api/claimsx") is Need.OPERATE
    assert GRANTS[Role.ADMIN] == {*Need} - {Need.NOTHING}


def test_claims_are_for_those_who_work():
    """Their payloads are not masked."""
    claims = {(method, path) for method, path in routes() if path.startswith("/api/claims")}
    assert len(claims) == 6
    assert {need_of(method, path) for method, path in claims} == {Need.CLAIM}
    assert {role for role, granted in GRANTS.items() if Need.CLAIM in granted} == {Role.WORKER, Role.ADMIN}


async def test_a_revoked_token_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokens, "CACHE_SECONDS", 0.0)
    token = await token_for(engine, Role.ADMIN)
    store = await engine.store()
    async with client_of(make_app(engine), token) as client, client_of(make_app(engine), None) as browser:
        assert (await client.get("/api/tasks")).status_code == 200
        await store.revoke_token((await store.tokens())[0].id)
        refused(await client.get("/api/tasks"), 401, "unauthorized")
        refused(await browser.post("/api/login", json={"token": token}, headers=BROWSER), 401, "unauthorized")


async def test_tokens_are_kept_hashed(engine: Engine):
    text = await token_for(engine, Role.ADMIN)
    (stored,) = await (await engine.store()).tokens()
    assert text not in repr(stored)
    assert len(stored.digest) == 64


async def test_tokens_and_cookies_are_compared_in_constant_time(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    """By the function that is made for it, and with every token there is: how long it takes tells nothing."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    stored = [await token_for(memory_engine, Role.READ_ONLY, f"token {number}") for number in range(3)]
    settings = ServerSettings(token=TOKEN)
    token_store = TokenStore(memory_engine, settings)
    for token, number in ((TOKEN, 1), (stored[0], 4), (stored[2], 4)):
        compared.clear()
        assert await token_store.match(token.encode()) is not None
        assert len(compared) == number
        assert all(len(one) == len(other) == 64 for one, other in compared), "hashes, never the tokens themselves"
    owner = await token_store.match(TOKEN.encode())
    assert owner is not None
    sessions = Sessions(token_store, settings)
    compared.clear()
    assert await sessions.open(sessions.issue(owner)) == owner
    assert [len(one) for one, _ in compared] == [64]


async def test_known_tokens_outlast_an_outage(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    token = await token_for(memory_engine, Role.READ_ONLY)
    async with client_of(make_app(memory_engine), token) as client:
        assert (await client.get("/api/session")).status_code == 200
        monkeypatch.setattr(tokens, "CACHE_SECONDS", -1.0)

        async def away() -> Any:
            raise StoreUnavailable("no connection")

        monkeypatch.setattr(memory_engine, "store", away)
        assert (await client.get("/api/session")).status_code == 200


def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidConfig, match="at least 16"):
        ServerSettings(token="short")
    monkeypatch.setenv("TASKLIB_TOKEN", "")
    assert ServerSettings().token is None
    monkeypatch.setenv("TASKLIB_TOKEN", TOKEN)
    assert ServerSettings().token == TOKEN
    assert TOKEN not in repr(ServerSettings())


async def test_web_sockets_are_closed(memory_engine: Engine):
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def welcome(socket: WebSocket) -> None:
        await socket.accept()

    app = make_app(memory_engine)
    app.add_api_websocket_route("/api/socket", welcome)
    for path in ("/api/events", "/api/socket"):
        sent.clear()
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "headers": [],
            "query_string": b"",
            "subprotocols": [],
        }
        await app(scope, receive, send)
        assert [message["type"] for message in sent] == ["websocket.close"]


async def test_a_new_token_opens_at_once(memory_engine: Engine):
    async with client_of(make_app(memory_engine), await token_for(memory_engine, Role.READ_ONLY)) as client:
        assert (await client.get("/api/session")).status_code == 200
        client.headers["Authorization"] = f"Bearer {await token_for(memory_engine, Role.OPERATOR)}"
        assert (await client.get("/api/session")).json()["role"] == "operator"


async def test_guesses_do_not_each_ask_the_database(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    store = await memory_engine.store()
    asked = 0
    tokens = store.tokens

    async def counted() -> list[Token]:
        nonlocal asked
        asked += 1
        return await tokens()

    monkeypatch.setattr(store, "tokens", counted)
    async with client_of(make_app(memory_engine), "tl_guessed") as client:
        answers = await asyncio.gather(*(client.get("/api/session") for _ in range(50)))
    assert {answer.status_code for answer in answers} == {401}
    assert asked <= 3
