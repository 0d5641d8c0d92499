"""The command `demo`: a queue, its dashboard, a worker, an agent and sample tasks, at work before one's eyes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tasklib.api.manager import AsyncTaskManager
from tasklib.cli.command import command
from tasklib.cli.exits import Exit
from tasklib.cli.output import Cell, styled
from tasklib.cli.record import attempts, remark, state_text, state_word
from tasklib.cli.serve import DEFAULT_PORT
from tasklib.cli.session import Session
from tasklib.cli.workerprocess import Lifeline, end, start
from tasklib.core.errors import MissingExtra, TaskConflict, TaskLibError
from tasklib.core.task import Task, TaskState, is_completed, is_terminal
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine

if TYPE_CHECKING:
    from tasklib.cli.demo_tasks import Scene

TASKS = "tasklib.cli.demo_tasks"
AGENT = "refund-agent"
_ROWS = 14  # in the live table: with its frame it fits a terminal of 24 lines
_TICK_SECONDS = 0.15
_TRICKLE_SECONDS = 2.0
_RUN_SECONDS = 0.8  # so long a task is seen running before it is cancelled, or its agent has done it
_LONGEST_SECONDS = 60.0  # it takes about five; a machine that needs this long is in trouble


def register(app: typer.Typer) -> None:
    command(app, "demo", example="tasklib demo --once")(demo)


def demo(
    session: Session,
    once: Annotated[bool, typer.Option("--once", help="Run through it once, print a summary and end.")] = False,
) -> None:
    """See a queue at work: tasks that succeed, retry, fail, wait, jump the queue, time out, are cancelled; a flow.

    Runs a real worker on a fresh SQLite file in a temporary folder, an agent that claims tasks by hand, and the HTTP
    API with the dashboard where the extra "server" is installed. Without --once new tasks keep coming until Ctrl-C.
    TASKLIB_DATABASE_URL is not used here; --database-url puts the demo's tasks into another queue.
    """
    folder = Path(tempfile.mkdtemp(prefix="tasklib-demo-"))
    show = Demo(session, folder, session.database_url or f"sqlite:///{folder}/tasklib-demo.db")
    try:
        asyncio.run(show.play(once=once))
    except KeyboardInterrupt:
        if once:
            raise
    if not show.report():
        raise typer.Exit(Exit.FAILED)


class Demo:
    """What is submitted, and what has become of it."""

    def __init__(self, session: Session, folder: Path, url: str) -> None:
        from tasklib.cli import demo_tasks  # here, so that no other command knows its task types

        self._tasks = demo_tasks
        self._out, self._folder, self._engine = session.out, folder, Engine(Config(database_url=url))
        self._live = Live(console=session.out.console, auto_refresh=False) if session.out.live else None
        self._played: list[tuple[Scene, Task]] = []
        self._api: str | None = None
        self._lifeline = Lifeline()
        self._begun = time.monotonic()

    def _seconds(self) -> float:
        return time.monotonic() - self._begun

    def _say(self, text: Cell) -> None:
        if not self._out.as_json:
            self._out.line(text)

    async def play(self, *, once: bool) -> None:
        self._say(f"A queue in {self._engine.config.shown_url}, a worker with four slots, an agent.")
        self._say("It ends by itself." if once else "Ctrl-C ends it.")
        use_engine(self._engine)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._engine.shutdown)
            stack.callback(self._lifeline.close)
            await self._serve(stack)
            self._begun = time.monotonic()
            for scene in self._tasks.OPENING:
                await self._submit(scene)
            await self._submit_flow()
            words = f"worker {TASKS} --queues default --concurrency 4 --poll-interval 0.2"
            worker = await self._start(stack, words, heartbeat_seconds="0.5", shutdown_grace_seconds="1")
            if self._live:
                stack.enter_context(self._live)
            await self._watch(worker, once)

    async def _serve(self, stack: AsyncExitStack) -> None:
        if not all(find_spec(package) for package in ("fastapi", "uvicorn")):
            self._say(f"{MissingExtra('server', 'fastapi', 'The HTTP API')}\n")
            return
        token = secrets.token_urlsafe(32)
        for port in (DEFAULT_PORT, 0):  # any, where that one is taken
            server = await self._start(stack, f"serve --json --port {port}", token=token)
            assert server.stdout is not None
            if told := await server.stdout.readline():
                break
        else:
            raise TaskLibError(f"the HTTP API did not start; its log is in {self._folder}")
        self._api = json.loads(told)["url"]
        # As Text: the token of this demo is there to be seen.
        self._say(Text(f"Its dashboard: {self._api}/login#token={token}"))
        self._say(Text(f'Its HTTP API:  curl -H "Authorization: Bearer {token}" {self._api}/api/tasks/stats\n'))

    async def _start(self, stack: AsyncExitStack, words: str, **settings: str) -> Process:
        """Settings are in its environment: every user of the machine can read a command line."""
        settings["database_url"] = self._engine.config.database_url
        env = {**os.environ, **{f"TASKLIB_{name.upper()}": value for name, value in settings.items()}}
        with (self._folder / f"{words.split()[0]}.log").open("wb") as log:
            process = await start(words.split(), self._lifeline, stdout=PIPE, stderr=log, env=env)
        stack.push_async_callback(end, process, 5.0)
        return process

    async def _submit(self, scene: Scene) -> None:
        self._began(scene, await (await scene.task.submit_async(**scene.arguments)).get_async())

    def _began(self, scene: Scene, task: Task) -> None:
        self._played.append((scene, task))
        self._tell(task, task.created_at)

    async def _submit_flow(self) -> None:
        handles = await self._tasks.put_together_a_flow()
        for scene, handle in zip(self._tasks.FLOW, handles, strict=True):
            self._began(scene, await handle.get_async())

    def _tell(self, task: Task, now: datetime) -> None:
        """Whenever a task changes, where no table can move."""
        if not self._live:
            line = f"{self._seconds():5.1f} s  {task.name:<15} {state_word(task):<10} {attempts(task):>4}  "
            self._say((line + _result(task, now)).rstrip())

    async def _watch(self, worker: Process, once: bool) -> None:
        latest = 0.0
        while not (once and all(is_terminal(task) for _, task in self._played)):
            await self._look()
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.wait(), _TICK_SECONDS)
                raise TaskLibError(f"the worker has ended; its log is in {self._folder}")
            if once and self._seconds() > _LONGEST_SECONDS:
                raise TaskLibError(f"not done after {_LONGEST_SECONDS:.0f} s; the logs are in {self._folder}")
            if not once and self._seconds() - latest > _TRICKLE_SECONDS:
                latest = self._seconds()
                await self._submit(random.choice(self._tasks.OPENING))

    async def _look(self) -> None:
        """What has become of the tasks, and what is to be done about them: the agent's work, and a cancel."""
        store, manager = await self._engine.store(), AsyncTaskManager(self._engine)
        await manager.claim_next(AGENT, names=[self._tasks.review_refund.name])
        now = await store.now()
        places = [at for at, (_, task) in enumerate(self._played) if not is_terminal(task)]
        for at, task in zip(places, await store.get([self._played[at][1].id for at in places]), strict=True):
            scene, before = self._played[at]
            if task is not None:
                self._played[at] = (scene, task)
                if (task.state, task.attempts) != (before.state, before.attempts):
                    self._tell(task, now)
        for scene, task in self._played:
            begun = task.started_at or now
            if task.state == TaskState.RUNNING and (now - begun).total_seconds() > _RUN_SECONDS:
                with suppress(TaskConflict):  # it ended in this moment
                    if task.worker_id == AGENT:
                        await manager.complete(task.id, self._tasks.review_refund(**task.kwargs), worker_id=AGENT)
                    elif scene.ends == TaskState.CANCELLED and not task.cancel_requested_at:
                        await self._engine.cancel(task.id)
        if self._live:
            self._live.update(self._table(now), refresh=True)

    def _table(self, now: datetime) -> Table:
        done = sum(is_terminal(task) for _, task in self._played)
        caption = f"{done} of {len(self._played)} done, {self._seconds():.0f} s"
        table = Table(box=None, pad_edge=False, caption=caption, caption_justify="left")
        for title, width in (("TASK", 14), ("WHAT IT SHOWS", 23), ("STATE", 9), ("TRIES", 5), ("RESULT", None)):
            table.add_column(title, no_wrap=True, min_width=width)
        for scene, task in self._played[-_ROWS:]:
            shows, result = styled(scene.shows, "dim"), styled(_result(task, now), "")
            table.add_row(task.name, shows, state_text(task), attempts(task), result)
        return table

    def report(self) -> bool:
        """What happened. False: a task ended otherwise than it should."""
        ended = [(scene, task) for scene, task in self._played if is_terminal(task)]
        wrong = [task.id for scene, task in ended if (task.state, task.attempts) != (scene.ends, scene.attempts)]
        if self._out.as_json:
            tasks = [{"id": task.id, "name": task.name, "state": task.state} for _, task in ended]
            told = {"database_url": self._engine.config.shown_url, "api": self._api, "tasks": tasks, "wrong": wrong}
            self._out.data(told)
            return not wrong
        self._say(Text(f"\n{len(ended)} tasks in {self._seconds():.0f} seconds", style="bold"))
        for scene, task in ended[-_ROWS:]:
            mark = ("!!", "bold red") if task.id in wrong else ("ok", "green")
            tries = f" after {task.attempts} attempt{'' if task.attempts == 1 else 's'}"
            self._say(Text.assemble("  ", mark, f"  {task.name:<15} {scene.shows:<24} ", state_text(task), tries))
        # Run from a virtualenv that is not active, the command is not on PATH: name it so that it can be pasted.
        program = "tasklib" if shutil.which("tasklib") else shlex.quote(sys.argv[0])
        ids = {task.name: task.id for _, task in reversed(self._played)}
        self._say(Text("\nThe queue is still there. Look around in it:", style="bold"))
        looks = (
            "list --state failed",
            f"show {ids.get('charge_card')}",
            f"retry {ids.get('import_feed')}",
            "stats",
            "schedule list",
        )
        for words in (*looks, f"worker {TASKS} --burst"):
            self._say(f"  {program} {words} --database-url {shlex.quote(self._engine.config.shown_url)}")
        return not wrong


def _result(task: Task, now: datetime) -> str:
    value = (task.result or {}).get("value")
    return json.dumps(value, ensure_ascii=False) if is_completed(task) else remark(task, now)
