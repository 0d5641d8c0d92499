"""The command `copy`: a queue moves to another database."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from tasklib.cli.command import command
from tasklib.cli.exits import Exit
from tasklib.cli.output import Printer
from tasklib.cli.progress import progress_bar
from tasklib.cli.session import Session, check_there
from tasklib.core.errors import InvalidInput
from tasklib.engine.config import Config
from tasklib.engine.copying import Copied, copy
from tasklib.engine.engine import Engine


def register(app: typer.Typer) -> None:
    example = "tasklib copy sqlite:///tasklib.db postgresql://localhost/shop"
    command(app, "copy", example=example)(copy_queue)


def copy_queue(
    session: Session,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The URL of the queue to read.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", help="The URL of the queue to write.", show_default=False)],
) -> None:
    """Copy all tasks to another database: ids, states, keys, results and history; schedules, pauses, limits, tokens.

    Stop the workers of both queues first. What was there before stays, and nothing in the first queue is changed. A
    copy that broke off goes on when it is started again. SQLite keeps times to the millisecond, the others to the
    microsecond.
    """
    if session.database_url is not None:
        raise InvalidInput("--database-url: the queues are the arguments FROM and TO", field="database-url")
    if source == target:
        raise InvalidInput("TO: this is the queue to copy from", field="TO")
    done = asyncio.run(_copy(source, target, session.out))
    if session.out.as_json:
        session.out.data(
            {"copied": done.copied, "already": done.already, "refused": [str(task_id) for task_id in done.refused]}
        )
    else:
        session.out.line(f"{done.copied:,} tasks were copied, {done.already:,} were there already.")
    if done.refused:
        session.out.note(
            f"{len(done.refused):,} tasks were left out: other tasks there have their ids or their idempotency keys. "
            f"The first is {done.refused[0]}."
        )
        raise typer.Exit(Exit.FAILED)


async def _copy(source: str, target: str, out: Printer) -> Copied:
    engines = Engine(Config(database_url=source)), Engine(Config(database_url=target))
    for engine in engines:
        engine.call_timeout = engine.config.call_timeout_seconds  # whole pages at a time
    try:
        await check_there(engines[0])
        with progress_bar(out, "Copying") as bar:
            line = bar.add_task("")

            def show(done: Copied) -> None:
                bar.update(line, completed=done.seen, total=max(done.total, done.seen))

            return await copy(*engines, show)
    finally:
        for engine in engines:
            await engine.shutdown()
