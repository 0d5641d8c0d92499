"""`--watch`: a look that is repeated until somebody has seen enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from tasklib.cli.session import Session
from tasklib.cli.times import duration
from tasklib.engine.engine import Engine

T = TypeVar("T")

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")]
Every = Annotated[float, typer.Option("--every", parser=duration, metavar="DURATION", help="How often, with --watch.")]
EVERY_SECONDS = 2.0


def look_and_show(
    session: Session,
    look: Callable[[Engine], Awaitable[T]],
    show: Callable[[T], None],
    *,
    watch: bool,
    every: float,
) -> None:
    """Once, or on and on: on a terminal in place, in a pipe one after the other, with --json one line each time."""
    if not watch:
        show(session.run(look))
        return

    async def work(engine: Engine) -> None:
        while True:
            found = await look(engine)
            if session.out.live:
                session.out.console.clear()
            show(found)
            await asyncio.sleep(every)

    session.run(work)
