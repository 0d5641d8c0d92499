"""The command `demo`: a queue, a worker and sample tasks, at work before one's eyes."""

from __future__ import annotations

import asyncio
import random
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text

from tasklib.cli import record
from tasklib.cli.command import command
from tasklib.cli.demo_api import Api, ApiFailed, is_installed, serving
from tasklib.cli.demo_story import JUMPER, OPENING, Scene, everyday, jumped
from tasklib.cli.demo_view import Act, View, make_view
from tasklib.cli.exits import Exit
from tasklib.cli.loading import load
from tasklib.cli.output import Cell, Printer, styled
from tasklib.cli.session import Session
from tasklib.cli.workerprocess import Lifeline, WorkerProcess
from tasklib.core.errors import MissingExtra, TaskConflict, TaskLibError
from tasklib.core.task import TaskState, is_terminal
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter

TASKS = "tasklib.cli.demo_tasks"
_TICK_SECONDS = 0.15
_TRICKLE_SECONDS = 2.0
_RUN_BEFORE_CANCEL_SECONDS = 0.8
_COUNT_CAP = 10_000_000
_LONGEST_SECONDS = 60.0
"""The opening takes about five seconds; a machine that needs this long is in trouble."""
_WORKER_ENV = {"TASKLIB_HEARTBEAT_SECONDS": "0.5", "TASKLIB_SHUTDOWN_GRACE_SECONDS": "1"}
"""A cancelled task learns of it with the next heartbeat."""


def register(app: typer.Typer) -> None:
    command(app, "demo", panel="Run", example="tasklib demo --once")(demo)


def demo(
    session: Session,
    once: Annotated[bool, typer.Option("--once", help="Run through it once, print a summary and end.")] = False,
) -> None:
    """See a queue at work: tasks that succeed, retry, fail, wait, jump the queue, time out and are cancelled.

    Runs a real worker on a fresh SQLite file in a temporary folder, and beside it the HTTP API where the extra "server"
    is installed. Without --once new tasks keep coming until Ctrl-C.
    TASKLIB_DATABASE_URL is not used here; --database-url puts the demo's tasks into another queue.
    """
    folder = Path(tempfile.mkdtemp(prefix="tasklib-demo-"))
    url = session.database_url or f"sqlite:///{folder}/tasklib-demo.db"
    load([TASKS])
    stage = Stage(Engine(Config(database_url=url)), folder / "worker.log", make_view(session.out), session.out)
    if not session.out.as_json:
        where = stage.engine.config.shown_url
        session.out.line(f"A queue in {where}, a worker with four slots, {len(OPENING)} tasks.")
        session.out.line("It ends by itself." if once else "Ctrl-C ends it.")
    interrupted = False
    try:
        asyncio.run(stage.play(once=once))
    except KeyboardInterrupt:
        if once:
            raise
        interrupted = True
    _report(session.out, stage, interrupted=interrupted)
    if stage.failures:
        raise typer.Exit(Exit.FAILED)


class DemoFailed(TaskLibError):
    code = "demo_failed"


@dataclass
class Stage:
    """Where the demo takes place. What else is to run beside the worker is one more context in `play`."""

    engine: Engine
    log: Path
    view: View
    out: Printer
    api: Api | None = None
    agreed: int | None = None
    """How many tasks are completed, where the HTTP API and the table say the same."""
    scenes: dict[UUID, Scene] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    now: datetime | None = None
    """The queue's clock at the latest look."""

    async def play(self, *, once: bool) -> None:
        try:
            async with self._server():
                self.begun = time.monotonic()
                await self._submit(OPENING)
                async with self._worker() as worker:
                    with self.view.running():
                        await self._watch_opening(worker)
                        if not once:
                            await self._go_on(worker)
                await self.compare()
        finally:
            self.judge()
            await self.engine.close_for_good()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[None]:
        if not is_installed():
            self._say(f"{MissingExtra('server', 'fastapi', 'The HTTP API')}")
            self._say()
            yield
            return
        async with serving(self.engine.config.database_url, self.log.with_name("server.log")) as self.api:
            # As Text: the tokens of this demo are there to be seen.
            self._say(Text(f"Its HTTP API is at {self.api.url}. Sign in: {self.api.login}"))
            self._say(Text(f"  {self.api.example}"))
            self._say()
            yield

    def _say(self, text: Cell = "") -> None:
        if not self.out.as_json:
            self.out.line(text)

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator[WorkerProcess]:
        lifeline = Lifeline()
        arguments = [
            TASKS,
            "--concurrency",
            "4",
            "--poll-interval",
            "0.2",
            "--database-url",
            self.engine.config.database_url,
        ]
        try:
            with self.log.open("wb") as log:
                worker = await WorkerProcess.start(arguments, lifeline, env=_WORKER_ENV, stderr=log)
            try:
                yield worker
            finally:
                await worker.stop(5.0)
        finally:
            lifeline.close()

    async def compare(self) -> None:
        """What the HTTP API counts must be in the table."""
        if self.api is None:
            return
        before = await self._completed()
        try:
            told = await self.api.completed()
        except ApiFailed as error:
            self.failures.append(str(error))
            return
        after = await self._completed()
        if min(before, after) <= told <= max(before, after):  # in another queue other workers may be at work
            self.agreed = told
        else:
            self.failures.append(f"the HTTP API counts {told} completed tasks, the table has {after}")

    async def _completed(self) -> int:
        return (await self.engine.count(Filter(states=[TaskState.COMPLETED]), _COUNT_CAP)).value

    async def _submit(self, scenes: Sequence[Scene]) -> None:
        tasks = [scene.submission(self.engine.config) for scene in scenes]
        await self.engine.submit(tasks)
        self.scenes.update({task.id: scene for task, scene in zip(tasks, scenes, strict=True)})
        await self._look()

    async def _look(self) -> None:
        store = await self.engine.store()
        self.now = await store.now()
        known = {act.task.id: act for act in self.acts if is_terminal(act.task)}
        fresh = [task_id for task_id in self.scenes if task_id not in known]
        for task_id, task in zip(fresh, await store.get(fresh), strict=True):
            if task is None:
                raise DemoFailed(f"task {task_id} of the demo is gone: did somebody delete it?")
            known[task_id] = Act(self.scenes[task_id], task)
        self.acts = [known[task_id] for task_id in self.scenes]
        self.view.update(self.acts, self.now, self.seconds)

    async def _watch_opening(self, worker: WorkerProcess) -> None:
        while not all(is_terminal(act.task) for act in self.acts):
            if self.seconds > _LONGEST_SECONDS:
                late = ", ".join(act.task.name for act in self.acts if not is_terminal(act.task))
                raise DemoFailed(f"not done after {_LONGEST_SECONDS:.0f} s: {late}; the worker's log is {self.log}")
            await self._tick(worker)

    async def _go_on(self, worker: WorkerProcess) -> None:
        chance = random.Random()
        latest = self.seconds
        while True:
            await self._tick(worker)
            if self.seconds - latest >= _TRICKLE_SECONDS:
                latest = self.seconds
                await self._submit([everyday(chance)])

    async def _tick(self, worker: WorkerProcess) -> None:
        try:
            async with asyncio.timeout(_TICK_SECONDS):
                code = await worker.ended()
        except TimeoutError:
            await self._look()
            await self._cancel_some()
            return
        last = self.log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise DemoFailed(f"the worker ended with exit code {code}: {last[0]}")

    async def _cancel_some(self) -> None:
        for act in self.acts:
            task = act.task
            if act.scene.cancel_when != task.state or task.cancel_requested_at is not None or self.now is None:
                continue
            since = task.started_at or task.created_at
            if (self.now - since).total_seconds() >= _RUN_BEFORE_CANCEL_SECONDS:
                with suppress(TaskConflict):  # it ended in this moment; whether as it should is judged later
                    await self.engine.cancel(task.id)

    def judge(self) -> None:
        for act in self.acts:
            if is_terminal(act.task) and not act.scene.went_well(act.task):
                got = f"{act.task.state} after {act.task.attempts} attempts"
                self.failures.append(f"{act.task.name} {act.task.id}: {got}, expected {_expected(act.scene)}")
        opening = [act.task for act in self.acts[: len(OPENING)]]
        if opening and all(map(is_terminal, opening)) and not jumped(opening):
            self.failures.append(f"{opening[JUMPER].name} has the highest priority, and others started before it")


def _expected(scene: Scene) -> str:
    return f"{scene.ends.value} after {scene.attempts} attempts"


# -- the end ----------------------------------------------------------------------------------------------------------


def _report(out: Printer, stage: Stage, *, interrupted: bool) -> None:
    finished = [act for act in stage.acts if is_terminal(act.task)]
    if out.as_json:
        out.data(_as_data(stage, finished))
        return
    if interrupted:
        out.line()
    out.line()
    out.line(Text(f"What happened in {stage.seconds:.0f} seconds", style="bold"))
    for act in finished[: len(OPENING)]:
        good = act.scene.went_well(act.task)
        tries = "1 attempt" if act.task.attempts == 1 else f"{act.task.attempts} attempts"
        out.line(
            Text.assemble(
                ("  ok  ", "green") if good else ("  !!  ", "bold red"),
                f"{act.task.name:<21} {act.scene.shows:<28} ",
                record.state_text(act.task),
                styled(f" after {tries}", ""),
            )
        )
    if len(finished) > len(OPENING):
        out.line(f"      and {len(finished) - len(OPENING)} more.")
    if stage.agreed is not None:
        told = f"{stage.agreed} completed"
        out.line(Text.assemble(("  ok  ", "green"), f"{'HTTP API':<21} {'agrees with the table':<28} {told}"))
    for failure in stage.failures:
        out.line(Text(f"  !!  {failure}", style="bold red"))
    _suggest(out, stage)


def _suggest(out: Printer, stage: Stage) -> None:
    url = shlex.quote(stage.engine.config.shown_url)
    # Run from a virtualenv that is not active, the command is not on PATH: name it so that it can be pasted.
    program = "tasklib" if shutil.which("tasklib") else shlex.quote(sys.argv[0])
    ids = {act.scene.name: act.task.id for act in reversed(stage.acts)}
    out.line()
    out.line(Text("The queue is still there. Look around in it:", style="bold"))
    for words, why in (
        ("list --state failed", "what went wrong"),
        (f"show {ids.get('charge_card')}", "every attempt of the retried task"),
        (f"retry {ids.get('import_feed')}", "a failed task anew"),
        (f"worker {TASKS} --burst", "run what is due"),
        ("stats", "counts by type and state"),
    ):
        out.line(Text.assemble(("  # ", "dim"), (why, "dim")))
        out.line(f"  {program} {words} --database-url {url}")


def _as_data(stage: Stage, finished: Sequence[Act]) -> dict[str, Any]:
    return {
        "ok": not stage.failures and all(map(is_terminal, (act.task for act in stage.acts[: len(OPENING)]))),
        "seconds": round(stage.seconds, 1),
        "database_url": stage.engine.config.shown_url,
        "api": {"url": stage.api.url} if stage.api else None,
        "failures": stage.failures,
        "tasks": [
            {
                "id": act.task.id,
                "name": act.task.name,
                "shows": act.scene.shows,
                "state": act.task.state,
                "attempts": act.task.attempts,
                "as_expected": act.scene.went_well(act.task),
            }
            for act in finished
        ],
    }
