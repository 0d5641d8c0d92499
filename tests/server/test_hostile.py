"""Secrets and hostile text in every field: what leaves the server is masked, and obeys nobody."""

import json
import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tasklib.engine.engine import Engine
from tasklib.server import feed as feeds
from tasklib.server.tokens import Role
from tasklib.stores.values import AuditEntry, ControlChange
from tests.conformance.builders import apply, claim_one, completed, failed, heartbeat_of, released, submit
from tests.core.test_redact import SECRET_NAMES
from tests.hostile import EVIL, MARKUP, PAYLOAD, STEERING, UNSAFE
from tests.secrets import SECRET_TEXTS, SECRET_URLS
from tests.server.conftest import client_of, make_app, token_for
from tests.server.test_live import samples

SECRET = "hunter2"
URL = f"postgresql://ada:{SECRET}@db.example.com/shop"
MASKED = "postgresql://ada:***@db.example.com/shop"


async def test_no_secret_leaves_through_the_api(quick: httpx.AsyncClient, memory_engine: Engine):
    store = await memory_engine.store()
    task_id = await submit(store, "fails", max_retries=2)
    await apply(store, failed(await claim_one(store, "fails"), error=f"cannot reach {URL}", delay=60))
    done = await submit(store, "done", payload={"url": URL, "password": SECRET})
    await apply(store, completed(await claim_one(store, "done"), {"password": SECRET, "seen": [URL]}))
    named = await submit(store, URL)
    await apply(store, released(await claim_one(store, URL)))
    await quick.post("/api/tasks/bulk/cancel", json={"filter": {"error": URL, "tags": {"password": SECRET}}})
    by_hand = json.dumps({"url": URL, "password": SECRET})  # not through the API, which masks what it writes
    await store.control(ControlChange(), audit=[AuditEntry(actor="psql", action="edit", detail=by_hand)])
    answers = {
        "task": await quick.get(f"/api/tasks/{task_id}"),
        "result": await quick.get(f"/api/tasks/{done}"),
        "list": await quick.get("/api/tasks?type=fails&type=done"),
        "audit": await quick.get("/api/audit"),
        "refusal": await quick.get("/api/tasks", params={"tag": f":{URL}"}),
        "metrics": await quick.get("/metrics"),
    }
    for name, answer in answers.items():
        assert SECRET not in answer.text, name
        assert "ada:***@" in answer.text, name
    # A type goes by its own name, whatever that is; texts about it are masked.
    waiting = (await quick.get(f"/api/tasks/{named}")).json()
    assert waiting["type"] == URL
    assert [MASKED in each["text"] for each in waiting["waitingFor"]] == [True]
    assert answers["task"].json()["history"][0]["error"] == f"cannot reach {MASKED}"


async def test_nothing_of_the_corpus_leaves_through_the_api(quick: httpx.AsyncClient, memory_engine: Engine):
    store = await memory_engine.store()
    texts = [*SECRET_URLS, *SECRET_TEXTS]
    keys = dict.fromkeys(SECRET_NAMES, "geheim")
    task_id = await submit(store, "fails", payload={"texts": texts, **keys}, tags={"x": texts[0], **keys})
    await apply(store, failed(await claim_one(store, "fails"), error="\n".join(texts), delay=60))
    done = await submit(store, "done")
    await apply(store, completed(await claim_one(store, "done"), {"texts": texts, "deep": [keys]}))
    for name in SECRET_URLS:
        if len(name) < 255:
            await submit(store, name)
    await quick.post("/api/tasks/bulk/cancel", json={"filter": {"error": texts[0], "tags": keys}})
    answers = [
        await quick.get(f"/api/tasks/{task_id}"),
        await quick.get(f"/api/tasks/{done}"),
        await quick.get("/api/tasks?type=fails&type=done"),
        await quick.get("/api/audit"),
        await quick.get("/metrics"),
        *[await quick.get("/api/tasks", params={"tag": f":{text}"}) for text in texts],
        *[await quick.get("/api/tasks", params={"status": text}) for text in texts],
        *[await quick.post("/api/tasks", json={"type": "t", "options": {text: 1}}) for text in texts],
    ]
    for answer in answers:
        assert "geheim" not in answer.text, answer.text[max(0, answer.text.find("geheim") - 300) :][:400]


async def test_nothing_of_the_corpus_leaves_with_flows_and_schedules(quick: httpx.AsyncClient, memory_engine: Engine):
    texts = [*SECRET_URLS, *SECRET_TEXTS]
    keys = dict.fromkeys(SECRET_NAMES, "geheim")
    payload = {"texts": texts, **keys, **dict.fromkeys(texts, 1)}
    options = {"tags": {"texts": texts, **keys}}
    timed = {"type": "t", "payload": payload, "options": options, "every": 900}
    answers = [
        await quick.put("/api/schedules/s", json=timed),
        await quick.put("/api/schedules/s", json={"cron": "@daily"}),
        await quick.post("/api/schedule-preview", json={"cron": texts[0][:100]}),
        *[await quick.put("/api/schedules/s", json={**timed, "timezone": text}) for text in texts],
        *[await quick.put("/api/schedules/s", json={**timed, "options": {text: 1}}) for text in texts],
        *[await quick.post(f"/api/schedules/s/{action}") for action in ("pause", "trigger", "resume")],
    ]
    # Where results go is named by the keys of a payload, which are anybody's words.
    named = [text for text in texts if len(text) <= 255]
    parent = {"ref": "raw", "type": "raw", "payload": payload, "options": options}
    inputs = {f"/{text.replace('~', '~0').replace('/', '~1')}": "raw" for text in texts}
    made: Any = None
    for name in named:
        child = {"ref": "child", "type": "child", "payload": payload, "inputs": inputs, "options": options}
        made = (await quick.post("/api/flows", json={"name": name, "tasks": [parent, child]})).json()
        answers.append(await quick.get(f"/api/flows/{made['id']}"))
    ids = made["tasks"]
    for task_id in ids.values():
        answers.append(await quick.get(f"/api/tasks/{task_id}"))
        answers.append(await quick.post(f"/api/tasks/{task_id}/cancel"))
    for place, text in zip(inputs, texts, strict=True):
        lost = {"ref": "b", "type": "t", "payload": {}, "inputs": {place + "/x": "raw"}}
        answers.append(await quick.post("/api/flows", json={"tasks": [parent, lost]}))
        answers.append(await quick.post("/api/flows", json={"tasks": [{**parent, "after": [text[:255]]}]}))
        single = {"type": "t", "payload": {}, "options": {"inputs": {place + "/x": ids["raw"]}}}
        answers.append(await quick.post("/api/tasks", json=single))
    paths = ["api/schedules", "api/schedules/s", "api/flows", "api/tasks?fields=payload", "api/audit", "metrics"]
    answers += [await quick.get(f"/{path}") for path in [*paths, "api/tasks/export?format=csv"]]
    assert {answer.status_code for answer in answers[-7:]} == {200}
    for answer in answers:
        assert "geheim" not in answer.text, answer.text[max(0, answer.text.find("geheim") - 300) :][:400]


async def test_hostile_text_stays_text(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    """In JSON, in a stream of events, in metrics and in the audit trail: nothing is added, nothing ends early."""
    monkeypatch.setattr(feeds, "READ_SECONDS", 0.02)
    store = await memory_engine.store()
    await store.heartbeat(heartbeat_of(EVIL, names=[EVIL]))
    task_id = await submit(store, EVIL, payload=PAYLOAD, tags={EVIL: EVIL}, key=EVIL, max_retries=0)
    await apply(store, failed(await claim_one(store, EVIL, worker=EVIL), error=MARKUP + STEERING))
    await submit(store, EVIL)
    await memory_engine.control(ControlChange(name=EVIL, paused=True, operator_rate=3))
    app = make_app(memory_engine, stream_seconds=0.1)
    async with client_of(app, await token_for(memory_engine, Role.ADMIN, EVIL)) as client:
        assert (await client.post(f"/api/tasks/{task_id}/retry")).status_code == 200
        stream = await client.get("/api/events")
        metrics = await client.get("/metrics")
        answers = [
            await client.get(path)
            for path in (f"/api/tasks/{task_id}", "/api/tasks", "/api/tasks/stats", "/api/types", "/api/controls")
        ]
        audit = await client.get("/api/audit")
        workers = [await client.get(f"/api/workers{which}") for which in ("", f"/{quote(EVIL, safe='')}")]
    for answer in (*answers, audit, *workers):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert json.dumps(EVIL)[1:-1] in json.dumps(answer.json()), "as it is: whoever shows it has to take care"
    assert audit.json()["entries"][0]["actor"] == EVIL
    # Each event is two lines; what stands in a name is inside the JSON of the second.
    events = [block.split("\n") for block in stream.text.strip().split("\n\n") if block.startswith("event")]
    for event in events:
        assert [line.split(":")[0] for line in event] == ["event", "data"], event
        assert event[0] in ("event: stats", "event: controls")
    stats = json.loads(next(event[1] for event in events if event[0] == "event: stats").removeprefix("data: "))
    assert list(stats["byType"]) == [EVIL]
    assert all(not name.startswith("tasklib_forged") for name in samples(metrics.text))
    assert not set(metrics.text) & UNSAFE, "people read it in terminals, too"
    blocks = re.findall(r"^(\w*):", stream.text, re.MULTILINE)
    assert set(blocks) <= {"event", "data", "retry", ""}
