"""A queue behind the HTTP API, and clients with tokens for it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tasklib import Config
from tasklib.core.registry import Registry, TaskOptions, define
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app
from tasklib.server.tokens import Role, new_token

TOKEN = "an-admin-token-of-the-tests"
BROWSER = {"Sec-Fetch-Site": "same-origin"}
"""What a browser says of itself when one of our own pages asks."""


def send_email(to: str, times: int = 1) -> None: ...


@pytest.fixture
def registry() -> Registry:
    """One type that the server knows."""
    registry = Registry()
    registry.add(define(send_email, name=None, options=TaskOptions(max_retries=7, priority=3, tags={"kind": "mail"})))
    return registry


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    engine = Engine(Config(database_url=backend_url))
    yield engine
    await engine.close()


@pytest.fixture
async def memory_engine(memory_url: str) -> AsyncIterator[Engine]:
    """Where the store makes no difference."""
    engine = Engine(Config(database_url=memory_url))
    yield engine
    await engine.close()


def make_app(engine: Engine, registry: Registry | None = None, **settings: Any) -> FastAPI:
    given = ServerSettings(**{"token": TOKEN, **settings})
    return create_app(engine, registry=registry or Registry(), settings=given)


def mounted(app: FastAPI, how: str) -> tuple[Any, str]:
    """The application in another one, and the path it has there."""
    if how == "alone":
        return app, ""
    if how == "starlette":
        return Starlette(routes=[Mount("/ops/queue", app)]), "/ops/queue"
    outer = FastAPI()
    outer.mount("/tasks", app)
    return outer, "/tasks"


def client_of(app: Any, token: str | None = TOKEN, **options: Any) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=options.pop("base_url", "http://localhost:8700"), headers=headers
    )


@pytest.fixture
async def api(engine: Engine, registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """An admin's client, on each store."""
    async with client_of(make_app(engine, registry)) as client:
        yield client


@pytest.fixture
async def quick(memory_engine: Engine, registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """An admin's client, where the store makes no difference."""
    async with client_of(make_app(memory_engine, registry)) as client:
        yield client


async def token_for(engine: Engine, role: Role, label: str = "somebody") -> str:
    text, token = new_token(role, label)
    await (await engine.store()).add_token(token)
    return text


def refused(answer: httpx.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
    """The answer is this problem, and says so in the right form."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem: dict[str, Any] = answer.json()
    assert (problem["code"], problem["status"], problem["type"]) == (code, status, f"urn:tasklib:problem:{code}")
    assert problem["title"]
    assert problem["detail"]
    if field is not None:
        assert problem["field"] == field
    return problem
