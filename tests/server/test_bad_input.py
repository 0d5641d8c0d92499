"""What the API refuses at its border: nothing is written, and nothing is a 500."""

import json
from typing import Any

import httpx
import pytest

from tests.server.conftest import TOKEN, client_of, make_app, refused

JSON = {"Content-Type": "application/json"}


async def nothing_stored(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/tasks")).json()["total"] == 0


BODIES: list[tuple[str, bytes]] = [
    ("truncated", b'{"type": "t", '),
    ("trailing garbage", b'{"type": "t", "payload": 1} x'),
    ("two values", b'{"type": "t", "payload": 1}{}'),
    ("invalid UTF-8", b'{"type": "t", "payload": "\xff"}'),
    ("another encoding", '{"type": "t", "payload": 1}'.encode("utf-16")),
    ("NaN", b'{"type": "t", "payload": NaN}'),
    ("infinity", b'{"type": "t", "payload": -Infinity}'),
    ("overflow", b'{"type": "t", "payload": 1e400}'),
    ("NUL", b'{"type": "t", "payload": "\\u0000"}'),
    ("lone surrogate", b'{"type": "t", "payload": "\\ud800"}'),
    ("surrogate in the type", b'{"type": "\\ud800", "payload": 1}'),
    ("surrogate in a key", b'{"type": "t", "payload": {"\\ud800": 1}}'),
    ("surrogate in an unknown field", b'{"type": "t", "payload": 1, "\\ud800": 1}'),
    ("too deep", b'{"type": "t", "payload": ' + b"[" * 65 + b"]" * 65 + b"}"),
    ("far too deep", b'{"type": "t", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("integer of 5000 digits", b'{"type": "t", "payload": ' + b"9" * 5000 + b"}"),
    ("a list", b"[]"),
    ("null", b"null"),
    ("a number", b"1"),
]


@pytest.mark.parametrize("body", [body for _, body in BODIES], ids=[name for name, _ in BODIES])
async def test_bodies(quick: httpx.AsyncClient, body: bytes):
    """Bad input, HTTP: bodies that are no JSON of ours."""
    answer = await quick.post("/api/tasks", content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in ("invalid_input", "invalid_option", "invalid_value")
    await nothing_stored(quick)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "type"),
        ({"type": "t"}, "payload"),
        ({"payload": 1}, "type"),
        ({"type": "", "payload": 1}, "type"),
        ({"type": "x" * 256, "payload": 1}, "type"),
        ({"type": "a\0b", "payload": 1}, "type"),
        ({"type": 7, "payload": 1}, "type"),
        ({"type": None, "payload": 1}, "type"),
        ({"type": "t", "payload": 1, "nope": 1}, "nope"),
        ({"type": "t", "payload": 1, "options": []}, "options"),
        ({"type": "t", "payload": 1, "options": {"max_retries": 1}}, "options.max_retries"),
        ({"type": "t", "payload": 1, "options": {"max_attempts": 1}}, "options.max_attempts"),
        ({"type": "t", "payload": 1, "options": {"maxAttempts": -1}}, "options.maxAttempts"),
        ({"type": "t", "payload": 1, "options": {"maxAttempts": True}}, "options.maxAttempts"),
        ({"type": "t", "payload": 1, "options": {"maxAttempts": "3"}}, "options.maxAttempts"),
        ({"type": "t", "payload": 1, "options": {"maxAttempts": 2**40}}, "options.maxAttempts"),
        ({"type": "t", "payload": 1, "options": {"maxAttempts": 1.5}}, "options.maxAttempts"),
        ({"type": "t", "payload": 1, "options": {"runAfter": "2025-01-15T10:00:00"}}, "options.runAfter"),
        ({"type": "t", "payload": 1, "options": {"runAfter": "2025-02-30T10:00:00Z"}}, "options.runAfter"),
        ({"type": "t", "payload": 1, "options": {"runAfter": "0001-01-01T00:00:00+10:00"}}, "options.runAfter"),
        ({"type": "t", "payload": 1, "options": {"runAfter": 1736935200}}, "options.runAfter"),
        ({"type": "t", "payload": 1, "options": {"priority": 2**31}}, "options.priority"),
        ({"type": "t", "payload": 1, "options": {"timeoutSeconds": 0}}, "options.timeoutSeconds"),
        ({"type": "t", "payload": 1, "options": {"idempotencyKey": ""}}, "options.idempotencyKey"),
        ({"type": "t", "payload": 1, "options": {"idempotencyKey": "k" * 256}}, "options.idempotencyKey"),
        ({"type": "t", "payload": 1, "options": {"tags": [1]}}, "options.tags"),
    ],
)
async def test_fields(quick: httpx.AsyncClient, given: Any, field: str):
    """Bad input, HTTP: unknown fields and wrong types, each by its name."""
    code = "invalid_option" if field.startswith("options.") or field == "type" else "invalid_input"
    refused(await quick.post("/api/tasks", json=given), 400, code, field)
    await nothing_stored(quick)


async def test_tags_have_a_limit(quick: httpx.AsyncClient):
    body = {"type": "t", "payload": 1, "options": {"tags": {"k": "x" * 20_000}}}
    refused(await quick.post("/api/tasks", json=body), 400, "invalid_value", "options.tags")
    await nothing_stored(quick)


async def test_no_body(quick: httpx.AsyncClient):
    refused(await quick.post("/api/tasks"), 400, "invalid_input", "body")
    refused(await quick.post("/api/tasks", headers=JSON), 400, "invalid_input", "body")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
async def test_a_body_needs_its_content_type(quick: httpx.AsyncClient, kind: str | None):
    headers = {} if kind is None else {"Content-Type": kind}
    body = json.dumps({"type": "t", "payload": 1}).encode()
    refused(await quick.post("/api/tasks", content=body, headers=headers), 415, "unsupported_media_type")
    refused(await quick.post("/api/tasks/pause", content=b"x", headers=headers), 415, "unsupported_media_type")
    await nothing_stored(quick)
    given = await quick.post("/api/tasks", content=body, headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert given.status_code == 201


async def test_a_body_that_says_it_is_too_large_is_not_read_at_all(quick: httpx.AsyncClient):
    given = 0

    async def body() -> Any:
        nonlocal given
        given += 1
        yield b"{}"

    said = {**JSON, "Content-Length": str(2 * 1024 * 1024)}
    refused(await quick.post("/api/tasks", content=body(), headers=said), 413, "body_too_large")
    assert given == 0


async def test_too_large_a_body_is_not_read(quick: httpx.AsyncClient):
    large = b'{"type": "t", "payload": "' + b"x" * (1024 * 1024) + b'"}'
    refused(await quick.post("/api/tasks", content=large, headers=JSON), 413, "body_too_large")
    given = 0

    async def endless() -> Any:
        nonlocal given
        while True:
            given += 1
            yield b" " * 65536

    refused(await quick.post("/api/tasks", content=endless(), headers=JSON), 413, "body_too_large")
    assert given <= 18
    await nothing_stored(quick)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=101", "limit"),
        ("limit=1000000000", "limit"),
        ("limit=ten", "limit"),
        ("offset=-1", "offset"),
        ("offset=99999999999999999999", "offset"),
        ("cursor=forged", "cursor"),
        ("cursor='%20OR%201=1--", "cursor"),
        ("status=running", "status.0"),
        ("status=pending&status=x", "status.1"),
        ("sort=created_at;DROP%20TABLE%20tasks", "sort"),
        ("name_prefix=x", "name_prefix"),
        ("createdAfter=now", "createdAfter"),
        ("createdBefore=2025-01-15", "createdBefore"),
        ("type=", "type.0"),
        ("type=%00", "type.0"),
        ("error=a%00b", "error"),
        ("namePrefix=%00", "namePrefix"),
        ("tag=%00:x", "tag.0"),
        ("tag=novalue", "tag"),
        ("tag=k:a&tag=k:b", "tag"),
    ],
)
async def test_queries(api: httpx.AsyncClient, query: str, field: str):
    """Bad input, HTTP: limits, cursors, sorts and filters that are none."""
    refused(await api.get(f"/api/tasks?{query}"), 400, "invalid_input", field)


@pytest.mark.parametrize("text", ["' OR 1=1 --", '"; DROP TABLE tasks; --', "%", "_", "\\", "%_%", "{}", "$1", "[*]"])
async def test_filters_are_taken_literally(api: httpx.AsyncClient, text: str):
    await api.post("/api/tasks", json={"type": "t", "payload": 1, "options": {"tags": {"k": "v"}}})
    for params in ({"type": text}, {"namePrefix": text}, {"error": text}, {"tag": f"k:{text}"}, {"tag": f"{text}:v"}):
        answer = await api.get("/api/tasks", params=params)
        assert (answer.status_code, answer.json()["total"]) == (200, 0), params
    assert (await api.get("/api/tasks")).json()["total"] == 1


@pytest.mark.parametrize("task_id", ["1", "x", "' OR 1=1", "..", "%00", "bulk"])
async def test_ids_are_uuids(quick: httpx.AsyncClient, task_id: str):
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("POST", "/cancel")):
        answer = await quick.request(method, httpx.URL(f"http://localhost/api/tasks/{task_id}{path}"))
        assert answer.status_code in (400, 404, 405), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "TRACE", "OPTIONS", "HEAD", "PROPFIND"])
async def test_methods(quick: httpx.AsyncClient, method: str):
    answer = await quick.request(method, "/api/tasks")
    assert answer.status_code == 405
    assert answer.headers["allow"]


async def test_a_fault_of_ours_shows_no_traceback(
    quick: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def broken(*args: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("tasklib.engine.engine.Engine.stats", broken)
    answer = await quick.get("/api/tasks/stats")
    refused(answer, 500, "internal_error")
    assert "secret detail" not in answer.text
    assert "secret detail" in caplog.text


async def test_submits_can_be_limited(memory_engine: Any):
    app = make_app(memory_engine, submit_rate=2.0)
    app.state.tasklib.submits._clock = lambda: 0.0  # on a busy machine three submits may take a second
    async with client_of(app, TOKEN) as client:
        codes = [(await client.post("/api/tasks", json={"type": "t", "payload": n})).status_code for n in range(3)]
        assert codes == [201, 201, 429]
        answer = await client.post("/api/tasks", json={"type": "t", "payload": 1})
        refused(answer, 429, "too_many_submits")
        assert int(answer.headers["retry-after"]) >= 1
