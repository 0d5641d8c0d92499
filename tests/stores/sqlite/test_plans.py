"""The hot statements have one sensible plan each, whatever the statistics say, and a backlog that is none of a claim's
business costs it nothing."""

import re

import apsw
import pytest

from tasklib.stores.sql.columns import GUARD, ID, TASK, Batch
from tasklib.stores.sql.steps import Query
from tasklib.stores.sqlite import claims, settling, statements
from tasklib.stores.sqlite.batches import SQL, _expanded
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.values import ClaimRequest
from tasklib.testing.suite.builders import completed, new_task
from tests.stores.sqlite.statistics import CLAIM, Prepare, insert, steps_of, whatever_the_statistics

WIDTHS = {"match_completed": 7, "held_completions": 7, "match_settled": 11, "match_extended": 3}

BY_ID = "INDEX sqlite_autoindex_tasks_1 (id=?)"
BY_ROWID = "USING INTEGER PRIMARY KEY (rowid=?)"
SUBQUERY = "SCAN t"
READY = "INDEX ix_tasks_ready (name=?)"

PLANS = {
    "match_completed": [BY_ID],
    "held_completions": [BY_ID],
    "match_settled": [BY_ID],
    "match_extended": [BY_ID],
    "UPDATE of complete": [BY_ID],
    "UPDATE of settle": [BY_ID],
    "UPDATE of extend": [BY_ID],
    "survey": [READY, "USING INDEX ix_tasks_waiting"],
    "promote": ["USING INDEX ix_tasks_waiting (<expr><?)"],
    "pick": [READY, SUBQUERY],
    "rank": [READY, BY_ID],
    "pick_ranked": [BY_ID],
    "demote": [READY],
    "UPDATE of mark": [BY_ROWID],
    "UPDATE of claim": [BY_ROWID],
    "held": ["USING INDEX ix_tasks_running"],
    "running_by_name": ["USING COVERING INDEX ix_tasks_running"],
}
WALKS = BY_ID.replace("id=?", "id>?")
QUERIES = {
    Query("get", TASK): [BY_ID],
    Query("get_by_key", TASK): ["USING INDEX ix_tasks_idempotency_key"],
    Query("watch", TASK): [BY_ID],
    Query("request_cancel", ID): [BY_ID],
    Query("delete", GUARD, batch=Batch(GUARD, [])): [BY_ID],
    Query("prunable", ID): [WALKS],
    Query("stretch_end", ID): [WALKS],
    Query("prune"): [BY_ID],
    Query("lost_leases", TASK): ["USING INDEX ix_tasks_running"],
}


def plan(connection: apsw.Connection, query: str | Query) -> list[str]:
    if isinstance(query, Query):
        size = 256 if query.batch is not None else 0
        sql = statements.prepare(query, size).text
        parameters: object = ["[]"] * (max(map(int, re.findall(r"\?(\d+)", sql))))
    elif query in WIDTHS:
        sql = _expanded(query, WIDTHS[query], 256)
        parameters = [None] * (WIDTHS[query] * 256)
    elif query.startswith("UPDATE of "):
        sql, parameters = update_in_trigger(query.removeprefix("UPDATE of ")), {}
    else:
        sql, parameters = SQL[query], {"names": "[]", "rowids": "[]", "ids": "[]", "states": "[]"}
    apsw.allow_missing_dict_bindings(True)
    try:
        return [str(row[3]) for row in connection.execute("EXPLAIN QUERY PLAN " + sql, parameters)]  # type: ignore[arg-type]
    finally:
        apsw.allow_missing_dict_bindings(False)


def update_in_trigger(name: str) -> str:
    """SQLite does not tell the plans of triggers, so their statement is looked at by itself."""
    body = SQL["writing_views"].partition(f"TRIGGER {name} ")[2].partition("BEGIN")[2].partition("\nEND;")[0]
    return re.sub(r"NEW\.(\w+)", r":\1", body)


def touches_tasks(step: str) -> bool:
    verb, table, *_ = [*step.split(" "), ""]
    return verb in ("SCAN", "SEARCH") and table in ("tasks", "main.tasks", "t", "r")


@whatever_the_statistics
def test_hot_statements_have_one_plan(writer: apsw.Connection, prepare: Prepare):
    prepare(writer)
    expected: list[tuple[str | Query, list[str]]] = [*PLANS.items(), *QUERIES.items()]
    found = {query: [step for step in plan(writer, query) if touches_tasks(step)] for query, _ in expected}
    for query, wanted in expected:
        assert len(found[query]) == len(wanted), (query, found[query])
        for part in wanted:
            assert any(part in step for step in found[query]), (query, part, found[query])


def claim_and_complete(connection: apsw.Connection, request: ClaimRequest) -> int:
    """Steps of one round of the worker's loop."""
    insert(connection, [new_task() for _ in range(100)])

    def work() -> None:
        claimed = claims.claim(connection, request, Clock(0.0)).claims
        assert len(claimed) == 100
        settling.settle(connection, [completed(claim) for claim in claimed], 0.0)

    return steps_of(connection, work)


OTHERS = {
    "waiting tasks of other names": lambda: new_task("other", priority=9),
    "future tasks of higher priority": lambda: new_task(priority=9, delay_seconds=86400),
}


@pytest.mark.parametrize("others", OTHERS)
def test_a_backlog_of_others_costs_a_claim_nothing(writer: apsw.Connection, others: str):
    before = claim_and_complete(writer, CLAIM)
    for _ in range(10):
        insert(writer, [OTHERS[others]() for _ in range(2000)])
    assert claim_and_complete(writer, CLAIM) < before * 1.1 + 5


def test_finished_tasks_cost_a_claim_nothing(writer: apsw.Connection):
    before = claim_and_complete(writer, CLAIM)
    for _ in range(20):
        claim_and_complete(writer, CLAIM)
    assert claim_and_complete(writer, CLAIM) < before * 1.1 + 5


def test_a_long_backlog_of_its_own_costs_a_claim_nothing(writer: apsw.Connection):
    before = claim_and_complete(writer, CLAIM)
    for _ in range(10):
        insert(writer, [new_task() for _ in range(2000)])
    assert claim_and_complete(writer, CLAIM) < before * 1.1 + 5


def test_several_busy_names_are_not_read_to_the_end(writer: apsw.Connection):
    names = [f"name-{number}" for number in range(20)]
    request = ClaimRequest(worker_id="w", names=names, slots=100)

    def claim() -> int:
        return steps_of(writer, lambda: claims.claim(writer, request, Clock(0.0)))

    insert(writer, [new_task(name) for _ in range(20) for name in names])
    before = claim()
    insert(writer, [new_task(name) for _ in range(500) for name in names])
    assert claim() < before * 2


def test_an_idle_claim_writes_nothing(writer: apsw.Connection):
    insert(writer, [new_task("other"), new_task(delay_seconds=60)])
    before = writer.total_changes()
    assert claims.claim(writer, CLAIM, Clock(0.0)).claims == []
    assert writer.total_changes() == before


def test_names_beyond_json_are_found(writer: apsw.Connection):
    """Names reach the statements inside JSON."""
    names = ['"', "\\", "a\nb", "ü", "\U0001f600", "'; DROP TABLE tasks; --", "$[0]"]
    insert(writer, [new_task(name) for name in names])
    found = claims.claim(writer, ClaimRequest(worker_id="w", names=names, slots=100), Clock(0.0)).claims
    assert sorted(claim.name for claim in found) == sorted(names)
