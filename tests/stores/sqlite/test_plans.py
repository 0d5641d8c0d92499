"""The hot statements have one sensible plan each, whatever the statistics say, and a backlog that is none of a claim's
business costs it nothing."""

from typing import Any

import apsw
import pytest

from tasklib.stores.sql import settle
from tasklib.stores.sql.columns import CHANGE, CLAIM, COMPLETION, EXTENDED, GUARD, ID, PRUNABLE, SETTLED, TASK, Batch
from tasklib.stores.sql.sqlite import statements
from tasklib.stores.sql.sqlite.batches import SIZES
from tasklib.stores.sql.sqlite.claiming import PICKED, RANKED
from tasklib.stores.sql.sqlite.clock import Clock
from tasklib.stores.sql.steps import Query
from tasklib.stores.values import ClaimRequest
from tests.conformance.builders import completed, new_task
from tests.stores.sqlite.statistics import CLAIM as REQUEST
from tests.stores.sqlite.statistics import Prepare, claim, insert, steps_of, whatever_the_statistics

BY_ID = "INDEX sqlite_autoindex_tasks_1 (id=?)"
READY = "INDEX ix_tasks_ready (name=?)"

WALKS = BY_ID.replace("id=?", "id>?")
QUERIES = {
    Query("survey"): [READY, "USING INDEX ix_tasks_waiting"],
    Query("promote"): [BY_ID, "INDEX ix_tasks_waiting (<expr><?)"],
    Query("pick", PICKED): [READY],
    Query("rank", RANKED): [READY, BY_ID],
    Query("pick_ranked", PICKED): [BY_ID],
    Query("demote"): [BY_ID, READY, BY_ID],
    Query("mark_claimed"): [BY_ID],
    Query("claim_by_id", CLAIM): [BY_ID],
    Query("claims_of_worker", CLAIM): ["USING INDEX ix_tasks_running"],
    Query("count_running"): ["INDEX ix_tasks_running (name=?)", "INDEX ix_tasks_running"],
    Query("get", TASK): [BY_ID],
    Query("get_by_key", TASK): ["USING INDEX ix_tasks_idempotency_key"],
    Query("watch", TASK): [BY_ID],
    Query("request_cancel", ID): [BY_ID],
    Query("complete", SETTLED, batch=Batch(COMPLETION, [])): [BY_ID, BY_ID],
    Query("settle", SETTLED, batch=Batch(CHANGE, [])): [BY_ID, BY_ID],
    Query("extend", EXTENDED, batch=Batch(GUARD, [])): [BY_ID, BY_ID],
    Query("delete", GUARD, batch=Batch(GUARD, [])): [BY_ID],
    Query("prunable", PRUNABLE): [WALKS],
    Query("stretch_end", ID): [WALKS],
    Query("prune"): [BY_ID],
    Query("lost_leases", TASK): ["USING INDEX ix_tasks_running"],
}


def plans(connection: apsw.Connection, query: Query) -> list[list[str]]:
    """Of each size of a batch, the steps that touch the tasks."""
    found = []
    for size in (0,) if query.batch is None else SIZES:
        statement = statements.prepare(query, size)
        width = 0 if query.batch is None else len(query.batch.shape.names)
        parameters = ["[]"] * (len(statement.parameters) + width * size)
        found.append(
            [step for sql in (statement.text, *statement.others) for step in explain(connection, sql, parameters)]
        )
    return found


def explain(connection: apsw.Connection, sql: str, parameters: Any) -> list[str]:
    apsw.allow_missing_dict_bindings(True)
    try:
        steps = [str(row[3]) for row in connection.execute("EXPLAIN QUERY PLAN " + sql, parameters)]
    finally:
        apsw.allow_missing_dict_bindings(False)
    return [step for step in steps if touches_tasks(step)]


def touches_tasks(step: str) -> bool:
    verb, table, *_ = [*step.split(" "), ""]
    return verb in ("SCAN", "SEARCH") and table in ("tasks", "main.tasks", "t", "r")


@whatever_the_statistics
def test_hot_statements_have_one_plan(writer: apsw.Connection, prepare: Prepare):
    prepare(writer)
    for query, wanted in QUERIES.items():
        for found in plans(writer, query):
            assert len(found) == len(wanted), (query, found)
            for part in wanted:
                assert sum(part in step for step in found) >= wanted.count(part), (query, part, found)


def claim_and_complete(connection: apsw.Connection, request: ClaimRequest) -> int:
    """Steps of one round of the worker's loop."""
    insert(connection, [new_task() for _ in range(100)])

    def work() -> None:
        claimed = claim(connection, request)
        assert len(claimed) == 100
        statements.play(connection, settle.settle([completed(each) for each in claimed]), Clock(0.0))

    return steps_of(connection, work)


OTHERS = {
    "waiting tasks of other names": lambda: new_task("other", priority=9),
    "future tasks of higher priority": lambda: new_task(priority=9, delay_seconds=86400),
}


@pytest.mark.parametrize("others", OTHERS)
def test_a_backlog_of_others_costs_a_claim_nothing(writer: apsw.Connection, others: str):
    before = claim_and_complete(writer, REQUEST)
    for _ in range(10):
        insert(writer, [OTHERS[others]() for _ in range(2000)])
    assert claim_and_complete(writer, REQUEST) < before * 1.1 + 5


def test_finished_tasks_cost_a_claim_nothing(writer: apsw.Connection):
    before = claim_and_complete(writer, REQUEST)
    for _ in range(20):
        claim_and_complete(writer, REQUEST)
    assert claim_and_complete(writer, REQUEST) < before * 1.1 + 5


def test_a_long_backlog_of_its_own_costs_a_claim_nothing(writer: apsw.Connection):
    before = claim_and_complete(writer, REQUEST)
    for _ in range(10):
        insert(writer, [new_task() for _ in range(2000)])
    assert claim_and_complete(writer, REQUEST) < before * 1.1 + 5


def test_several_busy_names_are_not_read_to_the_end(writer: apsw.Connection):
    names = [f"name-{number}" for number in range(20)]
    request = ClaimRequest(worker_id="w", names=names, slots=100)

    def work() -> int:
        return steps_of(writer, lambda: claim(writer, request))

    insert(writer, [new_task(name) for _ in range(20) for name in names])
    before = work()
    insert(writer, [new_task(name) for _ in range(500) for name in names])
    assert work() < before * 2


def test_an_idle_claim_writes_nothing(writer: apsw.Connection):
    insert(writer, [new_task("other"), new_task(delay_seconds=60)])
    before = writer.total_changes()
    assert claim(writer, REQUEST) == []
    assert writer.total_changes() == before


def test_names_beyond_json_are_found(writer: apsw.Connection):
    """Names reach the statements inside JSON."""
    names = ['"', "\\", "a\nb", "ü", "\U0001f600", "'; DROP TABLE tasks; --", "$[0]"]
    insert(writer, [new_task(name) for name in names])
    found = claim(writer, ClaimRequest(worker_id="w", names=names, slots=100))
    assert sorted(each.name for each in found) == sorted(names)
