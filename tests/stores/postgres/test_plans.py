"""Each hot statement has one sensible plan, whatever the statistics say. A queue's statistics are always wrong."""

import json
from typing import Any

import asyncpg
import pytest

from tasklib.stores.sql import columns
from tasklib.stores.sql.columns import ACTIVE, CHANGE, CLAIM, COMPLETION, EXTENDED, GUARD, SETTLED, TAKEN, TASK, Batch
from tasklib.stores.sql.flow_columns import CHILD, END, FEEDS, MOVED
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.postgres.driver import PostgresDriver
from tasklib.stores.sql.steps import Query
from tests.conformance.builders import apply, claim, completed, lease_of, submit_several
from tests.stores.postgres.situations import SITUATIONS, asyncpg_of, bring_about, pages

# Parameters as EXECUTE takes them: the plan is the same for all values.
ID = "'{00000000-0000-0000-0000-000000000001}'"
QUERIES = {
    Query("claim", TAKEN): {"ix_tasks_ready", "tasks_pkey"},
    Query("claim_by_id", CLAIM): {"tasks_pkey"},
    Query("claims_of_worker", CLAIM): {"ix_tasks_running"},
    Query("count_running"): {"ix_tasks_running"},
    Query("promote"): {"ix_tasks_waiting", "tasks_pkey"},
    Query("get", TASK): {"tasks_pkey"},
    Query("get_by_key", TASK): {"ix_tasks_idempotency_key"},
    Query("watch", TASK): {"tasks_pkey"},
    Query("stats_active", ACTIVE): {"ix_tasks_ready", "ix_tasks_waiting", "ix_tasks_running"},
    Query("complete", SETTLED, batch=Batch(COMPLETION, [])): {"tasks_pkey"},
    Query("settle", SETTLED, batch=Batch(CHANGE, [])): {"tasks_pkey"},
    Query("complete_feeding", SETTLED, batch=Batch(COMPLETION, [])): {"tasks_pkey"},
    Query("lock_children", CHILD): {"tasks_pkey"},
    Query("ends", END): {"tasks_pkey"},
    Query("below", columns.ID): {"tasks_pkey"},
    Query("move_children", SETTLED, batch=Batch(MOVED, [])): {"tasks_pkey"},
    Query("add_feeds", columns.ROW_COUNT, batch=Batch(FEEDS, [])): {"tasks_pkey"},
    Query("extend", EXTENDED, batch=Batch(GUARD, [])): {"tasks_pkey"},
    Query("delete", GUARD, batch=Batch(GUARD, [])): {"tasks_pkey"},
    Query("prunable", columns.PRUNABLE): {"tasks_pkey"},
    Query("stretch_end", columns.ID): {"tasks_pkey"},
    Query("prune"): {"tasks_pkey"},
    Query("lost_leases", TASK): {"ix_tasks_running"},
    Query("failures", columns.FAILURE): {"tasks_pkey"},
}
ONE_ID = ID.replace("{", "").replace("}", "")
VALUES = {
    "ids": ID,
    "id": ONE_ID,
    "key": "'k'",
    "offset": "'0'",
    **{f"batch_{name}": "'{NULL}'" for shape in (CHANGE, MOVED, FEEDS) for name in shape.names},
    "batch_id": ID,
    "batch_version": "'{1}'",
    "duration": "'10 min'",
    "history_limit": "50",
    "states": "'{completed}'",
    "age": "'-1 day'",
    "young": "'-1 hour'",
    "start": ONE_ID,
    "silence": "'-30 s'",
    "stretch": "20000",
    "limit": "500",
    "names": "'{work}'",
    "caps": "'{NULL}'",
    "limited": "'{}'",
    "slots": "500",
    "most": "500",
    "worker_id": "'w'",
    "lease": "'10 min'",
    "version": "1",
    "promoted": "false",
    "under_limits": "false",
    "feeding": "false",
    "fed": "false",
    "state": "'pending'",
}
EXPECTED = {query.name: indexes for query, indexes in QUERIES.items()}


def scans(plan: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    found = [(plan["Node Type"], plan.get("Relation Name"), plan.get("Index Name"))]
    for child in plan.get("Plans", ()):
        found += scans(child)
    return found


async def generic_plans(connection: asyncpg.Connection, calls: PostgresDriver) -> dict[str, dict[str, Any]]:
    plans = {}
    statements = {}
    for query in QUERIES:
        text, parameters, _ = calls.statements.statement(query)
        statements[query.name] = text, ", ".join(VALUES[name] for name in parameters)
    for name, (sql, values) in statements.items():
        await connection.execute(f"PREPARE {name}_ AS {sql}")
        call = f"{name}_ ({values})" if values else f"{name}_"
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {call}")
        await connection.execute(f"DEALLOCATE {name}_")
        plans[name] = json.loads(text)[0]["Plan"]
    return plans


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_plans_of_our_own_connections(store: PostgresStore, situation: str):
    await bring_about(store._calls, situation)

    async def work(connection: asyncpg.Connection, _: float) -> dict[str, dict[str, Any]]:
        return await generic_plans(connection, store._calls)

    for name, plan in (await store._calls.run(work)).items():
        found = scans(plan)
        assert not [scan for scan in found if scan[:2] == ("Seq Scan", "tasks")], (name, found)
        assert not [scan for scan in found if scan[0] in ("Hash Join", "Merge Join")], (name, found)
        used = {index for _, _, index in found if index is not None}
        assert EXPECTED[name] <= used, (name, used)
        assert not used & {"ix_tasks_finished", "ix_tasks_retrying", "ix_tasks_ended"}, (
            f"{name} uses an index for lists"
        )


@pytest.mark.parametrize("situation", [name for name in SITUATIONS if "100,000" in name and "an empty" not in name])
async def test_plans_where_no_setting_can_be_made(store: PostgresStore, situation: str):
    """Behind a pooler every statement is planned anew, by the server's own lights."""
    await bring_about(store._calls, situation)
    connection = await asyncpg_of(store._calls)
    await connection.execute("SET plan_cache_mode = force_custom_plan")
    plans = await generic_plans(connection, store._calls)
    await connection.close()
    for name in ("claim", "claim_by_id", "promote", "complete", "settle", "extend", "get", "delete"):
        found = scans(plans[name])
        assert not [scan for scan in found if scan[:2] == ("Seq Scan", "tasks")], (name, found)


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_work_does_not_grow_with_the_table(store: PostgresStore, situation: str):
    """Pages touched by a claim, an extension and a settle of ten, the plans as they are really used."""
    await bring_about(store._calls, situation)
    await submit_several(store, 10, "mine", priority=-5)
    before = await pages(store)
    claims = await claim(store, 10, names=["mine", "nothing"])
    assert len(claims) == 10
    assert all(kept.held for kept in await store.extend("anna", [lease_of(claimed) for claimed in claims], 60))
    await apply(store, *map(completed, claims))
    assert await pages(store) - before < 1_500
