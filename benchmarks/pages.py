"""Goal 16: what the REST API takes to answer, with millions of finished tasks in the table.

Server time is the time inside the application, from the request to the last byte of the answer: no network, no client.
Every request is made ten times; the first is a cold one, so the worst tells of it. Alone, and against the code of
another checkout:

    PYTHONPATH=/other/src python -m benchmarks.pages --rows 1m
"""

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

import tasklib
from benchmarks import servers
from benchmarks.crowd import COMMON, DAYS, RARE, UNKNOWN, Crowd, fill
from benchmarks.stage import remove_sqlite
from tasklib import Config
from tasklib.core.ids import uuid7
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.server import ServerSettings, create_app

CALLS = 10
TOKEN = "a-token-for-the-benchmark"
LIMITS_MS = {1_000_000: 100.0, 10_000_000: 200.0}
SOUGHT = (
    "endedAfter={hour}",
    "endedBefore={oldest}",
    "tag=tenant:t7",
    "tag=tenant:nobody",
    "tag=tenant:4711",
    "error=ConnectionError",
    "error=never-seen",
    "payload=number:4711",
    "payload=to:user7@example.com",
    "word=example.com",
    "word=user7@example",
    "word=never-seen",
    "word=4711&tag=tenant:t11",
)
GIVE_UP = 20.0
"""Seconds that one request may take; it is then not tried again."""


@dataclass(frozen=True)
class Timing:
    engine: str
    rows: int
    label: str
    status: int
    found: int | None
    """Tasks in the answer, of a list."""
    median_ms: float
    worst_ms: float
    limit_ms: float

    @property
    def met(self) -> bool:
        return self.status < 500 and self.median_ms < self.limit_ms


def limit_of(rows: int) -> float:
    return next((limit for most, limit in LIMITS_MS.items() if rows <= most), LIMITS_MS[10_000_000])


def requests(newest: UUID, oldest: UUID) -> Iterator[tuple[str, str, Any]]:
    """Label, path and body of everything a page of the dashboard, or a script of an operator, may ask for."""
    now = datetime.now(UTC)
    at = {
        "hour": now - timedelta(hours=1),
        "middle": now - timedelta(days=DAYS / 2),
        "oldest": now - timedelta(days=DAYS) + timedelta(minutes=10),
        "before": now - timedelta(days=DAYS + 30),
        "future": now + timedelta(days=30),
    }
    instant = {name: quote(moment.isoformat()) for name, moment in at.items()}
    # Any id will do to continue behind.
    cursors = {
        "halfway": uuid7(int(at["middle"].timestamp() * 1000), 0, 0),
        "last": uuid7(int(at["oldest"].timestamp() * 1000), 0, 0),
    }
    lists = [
        "",
        "limit=100",
        *(f"type={name}" for name in (COMMON, RARE, UNKNOWN)),
        f"type={RARE}&type={UNKNOWN}",
        *(f"status={status}" for status in ("pending", "processing", "completed", "failed", "cancelled")),
        "status=failed&finished=true",
        "status=failed&finished=false",
        "finished=true",
        "finished=false",
        *(f"type={name}&status={status}" for name in (COMMON, RARE) for status in ("failed", "completed", "cancelled")),
        f"type={COMMON}&status=pending",
        f"type={UNKNOWN}&status=completed",
        "createdAfter={hour}",
        "createdAfter={middle}",
        "createdAfter={future}",
        "createdBefore={middle}",
        "createdBefore={oldest}",
        "createdBefore={before}",
        "createdAfter={before}&createdBefore={oldest}",
        f"type={COMMON}&createdBefore={{oldest}}",
        f"type={RARE}&createdAfter={{middle}}",
        "status=failed&createdBefore={oldest}",
        "status=cancelled&createdAfter={hour}",
        "endedAfter={hour}",
        "endedBefore={oldest}",
        "endedAfter={hour}&status=failed&finished=true",
        "endedAfter={middle}&status=failed&finished=true",
        "endedBefore={oldest}&status=completed",
        f"endedAfter={{hour}}&type={RARE}",
        "sort=ended&status=failed",
        "sort=ended&status=cancelled",
        f"sort=ended&status=failed&type={RARE}",
        "sort=ended&status=failed&error=never-seen",
        "sort=ended&status=failed&endedBefore={middle}",
        *(f"namePrefix={prefix}" for prefix in ("send_", "rare_", "none_")),
        "namePrefix=rare_&status=completed",
        "namePrefix=send_&status=failed",
        "tag=tenant:t7",
        "tag=campaign:spring",
        "tag=tenant:nobody",
        "tag=tenant:t7&status=failed",
        "error=ConnectionError",
        "error=DiskFull",
        "error=never-seen",
        "error=never-seen&status=failed",
        "word=user7@example",
        "word=4711",
        "word=never-seen",
        "word=example.com",
        "word=never-seen&status=failed",
        f"word=user7@example&type={RARE}",
        "word=went&word=away",
        "payload=number:4711",
        "payload=to:user7@example.com",
        f"payload=number:4711&type={RARE}",
        "idempotencyKey=never-seen",
        "shortId=0123456789ab",
        "shortId=0123456789ab&status=failed",
        # What no index has, among the tasks of a type that has most of them: found often, rarely, and never.
        *(f"type={COMMON}&{sought}" for sought in SOUGHT),
        *(f"type={COMMON}&status=completed&{sought}" for sought in SOUGHT),
        f"type={COMMON}&status=failed&endedAfter={{hour}}&finished=true",
        f"type={COMMON}&status=failed&error=ConnectionError",
        f"type={COMMON}&createdAfter={{middle}}&tag=tenant:t7",
        f"type={COMMON}&cursor={{halfway}}&tag=tenant:t7",
        f"type={COMMON}&cursor={{halfway}}&word=never-seen",
        f"type={COMMON}&type=resize_image&tag=tenant:t7",
        "namePrefix=send_&tag=tenant:t7",
        "status=completed&tag=tenant:nobody",
        "finished=true&word=never-seen",
        "sort=duration",
        f"sort=duration&type={COMMON}",
        "sort=duration&status=processing",
        "sort=duration&status=failed&error=ConnectionError",
        "sort=duration&word=user7@example",
        "cursor={halfway}",
        "cursor={last}",
        f"cursor={{halfway}}&type={COMMON}",
        f"cursor={{halfway}}&type={RARE}",
        f"cursor={{halfway}}&type={UNKNOWN}",
        "cursor={halfway}&status=failed",
        "cursor={halfway}&status=cancelled",
        "offset=10000",
        "offset=100000",
        "offset=10000&status=failed",
        f"offset=10000&type={COMMON}",
        f"offset=10000&type={RARE}",
    ]
    for query in lists:
        yield f"list {query or '(all)'}", f"/api/tasks?{query.format(**instant, **cursors)}", None
    yield "stats", "/api/tasks/stats", None
    yield "detail, newest", f"/api/tasks/{newest}", None
    yield "detail, oldest", f"/api/tasks/{oldest}", None
    yield "detail, missing", f"/api/tasks/{cursors['halfway']}", None
    yield "series, an hour", "/api/series?minutes=60", None
    yield "series, two days", "/api/series?minutes=2880", None
    yield "series, one type", f"/api/series?minutes=2880&type={RARE}", None
    yield "types", "/api/types", None
    yield "one type", f"/api/types/{COMMON}", None
    yield "workers", "/api/workers", None
    yield "controls", "/api/controls", None
    yield "audit", "/api/audit", None
    yield "metrics", "/metrics", None
    for label, action, where in [
        ("retry status=failed", "retry", {"status": ["failed"]}),
        (f"cancel type={COMMON}", "cancel", {"type": [COMMON]}),
        (f"delete type={COMMON}, a tag", "delete", {"type": [COMMON], "tags": {"tenant": "t7"}}),
        (f"delete type={COMMON}, a word", "delete", {"type": [COMMON], "words": ["example.com"]}),
        (f"delete type={COMMON}, no tag", "delete", {"type": [COMMON], "tags": {"tenant": "nobody"}}),
        (f"delete type={RARE}", "delete", {"type": [RARE]}),
        ("delete createdBefore={before}", "delete", {"createdBefore": at["before"].isoformat()}),
    ]:
        yield f"dry run, {label}", f"/api/tasks/bulk/{action}", {"filter": where, "dryRun": True}


class Timed:
    """Around the application: notes how long it took, the last byte included."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.seconds = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        began = time.perf_counter()
        try:
            await self.app(scope, receive, send)
        finally:
            self.seconds = time.perf_counter() - began


async def ask(url: str, rows: int, only: str = "", calls: int = CALLS) -> list[Timing]:
    """Every request on one queue."""
    engine = Engine(Config(database_url=url))
    app = Timed(create_app(engine, registry=Registry(), settings=ServerSettings(token=TOKEN)))
    found: list[Timing] = []
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", headers={"Authorization": f"Bearer {TOKEN}"}
    ) as client:
        newest, oldest = await _ends(client)
        for label, path, body in requests(newest, oldest):
            if only not in label:
                continue
            took: list[float] = []
            status = 0
            while len(took) < calls and (not took or took[-1] < GIVE_UP):
                answer = await (client.get(path) if body is None else client.post(path, json=body))
                status = answer.status_code
                took.append(app.seconds)
            if status >= 400 and label != "detail, missing":
                print(f"  {label}: {status} {answer.text[:200]}")
            name = "SQLite" if url.startswith("sqlite:") else "PostgreSQL"
            median, worst = statistics.median(took) * 1000, max(took) * 1000
            listed = len(answer.json()["tasks"]) if label.startswith("list ") and status == 200 else None
            found.append(Timing(name, rows, label, status, listed, median, worst, limit_of(rows)))
    await engine.close()
    return found


async def _ends(client: httpx.AsyncClient) -> tuple[UUID, UUID]:
    newest = (await client.get("/api/tasks?limit=1&status=completed")).json()["tasks"][0]["id"]
    before = quote((datetime.now(UTC) - timedelta(days=DAYS) + timedelta(hours=2)).isoformat())
    tasks = (await client.get(f"/api/tasks?limit=1&createdBefore={before}")).json()["tasks"]
    return UUID(newest), UUID(tasks[0]["id"] if tasks else newest)


@contextmanager
def filled(engine: str, folder: Path, rows: int, server: str | None) -> Iterator[str]:
    """A queue with so many finished tasks."""
    if engine == "sqlite":
        file = folder / f"pages-{rows}.db"
        url = f"sqlite:///{file}"
        fill(url, Crowd(finished=rows))
        try:
            yield url
        finally:
            remove_sqlite(file)
    else:
        assert server
        with servers.database(server, f"pages_{rows}") as url:
            fill(url, Crowd(finished=rows))
            yield url


def table(timings: list[Timing]) -> str:
    """Markdown, what missed its limit first."""
    lines = [
        "| engine | finished | request | found | median, ms | worst | limit | |",
        "|---|--:|---|--:|--:|--:|--:|---|",
    ]
    for each in sorted(timings, key=lambda each: (each.met, -each.median_ms)):
        mark = "met" if each.met else f"**MISSED** ({each.status})"
        found = "" if each.found is None else str(each.found)
        cells = [each.engine, f"{each.rows:,}", each.label, found, f"{each.median_ms:.1f}", f"{each.worst_ms:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {each.limit_ms:.0f} | {mark} |")
    missed = sum(not each.met for each in timings)
    return "\n".join([*lines, "", f"{len(timings)} requests, {missed} missed (by the median)."])


def _number(text: str) -> int:
    units = {"k": 1_000, "m": 1_000_000}
    return int(float(text[:-1]) * units[text[-1].lower()]) if text[-1].lower() in units else int(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Server time of every REST request with many finished tasks in the table.",
        epilog="Another checkout: PYTHONPATH=/other/src python -m benchmarks.pages --only 'list type'",
    )
    parser.add_argument("--rows", type=_number, default=1_000_000, help="finished tasks: 200k, 1m, 10m (default 1m)")
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append", help="default: both")
    parser.add_argument("--only", default="", help="requests whose label contains this")
    parser.add_argument("--calls", type=int, default=CALLS, help="how often each request is made (default 10)")
    parser.add_argument("--folder", type=Path, help="where the data lie (default: the temporary folder)")
    given = parser.parse_args()
    print(f"tasklib from {Path(tasklib.__file__).parent}")
    folder = Path(tempfile.mkdtemp(prefix="tasklib-pages-", dir=given.folder))
    folder.chmod(0o755)
    timings: list[Timing] = []
    try:
        for engine in given.engine or ["sqlite", "postgres"]:
            with _server(engine, folder) as server, filled(engine, folder, given.rows, server) as url:
                print(f"{engine}: filled with {given.rows:,}")
                timings += asyncio.run(ask(url, given.rows, given.only, given.calls))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(timings))


@contextmanager
def _server(engine: str, folder: Path) -> Iterator[str | None]:
    if engine == "sqlite":
        yield None
    else:
        with servers.postgres(folder) as server:
            yield server


if __name__ == "__main__":
    main()
