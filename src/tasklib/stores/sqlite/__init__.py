"""The SQLite store: one file for many processes of one machine, or a queue in this process's memory."""

from tasklib.stores.sqlite.memory import forget_memory
from tasklib.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "forget_memory"]
