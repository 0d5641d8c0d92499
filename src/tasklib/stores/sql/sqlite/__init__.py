"""The SQLite store: one file for many processes of one machine, or a queue in this process's memory."""

from tasklib.stores.sql.sqlite.memory import forget_memory
from tasklib.stores.sql.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "forget_memory"]
