"""An upgrade under load: `python -m tests.upgrade.run --engine postgres --duration 120`; `make upgrade` runs both
engines.

Workers and submitters of schema version 1 are at work on a table with many finished tasks; `tasklib migrate` is run;
workers and submitters of this version join them; then the old ones are stopped. Exit code 0: whatever was promised ran
as often as it should, nothing was lost, nobody saw an error, and what cannot go on was refused in words that say what
to do.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tasklib import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import NameStats
from tests.queues import as_default
from tests.servers import PostgresServer
from tests.upgrade import app
from tests.upgrade.filling import fill
from tests.upgrade.old import ROOT, NotInThisClone, old_source
from tests.upgrade.promises import Promises, broken_promises
from tests.upgrade.submitter import rules
from tests.waiting import eventually_async, pause
from tests.worker.processes import WorkerProcess, fleet_on

ENGINES = ("sqlite", "postgres")
WORKERS = 2
DRAIN_SECONDS = PATIENCE_SECONDS = 120
LONGEST_CALL_SECONDS = 10.0
"""No submit may take longer, the migration included."""


@dataclass
class Verdict:
    engine: str
    figures: dict[str, object] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: object, text: str) -> None:
        if not holds:
            self.problems.append(text)

    def tell(self) -> None:
        print(f"{self.engine}: " + ("exactly once, nothing lost" if not self.problems else "FAILED"))
        for name, value in self.figures.items():
            print(f"  {name:<34}{value}")
        for problem, times in Counter(self.problems).most_common(20):
            print(f"  problem, {times} times: {problem}")


class Upgrade:
    def __init__(self, engine: str, url: str, folder: Path, stack: ExitStack) -> None:
        self.verdict = Verdict(engine)
        self.promises: list[Promises] = []
        self._url = url
        self._folder = folder
        self._stack = stack
        self._old = {"PYTHONPATH": str(old_source(folder / "old"))}
        self._fleet = stack.enter_context(fleet_on(url, folder, "tests.upgrade.worker"))

    async def run(self, duration: float, rows: int) -> Verdict:
        verdict = self.verdict
        done = self._command(self._old, "migrate")
        verdict.expect(done.returncode == 0, f"the old code makes no tables: {done.stderr}")
        await asyncio.to_thread(fill, self._url, rows)
        old_workers = [self._worker(self._old) for _ in range(WORKERS)]
        old_submitter = self._submitter("old", self._old)
        await pause(duration * 0.3)
        refused = await asyncio.to_thread(self._worker({}).wait, PATIENCE_SECONDS)
        verdict.expect(
            refused != 0 and "tasklib migrate" in self._fleet.workers[-1].said,
            "a new worker ran on tables of version 1",
        )
        ran_before = len(self._fleet.journal)

        begun = time.monotonic()
        done = await asyncio.to_thread(self._command, {}, "migrate")
        verdict.figures["migration took"] = f"{time.monotonic() - begun:.1f} s, its start included"
        verdict.expect(done.returncode == 0, f"the migration failed: {done.stderr}")
        if verdict.problems:
            return verdict

        new_workers = [self._worker({}) for _ in range(WORKERS)]
        new_submitter = self._submitter("new", {})
        await pause(duration * 0.35)
        await self._refuses_the_old()
        old_pids = {str(worker.process.pid) for worker in old_workers}
        by_old = sum(line[-1] in old_pids for line in self._fleet.journal[ran_before:])
        for worker in old_workers:
            verdict.expect(worker.process.poll() is None, f"an old worker died: {worker.said[-500:]}")
            worker.send(signal.SIGTERM)
        for worker in old_workers:
            code = await asyncio.to_thread(worker.wait, PATIENCE_SECONDS)
            verdict.expect(code == 0, f"an old worker ended with {code}: {worker.said[-500:]}")
        self._end(old_submitter)

        await pause(duration * 0.35)
        self._end(new_submitter)
        async with as_default(Engine(Config(database_url=self._url))) as engine:
            await self._drained(engine)
            await self._check(engine)
        for worker in new_workers:
            verdict.expect(worker.process.poll() is None, f"a new worker died: {worker.said[-500:]}")
        for worker in (*old_workers, *new_workers):
            said = worker.said
            verdict.expect(
                "Traceback" not in said or "the first attempt" in said, f"a worker complained: {said[-500:]}"
            )
            verdict.expect(" lost" not in said, f"a worker lost a claim: {said[-500:]}")
        ran_after = len(self._fleet.journal) - ran_before
        verdict.figures["starts before the migration"] = f"{ran_before:,}"
        verdict.figures["starts after it, by old workers"] = f"{by_old:,}"
        verdict.figures["starts after it, by new workers"] = f"{ran_after - by_old:,}"
        verdict.expect(by_old > 0 and ran_after > by_old > 0, "old and new workers did not work side by side")
        return verdict

    async def _refuses_the_old(self) -> None:
        late = self._worker(self._old)
        try:
            code = await asyncio.to_thread(late.wait, PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = 0
        self.verdict.expect(
            code != 0 and "upgrade tasklib" in late.said, f"an old worker started anew: {late.said[-300:]}"
        )
        back = await asyncio.to_thread(self._command, self._old, "migrate")
        said = back.stdout + back.stderr
        self.verdict.expect(back.returncode != 0 and "upgrade tasklib" in said, f"a downgrade: {said}")

    async def _drained(self, engine: Engine) -> None:
        left: dict[str, NameStats] = {}

        async def idle() -> bool:
            left.update(await engine.stats())
            return not any(each.pending + each.running + each.waiting for each in left.values())

        begun = time.monotonic()
        try:
            await eventually_async(idle, DRAIN_SECONDS, interval=0.2)
        except AssertionError:
            for name, each in left.items():
                waits = f"{each.pending} pending, {each.waiting} wait for a retry, {each.running} running"
                self.verdict.problems.append(f"not all ran within {DRAIN_SECONDS} s: {name}: {waits}")
        self.verdict.figures["ran after the submits for"] = f"{time.monotonic() - begun:.1f} s"

    async def _check(self, engine: Engine) -> None:
        verdict = self.verdict
        store = await engine.store()
        starts: Counter[str] = Counter(line[-2] for line in self._fleet.journal)
        for promises in self.promises:
            promises.read()
            verdict.figures[f"promised by the {promises.name} submitter"] = f"{len(promises.made):,}"
            verdict.figures[f"longest call of the {promises.name} submitter"] = f"{promises.longest:.2f} s"
            unlisted = [error for error in promises.errors if promises.name == "old" and "no such index" in error]
            if unlisted:
                verdict.figures["lists refused to the old submitter"] = f"{len(unlisted)}, as the documentation says"
            verdict.problems += [f"the {promises.name} submitter: {e}" for e in promises.errors if e not in unlisted]
            verdict.expect(promises.longest < LONGEST_CALL_SECONDS, f"a call took {promises.longest:.1f} s")
            verdict.problems += await broken_promises(store, promises, starts)
        known = {task_id for promises in self.promises for task_id in promises.made}
        verdict.expect(not set(starts) - known, "tasks ran that nobody was promised")
        for rule in (rule for number in range(5) for rule in rules(number)):
            handle = await app.work.options(unique=rule).submit_async(0)
            verdict.expect(handle.created, f"the key {rule.key!r} is held by a task that is over")

    def _worker(self, env: dict[str, str]) -> WorkerProcess:
        return self._fleet.start(8, env=env, dead_after_seconds=60.0, heartbeat_seconds=5.0)

    def _submitter(self, name: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
        promises = Promises(name, self._folder / f"promises-{name}")
        self.promises.append(promises)
        command = [sys.executable, "-m", "tests.upgrade.submitter", self._url, str(promises.path)]
        process = subprocess.Popen(command, cwd=ROOT, env=_environment(env), stdin=subprocess.PIPE)
        self._stack.callback(process.kill)
        return process

    def _end(self, submitter: "subprocess.Popen[bytes]") -> None:
        assert submitter.stdin is not None
        submitter.stdin.close()
        self.verdict.expect(submitter.wait(PATIENCE_SECONDS) == 0, "a submitter failed")

    def _command(self, env: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "tasklib", *words, "--database-url", self._url]
        return subprocess.run(command, cwd=ROOT, env=_environment(env), capture_output=True, text=True, timeout=300)


def _environment(env: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{env.get('PYTHONPATH', '')}:{ROOT / 'src'}:{ROOT}".lstrip(":")}


def run(engine: str, duration: float, rows: int) -> Verdict:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tasklib-upgrade-")))
        url = f"sqlite:///{folder}/tasks.db"
        if engine == "postgres":
            url = stack.enter_context(PostgresServer()).dsn
        return asyncio.run(Upgrade(engine, url, folder, stack).run(duration, rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, help="both, one after the other, unless it is said")
    parser.add_argument("--duration", type=float, default=120, help="seconds for each engine, and then the drain")
    parser.add_argument("--rows", type=int, default=200_000, help="finished tasks that are there before")
    options = parser.parse_args()
    verdicts = []
    for engine in [options.engine] if options.engine else ENGINES:
        print(f"{engine}: {options.duration:g} s on {options.rows:,} finished tasks", flush=True)
        try:
            verdicts.append(run(engine, options.duration, options.rows))
        except NotInThisClone as error:
            print(error, file=sys.stderr)
            return 2
        verdicts[-1].tell()
    return int(any(verdict.problems for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
