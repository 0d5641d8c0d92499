"""What a run consists of, by name: `make bench ONLY=pages,idle`. Each notes its figures in the book."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import duel, plan
from benchmarks.book import Book
from benchmarks.rounds import turn_of
from benchmarks.stage import Stage
from benchmarks.turn import Entry


@dataclass(frozen=True)
class Run:
    stage: Stage
    book: Book
    quick: bool
    missing: dict[str, str]
    """Packages that could not be installed, and why."""
    who: str = ""
    """Turns of contenders whose names contain this."""
    before: Path | None = None
    """Sources of an older revision, which takes part beside this one."""

    def entries(self, *names: str) -> list[Entry]:
        """Those of these that this run has."""
        found = {entry.name: entry for entry in plan.entries(self.quick, self.before)}
        return [found[name] for name in names if name in found]

    def takes_part(self, entry: Entry) -> bool:
        """Installed, and has not failed so far."""
        return entry.name not in self.book.failures and not any(package in self.missing for package in entry.packages)


@dataclass(frozen=True)
class Step:
    """What the progress bar moves by."""

    label: str
    do: Callable[[], None]


Case = Callable[[Run, int], Iterator[Step]]


def turns(run: Run, number: int) -> Iterator[Step]:
    """Goals 1 to 3, 6, 10, 14 and 18: everybody submits, drains and answers single tasks."""
    for entry in plan.entries(run.quick, run.before):
        if run.who.lower() not in entry.name.lower():
            continue
        yield Step(entry.name, lambda entry=entry: turn_of(entry, run.stage, run.book, number, run.missing))


def submits(run: Run, number: int) -> Iterator[Step]:
    """Goals 4, 10, 14 and 18: submits one at a time, beside the bare INSERT."""
    chunks, size = (6, 50) if run.quick else (20, 100)
    floor, *ours = run.entries(plan.FLOOR, plan.OURS, plan.BEFORE)
    groups = [
        [replace(floor, options={}), *ours, *_from_sync_code(plan.OURS_SYNC, run.entries(plan.OURS))],
        [
            *run.entries(plan.SQLITE_FLOOR, plan.SQLITE_OURS, plan.SQLITE_BEFORE),
            *_from_sync_code(plan.SQLITE_SYNC, run.entries(plan.SQLITE_OURS)),
        ],
        run.entries(plan.NATS_PEER, plan.NATS_OURS),
    ]
    for entries in filter(None, groups):
        yield Step(f"submit, {entries[0].engine}", _side_by_side(run, duel.submits, entries, number, chunks, size))


def together(run: Run, number: int) -> Iterator[Step]:
    """Goals 5 and 10: submits from 64 coroutines or 16 threads of one process, beside bare INSERTs."""
    chunks, size = (4, 500) if run.quick else (10, 2_000)
    [pool] = [replace(each, name=plan.POOL, path="floors.asyncpg_pool:PooledFloor") for each in run.entries(plan.FLOOR)]
    groups = [
        [_clients(pool, 64), *(_clients(each, 64) for each in run.entries(plan.OURS))]
        + [_clients(each, 16) for each in _from_sync_code(plan.OURS_SYNC, run.entries(plan.OURS))],
        [
            *(_clients(each, 1) for each in run.entries(plan.SQLITE_FLOOR)),
            *(_clients(each, 64) for each in run.entries(plan.SQLITE_OURS)),
            *(_clients(each, 16) for each in _from_sync_code(plan.SQLITE_SYNC, run.entries(plan.SQLITE_OURS))),
        ],
    ]
    for entries in groups:
        yield Step(f"together, {entries[0].engine}", _side_by_side(run, duel.together, entries, number, chunks, size))


def _clients(entry: Entry, number: int) -> Entry:
    return replace(entry, options={**entry.options, "clients": number})


def _from_sync_code(name: str, entries: Iterable[Entry]) -> list[Entry]:
    return [replace(entry, name=name, path="ours.queue:BlockingTasklib") for entry in entries]


def latency(run: Run, number: int) -> Iterator[Step]:
    """Goals 7, 10, 14 and 18: single tasks, beside INSERT + NOTIFY + claim by a waiting listener, and beside the
    peers."""
    chunks, size = (5, 12) if run.quick else (20, 20)
    groups = [
        run.entries(plan.FLOOR, plan.OURS, plan.BEFORE, *plan.POSTGRES_PEERS),
        run.entries(plan.SQLITE_OURS),
        run.entries(plan.NATS_PEER, plan.NATS_OURS),
    ]
    for entries in filter(None, groups):
        yield Step(f"latency, {entries[0].engine}", _side_by_side(run, duel.latencies, entries, number, chunks, size))


def _side_by_side(run: Run, measure: Callable[..., None], entries: list[Entry], *arguments: int) -> Callable[[], None]:
    def do() -> None:
        measure([entry for entry in entries if run.takes_part(entry)], run.stage, run.book, *arguments)

    return do
