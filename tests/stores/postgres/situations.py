"""How a table may look, what the planner was last told of it, and what was read of it."""

import asyncpg

from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.sql.postgres.driver import PostgresDriver

FILL = """
    INSERT INTO {schema}.tasks (id, name, state, ready, scheduled_at, completed_at, priority, created_at)
    SELECT md5(i::text || $1)::uuid, CASE WHEN i % 10 = 0 THEN 'rare' ELSE 'work' END,
        CASE WHEN $1::text = 'finished' THEN 'completed' ELSE 'pending' END, $1 = 'waiting',
        now() + CASE WHEN $1 = 'future' THEN interval '7 days' ELSE interval '0' END,
        CASE WHEN $1 = 'finished' THEN now() END, i % 5, now() + i * interval '1 microsecond'
    FROM generate_series(1, $2::int) AS i
"""
FINISH = "UPDATE {schema}.tasks SET state = 'completed', ready = false, completed_at = now()"

# How the table looks, and what the planner was last told of it.
SITUATIONS = {
    "empty": "",
    "1,000 waiting, no statistics": "waiting:1000",
    "1,000 waiting, fresh statistics": "waiting:1000 analyze",
    "100,000 waiting, no statistics": "waiting:100000",
    "100,000 waiting, fresh statistics": "waiting:100000 analyze",
    "100,000 waiting, statistics of an empty table": "analyze waiting:100000",
    "100,000 finished, fresh statistics": "finished:100000 analyze",
    "all finished, statistics of when all waited": "waiting:100000 analyze finish",
    "100,000 in the future, fresh statistics": "future:100000 analyze",
}


async def bring_about(calls: PostgresDriver, situation: str) -> None:
    connection = await asyncpg_of(calls)
    try:
        for step in SITUATIONS[situation].split():
            what, _, number = step.partition(":")
            if what == "analyze":
                await connection.execute(f"ANALYZE {calls.target.quoted_schema}.tasks")
            elif what == "finish":
                await connection.execute(FINISH.replace("{schema}", calls.target.quoted_schema))
            else:
                await connection.execute(FILL.replace("{schema}", calls.target.quoted_schema), what, int(number))
    finally:
        await connection.close()


async def asyncpg_of(calls: PostgresDriver) -> asyncpg.Connection:
    """A plain connection: none of the store's settings."""
    host, port = calls.target.hosts[0]
    return await asyncpg.connect(host=host, port=port, **calls.target.arguments)


async def pages(store: PostgresStore) -> int:
    """Buffers of the tasks table and its indexes that were read from anywhere, by all sessions."""

    async def work(connection: asyncpg.Connection, _: float) -> int:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        sql = """
            SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))
            FROM pg_statio_user_tables WHERE schemaname = $1 AND relname = 'tasks'
        """
        return int(await connection.fetchval(sql, store._calls.target.schema))

    return await store._calls.run(work)
