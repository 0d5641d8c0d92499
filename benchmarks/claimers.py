"""What a claim costs as claimers are added: 1 to 256 of them on one PostgreSQL, each claiming ten tasks and completing
them, until a backlog is gone.

.venv-bench/bin/python -m benchmarks.claimers --claimers 1,16,256
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.cases import Run, Step
from benchmarks.costs import POLICY, new_noops
from benchmarks.crowd import make_schema
from benchmarks.stage import Stage
from tasklib import Config
from tasklib.core import decide
from tasklib.core.outcome import Completed
from tasklib.engine.backends import make_store
from tasklib.stores.values import ClaimRequest

CLAIMERS = (1, 4, 16, 64, 256)
PROCESSES = 4
BATCH = 10
TASKS = 30_000
DONE = Completed('{"value":1}', 0)
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Crowding:
    claimers: int
    rate: float
    """Tasks claimed and completed in a second."""
    median_ms: float
    """Of one claim, as its caller sees it."""
    p95_ms: float
    server_us: float
    """Processor time of the server for each task, claimed and completed."""


def claimers(run: Run, number: int) -> Iterator[Step]:
    """The cost of a claim against the number of claimers: not in a quick run."""
    for count in () if run.quick else CLAIMERS:
        yield Step(f"{count} claimers", lambda count=count: _note(run, count))


def _note(run: Run, count: int) -> None:
    run.book.crowding.append(vars(measured(run.stage, count, TASKS)))


def measured(stage: Stage, count: int, tasks: int) -> Crowding:
    with stage.store("postgres") as url:
        asyncio.run(_fill(url, tasks))
        stage.settle_down("postgres")
        before = _server_seconds(url)
        shares = [len(range(first, count, PROCESSES)) for first in range(min(PROCESSES, count))]
        processes = [_start(url, share) for share in shares]
        answers = [json.loads(process.communicate()[0]) for process in processes]
        spent = _server_seconds(url) - before
    # One clock for all processes; from when the first of them was connected.
    seconds = max(answer["ended"] for answer in answers) - min(answer["began"] for answer in answers)
    took = sorted(took for answer in answers for took in answer["claims"])
    assert sum(answer["tasks"] for answer in answers) == tasks
    return Crowding(
        count,
        tasks / seconds,
        statistics.median(took) * 1000,
        took[int(len(took) * 0.95)] * 1000,
        spent / tasks * 1e6,
    )


async def _fill(url: str, tasks: int) -> None:
    await make_schema(url)
    store = make_store(Config(database_url=url))
    await store.open()
    for _ in range(tasks // 1000):
        await store.insert(new_noops(1000))
    await store.close()


def _server_seconds(url: str) -> float:
    """Processor time of the server and of all its processes, those that have ended too."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    first = int(str(row[0]).split()[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return sum(_seconds(int(pid), 2) for pid in children) + _seconds(first, 4)


def _seconds(pid: int, fields: int) -> float:
    """User and system time; with four fields also that of children that were waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return sum(int(field) for field in stat[11 : 11 + fields]) / TICKS


def _start(url: str, count: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.claimers", "--work", url, "--claimers", str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)


async def _work(url: str, count: int) -> None:
    stores = [make_store(Config(database_url=url)) for _ in range(count)]
    for store in stores:
        await store.open()
        await store.stats()  # connected
    started = time.monotonic()
    took: list[float] = []
    done = 0

    async def claim_all(number: int) -> None:
        nonlocal done
        store = stores[number]
        request = ClaimRequest(
            worker_id=f"claimer-{os.getpid()}-{number}",
            names=("noop",),
            slots=BATCH,
            prefetch=0,
            lease_seconds=600,
            per_name={},
        )
        while True:
            began = time.monotonic()
            claimed = await store.claim(request)
            took.append(time.monotonic() - began)
            if claimed.claims:
                changes = [decide.settle(each, DONE, POLICY) for each in claimed.claims]
                await store.settle(changes)
                done += len(claimed.claims)
            elif claimed.next_due_in is None:  # nothing is left that others merely hold for a moment
                return

    await asyncio.gather(*map(claim_all, range(count)))
    print(json.dumps({"tasks": done, "claims": took, "began": started, "ended": time.monotonic()}))
    for store in stores:
        await store.close()


def table(found: Sequence[Crowding]) -> str:
    lines = [
        "| claimers | tasks/s | a claim of ten, median, ms | 95 of 100, ms | server time for each task, µs |",
        "|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {each.claimers} | {each.rate:,.0f} | {each.median_ms:.1f} | {each.p95_ms:.1f} | {each.server_us:.0f} |"
        for each in found
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claimers", description=__doc__)
    parser.add_argument("--claimers", default=",".join(map(str, CLAIMERS)), help="how many, with commas")
    parser.add_argument("--tasks", type=int, default=TASKS, help="the backlog, in thousands")
    parser.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(_work(given.work, int(given.claimers)))
        return
    with Stage() as stage:
        print(table([measured(stage, int(count), given.tasks) for count in given.claimers.split(",")]))


if __name__ == "__main__":
    main()
