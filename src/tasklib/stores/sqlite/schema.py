"""The schema of the queue: what there is, what should be there, and the way between."""

from __future__ import annotations

import apsw

from tasklib.core.errors import SchemaMismatch
from tasklib.stores import queries
from tasklib.stores.sqlite.batches import SQL, Target, values_of

STEPS = queries.load_steps(__package__ or "")
CURRENT = STEPS[-1].version


def scripts() -> list[tuple[str, str]]:
    """Each step as a script that people run themselves: it records itself, so that the store knows what was done."""
    first = f"{SQL['create_migrations']};\n\n"
    record = "INSERT INTO task_migrations (version, name) VALUES ({}, '{}');\n"
    return [
        (step.name, f"{first if step.version == 1 else ''}{step.sql}\n{record.format(step.version, step.name)}")
        for step in STEPS
    ]


def version(target: Target) -> int | None:
    """None: there is no schema yet. Raises SchemaMismatch for tables that are not ours."""
    tables = values_of(target, SQL["has_tables"])
    if "task_migrations" not in tables:
        if tables:
            raise SchemaMismatch("the database has a table tasks that is not tasklib's; use another file")
        return None
    found: int = target.execute(SQL["schema_version"]).get
    return found


def pending(found: int | None) -> list[queries.Step]:
    return [step for step in STEPS if step.version > (found or 0)]


def check(found: int | None) -> None:
    """Raises unless this version of tasklib can work with it."""
    if found is None or found < CURRENT:
        raise SchemaMismatch(
            f"the schema of the queue is at version {found or 0}, this tasklib needs {CURRENT}: run `tasklib migrate`"
        )
    if found > CURRENT:
        raise SchemaMismatch(
            f"the schema of the queue is at version {found}, this tasklib knows up to {CURRENT}: upgrade tasklib"
        )


def prepare(connection: apsw.Connection) -> None:
    """Gives an empty database its schema, inside the caller's transaction; any other must be current."""
    if version(connection) is None:
        migrate(connection)
    check(version(connection))


def migrate(connection: apsw.Connection) -> list[str]:
    """Takes the steps that are missing, inside the caller's transaction; their names."""
    found = version(connection)
    if found is None:
        connection.execute(SQL["create_migrations"])
    elif found > CURRENT:
        check(found)
    steps = pending(found)
    for step in steps:
        connection.execute(step.sql).fetchall()
        connection.execute(SQL["record_migration"], {"version": step.version, "name": step.name})
    return [step.name for step in steps]
