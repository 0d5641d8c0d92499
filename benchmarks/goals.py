"""The goals, as ratios inside one run: each with the spread of its rounds, and whether it was met by the median."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import cancels, plan, schedules, wire
from benchmarks.book import Book


@dataclass(frozen=True)
class Check:
    goal: int
    what: str
    values: list[float]
    """One for each round; none: not measured in this run."""
    target: float
    at_least: bool = True
    unit: str = "x"

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        if self.median is None:
            return None
        return self.median >= self.target if self.at_least else self.median <= self.target


def checks(book: Book) -> Iterator[Check]:
    ratio, ours, floor = book.ratios, plan.OURS, plan.FLOOR
    yield Check(1, "drain, def tasks, one process : PgQueuer", ratio(ours, plan.PGQUEUER, "drain"), 2.5)
    yield Check(1, "drain, def tasks, one process : Procrastinate", ratio(ours, plan.PROCRASTINATE, "drain"), 50)
    yield Check(1, "drain, def tasks, one process : bare asyncpg loop, n=500", ratio(ours, floor, "drain"), 0.6)
    yield Check(2, "drain, async def tasks : PgQueuer", ratio(plan.OURS_ASYNC, plan.PGQUEUER, "drain"), 2.5)
    yield Check(3, "drain, all defaults : Procrastinate", ratio(plan.OURS_DEFAULT, plan.PROCRASTINATE, "drain"), 5)
    yield Check(4, "drain, two processes : one", ratio(plan.OURS_TWO, ours, "drain"), 1.4)
    yield Check(5, "submit one, async : bare INSERT", ratio(ours, floor, "alternating submit"), 0.85)
    yield Check(5, "submit one, sync : bare INSERT", ratio(plan.OURS_SYNC, floor, "alternating submit"), 0.75)
    for verb in ("POST", "GET"):
        yield Check(
            5, f"REST, {verb}, 16 clients : a constant", ratio(f"REST, {verb}", f"REST, constant {verb}", "rate"), 0.5
        )
    yield Check(6, "submit_many : PgQueuer's bulk", ratio(ours, plan.PGQUEUER, "bulk"), 2)
    yield Check(6, "submit_many : bare COPY", ratio(ours, floor, "bulk"), 0.4)
    yield from _latency(book)
    empty = "drain of tasklib, empty table"
    for what, target in (
        ("a million finished, a million future", 0.9),
        ("ten million finished", 0.8),
    ):
        yield Check(8, f"drain, {what} : empty table", ratio(f"drain, {what}", empty, "drain"), target)
    for what in ("256 types registered", "a rare type beside a million others", "64 idle workers"):
        yield Check(9, f"drain, {what} : empty table", ratio(f"drain, {what}", empty, "drain"), 0.8)
    sqlite, apsw = plan.SQLITE_OURS, plan.SQLITE_FLOOR
    yield Check(10, "SQLite, drain : Huey", ratio(sqlite, plan.HUEY, "drain"), 10)
    yield Check(10, "SQLite, submit one, sync : bare INSERT", ratio(plan.SQLITE_SYNC, apsw, "alternating submit"), 0.8)
    yield Check(10, "SQLite, submit one, async : bare INSERT", ratio(sqlite, apsw, "alternating submit"), 0.8)
    yield Check(10, "SQLite, idle latency p50", book.values(sqlite, "alternating p50"), 5, False, "ms")
    for kind in ("rate", "concurrency"):
        name = f"{kind} limit on one type"
        yield Check(11, f"{name}: the others : without", book.values(name, "others"), 0.95)
        yield Check(11, f"{name}: off its limit by", book.values(name, "off"), 5, False, "%")
    name = "concurrency limit on one type"
    reached = book.values(name, "others, limit reached")
    yield Check(11, f"{name}, reached all the time: the others : without", reached, 0.95)
    yield Check(12, "idle worker, statements a second", book.values("idle worker", "statements"), 1, False, "/s")
    yield Check(12, "idle worker, share of a core", book.values("idle worker", "cpu"), 1, False, "%")
    yield Check(13, "worker's memory over 200,000 tasks", book.values("worker's memory", "growth"), 10, False, "MB")
    yield Check(13, "worker's memory with 100,000 waiting", book.values("worker's memory", "waiting"), 10, False, "MB")
    waiting = book.values("worker's memory", "waiting on NATS")
    yield Check(13, "worker's memory for each of 100,000 waiting, NATS", waiting, 200, False, "bytes")
    yield Check(14, "NATS, one node, drain : taskiq-nats", ratio(plan.NATS_OURS, plan.NATS_PEER, "drain"), 2)
    for engine in ("postgres", "sqlite"):
        name = cancels.name_of(engine)
        yield Check(15, f"{name}, p50", book.values(name, "p50"), 20, False, "ms")
        yield Check(15, f"{name}, p99", book.values(name, "p99"), 200, False, "ms")
    yield from _pages(book)
    for engine in schedules.ENGINES:
        name = schedules.name_of(engine)
        yield Check(19, f"{name}: late by, p99", book.values(name, "p99"), 250, False, "ms")
        yield Check(19, f"{name}: share of a core in between", book.values(name, "cpu"), 1, False, "%")


def _latency(book: Book) -> Iterator[Check]:
    for measure in ("p50", "p99"):
        values = book.ratios(plan.OURS, plan.FLOOR, f"alternating {measure}")
        yield Check(7, f"idle latency {measure} : bare floor", values, 1.3, False)
    for measure in ("p50", "p99"):
        alternating = f"alternating {measure}"
        peers = [peer for peer in plan.POSTGRES_PEERS if book.values(peer, alternating)]
        if peers:
            best = min(peers, key=lambda peer: book.median(peer, alternating) or 0)
            what = f"idle latency {measure} : best PostgreSQL peer ({best})"
            yield Check(7, what, book.ratios(plan.OURS, best, alternating), 1, False)


def _pages(book: Book) -> Iterator[Check]:
    for rows, limit in ((1_000_000, 100), (10_000_000, 300)):
        for engine in ("PostgreSQL", "SQLite"):
            found = [page for page in book.pages if page["rows"] == rows and page["engine"] == engine]
            slowest = [max(page["median_ms"] for page in found)] if found else []
            what = f"REST, slowest of {len(found)} requests, {rows:,} finished, {engine}"
            yield Check(16, what if found else f"REST, {rows:,} finished, {engine}", slowest, limit, False, "ms")
    sizes = {each["what"]: each["bytes"] / (each["seconds"] or 1) / 1000 for each in book.wire}
    for what, limit, unit in (
        (wire.VIEWER, wire.LIMIT_KB, "KB/s"),
        (wire.FIRST_LOAD, wire.FIRST_LOAD_KB, "KB"),
    ):
        yield Check(16, what, [sizes[what]] if what in sizes else [], limit, False, unit)
