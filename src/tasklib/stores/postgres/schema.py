"""The schema's version, and the way to the newest: one transaction under an advisory lock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg

from tasklib.core.errors import SchemaMismatch, StoreBusy
from tasklib.stores.postgres.calls import Calls, transaction
from tasklib.stores.postgres.connect import Connection, Target
from tasklib.stores.queries import Step, load_steps

STEPS = load_steps("tasklib.stores.postgres")
NEWEST = STEPS[-1].version

PATIENCE_SECONDS = 60.0
"""So long a migration tries to get at tables that others have locked."""
_PAUSE_SECONDS = 1.0


def steps_for(target: Target) -> list[Step]:
    return [step._replace(sql=step.sql.replace("{schema}", target.quoted_schema)) for step in STEPS]


def scripts(target: Target) -> list[tuple[str, str]]:
    """Each step as a script that people run themselves: it records itself, so that the store knows what was done."""
    record = "INSERT INTO {}.task_migrations (version, name) VALUES ({}, '{}');\n"
    return [
        (step.name, f"{step.sql}\n{record.format(target.quoted_schema, step.version, step.name)}")
        for step in steps_for(target)
    ]


async def ensure(calls: Calls) -> None:
    """Gives an empty database its tables; refuses what it cannot work with."""
    version = await read_version(calls)
    if version is None:
        await migrate(calls)
    elif version < NEWEST:
        raise SchemaMismatch(
            f"the tables in schema {calls.target.schema} are at version {version}, this tasklib needs {NEWEST}; "
            "run: tasklib migrate"
        )


async def read_version(calls: Calls) -> int | None:
    async def work(connection: Connection, timeout: float) -> int | None:
        return await _version(calls, connection, timeout)

    return await calls.run(work)


async def migrate(calls: Calls, *, plan: bool = False) -> list[str]:
    async def look(connection: Connection, timeout: float) -> list[str]:
        return [step.name for step in _missing(calls, await _version(calls, connection, timeout))]

    async def work(connection: Connection, _: float) -> list[str]:
        async with transaction(connection, None):
            # However long it takes. The lock makes a second one wait, and then find nothing to do.
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute(calls.sql["migration_lock"])
            if calls.target.creates_schema:
                await _create_schema(calls, connection)
            # Everybody who comes after a statement that waits for a table waits behind it: so it waits for a moment
            # only, and is tried again.
            await connection.execute("SET LOCAL lock_timeout = '1s'")
            missing = _missing(calls, await _version(calls, connection, None))
            for step in missing:
                await connection.execute(step.sql)
                await connection.execute(calls.sql["record_migration"], step.version, step.name)
        return [step.name for step in missing]

    if plan:
        return await calls.run(look)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            return await calls.run(work)
        except StoreBusy as error:
            if not isinstance(error.__cause__, asyncpg.LockNotAvailableError):
                raise
            if loop.time() >= deadline:
                raise StoreBusy(
                    "the tables are in use by a transaction that does not end, so nothing was migrated; "
                    "tasklib doctor names the oldest: end it, and migrate again"
                ) from error
        await asyncio.sleep(_PAUSE_SECONDS)


async def _create_schema(calls: Calls, connection: Connection) -> None:
    # Looked up first: even IF NOT EXISTS needs a privilege that users of an existing schema may not have.
    if not await connection.fetchval(calls.sql["has_schema"], calls.target.schema):
        await connection.execute(calls.sql["create_schema"])


async def _version(calls: Calls, connection: Connection, timeout: float | None) -> int | None:
    schema = calls.target.schema
    ours, taken = await connection.fetchrow(calls.sql["has_tables"], schema, timeout=timeout)
    version: Any = None
    if ours:
        version = await connection.fetchval(calls.sql["schema_version"], timeout=timeout)
    if version is None and taken:
        raise SchemaMismatch(
            f"schema {schema} has a table named tasks that is not tasklib's; "
            "put tasklib's into a schema of its own with ?schema=NAME in the database URL"
        )
    if version is not None and version > NEWEST:
        raise SchemaMismatch(
            f"the tables in schema {schema} are at version {version}, newer than this tasklib knows ({NEWEST}); "
            "upgrade tasklib"
        )
    return version if version is None else int(version)


def _missing(calls: Calls, version: int | None) -> Sequence[Step]:
    return [step for step in steps_for(calls.target) if step.version > (version or 0)]
