"""What every example starts with: the imports that documents leave out, no task defined yet, and a queue."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

import tasklib
from tasklib.api.sync import run_sync
from tasklib.core.registry import default_registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine

IMPORTS: dict[str, Any] = {"tasklib": tasklib, "asyncio": asyncio, "os": os, "UUID": UUID, "Config": tasklib.Config}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an example starts with: the missing imports, and no task defined yet."""
    monkeypatch.setattr(default_registry, "_types", {})
    return dict(IMPORTS)


@pytest.fixture
async def engine(backend_url: str) -> AsyncIterator[Engine]:
    """The queue that `tasklib.init` would have set, on each backend in turn."""
    engine = Engine(Config(database_url=backend_url))
    before = use_engine(engine)
    yield engine
    last = use_engine(before)
    for used in {engine, last or engine}:
        run_sync(used.close())
        await used.close()
