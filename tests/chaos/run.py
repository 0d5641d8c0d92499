"""A chaos run: `python -m tests.chaos.run --backend postgres --duration 600 --seed 7`; `make chaos` runs both engines.
With `--seeds 20` it runs that many seeds, one after another, and sums them up.

Exit code 0: every fault of the list was struck, leases were lost, and the checker found nothing. Otherwise the seed and
the place of the history are printed.
"""

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tasklib.core.task import Task
from tasklib.stores.values import Filter
from tests.chaos import ledger, timetable
from tests.chaos.checker import check
from tests.chaos.deck import deck
from tests.chaos.faults import Missed, Registered
from tests.chaos.report import Result, figures, summary, write
from tests.chaos.story import tell
from tests.chaos.world import World

CREW = {"worker": 4, "submitter": 2, "operator": 1, "agent": 1}
"""Eight processes; on SQLite all of them on one file."""
BRIEF_CREW = {"worker": 3, "submitter": 1, "operator": 1, "agent": 1}
OVERTIME = 180.0
"""How much longer than asked a run goes on until each fault was struck."""
DRAIN_SECONDS = 180.0


class Striker:
    """Strikes one fault after another, each of the deck before any comes again."""

    def __init__(self, world: World, faults: list[Registered], gap: float) -> None:
        self._world, self._faults, self._gap = world, faults, gap
        self._left: list[Registered] = []
        self.struck: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.now: dict[int, str] = {}
        self.problems: list[str] = []
        self._broke: set[str] = set()

    @property
    def complete(self) -> bool:
        return not self._missing

    @property
    def _missing(self) -> list[Registered]:
        tried = self._broke.union(+self.struck)
        return [fault for fault in self._faults if fault.name not in tried]

    async def run(self, number: int, until: float) -> None:
        world = self._world
        while time.monotonic() < until or (not self.complete and time.monotonic() < until + OVERTIME):
            if time.monotonic() > until:
                busy = self.now.values()
                self._left = [fault for fault in self._missing if fault.name not in busy]
                if not self._left:  # others are at it
                    await world.pause(0.2)
                    continue
            if not self._left:
                self._left = world.rng.sample(self._faults, len(self._faults))
            fault = self._left.pop()
            self.now[number] = fault.name
            try:
                await fault.strike(world)
            except Missed as reason:
                self.missed[fault.name] += 1
                world.history.note("missed", name=fault.name, reason=str(reason))
            except Exception as error:
                self._broke.add(fault.name)
                self.problems.append(f"{fault.name}: {type(error).__name__}: {error}")
                world.history.note("broke", name=fault.name, error=repr(error))
            else:
                self.struck[fault.name] += 1
                world.history.note("fault", name=fault.name)
            self.now.pop(number, None)
            await world.pause(world.rng.uniform(0, 2 * self._gap))


async def chaos(
    backend: str,
    duration: float,
    seed: int,
    folder: Path,
    *,
    brief: bool = False,
    progress: bool = False,
) -> Result:
    begun = time.monotonic()
    world = World(backend, folder, seed)
    faults = deck(backend, brief=brief)
    striker = Striker(world, faults, gap=0.2 if brief else 0.5)
    problems: list[str] = []
    try:
        await world.open(BRIEF_CREW if brief else CREW)
        until = time.monotonic() + duration
        strikers = [asyncio.create_task(striker.run(number, until)) for number in range(1 if brief else 2)]
        telling = asyncio.create_task(_tell(world, striker, begun, duration)) if progress else None
        try:
            await asyncio.gather(*strikers)
            try:
                await world.drain(DRAIN_SECONDS)
            except TimeoutError:
                problems.append(
                    f"not drained within {DRAIN_SECONDS:.0f} s: {(await world.active()).value} tasks are left"
                )
        finally:
            for task in (*strikers, *([telling] if telling else [])):
                task.cancel()
            await asyncio.gather(*strikers, return_exceptions=True)
        await _write_down(world)
        problems += striker.problems + [f"crash: {each}" for each in world.crew.crashes]
        if world.path is not None:
            problems += [f"integrity: {row[0]}" for row in world.sql("PRAGMA integrity_check") if row[0] != "ok"]
    finally:
        await world.close()
    story = tell(world.history.lines())
    problems += check(story)
    problems += [f"tested nothing: {fault.name} was not struck" for fault in faults if not striker.struck[fault.name]]
    counted = figures(story, world.crew.replaced)
    if not counted.lost_leases:
        problems.append("tested nothing: no lease was lost")
    return Result(backend, seed, time.monotonic() - begun, folder, problems, counted, dict(striker.missed))


async def _tell(world: World, striker: Striker, begun: float, duration: float) -> None:
    """A line that says how it stands, on a terminal always the same one."""
    same = sys.stderr.isatty()
    while not world.over.is_set():
        await world.pause(1 if same else 15)
        gone, size = time.monotonic() - begun, world.history.path.stat().st_size / 1e6
        bar = "#" * int(20 * min(1.0, gone / duration))
        now = ", ".join(striker.now.values()) or "draining"
        line = (
            f"{world.backend:9}[{bar:20}] {gone:5.0f} s, {sum(striker.struck.values())} faults, "
            f"{world.crew.replaced} processes replaced, {size:.0f} MB of history; now: {now}"
        )
        print(f"\r\033[K{line[:150]}" if same else line, end="" if same else "\n", file=sys.stderr, flush=True)


async def _write_down(world: World) -> None:
    """The ledger and the rows that are left become part of the history."""
    after, page = 0, 2000
    while world.has_ledger:
        rows = await asyncio.to_thread(world.sql, ledger.read_page(world.backend, after, page))
        if not rows:
            break
        after = rows[-1][0]
        world.history.note("moves", rows=[row[1:] for row in rows])
    world.history.note("schedules", rows=await timetable.at_the_end(world.engine))
    cursor = None
    while True:
        found = await world.engine.page(Filter(), limit=500, cursor=cursor)
        world.history.note("final", rows=[_row(task) for task in found.tasks])
        cursor = found.next_cursor
        if cursor is None:
            return


def _row(task: Task) -> list[object]:
    times = (task.due_at, task.locked_until, task.started_at, task.completed_at)
    shown = [None if at is None else at.isoformat(timespec="microseconds").replace("+00:00", "Z") for at in times]
    result = None if task.result is None else json.dumps(task.result)
    head = ["", "final", str(task.id), task.version, task.state, task.worker_id, task.retry_count, task.max_retries]
    more = [task.name, task.unique_key, task.waits, (task.after or {}).get("cutBy")]
    return [*head, *shown, task.idempotency_key, result, *more]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--backend", choices=["sqlite", "postgres", "nats"], action="append")
    parser.add_argument("--duration", type=float, default=600.0, help="seconds for each backend")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--seeds", type=int, default=1, help="runs of each backend, with this seed and those after it")
    parser.add_argument("--brief", action="store_true", help="the short list of faults, as inside make test")
    parser.add_argument("--report", type=Path, default=Path("build/chaos"), help="where the reports go")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: nothing is left behind
    asked.report.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for seed in range(asked.seed, asked.seed + asked.seeds):
        for backend in asked.backend or ["sqlite", "postgres"]:
            folder = Path(tempfile.mkdtemp(prefix=f"tasklib-chaos-{backend}-"))
            result = asyncio.run(chaos(backend, asked.duration, seed, folder, brief=asked.brief, progress=True))
            results.append(result)
            print(f"\n{write(result, asked.report)}", flush=True)
            if asked.seeds > 1:  # also those of a series that is broken off
                (asked.report / "summary.md").write_text(summary(results))
            if result.problems:
                print(f"seed {seed}; the history is kept: {folder}/history.jsonl", file=sys.stderr)
            else:
                shutil.rmtree(folder, ignore_errors=True)
    if asked.seeds > 1:
        print(summary(results))
    return int(any(result.problems for result in results))


if __name__ == "__main__":
    sys.exit(main())
