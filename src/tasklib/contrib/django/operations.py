"""tasklib's own migrations as operations of Django's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import router
from django.db.migrations.operations.base import Operation

from tasklib.contrib.django.backend import TasklibBackend
from tasklib.contrib.django.compat import task_backends
from tasklib.stores.sql.queries import load_steps, made_by_steps

PUBLIC = "public"


class TakeStep(Operation):
    """One step, in each PostgreSQL database that holds a queue of TASKS. Where it was taken before, by a worker that
    was first or by `tasklib migrate`, it is not taken again."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, version: int) -> None:
        self.version = version

    def state_forwards(self, app_label: str, state: Any) -> None:
        pass

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        step = load_steps("postgres")[self.version - 1]
        for schema in _schemas(schema_editor.connection.alias, app_label):
            quoted = schema_editor.quote_name(schema)
            if schema_editor.collect_sql or _version(schema_editor.connection, quoted) < self.version:
                if schema != PUBLIC:
                    schema_editor.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted}")
                schema_editor.execute(step.script(quoted), params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """The first takes all with it, tasks included. Later ones only added to it: that stays."""
        if self.version > 1:
            return
        for schema in _schemas(schema_editor.connection.alias, app_label):
            quoted = schema_editor.quote_name(schema)
            for kind in ("TABLE", "FUNCTION"):
                for name in made_by_steps("postgres", kind):
                    schema_editor.execute(f"DROP {kind} IF EXISTS {quoted}.{schema_editor.quote_name(name)}")

    def describe(self) -> str:
        return f"Makes the tables of tasklib, step {self.version}"


def _schemas(database: str, app_label: str) -> Iterator[str]:
    if router.allow_migrate(database, app_label):
        for alias in task_backends.settings:
            backend = task_backends[alias]
            if isinstance(backend, TasklibBackend):
                options = backend.queue_options
                if options.database == database and options.in_database:
                    yield options.schema or PUBLIC


def _version(connection: Any, quoted_schema: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f"{quoted_schema}.task_migrations"])
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(f"SELECT coalesce(max(version), 0) FROM {quoted_schema}.task_migrations")  # noqa: S608 (quoted)
        return int(cursor.fetchone()[0])
