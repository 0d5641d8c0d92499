"""Which engine serves which URL."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

from tasklib.core.errors import InvalidConfig
from tasklib.core.redact import mask_text
from tasklib.engine.config import Config
from tasklib.stores.base import Admin, Store


class Backend(Store, Admin, Protocol):
    """What every engine offers: the verbs and the care of its schema."""


# By name, so that an engine's driver is imported only when its URL is used.
_BACKENDS = {
    "sqlite": "tasklib.stores.sqlite:SqliteStore",
    "memory": "tasklib.stores.sqlite:SqliteStore",
    "postgresql": "tasklib.stores.postgres:PostgresStore",
    "postgres": "tasklib.stores.postgres:PostgresStore",
    "nats": "tasklib.stores.nats:NatsStore",
}


def make_store(config: Config, *, clock_offset: float = 0.0) -> Backend:
    """A store for the configured URL, not yet open."""
    url = config.database_url
    scheme = url.partition("://")[0].partition("+")[0].lower()
    target = _BACKENDS.get(scheme)
    if target is None or "://" not in url:
        known = ", ".join(f"{name}://" for name in _BACKENDS)
        raise InvalidConfig(
            f"database_url: cannot use {mask_text(url)!r:.120}; known are {known}", field="database_url"
        )
    module, _, name = target.partition(":")
    factory = cast(Callable[..., Backend], getattr(import_module(module), name))
    options: dict[str, object] = {"call_timeout": config.call_timeout_seconds, "clock_offset": clock_offset}
    if scheme.startswith("postgres"):
        options["pool_size"] = config.pool_size
    return factory(url, **options)
