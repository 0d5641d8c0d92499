"""What the shell offers on Tab: names of task types and ids of tasks, as the queue has them. It never complains."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import typer

from tasklib.cli import record
from tasklib.cli.text import clean
from tasklib.engine.config import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter

PATIENCE_SECONDS = 2.0
LATEST = 100

Offer = tuple[str, str]
"""A word, and what to say about it."""


def task_names(ctx: typer.Context, incomplete: str) -> list[Offer]:
    async def look(engine: Engine) -> list[Offer]:
        names = {*await engine.stats(), *(name for worker in await engine.workers() for name in worker.names)}
        return [(name, "") for name in sorted(names)]

    return _offered(ctx, incomplete, look)


def task_ids(ctx: typer.Context, incomplete: str) -> list[Offer]:
    async def look(engine: Engine) -> list[Offer]:
        page = await engine.page(Filter(), limit=LATEST)
        return [(str(task.id), f"{clean(task.name)}, {record.state_word(task)}") for task in page.tasks]

    return _offered(ctx, incomplete, look)


def _offered(ctx: typer.Context, incomplete: str, look: Callable[[Engine], Awaitable[list[Offer]]]) -> list[Offer]:
    async def in_loop() -> list[Offer]:
        engine = Engine(Config(**_settings(ctx)))
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                store = engine.new_store()
                try:
                    there = await store.schema_version() is not None
                finally:
                    await store.close()
                return await look(engine) if there else []  # a look at an empty database would make its tables
            finally:
                await engine.shutdown()

    try:
        found = asyncio.run(in_loop())
    except Exception:  # there is no place to say it: somebody is typing
        return []
    return [offer for offer in found if offer[0].startswith(incomplete)]


def _settings(ctx: typer.Context) -> dict[str, Any]:
    """The queue that was named on the line so far, before or behind the command."""
    contexts = (ctx, ctx.parent)
    given = (each.params.get("database_url") for each in contexts if each is not None)
    url = next((url for url in given if url is not None), None)
    return {} if url is None else {"database_url": url}
