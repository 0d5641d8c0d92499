"""A soak: moderate load for an hour, a fault every ten seconds, and nothing may grow.

`make soak`, or `python -m tests.chaos.soak --backend postgres --duration 3600 --seed 7`. One worker is spared by the
faults that kill, so that there is a process to measure from the beginning to the end; its lines break like all others.
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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.chaos.checker import RULES
from tests.chaos.crew import Member
from tests.chaos.deck import deck
from tests.chaos.faults import Missed
from tests.chaos.samples import GAUGES, MEGABYTE, judge
from tests.chaos.soak_chart import draw
from tests.chaos.story import tell
from tests.chaos.world import World

CREW = {"steady": 1, "worker": 2, "submitter": 1, "operator": 1, "agent": 1}
EVERY = 10.0
KEEP = 60.0
"""Retention, so that the table has a level to stay at."""
SETTINGS = {"keep_completed_seconds": KEEP, "keep_failed_seconds": KEEP}
SERVER = {"max_wal_size": "64MB", "min_wal_size": "32MB"}
SAMPLES = 600
"""About so many, however long it takes."""
DRAIN_SECONDS = 180.0
UNTOLD = ("nothing lost",)
"""Rules that want every task to be there at the end; here retention removes them. The drain shows that none is left."""


@dataclass
class Soak:
    world: World
    times: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=lambda: {gauge.name: [] for gauge in GAUGES})
    strikes: list[tuple[float, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def sample(self, spared: Member, begun: float) -> None:
        process = psutil.Process(spared.pid)
        try:
            table, wal, connections = await asyncio.to_thread(_sizes, self.world)
        except Exception:  # the database is away, which is what the faults are for
            return
        measured = {
            "memory": process.memory_info().rss / MEGABYTE,
            "descriptors": process.num_fds(),
            "threads": process.num_threads(),
            "connections": connections,
            "table": table / MEGABYTE,
            "WAL": wal / MEGABYTE,
        }
        self.times.append(time.monotonic() - begun)
        for name, value in measured.items():
            self.values[name].append(value)

    async def strike(self, begun: float, until: float) -> None:
        faults = deck(self.world.backend, soak=True)
        left: list[str] = []
        by_name = {fault.name: fault for fault in faults}
        while time.monotonic() < until:
            if not left:
                left = self.world.rng.sample(list(by_name), len(by_name))
            name = left.pop()
            next_at = time.monotonic() + EVERY
            try:
                await by_name[name].strike(self.world)
                self.strikes.append((time.monotonic() - begun, name))
                self.world.history.note("fault", name=name)
            except Missed as reason:
                self.world.history.note("missed", name=name, reason=str(reason))
            except Exception as error:
                self.problems.append(f"{name}: {type(error).__name__}: {error}")
            await self.world.pause(max(0.0, next_at - time.monotonic()))


def _sizes(world: World) -> tuple[int, int, int]:
    """The table with its indexes, the write-ahead log, and how many are connected."""
    if world.path is not None:
        wal = world.path.with_name(f"{world.path.name}-wal")
        return world.path.stat().st_size, wal.stat().st_size if wal.exists() else 0, 0
    [row] = world.sql(
        "SELECT pg_total_relation_size('tasks'), (SELECT sum(size) FROM pg_ls_waldir()), "
        "(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
    )
    return int(row[0]), int(row[1]), int(row[2])


async def soak(backend: str, duration: float, seed: int, folder: Path) -> Soak:
    world = World(backend, folder, seed, settings=SETTINGS, server=SERVER, ledger=False)
    soak = Soak(world)
    try:
        await world.open(CREW)
        (spared,) = world.crew.by_role("steady")
        begun = time.monotonic()
        until = begun + duration
        striking = asyncio.create_task(soak.strike(begun, until))
        told = begun
        while time.monotonic() < until and spared.alive:
            await soak.sample(spared, begun)
            if time.monotonic() - told > 15:
                told = time.monotonic()
                latest = ", ".join(f"{name} {values[-1]:.0f}" for name, values in soak.values.items() if values)
                line = f"{backend} {told - begun:.0f} s, {len(soak.strikes)} faults: {latest}"
                print(line, file=sys.stderr, flush=True)
            await world.pause(max(0.5, duration / SAMPLES))
        if not spared.alive:
            soak.problems.append(f"the worker that is spared died:\n{spared.said[-2000:]}")
        await striking
        try:
            await world.drain(DRAIN_SECONDS)
        except TimeoutError:
            soak.problems.append(f"not drained within {DRAIN_SECONDS:.0f} s")
        soak.problems += [f"crash: {each}" for each in world.crew.crashes]
    finally:
        await world.close()
    story = tell(world.history.lines())
    for name, rule in RULES.items():
        if name not in UNTOLD:
            soak.problems += [f"{name}: {found}" for found in rule(story)]
    return soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--duration", type=float, default=3600.0, help="seconds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--report", type=Path, default=Path("build/soak"), help="where chart and figures go")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix=f"tasklib-soak-{asked.backend}-"))
    result = asyncio.run(soak(asked.backend, asked.duration, asked.seed, folder))
    asked.report.mkdir(parents=True, exist_ok=True)
    judged = [judge(gauge, result.values[gauge.name]) for gauge in GAUGES]
    problems = result.problems + [str(each) for each in judged if not each.flat]
    kept = {"seed": asked.seed, "times": result.times, "values": result.values, "strikes": result.strikes}
    (asked.report / f"soak-{asked.backend}.json").write_text(json.dumps(kept) + "\n")
    draw(result.times, result.values, result.strikes, judged, asked.report / f"soak-{asked.backend}.png")
    print(f"soak on {asked.backend}, seed {asked.seed}: {len(result.strikes)} faults in {asked.duration:.0f} s")
    print("\n".join(map(str, judged)))
    if problems:
        print(f"FAILED; the history is kept: {folder}\n" + "\n".join(problems[:30]), file=sys.stderr)
        return 1
    with suppress(OSError):
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
