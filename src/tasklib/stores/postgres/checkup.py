"""What `tasklib doctor` wants to know of a PostgreSQL database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.base import Finding
from tasklib.stores.postgres import schema
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.looks import fetch

_OLDEST_VERSION = 120000


async def findings(calls: Calls) -> list[Finding]:
    found = [*await _server(calls)]
    try:
        version = await schema.read_version(calls)
    except SchemaMismatch as error:
        return [*found, Finding("error", "schema", str(error))]
    if version is None:
        return [*found, Finding("warning", "schema", "there are no tables yet", "run: tasklib migrate")]
    if version < schema.NEWEST:
        message = f"version {version}, this tasklib needs {schema.NEWEST}"
        return [*found, Finding("error", "schema", message, "run: tasklib migrate")]
    found.append(Finding("ok", "schema", f"version {version} in schema {calls.target.schema}"))
    found += [await _plan(calls), await _dead_rows(calls), await _backlog(calls), await _leases(calls)]
    return found


async def _server(calls: Calls) -> list[Finding]:
    before = datetime.now(UTC).timestamp()  # noqa: TID251 - the one place where this machine's clock is the question
    row = (await fetch(calls, "server"))[0]
    after = datetime.now(UTC).timestamp()  # noqa: TID251
    number, version, clock, standby, read_only, oldest, culprit = row
    found = []
    if number < _OLDEST_VERSION:
        found.append(Finding("error", "server", f"PostgreSQL {version} is too old", "tasklib needs 12 or newer"))
    else:
        found.append(Finding("ok", "server", f"PostgreSQL {version}"))
    found.append(_clock((before + after) / 2 - clock.timestamp()))
    if standby or read_only:
        what = "a standby" if standby else "read-only"
        found.append(Finding("error", "writes", f"this server is {what}", "name the primary in the database URL"))
    if calls.target.pgbouncer:
        found.append(
            Finding("warning", "pooler", "behind a pooler: no wake-ups, workers poll", "connect workers directly")
        )
    if oldest is not None and oldest > timedelta(minutes=5):
        message = f"the oldest open transaction is {oldest.total_seconds():.0f} s old ({culprit}): dead rows pile up"
        found.append(
            Finding("warning", "old transaction", message, "end it, or set idle_in_transaction_session_timeout")
        )
    else:
        found.append(Finding("ok", "old transaction", "none older than five minutes"))
    return found


def _clock(ahead: float) -> Finding:
    message = f"this machine's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the database's"
    if abs(ahead) < 2:
        return Finding("ok", "clock", message)
    return Finding("warning", "clock", message, "the database's clock decides; set this one right for readable logs")


async def _plan(calls: Calls) -> Finding:
    plan = await explain_claim(calls)
    if "ix_tasks_ready" in plan and "Seq Scan on tasks" not in plan:
        return Finding("ok", "claim", "claims go by ix_tasks_ready")
    if calls.target.pgbouncer:  # our settings for the planner do not pass; on a small table it is right to read it all
        message = "claims do not go by ix_tasks_ready now: behind a pooler the statistics decide"
        return Finding("warning", "claim", message, "run: ANALYZE tasks; connect workers directly")
    return Finding(
        "error", "claim", "claims do not go by ix_tasks_ready", "run: ANALYZE tasks; look for a missing index"
    )


async def explain_claim(calls: Calls) -> str:
    """The plan of the claim statement as it would run now; nothing is claimed."""

    async def work(connection: Connection, timeout: float) -> str:
        no_time = timedelta(0)
        values: tuple[Any, ...] = (["tasklib"], [None], 1, 1, "tasklib", no_time, no_time, True)
        rows = await connection.fetch(f"EXPLAIN {calls.sql['claim']}", *values, timeout=timeout)
        return "\n".join(row[0] for row in rows)

    return await calls.run(work)


async def _dead_rows(calls: Calls) -> Finding:
    rows: list[Any] = await fetch(calls, "dead_rows", calls.target.schema)
    live, dead, vacuumed = rows[0] if rows else (0, 0, None)
    message = f"{dead:,} dead rows beside {live:,} live ones, last vacuum: {vacuumed or 'never'}"
    if dead > 100_000 and dead > live:
        return Finding("warning", "dead rows", message, "vacuum does not keep up: look for old transactions")
    return Finding("ok", "dead rows", message)


async def _backlog(calls: Calls) -> Finding:
    rows = await fetch(calls, "unhandled", calls.offset)
    if not rows:
        return Finding("ok", "workers", "every task type that waits has a live worker")
    names = ", ".join(repr(row[0]) for row in rows[:10])
    return Finding("warning", "workers", f"tasks wait that no live worker handles: {names}", "start a worker for them")


async def _leases(calls: Calls) -> Finding:
    expired, soon = (await fetch(calls, "leases", calls.offset))[0]
    if expired:
        message = f"{expired} running tasks have an expired lease"
        return Finding("warning", "leases", message, "workers expire them within seconds: is one running?")
    return Finding("ok", "leases", f"none expired, {soon} end within 30 seconds unless extended")
