"""Lists of tasks send little: what is large is cut, and named."""

import json
from typing import Any

import httpx
import pytest

from tasklib.engine.engine import Engine
from tests.conformance.builders import apply, claim_one, completed, failed, submit
from tests.server.conftest import refused

LARGE = "x" * 300_000


async def a_failure_and_a_large_success(engine: Engine) -> None:
    store = await engine.store()
    await submit(store, "large", payload={"text": LARGE})
    await apply(store, completed(await claim_one(store, "large"), {"page": LARGE}))
    await submit(store, "broken", max_retries=1)
    for trouble in ("first", "second"):
        await apply(store, failed(await claim_one(store, "broken"), f"{trouble} {'é' * 1000} end", final=False))


async def listed(api: httpx.AsyncClient, query: str) -> dict[str, Any]:
    answer = await api.get(f"/api/tasks?{query}")
    assert answer.status_code == 200, answer.text
    task: dict[str, Any] = answer.json()["tasks"][0]
    return task


async def test_a_list_shows_the_beginning_of_what_is_large(api: httpx.AsyncClient, engine: Engine):
    await a_failure_and_a_large_success(engine)
    answer = await api.get("/api/tasks")
    assert len(answer.content) < 5_000
    large = await listed(api, "type=large")
    payload, result = json.dumps({"text": LARGE}, separators=(",", ":")), json.dumps({"page": LARGE})
    assert (large["payload"], large["payloadPreview"]) == (None, payload[:200])
    assert large["payloadBytes"] == len(payload)
    assert (large["result"], large["resultPreview"]) == (None, result.replace(": ", ":")[:200])
    assert large["resultBytes"] == len(payload)
    assert (large["error"], large["errorPreview"], large["errorBytes"]) == (None, None, 0)
    broken = await listed(api, "type=broken")
    text = f"second {'é' * 1000} end"
    assert (broken["error"], broken["errorPreview"], broken["errorBytes"]) == (None, text[:200], len(text.encode()))
    assert [(entry["attempt"], entry["error"]) for entry in broken["history"]] == [(2, text[:200])]


async def test_fields_asks_for_the_whole(api: httpx.AsyncClient, engine: Engine):
    await a_failure_and_a_large_success(engine)
    large = await listed(api, "type=large&fields=payload,result")
    assert (large["payload"], large["payloadPreview"]) == ({"text": LARGE}, None)
    assert (large["result"], large["resultPreview"]) == ({"page": LARGE}, None)
    whole = (await api.get(f"/api/tasks/{(await listed(api, 'type=broken'))['id']}")).json()
    broken = await listed(api, "type=broken&fields=error&fields=history")
    assert (broken["error"], broken["history"]) == (whole["error"], whole["history"])
    assert len(broken["history"]) == 2
    assert broken["errorPreview"] is None


async def test_what_is_small_is_shown_whole(quick: httpx.AsyncClient):
    payloads: list[Any] = [{"to": "user@example.com"}, None, [], "x" * 198]
    for payload in payloads:
        await quick.post("/api/tasks", json={"type": "t", "payload": payload})
        task = await listed(quick, "limit=1")
        assert (task["payload"], task["payloadPreview"]) == (payload, None)
        assert task["payloadBytes"] == len(json.dumps(payload, separators=(",", ":")))
    await quick.post("/api/tasks", json={"type": "t", "payload": "x" * 199})
    assert (await listed(quick, "limit=1"))["payloadPreview"] == f'"{"x" * 199}'


async def test_a_preview_is_masked_before_it_is_cut(quick: httpx.AsyncClient):
    url = f"postgresql://me:hunter2-{'y' * 3000}@db/x"
    payload = {"password": "hunter2", "url": f"{url} {LARGE}", "text": LARGE[:1000]}
    await quick.post("/api/tasks", json={"type": "t", "payload": payload})
    assert "hunter2" not in (await quick.get("/api/tasks")).text


@pytest.mark.parametrize("fields", ["tags", "payload,", "", "payload,kwargs", "PAYLOAD"])
async def test_fields_that_are_not_known(quick: httpx.AsyncClient, fields: str):
    problem = refused(await quick.get(f"/api/tasks?fields={fields}"), 400, "invalid_input")
    assert problem["field"].startswith("fields.")
