"""NATS JetStream, server 2.12 and newer, through nats-py."""

from __future__ import annotations

from tasklib.core.errors import MissingExtra

try:
    import nats as _nats  # noqa: F401
except ImportError as _missing:
    raise MissingExtra("nats", "nats-py", "a nats:// queue") from _missing

from tasklib.stores.nats.store import NatsStore

__all__ = ["NatsStore"]
