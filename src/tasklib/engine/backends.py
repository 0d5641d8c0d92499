"""Which engine serves which URL."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from tasklib.engine.config import Config
from tasklib.stores.protocol import Admin, Store


class Backend(Store, Admin, Protocol):
    """What every engine offers: the verbs and the care of its schema."""


# By name, so that an engine's driver is imported only when its URL is used.
_BACKENDS = {
    "sqlite": "tasklib.stores.sql.sqlite:SqliteStore",
    "memory": "tasklib.stores.sql.sqlite:SqliteStore",
    "postgresql": "tasklib.stores.sql.postgres:PostgresStore",
    "postgres": "tasklib.stores.sql.postgres:PostgresStore",
    "nats": "tasklib.stores.nats:NatsStore",
}


def make_store(config: Config, *, clock_offset: float = 0.0, call_timeout: float | None = None) -> Backend:
    """A store for the configured URL, not yet open. `call_timeout`: that of the settings unless given."""
    module, _, name = _BACKENDS[config.scheme].partition(":")
    factory = cast(Callable[..., Backend], getattr(import_module(module), name))
    timeout = config.call_timeout_seconds if call_timeout is None else call_timeout
    options: dict[str, object] = {"call_timeout": timeout, "clock_offset": clock_offset}
    if config.scheme.startswith("postgres"):
        options["pool_size"] = config.pool_size
    return factory(config.database_url, **options)
