"""What `tasklib doctor` wants to know of a PostgreSQL database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tasklib.stores.checkup import clock
from tasklib.stores.sql import doctor
from tasklib.stores.sql.columns import TAKEN
from tasklib.stores.sql.migrate import Migrations
from tasklib.stores.sql.postgres.blocking_sessions import Blockers, blockers, connections, old_transactions
from tasklib.stores.sql.postgres.driver import PostgresDriver, transaction
from tasklib.stores.sql.postgres.url import Connection, Target
from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import Finding

_OLDEST_VERSION = 120000
_MANY_DEAD_ROWS = 100_000


async def findings(calls: PostgresDriver, migrations: Migrations) -> list[Finding]:
    found, in_the_way = await calls.read(lambda: _server(calls.target))
    if in_the_way.stops_readers:  # us, too
        return [*found, Finding("error", "schema", "the tables are locked and were not looked at", "see locks")]
    found += await calls.read(lambda: _tables(calls.target, migrations))
    if found[-1].subject == "leases" and not in_the_way.stops_writers:  # even to explain a claim takes its locks
        found.append(await _plan(calls))
    return found


def _tables(target: Target, migrations: Migrations) -> Steps[list[Finding]]:
    schema = yield from doctor.tables(migrations, f" in schema {target.schema}")
    if schema.level != "ok":
        return [schema]
    rows = yield Query("dead_rows")
    return [schema, dead_rows(*rows[0]) if rows else dead_rows(0, 0, None), *(yield from doctor.queue())]


def _server(target: Target) -> Steps[tuple[list[Finding], Blockers]]:
    before = datetime.now(UTC).timestamp()  # noqa: TID251 - the one place where this machine's clock is the question
    [row] = yield Query("server")
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
    if target.pgbouncer:
        message = "behind a pooler that hands each transaction to another session: no wake-ups, workers poll"
        found.append(Finding("warning", "pooler", message, "let workers connect to the database directly"))
    else:
        found.append(Finding("ok", "pooler", "none: this is a direct connection"))
    found.append((yield from connections()))
    found += yield from old_transactions()
    in_the_way = yield from blockers()
    return found + in_the_way.findings, in_the_way


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


def dead_rows(live: int, dead: int, vacuumed: datetime | None) -> Finding:
    last = f"{vacuumed:%Y-%m-%d %H:%M:%S} UTC" if vacuumed else "never"
    message = f"{dead:,} dead rows beside {live:,} live ones, last vacuum: {last}"
    if dead > _MANY_DEAD_ROWS and dead > live:
        advice = "vacuum does not keep up: end old transactions, then VACUUM tasks"
        return Finding("warning", "dead rows", message, advice)
    return Finding("ok", "dead rows", message)
