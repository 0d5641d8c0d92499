"""PostgreSQL 12 and newer, through asyncpg."""

from __future__ import annotations

from tasklib.core.errors import MissingExtra

try:
    import asyncpg as _asyncpg  # noqa: F401
except ImportError as _missing:
    raise MissingExtra("postgres", "asyncpg", "a postgresql:// database") from _missing

from tasklib.stores.sql.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
