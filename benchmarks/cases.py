"""What a run consists of, by name: `make bench ONLY=pages,idle`. Each notes its figures in the book."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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
    """Goals 1 to 4, 6, 10, 14: everybody submits, drains and answers single tasks."""
    for entry in plan.entries(run.quick):
        if run.who.lower() not in entry.name.lower():
            continue
        yield Step(entry.name, lambda entry=entry: turn_of(entry, run.stage, run.book, number, run.missing))


def submits(run: Run, number: int) -> Iterator[Step]:
    """Goals 5 and 10: one at a time, beside the bare INSERT."""
    by_name = {entry.name: entry for entry in plan.entries(True)}
    floor = replace(by_name[plan.FLOOR], options={})
    chunks, size = (6, 50) if run.quick else (20, 100)
    for entries in (
        [floor, by_name[plan.OURS], _from_sync_code(plan.OURS_SYNC, by_name[plan.OURS])],
        [
            by_name[plan.SQLITE_FLOOR],
            by_name[plan.SQLITE_OURS],
            _from_sync_code(plan.SQLITE_SYNC, by_name[plan.SQLITE_OURS]),
        ],
    ):
        yield Step(f"submit, {entries[0].engine}", _side_by_side(run, duel.submits, entries, number, chunks, size))


def _from_sync_code(name: str, entry: Entry) -> Entry:
    return replace(entry, name=name, path="ours.queue:BlockingTasklib")


def latency(run: Run, number: int) -> Iterator[Step]:
    """Goals 7 and 10: single tasks, beside INSERT + NOTIFY + claim by a waiting listener, and beside the peers."""
    by_name = {entry.name: entry for entry in plan.entries(run.quick)}
    chunks, size = (5, 12) if run.quick else (20, 20)
    peers = [by_name[name] for name in plan.POSTGRES_PEERS if name in by_name]
    for entries in ([by_name[plan.FLOOR], by_name[plan.OURS], *peers], [by_name[plan.SQLITE_OURS]]):
        yield Step(f"latency, {entries[0].engine}", _side_by_side(run, duel.latencies, entries, number, chunks, size))


def _side_by_side(run: Run, measure: Callable[..., None], entries: list[Entry], *arguments: int) -> Callable[[], None]:
    def do() -> None:
        measure([entry for entry in entries if run.takes_part(entry)], run.stage, run.book, *arguments)

    return do
