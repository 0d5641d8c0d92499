"""Searching over HTTP: words, values in payloads, short ids; the longest first; files of all that matches."""

import csv
import io
import json
from typing import Any

import httpx
import pytest

from tasklib.engine.engine import Engine
from tasklib.server import export
from tests.conformance.builders import apply, claim_one, completed, failed, submit, submit_several
from tests.server.conftest import client_of, make_app, refused


async def shop(engine: Engine) -> list[str]:
    """Three tasks about one order and one about another."""
    store = await engine.store()
    ids = [
        await submit(store, "charge", payload={"order_id": 4711, "password": "hunter2"}, tags={"customer": 7}),
        await submit(store, "ship", payload={"order": {"id": "4711"}}, key="ship-4711"),
        await submit(store, "mail", payload={"to": "ada@example.com", "note": "=1+1"}),
    ]
    await apply(store, failed(await claim_one(store, "charge"), "PayError: insufficient funds", final=True))
    return [str(each) for each in ids]


async def found(api: httpx.AsyncClient, query: str) -> list[str]:
    answer = await api.get(f"/api/tasks?{query}")
    assert answer.status_code == 200, answer.text
    return [task["id"] for task in answer.json()["tasks"]]


async def test_a_search_finds_tasks_by_what_people_know_of_them(api: httpx.AsyncClient, engine: Engine):
    charge, ship, mail = await shop(engine)
    queries = {
        "word=4711": [ship, charge],
        "word=4711&word=funds": [charge],
        "word=4711&status=pending": [ship],
        "word=ADA": [mail],
        "payload=order_id:4711": [charge],
        "payload=order.id:4711": [ship],
        "payload=order_id:4711&payload=order.id:4711": [],
        "idempotencyKey=ship-4711": [ship],
        f"shortId={mail[-12:].upper()}&shortId={ship[-12:]}": [mail, ship],
        "tag=customer:7&word=charge": [charge],
        "word=hunter2": [],
    }
    for query, expected in queries.items():
        assert await found(api, query) == expected, query
    for body, number in [
        ({"words": ["4711", "funds"]}, 1),
        ({"payload": {"order_id": 4711}}, 1),
        ({"payload": {"order_id": "4711"}}, 1),
        ({"idempotencyKey": "ship-4711"}, 0),
        ({"shortIds": [charge[-12:]]}, 1),
        ({"shortIds": [ship[-12:]]}, 0),
    ]:
        answer = await api.post("/api/tasks/bulk/retry", json={"filter": body, "dryRun": True})
        assert (answer.status_code, answer.json()["matched"]) == (200, number), body


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("payload=password:hunter2", "payload"),
        ("payload=order_id", "payload"),
        ("payload=.x:1", "payload"),
        ("payload=db.password:x", "payload"),
        ("shortId=123", "shortId.0"),
        ("word=", "word.0"),
        ("&".join(["word=x"] * 11), "word"),
        ("sort=duration&cursor=0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10", "cursor"),
    ],
)
async def test_what_cannot_be_searched_for_is_refused(quick: httpx.AsyncClient, query: str, field: str):
    answer = await quick.get(f"/api/tasks?{query}")
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text


async def test_where_the_application_masks_by_its_own_rule_no_value_is_searched(memory_engine: Engine):
    """A store cannot be told of that rule, so a search would tell what it hides."""
    await submit(await memory_engine.store(), "mail", payload={"to": "ada", "n": 1})

    def own(value: Any) -> Any:
        return {**value, "to": "***"} if isinstance(value, dict) and "to" in value else value

    async with client_of(make_app(memory_engine, redact=own)) as client:
        assert await found(client, "word=ada") == []
        assert len(await found(client, "word=mail")) == 1
        assert len(await found(client, "payload=n:1")) == 1
        refused(await client.get("/api/tasks?payload=to:ada"), 400, "invalid_option", "payload")


async def test_the_longest_first(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    ids = []
    for milliseconds in (5_000, 60_000, 1_000):
        await submit(store)
        running = await claim_one(store)
        await apply(store, completed(running, run_ms=milliseconds))
        ids.append(str(running.id))
    assert await found(api, "sort=duration") == [ids[1], ids[0], ids[2]]
    assert await found(api, "sort=duration&limit=1&offset=1") == [ids[0]]
    page = (await api.get("/api/tasks?sort=duration&limit=1")).json()
    assert (page["total"], page["totalCapped"], page["nextCursor"]) == (3, False, None)


async def test_all_that_matches_as_a_file(api: httpx.AsyncClient, engine: Engine, monkeypatch: pytest.MonkeyPatch):
    charge, ship, mail = await shop(engine)
    await submit_several(await engine.store(), 250, "many", payload="x" * 300)
    answer = await api.get("/api/tasks/export?format=csv&word=4711")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="tasks.csv"'
    assert "hunter2" not in answer.text
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == [ship, charge]
    assert (rows[1]["status"], rows[1]["errorLine"]) == ("failed", "PayError: insufficient funds")
    assert json.loads(rows[1]["payload"]) == {"order_id": 4711, "password": "***"}
    assert (json.loads(rows[1]["tags"]), rows[0]["idempotencyKey"]) == ({"customer": 7}, "ship-4711")
    listed = (await api.get("/api/tasks?word=4711")).json()["tasks"]
    assert rows[0]["createdAt"] == listed[0]["createdAt"]

    whole = (await api.get("/api/tasks/export?format=json")).json()
    assert (len(whole["tasks"]), whole["nextCursor"]) == (253, None)
    assert whole["tasks"][250:] == (await api.get(f"/api/tasks?id={mail}&id={ship}&id={charge}")).json()["tasks"]
    assert (whole["tasks"][0]["payload"], len(whole["tasks"][0]["payloadPreview"])) == (None, 200)

    monkeypatch.setattr(export, "MOST", 200)
    seen: list[str] = []
    cursor = ""
    for expected in (200, 53):
        part = (await api.get(f"/api/tasks/export?format=json{cursor}")).json()
        seen += [task["id"] for task in part["tasks"]]
        assert len(part["tasks"]) == expected
        cursor = f"&cursor={part['nextCursor']}"
    assert seen == [task["id"] for task in whole["tasks"]]
    lines = (await api.get("/api/tasks/export?format=csv")).text.splitlines()
    assert (len(lines), lines[-1]) == (202, f"There are more: cursor={seen[199]}")
    refused(await api.get("/api/tasks/export"), 400, "invalid_input", "format")
    refused(await api.get("/api/tasks/export?format=csv&limit=5"), 400, "invalid_input", "limit")


async def test_a_spreadsheet_is_given_no_formulas(quick: httpx.AsyncClient):
    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x","y")']
    for text in hostile:
        task = {"type": text.strip(), "payload": text, "options": {"tags": {"a": text}, "idempotencyKey": f"{text}k"}}
        answer = await quick.post("/api/tasks", json={**task, "type": f"{text.strip()}"})
        assert answer.status_code == 201, answer.text
    text = (await quick.get("/api/tasks/export?format=csv")).text
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == len(hostile) + 1
    assert all(len(row) == len(export.COLUMNS) for row in rows)
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row[1] for row in rows[1:]] == [f"'{text.strip()}" for text in reversed(hostile)]
