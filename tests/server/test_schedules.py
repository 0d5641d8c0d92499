"""/api/schedules: set, seen, paused, run now, previewed, and what is refused."""

from typing import Any

import httpx
import pytest

from tasklib.core.cron import every
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.server import metrics
from tasklib.server.tokens import Role
from tests.server.conftest import client_of, make_app, refused, token_for

NIGHTLY = {
    "type": "send_email",
    "payload": {"to": "ada@example.com"},
    "cron": "30 3 * * 1-5",
    "timezone": "Europe/Berlin",
    "missed": "all",
    "overlap": "skip",
    "options": {"maxAttempts": 2, "tags": {"team": "ops"}},
}


async def test_a_schedule_from_its_making_to_its_end(api: httpx.AsyncClient, engine: Engine):
    made = (await api.put("/api/schedules/mails%2F42", json=NIGHTLY)).json()
    assert made["payload"] == {"to": "ada@example.com", "times": 1}, "checked, and with its defaults"
    assert made["words"] == "at 03:30 on weekdays, Europe/Berlin"
    assert made["options"] == {
        "maxAttempts": 2,
        "priority": 3,
        "tags": {"kind": "mail", "team": "ops"},
        "timeoutSeconds": None,
    }
    assert len(made["nextTimes"]) == 5
    assert (made["nextAt"], made["edited"], made["declared"]) == (made["nextTimes"][0], True, False)
    assert (await api.put("/api/schedules/mails%2F42", json=NIGHTLY)).json() == made, "nothing changes"
    many = (await api.get("/api/schedules/mails%2F42?times=12")).json()
    assert many["nextTimes"][:5] == made["nextTimes"]
    assert len(many["nextTimes"]) == 12

    paused = (await api.post("/api/schedules/mails%2F42/pause")).json()
    assert (paused["paused"], paused["nextAt"], paused["nextTimes"]) == (True, None, [])
    task_id = (await api.post("/api/schedules/mails%2F42/trigger")).json()["id"]
    task = (await api.get(f"/api/tasks/{task_id}")).json()
    assert (task["type"], task["status"], task["maxAttempts"]) == ("send_email", "pending", 2)
    assert task["tags"]["schedule"] == "mails/42"
    resumed = (await api.post("/api/schedules/mails%2F42/resume")).json()
    assert resumed["nextAt"] == made["nextAt"]
    [run] = resumed["runs"]
    assert (run["taskId"], run["status"], run["created"]) == (task_id, "pending", True)

    await api.put("/api/schedules/b", json={"type": "other", "payload": {"password": "hunter2"}, "every": 900})
    page = (await api.get("/api/schedules?limit=1")).json()
    assert (page["total"], page["nextCursor"], page["schedules"][0]["name"]) == (2, "b", "b")
    assert "hunter2" not in str(page)
    assert page["schedules"][0]["words"] == "every 15 minutes"
    again = (await api.put("/api/schedules/b", json={"cron": "@daily"})).json()
    assert (again["words"], again["type"]) == ("at 00:00 every day, UTC", "other")
    [kept] = await (await engine.store()).schedules(["b"])
    assert kept.definition is not None
    assert "hunter2" in kept.definition.task.kwargs, "only the times were changed"
    page = (await api.get("/api/schedules?limit=1&cursor=b")).json()
    assert (page["nextCursor"], page["schedules"][0]["name"]) == (None, "mails/42")

    told = (await api.get("/metrics")).text
    for line in (
        'tasklib_schedules{state="active"} 2',
        'tasklib_schedule_fired_total{schedule="b"} 0',
        'tasklib_schedule_missed_total{schedule="mails/42"} 0',
        'tasklib_schedule_last_fire_timestamp_seconds{schedule="mails/42"}',
        'tasklib_schedule_lateness_seconds{schedule="mails/42"} 0',
    ):
        assert line in told
    assert (await api.delete("/api/schedules/mails%2F42")).status_code == 204
    refused(await api.get("/api/schedules/mails%2F42"), 404, "schedule_not_found")
    trail = (await api.get("/api/audit")).json()["entries"]
    assert [entry["action"] for entry in reversed(trail)] == [
        *("schedule-set", "schedule-pause", "schedule-trigger", "schedule-resume", "schedule-set"),
        *("schedule-set", "schedule-delete"),
    ]
    assert trail[0]["detail"] == {"schedule": "mails/42"}


async def test_an_operators_edit_is_cleared_again(quick: httpx.AsyncClient, memory_engine: Engine):
    schedules = memory_engine.schedules
    by_code = await schedules.define(Call("sweep", {}), every(minutes=10))
    await schedules.put("sweep", by_code, operator=False)
    edited = (await quick.put("/api/schedules/sweep", json={"type": "sweep", "payload": {}, "every": 60})).json()
    assert (edited["every"], edited["edited"], edited["declared"]) == (60, True, True)
    await schedules.put("sweep", by_code, operator=False)
    assert (await quick.get("/api/schedules/sweep")).json()["every"] == 60
    cleared = (await quick.post("/api/schedules/sweep/clear")).json()
    assert (cleared["every"], cleared["edited"]) == (600, False)
    await quick.put("/api/schedules/mine", json={"type": "sweep", "payload": {}, "every": 60})
    refused(await quick.post("/api/schedules/mine/clear"), 409, "schedule_conflict")


async def test_a_preview_shows_the_next_times_in_their_zone(quick: httpx.AsyncClient):
    shown = (await quick.get("/api/schedule-preview", params={"cron": "0 8 * * 1", "timezone": "Asia/Tokyo"})).json()
    assert shown["words"] == "at 08:00 on Monday, Asia/Tokyo"
    assert len(shown["times"]) == 10
    assert all(at.endswith("T08:00:00+09:00") for at in shown["times"])
    assert (await quick.get("/api/schedule-preview?every=90&times=2")).json()["words"] == "every 90 seconds"
    refused(await quick.get("/api/schedule-preview?cron=61+*+*+*+*"), 400, "invalid_option", "cron")


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"cron": "61 * * * *"}, "invalid_option", "cron"),
        ({"cron": "0 0 3 * * 1"}, "invalid_option", "cron"),
        ({"cron": "0 0 30 2 *"}, "invalid_option", "cron"),
        ({"cron": None}, "invalid_option", "cron"),
        ({"every": 60}, "invalid_option", "cron"),
        ({"cron": None, "timezone": None, "every": 0}, "invalid_option", "every"),
        ({"cron": None, "timezone": None, "every": -5}, "invalid_option", "every"),
        ({"timezone": "Mars/Base"}, "invalid_option", "timezone"),
        ({"missed": "some"}, "invalid_input", "missed"),
        ({"overlap": "maybe"}, "invalid_input", "overlap"),
        ({"late": 0}, "invalid_option", "late"),
        ({"jitter": -1}, "invalid_option", "jitter"),
        ({"payload": {"to": 5}}, "invalid_arguments", "payload.to"),
        ({"options": {"runAfter": "2030-01-01T00:00:00Z"}}, "invalid_option", "options.runAfter"),
        ({"type": ""}, "invalid_option", "type"),
        ({"type": None}, "invalid_input", "type"),
        ({"payload": None}, "invalid_input", "payload"),
        ({"more": 1}, "invalid_input", "more"),
    ],
    ids=str,
)
async def test_what_cannot_be_is_refused_and_nothing_is_stored(
    quick: httpx.AsyncClient, change: dict[str, Any], code: str, field: str
):
    given = {name: value for name, value in {**NIGHTLY, **change}.items() if value is not None}
    refused(await quick.put("/api/schedules/s", json=given), 400, code, field)
    assert (await quick.get("/api/schedules")).json()["total"] == 0


async def test_names_that_are_too_long_or_unknown(quick: httpx.AsyncClient):
    refused(await quick.put(f"/api/schedules/{'s' * 256}", json=NIGHTLY), 400, "invalid_input", "name")
    refused(await quick.put("/api/schedules/none", json={"every": 60}), 404, "schedule_not_found")
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/trigger"),
        ("POST", "/clear"),
    ):
        refused(await quick.request(method, f"/api/schedules/none{path}"), 404, "schedule_not_found")


async def test_metrics_count_more_schedules_than_they_show(
    quick: httpx.AsyncClient, memory_engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(metrics, "MOST_SCHEDULES", 2)
    for name in "abcd":
        await quick.put(f"/api/schedules/{name}", json=NIGHTLY)
    await quick.post("/api/schedules/d/pause")
    told = (await quick.get("/metrics")).text
    assert 'tasklib_schedules{state="active"} 3' in told
    assert 'tasklib_schedules{state="paused"} 1' in told
    assert 'tasklib_schedules{state="orphaned"} 0' in told
    assert [name for name in "abcd" if f'schedule="{name}"' in told] == ["a", "b"]


async def test_who_may_do_what(memory_engine: Engine, registry: Registry):
    app = make_app(memory_engine, registry)
    for role, statuses in (
        (Role.READ_ONLY, (403, 403, 403)),
        (Role.OPERATOR, (403, 200, 200)),
        (Role.WORKER, (200, 403, 403)),
        (Role.ADMIN, (200, 200, 200)),
    ):
        async with client_of(app) as admin:
            await admin.put("/api/schedules/s", json=NIGHTLY)
        async with client_of(app, await token_for(memory_engine, role)) as client:
            assert (await client.get("/api/schedules/s")).status_code == 200
            answers = [
                await client.put("/api/schedules/s", json=NIGHTLY),
                await client.post("/api/schedules/s/pause"),
                await client.post("/api/schedules/s/trigger"),
            ]
            assert [answer.status_code for answer in answers] == list(statuses), role
