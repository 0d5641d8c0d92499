"""The goals, as ratios inside one run: each with the spread of its rounds, and whether it was met by the median."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import cancels, flows, plan, schedules, startup, wire, worker_cost
from benchmarks.book import Book
from benchmarks.pages import LIMITS_MS


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
    """In the order of their numbers."""
    yield from _drains(book)
    yield from _submits(book)
    yield from _latency(book)
    yield from _crowds(book)
    yield from _sqlite(book)
    yield from _limits(book)
    yield from _worker(book)
    yield from _nats(book)
    for engine in ("postgres", "sqlite"):
        name = cancels.name_of(engine)
        yield Check(15, f"{name}, p50", book.values(name, "p50"), 20, False, "ms")
        yield Check(15, f"{name}, p99", book.values(name, "p99"), 200, False, "ms")
    yield from _pages(book)
    for what in startup.COMMANDS:
        yield Check(17, f"{what} : before", book.ratios(what, what, "start, now", "start, before"), 0.6, False)
    yield from _before(book)
    for engine in schedules.ENGINES:
        name = schedules.name_of(engine)
        yield Check(19, f"{name}: late by, p99", book.values(name, "p99"), 250, False, "ms")
        yield Check(19, f"{name}: share of a core in between", book.values(name, "cpu"), 1, False, "%")
    for engine in flows.ENGINES:
        name = flows.name_of(engine)
        yield Check(20, f"{name}: a hop of a chain : idle latency", book.values(name, "hop : idle"), 1.3, False)
        yield Check(20, f"{name}: 100,000 into one : plain drain", book.values(name, "fan-in : plain"), 0.9)
        yield Check(20, f"{name}: 10,000 chains of three : plain drain", book.values(name, "chains : plain"), 0.8)


def _drains(book: Book) -> Iterator[Check]:
    ratio, ours = book.ratios, plan.OURS
    yield Check(1, "drain, def tasks, one process : PgQueuer", ratio(ours, plan.PGQUEUER, "drain"), 3)
    yield Check(1, "drain, def tasks, one process : Procrastinate", ratio(ours, plan.PROCRASTINATE, "drain"), 100)
    what = "drain, def tasks, one process : bare loop on two connections"
    yield Check(1, what, ratio(ours, plan.FLOOR_TWO, "drain"), 0.8)
    yield Check(2, "drain, async def tasks : PgQueuer", ratio(plan.OURS_ASYNC, plan.PGQUEUER, "drain"), 3)
    yield Check(2, "drain, all defaults : the best setting", ratio(plan.OURS_DEFAULT, ours, "drain"), 0.95)
    yield Check(3, "drain, two processes : one", ratio(plan.OURS_TWO, ours, "drain"), 1.6)


def _submits(book: Book) -> Iterator[Check]:
    ratio, ours, floor = book.ratios, plan.OURS, plan.FLOOR
    yield Check(4, "submit one, async : bare INSERT", ratio(ours, floor, "alternating submit"), 0.85)
    yield Check(4, "submit one, sync : bare INSERT", ratio(plan.OURS_SYNC, floor, "alternating submit"), 0.75)
    yield Check(5, "submit from 64 coroutines : INSERTs through a pool", ratio(ours, plan.POOL, "together"), 4)
    yield Check(5, "submit from 16 threads : INSERTs through a pool", ratio(plan.OURS_SYNC, plan.POOL, "together"), 3)
    yield Check(5, "REST, POST, 64 clients : a constant", ratio("REST, POST", "REST, constant POST", "rate"), 0.8)
    yield Check(6, "submit_many : PgQueuer's bulk", ratio(ours, plan.PGQUEUER, "bulk"), 2.5)


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


def _crowds(book: Book) -> Iterator[Check]:
    empty = "drain of tasklib, empty table"
    for goal, what, target in (
        (8, "a million finished, a million future", 0.95),
        (8, "ten million finished", 0.9),
        (9, "256 types registered", 0.95),
        (9, "a rare type beside a million others", 0.95),
        (9, "64 idle workers", 0.95),
    ):
        yield Check(goal, f"drain, {what} : empty table", book.ratios(f"drain, {what}", empty, "drain"), target)


def _sqlite(book: Book) -> Iterator[Check]:
    ratio, ours, apsw = book.ratios, plan.SQLITE_OURS, plan.SQLITE_FLOOR
    yield Check(10, "SQLite, drain : Huey", ratio(ours, plan.HUEY, "drain"), 15)
    yield Check(10, "SQLite, drain : bare apsw loop", ratio(ours, apsw, "drain"), 0.5)
    yield Check(10, "SQLite, submit one, sync : bare INSERT", ratio(plan.SQLITE_SYNC, apsw, "alternating submit"), 0.85)
    yield Check(10, "SQLite, submit one, async : bare INSERT", ratio(ours, apsw, "alternating submit"), 0.7)
    yield Check(10, "SQLite, submit from 64 coroutines : bare INSERT", ratio(ours, apsw, "together"), 4)
    yield Check(10, "SQLite, idle latency p50", book.values(ours, "alternating p50"), 2.5, False, "ms")


def _limits(book: Book) -> Iterator[Check]:
    for kind in ("rate", "concurrency"):
        name = f"{kind} limit on one type"
        yield Check(11, f"{name}: the others : without", book.values(name, "others"), 0.95)
        yield Check(11, f"{name}: off its limit by", book.values(name, "off"), 3, False, "%")
    name = "concurrency limit on one type"
    reached = book.values(name, "others, limit reached")
    yield Check(11, f"{name}, reached all the time: the others : without", reached, 0.95)


def _worker(book: Book) -> Iterator[Check]:
    for what in (worker_cost.IDLE, worker_cost.IDLE_WITH_SCHEDULES):
        yield Check(12, f"{what}, statements a second", book.values(what, "statements"), 0.6, False, "/s")
        yield Check(12, f"{what}, share of a core", book.values(what, "cpu"), 0.3, False, "%")
    name = "worker's memory"
    yield Check(13, f"{name} at the start", book.values(name, "at the start"), 50, False, "MB")
    yield Check(13, f"{name} over 200,000 tasks", book.values(name, "growth"), 10, False, "MB")
    yield Check(13, f"{name} with 100,000 waiting", book.values(name, "waiting"), 10, False, "MB")
    waiting = book.values(name, "waiting on NATS")
    yield Check(13, f"{name} for each of 100,000 waiting, NATS", waiting, 200, False, "bytes")


def _nats(book: Book) -> Iterator[Check]:
    ratio, ours, peer = book.ratios, plan.NATS_OURS, plan.NATS_PEER
    yield Check(14, "NATS, one node, drain : taskiq-nats", ratio(ours, peer, "drain"), 2.5)
    yield Check(14, "NATS, one node, submit one : taskiq-nats", ratio(ours, peer, "alternating submit"), 0.95)
    yield Check(14, "NATS, one node, latency p50 : taskiq-nats", ratio(ours, peer, "alternating p50"), 1.5, False)
    yield Check(14, "NATS, drain, three nodes : one", ratio(plan.NATS_OURS_CLUSTER, ours, "drain"), 0.9)


def _before(book: Book) -> Iterator[Check]:
    """What takes longer the more it is does so upside down."""
    for what, measure, name, before in (
        ("drain", "drain", plan.OURS, plan.BEFORE),
        ("submit one", "alternating submit", plan.OURS, plan.BEFORE),
        ("submit_many", "bulk", plan.OURS, plan.BEFORE),
        ("SQLite, drain", "drain", plan.SQLITE_OURS, plan.SQLITE_BEFORE),
        ("SQLite, submit one", "alternating submit", plan.SQLITE_OURS, plan.SQLITE_BEFORE),
    ):
        yield Check(18, f"{what} : before", book.ratios(name, before, measure), 0.98)
    latency = book.ratios(plan.BEFORE, plan.OURS, "alternating p50")
    yield Check(18, "idle latency p50, before : now", latency, 0.98)


def _pages(book: Book) -> Iterator[Check]:
    for rows, limit in LIMITS_MS.items():
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
