"""Events, metrics, health, and what happens while the database is away."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import promql_parser
import pytest
import yaml

from tasklib.cli.alerts import PROMETHEUS_RULES
from tasklib.core.alerts import Condition
from tasklib.core.cron import every
from tasklib.core.decide import UNTIMED
from tasklib.core.errors import SchemaMismatch, StoreBusy, StoreFull, StoreUnavailable
from tasklib.engine.engine import Engine
from tasklib.engine.submission import Call
from tasklib.server import feed as feeds
from tasklib.server.feed import Feed, Figures, Seen
from tasklib.server.limits import StreamCap
from tasklib.server.meters import Meters
from tasklib.server.problems import ProblemError
from tasklib.stores.values import ControlChange, Point
from tests.conformance.builders import apply, claim_one, completed, failed, heartbeat_of, submit
from tests.server.conftest import client_of, make_app, refused
from tests.waiting import eventually_async

# -- events -----------------------------------------------------------------------------------------------------------


def parsed(text: str) -> list[tuple[str, Any]]:
    return [(name, json.loads(data)) for name, data in re.findall(r"^event: (\w+)\ndata: (.*)$", text, re.MULTILINE)]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "READ_SECONDS", 0.05)
    monkeypatch.setattr(feeds, "HEARTBEAT_SECONDS", 0.1)


async def look_again(feed: Feed) -> None:
    """Until whoever watches was told of what has happened by now."""
    seen = feed.reads
    await eventually_async(lambda: feed.reads > seen + 2)


async def test_events(engine: Engine, fast: None):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("w"))

    app = make_app(engine)
    feed = app.state.tasklib.feed

    async def later() -> None:
        await eventually_async(lambda: feed.reads > 1)
        await submit(store, "crawl")
        await engine.control(ControlChange(name="crawl", paused=True))
        await look_again(feed)
        feed.end()

    async with client_of(app) as client:
        change = asyncio.create_task(later())
        answer = await client.get("/api/events")
        await change
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = parsed(answer.text)
    assert [name for name, _ in events[:2]] == ["stats", "controls"]
    assert events[0][1]["pending"] == 0
    changes = [data for name, data in events if name == "changes"]
    assert changes[-1]["byType"]["crawl"]["pending"] == changes[-1]["pending"] == 1
    assert [data for name, data in events if name == "controls"][-1]["types"]["crawl"]["paused"] is True


async def test_a_stream_tells_only_what_has_changed(engine: Engine, fast: None):
    """Time that passes is no change: what is due grows older by itself."""
    store = await engine.store()
    await submit(store, "gone")
    for number in range(30):
        await submit(store, f"quiet-{number}")
    app = make_app(engine)
    feed = app.state.tasklib.feed

    async def later() -> None:
        await eventually_async(lambda: feed.reads > 2)
        await apply(store, completed(await claim_one(store, "gone")))
        await look_again(feed)
        await engine.prune(["completed"], 0.0, 10)
        await look_again(feed)
        feed.end()

    async with client_of(app) as client:
        change = asyncio.create_task(later())
        events = parsed((await client.get("/api/events")).text)
        await change
        assert [name for name, _ in events].count("stats") == 1
        assert len(events[0][1]["byType"]) == 31
        changes = [data["byType"] for name, data in events if name == "changes"]
        assert changes
        assert {name for each in changes for name in each} == {"gone"}
    async with client_of(make_app(engine, stream_seconds=0.1)) as client:
        again = parsed((await client.get("/api/events")).text)
    assert len(again[0][1]["byType"]) >= 30


def test_changes_of_figures():
    def figures(at: float, **oldest: float | None) -> Figures:
        types = {name: {"pending": 1, "oldestDueSeconds": seconds} for name, seconds in oldest.items()}
        return Figures(at, {"pending": len(types), "byType": types})

    seen = Seen()
    assert seen.news(figures(0, a=5.0, b=None)) == ("stats", figures(0, a=5.0, b=None).stats)
    assert seen.news(figures(10, a=15.2, b=None)) is None
    expected = {"pending": 2, "byType": {"b": {"pending": 1, "oldestDueSeconds": 0.5}}}
    assert seen.news(figures(20, a=24.9, b=0.5)) == ("changes", expected)
    expected = {"pending": 2, "byType": {"a": {"pending": 1, "oldestDueSeconds": 3.0}}}
    assert seen.news(figures(30, a=3.0, b=10.5)) == ("changes", expected)
    assert seen.news(figures(31, b=11.5)) == ("changes", {"pending": 1, "byType": {"a": None}})


async def test_whoever_comes_hears_of_a_change_back_to_older_figures(memory_engine: Engine, fast: None):
    """A page that opens right after a change must not start from the figures before it: the change back would equal
    them, and no event would tell of it."""
    store = await memory_engine.store()
    app = make_app(memory_engine, stream_seconds=0.3)
    feed = app.state.tasklib.feed
    async with client_of(app) as client:
        early = asyncio.create_task(client.get("/api/events"))
        await eventually_async(lambda: feed.reads > 0)
        await submit(store, "crawl")
        first = asyncio.create_task(client.get("/api/events"))
        await asyncio.gather(early, first)
    stats = [data for name, data in parsed(first.result().text) if name == "stats"]
    assert stats[0]["pending"] == 1


async def test_a_quiet_stream_shows_that_it_lives(memory_engine: Engine, fast: None):
    async with client_of(make_app(memory_engine, stream_seconds=0.6)) as client:
        answer = await client.get("/api/events")
    assert [name for name, _ in parsed(answer.text)] == ["stats", "controls"]
    assert ": still here\n\n" in answer.text


async def test_a_stream_ends_when_the_server_does(memory_engine: Engine, fast: None):
    app = make_app(memory_engine)
    async with client_of(app) as client:
        streaming = asyncio.create_task(client.get("/api/events"))
        await eventually_async(lambda: app.state.tasklib.feed.reads > 1)
        app.state.tasklib.feed.end()
        answer = await asyncio.wait_for(streaming, 5)
    assert answer.text.endswith("\n\n")


async def test_streams_are_capped(memory_engine: Engine, fast: None):
    app = make_app(memory_engine, max_streams=2, stream_seconds=1.0)
    async with client_of(app) as client:
        streaming = [asyncio.create_task(client.get("/api/events")) for _ in range(2)]
        await eventually_async(lambda: app.state.tasklib.streams.open == 2)
        refused(await client.get("/api/events"), 429, "too_many_streams")
        assert [answer.status_code for answer in await asyncio.gather(*streaming)] == [200, 200]
        assert (await client.get("/api/events")).status_code == 200


async def test_a_stream_says_that_the_database_is_away(
    memory_engine: Engine, fast: None, monkeypatch: pytest.MonkeyPatch
):
    away(memory_engine, monkeypatch, StoreUnavailable("no connection to db:5432"))
    async with client_of(make_app(memory_engine, stream_seconds=0.2)) as client:
        answer = await client.get("/api/events")
    assert parsed(answer.text)[0] == ("problem", {"code": "store_unavailable"})


def test_the_cap_counts_both_ways():
    cap = StreamCap(1)
    cap.enter()
    with pytest.raises(ProblemError):
        cap.enter()
    cap.leave()
    cap.enter()


# -- metrics ----------------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')


def samples(text: str) -> dict[str, float]:
    """The text, checked line by line against the exposition format."""
    found: dict[str, float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("# HELP "):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert re.sub(r"_(bucket|sum|count)$", "", match[1]) in typed or match[1] in typed
            found[line.rpartition(" ")[0]] = float(match[3])
    return found


async def test_metrics(api: httpx.AsyncClient, engine: Engine):
    store = await engine.store()
    await store.heartbeat(heartbeat_of("w1", running=1))
    await engine.control(ControlChange(name="mail", paused=True, operator_rate=5))
    await engine.control(ControlChange(name="mail", paused=False, concurrency=3))
    await submit(store, "mail")
    await apply(store, completed(await claim_one(store, "mail"), run_ms=30))
    await submit(store, "mail", max_retries=1)
    await apply(store, failed(await claim_one(store, "mail"), run_ms=2000, delay=60))
    await submit(store, 'odd"\\\nname')
    await submit(store, "mail")
    await claim_one(store, "mail")
    for _ in range(2):
        given = {"type": "mail", "payload": {}, "options": {"idempotencyKey": "once"}}
        assert (await api.post("/api/tasks", json=given)).is_success
    await engine.control(ControlChange(paused=True))
    answer = await api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(answer.text)
    assert found['tasklib_queue_depth{type="mail",status="waiting"}'] == 1
    assert found['tasklib_queue_depth{type="odd\\"\\\\\\nname",status="pending"}'] == 1
    assert found['tasklib_oldest_due_age_seconds{type="odd\\"\\\\\\nname"}'] >= 0
    assert found['tasklib_attempts_total{type="mail",outcome="completed"}'] == 1
    assert found['tasklib_attempts_total{type="mail",outcome="retried"}'] == 1
    assert found['tasklib_handler_duration_seconds_bucket{type="mail",le="0.025"}'] == 0
    assert found['tasklib_handler_duration_seconds_bucket{type="mail",le="0.05"}'] == 1
    assert found['tasklib_handler_duration_seconds_bucket{type="mail",le="+Inf"}'] == 2
    assert found['tasklib_handler_duration_seconds_count{type="mail"}'] == 2
    assert found['tasklib_handler_duration_seconds_sum{type="mail"}'] == pytest.approx(2.03)
    assert found['tasklib_wait_seconds_count{type="mail"}'] == 2
    assert found["tasklib_workers_live"] == 1
    assert found['tasklib_worker_last_seen_seconds{worker="w1"}'] < 60
    assert found['tasklib_paused{type=""}'] == 1
    assert found['tasklib_paused{type="mail"}'] == 0
    assert found['tasklib_rate_limit{type="mail"}'] == 5
    assert found['tasklib_concurrency_limit{type="mail"}'] == 3
    assert found['tasklib_http_submits_total{type="mail"}'] == 1, "the second is the first"
    assert found['tasklib_concurrency_used{type="mail"}'] == 1
    assert 'tasklib_concurrency_limit{type=""}' not in found
    again = samples((await api.get("/metrics")).text)
    assert again['tasklib_attempts_total{type="mail",outcome="completed"}'] == 1


async def test_the_rules_for_prometheus_speak_of_what_there_is(api: httpx.AsyncClient, engine: Engine):
    """Each expression parses, and asks for metrics and labels that /metrics has."""
    store = await engine.store()
    await store.heartbeat(heartbeat_of("w1", running=1))
    await submit(store, "mail", max_retries=1)
    await apply(store, failed(await claim_one(store, "mail"), run_ms=20, delay=60))
    scheduled = await engine.schedules.define(Call("report", {}), every(60))
    await engine.schedules.put("hourly", scheduled, operator=True)
    await engine.schedules.trigger("hourly")
    known: dict[str, dict[str, str]] = {}
    for sample in samples((await api.get("/metrics")).text):
        metric, _, labels = sample.partition("{")
        known.setdefault(metric, {}).update(re.findall(r'([a-z]+)="([^"]*)"', labels))
    manual = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    metrics = {re.sub(r"_(bucket|sum|count)$", "", metric) for metric in known}
    assert {metric for metric in metrics if f"`{metric}`" not in manual} == set()
    [group] = yaml.safe_load(PROMETHEUS_RULES.read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(Condition) == len(set(names)), "one for each condition of ours"
    asked: list[promql_parser.VectorSelector] = []

    def visit(expression: promql_parser.Expr) -> None:
        if isinstance(expression, promql_parser.VectorSelector):
            asked.append(expression)

    for rule in group["rules"]:
        promql_parser.walk(promql_parser.parse(rule["expr"]), visit)
        grouped = re.findall(r"by \((\w+)\)", rule["expr"])
        shown = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
        assert set(shown) <= set(grouped), "the sum has no other labels"
    assert len(asked) >= 6
    for selector in asked:
        assert selector.name in known
        assert {matcher.name for matcher in selector.matchers.matchers} <= known[selector.name].keys()


def test_totals_only_grow(memory_engine: Engine):
    meters = Meters(memory_engine)
    minute = datetime(2025, 1, 1, tzinfo=UTC)
    meters.add([Point(minute, "t", "completed", 2, 5, 50), Point(minute, "t", "cancelled", UNTIMED, 1, 0)])
    meters.add([Point(minute, "t", "completed", 2, 7, 70)])
    meters.add([])
    meters.add([Point(minute, "t", "completed", 2, 4, 40), Point(minute, "t", "completed", 2, 3, 30)])
    assert meters.finished == {("t", "completed"): 7, ("t", "cancelled"): 1}
    assert sum(meters.buckets["t"]) == 7
    assert meters.run_ms == {"t": 70}


# -- the database is away ---------------------------------------------------------------------------------------------


def away(engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def opened() -> Any:
        raise error

    monkeypatch.setattr(engine, "_opened", opened)
    monkeypatch.setattr(engine, "_at_hand", lambda loop: None)


@pytest.fixture
async def cut(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    away(memory_engine, monkeypatch, StoreUnavailable("cannot reach postgresql://me:hunter2@db:5432/x"))
    async with client_of(make_app(memory_engine)) as client:
        yield client


async def test_everything_says_503(cut: httpx.AsyncClient):
    for path in (
        "/api/tasks",
        "/api/tasks/stats",
        "/api/controls",
        "/api/workers",
        "/api/series",
        "/metrics",
        "/readyz",
    ):
        answer = await cut.get(path)
        refused(answer, 503, "store_unavailable")
        assert answer.headers["retry-after"] == "2"
        assert "hunter2" not in answer.text
    for path, body in (("/api/tasks", {"type": "t", "payload": 1}), ("/api/tasks/pause", None)):
        refused(await cut.post(path, json=body), 503, "store_unavailable")
    assert (await cut.get("/healthz")).json() == {"status": "ok"}


async def test_an_unknown_token_cannot_be_judged_then(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    away(memory_engine, monkeypatch, StoreUnavailable("gone"))
    async with client_of(make_app(memory_engine), token="tl_perhaps-one-in-the-database") as client:
        refused(await client.get("/api/tasks"), 503, "store_unavailable")


async def test_the_public_check_tells_nothing(cut: httpx.AsyncClient):
    assert "db:5432" not in (await cut.get("/readyz")).text


@pytest.mark.parametrize("error", [StoreBusy("slow"), StoreFull("full"), SchemaMismatch("newer")])
async def test_other_troubles_of_the_store(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Any):
    away(memory_engine, monkeypatch, error)
    async with client_of(make_app(memory_engine)) as client:
        answer = await client.get("/api/tasks")
        refused(answer, 503, error.code)
        assert int(answer.headers["retry-after"]) > 0


async def test_a_request_that_takes_too_long(memory_engine: Engine, monkeypatch: pytest.MonkeyPatch):
    async def endless() -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(memory_engine, "stats", endless)
    async with client_of(make_app(memory_engine, request_seconds=0.1)) as client:
        refused(await client.get("/api/tasks/stats"), 503, "request_timeout")


async def test_ready(api: httpx.AsyncClient):
    assert (await api.get("/readyz")).json() == {"status": "ok"}
