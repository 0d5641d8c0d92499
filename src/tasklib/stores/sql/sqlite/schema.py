"""The migrations of a SQLite file, inside a transaction of the caller's."""

from __future__ import annotations

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.sql.migrate import Migrations
from tasklib.stores.sql.sqlite.batches import Target
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.statements import play

MIGRATIONS = Migrations("sqlite", "main", where="the database", elsewhere="use another file")


def version(target: Target) -> int | None:
    return play(target, MIGRATIONS.version(), Clock(0.0)).result


def missing(target: Target) -> list[str]:
    return play(target, MIGRATIONS.missing(), Clock(0.0)).result


def migrate(target: Target) -> list[str]:
    return play(target, MIGRATIONS.migrate(), Clock(0.0)).result


def is_there(target: Target) -> bool:
    """Raises SchemaMismatch unless this tasklib can work with it."""
    return play(target, MIGRATIONS.check(), Clock(0.0)).result


def prepare(target: Target) -> None:
    """Gives an empty database its tables."""
    if not is_there(target):
        migrate(target)


def check(target: Target) -> None:
    if not is_there(target):
        raise SchemaMismatch("the database has no tables yet; run: tasklib migrate")
