"""Secrets and hostile text in every field: what leaves the server is masked, and obeys nobody."""

import httpx

from tasklib.engine.engine import Engine
from tasklib.testing.suite.builders import apply, claim_one, completed, failed, released, submit

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
