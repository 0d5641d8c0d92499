"""What `tasklib doctor` wants to know of a PostgreSQL database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.checkup import LEASE_ENDS_SOON, clock, leases, no_tables, unhandled, wrong_schema
from tasklib.stores.sql.columns import TAKEN
from tasklib.stores.sql.migrate import Migrations
from tasklib.stores.sql.postgres import blocking_sessions
from tasklib.stores.sql.postgres.driver import PostgresDriver, transaction
from tasklib.stores.sql.postgres.looks import fetch
from tasklib.stores.sql.postgres.url import Connection
from tasklib.stores.sql.steps import Query
from tasklib.stores.values import Finding

_OLDEST_VERSION = 120000
_MANY_DEAD_ROWS = 100_000


async def findings(calls: PostgresDriver, migrations: Migrations) -> list[Finding]:
    found = await _server(calls)
    found.append(await blocking_sessions.connections(calls))
    found += await blocking_sessions.old_transactions(calls)
    blockers = await blocking_sessions.blockers(calls)
    found += blockers.findings
    if blockers.stops_readers:  # us, too
        return [*found, Finding("error", "schema", "the tables are locked and were not looked at", "see locks")]
    found += await _tables(calls, migrations)
    if found[-1].subject == "leases" and not blockers.stops_writers:  # even to explain a claim takes its locks
        found.append(await _plan(calls))
    return found


async def _tables(calls: PostgresDriver, migrations: Migrations) -> list[Finding]:
    try:
        there = await calls.read(migrations.check)
    except SchemaMismatch as error:
        return [wrong_schema(error)]
    if not there:
        return [no_tables()]
    return [
        Finding("ok", "schema", f"version {migrations.newest} in schema {calls.target.schema}"),
        await _dead_rows(calls),
        await _backlog(calls),
        await _leases(calls),
    ]


async def _server(calls: PostgresDriver) -> list[Finding]:
    before = datetime.now(UTC).timestamp()  # noqa: TID251 - the one place where this machine's clock is the question
    row = (await fetch(calls, "server"))[0]
    after = datetime.now(UTC).timestamp()  # noqa: TID251
    number, version, moment, standby, read_only = row
    found = []
    if number < _OLDEST_VERSION:
        found.append(Finding("error", "server", f"PostgreSQL {version} is too old", "tasklib needs 12 or newer"))
    else:
        found.append(Finding("ok", "server", f"PostgreSQL {version}"))
    found.append(clock((before + after) / 2 - moment.timestamp(), "database"))
    if standby or read_only:
        what = "a standby" if standby else "read-only"
        found.append(Finding("error", "writes", f"this server is {what}", "name the primary in the database URL"))
    if calls.target.pgbouncer:
        message = "behind a pooler that hands each transaction to another session: no wake-ups, workers poll"
        found.append(Finding("warning", "pooler", message, "let workers connect to the database directly"))
    else:
        found.append(Finding("ok", "pooler", "none: this is a direct connection"))
    return found


async def _plan(calls: PostgresDriver) -> Finding:
    plan = await explain_claim(calls)
    if "ix_tasks_ready" in plan and "Seq Scan on tasks" not in plan:
        return Finding("ok", "claim", "claims go by ix_tasks_ready")
    if calls.target.pgbouncer:  # our settings for the planner do not pass; on a small table it is right to read it all
        message = "claims do not go by ix_tasks_ready now: behind a pooler the statistics decide"
        return Finding("warning", "claim", message, "run: ANALYZE tasks; connect workers directly")
    advice = "create the index again: tasklib migrate --sql shows how"
    return Finding("error", "claim", "claims do not go by ix_tasks_ready", advice)


async def explain_claim(calls: PostgresDriver) -> str:
    """The plan of the claim statement as it would run now; nothing is claimed."""

    async def work(connection: Connection, timeout: float) -> str:
        statement = calls.statements.statement(Query("claim", TAKEN))
        values: dict[str, Any] = {"names": ["tasklib"], "caps": [None], "limited": [], "slots": 1, "most": 1}
        values |= {"worker_id": "tasklib", "promoted": True, "under_limits": True}
        async with transaction(connection, timeout):
            # Behind a pooler claims run without this. Of a short queue the planner then reads the table, and rightly
            # so: the question is whether there is an index that it can take when the queue is long.
            await connection.execute("SET LOCAL enable_seqscan = off")
            given = [values.get(name, timedelta(0)) for name in statement.parameters]
            rows = await connection.fetch(f"EXPLAIN {statement.text}", *given, timeout=timeout)
        return "\n".join(row[0] for row in rows)

    return await calls.run(work)


async def _dead_rows(calls: PostgresDriver) -> Finding:
    rows: list[Any] = await fetch(calls, "dead_rows", calls.target.schema)
    return dead_rows(*rows[0]) if rows else dead_rows(0, 0, None)


def dead_rows(live: int, dead: int, vacuumed: datetime | None) -> Finding:
    last = f"{vacuumed:%Y-%m-%d %H:%M:%S} UTC" if vacuumed else "never"
    message = f"{dead:,} dead rows beside {live:,} live ones, last vacuum: {last}"
    if dead > _MANY_DEAD_ROWS and dead > live:
        advice = "vacuum does not keep up: end old transactions, then VACUUM tasks"
        return Finding("warning", "dead rows", message, advice)
    return Finding("ok", "dead rows", message)


async def _backlog(calls: PostgresDriver) -> Finding:
    return unhandled([row[0] for row in await fetch(calls, "unhandled", calls.offset)])


async def _leases(calls: PostgresDriver) -> Finding:
    return leases(*(await fetch(calls, "leases", calls.offset, timedelta(seconds=LEASE_ENDS_SOON)))[0])
