"""What answers and logs do not show."""

from typing import Any

import httpx
import pytest

from tasklib.engine.engine import Engine
from tests.server.conftest import client_of, make_app


async def test_secrets_are_masked(api: httpx.AsyncClient):
    payload = {
        "password": "hunter2",
        "nested": [{"apiKey": "hunter2", "keep": "seen"}],
        "url": "postgresql://me:hunter2@db/x",
    }
    options = {"tags": {"auth_token": "hunter2", "team": "seen"}}
    body = {"type": "t", "payload": payload, "options": options}
    made = (await api.post("/api/tasks", json=body)).json()
    task = await api.get(f"/api/tasks/{made['id']}")
    assert task.json()["payload"]["nested"][0]["keep"] == "seen"
    assert task.json()["tags"] == {"auth_token": "***", "team": "seen"}
    for answer in (task, await api.get("/api/tasks"), await api.post(f"/api/tasks/{made['id']}/cancel")):
        assert "hunter2" not in answer.text


async def test_masking_can_be_configured(memory_engine: Engine):
    def colour(value: Any) -> Any:
        return {**value, "colour": "***"} if isinstance(value, dict) and "colour" in value else value

    app = make_app(memory_engine, redact=colour)
    payload = {"colour": "red", "token": "x", "url": "postgresql://me:hunter2@db/x"}
    async with client_of(app) as client:
        made = (await client.post("/api/tasks", json={"type": "t", "payload": payload})).json()
        task = (await client.get(f"/api/tasks/{made['id']}")).json()
        assert task["payload"] == {"colour": "***", "token": "x", "url": "postgresql://me:***@db/x"}


async def test_tokens_are_never_logged(memory_engine: Engine, caplog: pytest.LogCaptureFixture):
    caplog.set_level(0)
    async with client_of(make_app(memory_engine), token="tl_a-wrong-token-that-is-secret") as client:
        await client.get("/api/tasks")
        await client.post("/api/login", json={"token": "tl_a-wrong-token-that-is-secret"})
    assert "secret" not in caplog.text
