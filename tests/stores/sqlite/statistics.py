"""What SQLite's planner was told of the table, rightly or wrongly, and how much work a statement makes."""

from collections.abc import Callable

import apsw
import pytest

from tasklib.core.task import Claim, NewTask
from tasklib.stores.sql.claim import Claimer
from tasklib.stores.sql.sqlite import statements
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.sqlite.statements import play
from tasklib.stores.sql.submit import submit
from tasklib.stores.values import ClaimRequest
from tests.conformance.builders import new_task

Prepare = Callable[[apsw.Connection], None]

CLAIM = ClaimRequest(worker_id="w", names=["work"], slots=100)


def insert(connection: apsw.Connection, tasks: list[NewTask]) -> None:
    connection.execute("BEGIN")
    play(connection, submit(tasks), Clock(0.0))
    connection.execute("COMMIT")


def claim(connection: apsw.Connection, request: ClaimRequest) -> list[Claim]:
    return statements.play(connection, Claimer().claim(request), Clock(0.0)).result.claims


def without_statistics(connection: apsw.Connection) -> None:
    return


def with_fresh_statistics(connection: apsw.Connection) -> None:
    insert(connection, [new_task(priority=number % 3) for number in range(2000)])
    claim(connection, CLAIM)
    connection.execute("ANALYZE")


def with_stale_statistics(connection: apsw.Connection) -> None:
    """As if the table had been analysed when it was nearly empty."""
    insert(connection, [new_task()])
    connection.execute("ANALYZE")
    connection.execute("DELETE FROM tasks")
    insert(connection, [new_task() for _ in range(2000)])


def with_misleading_statistics(connection: apsw.Connection) -> None:
    """Every index is said to find a million rows for each key, but for the one that must not be used."""
    connection.execute("ANALYZE")
    connection.execute("DELETE FROM sqlite_stat1")
    for index in ("sqlite_autoindex_tasks_1", "ix_tasks_ready", "ix_tasks_waiting"):
        connection.execute("INSERT INTO sqlite_stat1 VALUES ('tasks', ?, '1000000 1000000')", (index,))
    connection.execute("INSERT INTO sqlite_stat1 VALUES ('tasks', 'ix_tasks_running', '10 1 1')")
    connection.execute("ANALYZE sqlite_schema")


whatever_the_statistics = pytest.mark.parametrize(
    "prepare", [without_statistics, with_fresh_statistics, with_stale_statistics, with_misleading_statistics]
)


def steps_of(connection: apsw.Connection, work: Callable[[], object]) -> int:
    """How many instructions of SQLite's machine the work takes, in hundreds."""
    ticks = 0

    def tick() -> bool:
        nonlocal ticks
        ticks += 1
        return False

    connection.set_progress_handler(tick, 100, id="steps")
    connection.execute("BEGIN IMMEDIATE")
    work()
    connection.execute("COMMIT")
    connection.set_progress_handler(None, id="steps")
    return ticks
