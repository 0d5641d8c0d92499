"""Sessions in the way: those that lock the tables, those whose transactions are old, and too many of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import Finding

OLD_TRANSACTION = timedelta(minutes=5)
IDLE_TRANSACTION = timedelta(minutes=1)
LONG_WAIT = timedelta(seconds=5)
_CROWDED = 0.9
"""Of the connections that there may be."""


class Session(NamedTuple):
    pid: int
    application: str | None
    user: str | None
    state: str | None
    since: datetime | None

    def __str__(self) -> str:
        # What other users do is told only to those who have the role pg_read_all_stats.
        since = f"since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else "since when is not told to us"
        state = self.state or "its state is not told to us"
        return f"pid {self.pid}, {self.application or 'unnamed'}, user {self.user}, {state}, {since}"


class Blockers(NamedTuple):
    findings: list[Finding]
    stops_writers: bool
    """Of a whole table, not of a row here and there."""
    stops_readers: bool


def blockers() -> Steps[Blockers]:
    rows = yield Query("blockers", long_wait=LONG_WAIT)
    if not rows:
        well = Finding("ok", "locks", "nobody keeps others from the tables")
        return Blockers([well], stops_writers=False, stops_readers=False)
    stops_writers, stops_readers = rows[0][7:]
    level = "error" if stops_writers else "warning"
    found = [_blocker(level, Session(*row[:5]), row[5], row[6]) for row in rows]
    return Blockers(found, stops_writers, stops_readers)


def _blocker(level: str, session: Session, whole: str | None, waiting: int) -> Finding:
    message = f"{session}, holds {whole or 'locks on rows'}; {waiting} sessions wait for it"
    return Finding(level, "locks", message, _end(session))


def old_transactions() -> Steps[list[Finding]]:
    rows = yield Query("old_transactions", old=OLD_TRANSACTION, idle=IDLE_TRANSACTION)
    if not rows:
        return [Finding("ok", "old transaction", "none is older than five minutes or has been idle for one")]
    return [
        Finding(
            "warning",
            "old transaction",
            f"{session}: no dead row that it may still see can be cleaned up",
            f"{_end(session)}; idle_in_transaction_session_timeout ends such sessions by itself",
        )
        for session in (Session(*row) for row in rows)
    ]


def connections() -> Steps[Finding]:
    [row] = yield Query("connections")
    return crowd(*row)


def crowd(used: int, most: int, by: str) -> Finding:
    message = f"{used} of {most} connections are in use, most of them by {by}"
    if used < _CROWDED * most:
        return Finding("ok", "connections", message)
    return Finding("warning", "connections", message, "smaller pools, fewer processes, a pooler, or max_connections")


def _end(session: Session) -> str:
    return f"end it: SELECT pg_terminate_backend({session.pid})"
