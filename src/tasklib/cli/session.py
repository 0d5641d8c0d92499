"""What every command gets: its settings, its queue, and where it prints."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import typer

from tasklib.cli.output import Printer
from tasklib.core.errors import InvalidInput, StoreRefused
from tasklib.engine.audit import Auditor
from tasklib.engine.backends import Backend
from tasklib.engine.config import Config, is_missing
from tasklib.engine.default import current_engine, init_module, use_engine
from tasklib.engine.engine import Engine

T = TypeVar("T")

ACTOR = "command line"
SILENT_SECONDS = 1.0
REACH_SECONDS = 10.0
"""So long a command tries to reach its queue."""


class Session:
    def __init__(self, *, database_url: str | None, as_json: bool, debug: bool) -> None:
        self.database_url = database_url
        """As given on the command line; None leaves it to the environment."""
        self.out = Printer(as_json=as_json)
        self.debug = debug

    @cached_property
    def config(self) -> Config:
        return self.configure()

    @property
    def auditor(self) -> Auditor:
        """For what this command does, in the name of who runs it."""
        return Auditor(actor(), self.config.redact)

    def configure(self, **settings: Any) -> Config:
        """The settings: what the command line says; else what the application gave to `init()`, if it was loaded; else
        the environment."""
        chosen = None if init_module() is None else current_engine()
        if self.database_url is not None:
            settings["database_url"] = self.database_url
        elif chosen is not None:
            settings = {**chosen.config.given, **settings}
        return Config(**settings)

    def run(self, work: Callable[[Engine], Awaitable[T]], *, creates: bool = False) -> T:
        """Opens the queue, does the work and closes it. Only what stores something makes one where there is none."""

        async def in_loop() -> T:
            engine = Engine(self.config)
            engine.call_timeout = REACH_SECONDS
            try:
                with self._told(f"Trying to reach {self.config.place} ..."):
                    await self._open(engine, creates=creates)
                return await work(engine)
            finally:
                await engine.shutdown()

        return asyncio.run(in_loop())

    async def _open(self, engine: Engine, *, creates: bool) -> None:
        fresh = is_missing(self.config)
        if not creates:
            await check_there(engine)
        await engine.store()
        if fresh:
            self.out.note(f"Made the queue {self.config.place}.")

    @contextmanager
    def _told(self, text: str) -> Iterator[None]:
        """Says what keeps a person waiting."""
        saying = asyncio.get_running_loop().call_later(SILENT_SECONDS, self.out.note, text)
        try:
            yield
        finally:
            saying.cancel()

    def run_unopened(self, work: Callable[[Backend], Awaitable[T]], seconds: float = REACH_SECONDS) -> T:
        """For the care of a schema, which may be one that cannot be opened. `seconds`: for each call."""

        async def in_loop() -> T:
            engine = Engine(self.config)
            engine.call_timeout = seconds
            store = engine.new_store()
            try:
                with self._told(f"Waiting for {self.config.place} ..."):
                    return await work(store)
            finally:
                await store.close()

        return asyncio.run(in_loop())

    def confirm(self, question: str, *, yes: bool) -> None:
        """Asks a person. Where nobody can be asked, only --yes will do."""
        if yes:
            return
        if not typer.get_text_stream("stdin").isatty():
            raise InvalidInput(f"this would {question}; add --yes to do it without being asked", field="yes")
        if not typer.confirm(f"This will {question}. Go on?", err=True):
            self.out.note("Nothing was done.")
            raise typer.Exit(1)

    def adopt_app_config(self, **settings: object) -> Config:
        """The settings to use once an application's modules were imported. Tasks that submit further tasks use the same
        queue."""
        config = self.configure(**settings)
        use_engine(Engine(config))
        return config


def actor() -> str:
    try:
        return f"{getpass.getuser()} ({ACTOR})"
    except (OSError, KeyError):  # a container may know no name for its user
        return ACTOR


async def check_there(engine: Engine) -> None:
    """For what only reads: to open a queue that is not there would make it."""
    if is_missing(engine.config) or not await _has_schema(engine):
        raise StoreRefused(
            f"there is no queue at {engine.config.place}: the first submit or worker makes one; "
            "if there should be one, look at its URL, TASKLIB_DATABASE_URL and the directory you are in"
        )


async def _has_schema(engine: Engine) -> bool:
    store = engine.new_store()
    try:
        return not store.traits.shared_between_processes or await store.schema_version() is not None
    finally:
        await store.close()
