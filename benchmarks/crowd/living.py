"""Free space as a living queue leaves it.

Where rows are put in by one statement, many pages keep a gap too small for the row that came next, and large enough for
a smaller one. Once vacuum has noted the gaps, each new task goes to a page of its own, and all of these pages are
written to the log as a whole. A queue that has grown task by task has few of them, because every gap is offered to the
tasks that come. So some more tasks go through, in the ordinary way, until the pages look like that.
"""

import asyncio
import secrets
import time

import psycopg

from tasklib import Config
from tasklib.core import decide
from tasklib.core.ids import uuid7
from tasklib.core.outcome import Completed
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import NewTask
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest

BATCH = 1000
SHARE = 0.1
"""So many tasks, of the rows there are."""


def live(url: str, name: str) -> None:
    """Tasks of a type are submitted, claimed and completed, and what they leave behind is vacuumed as often as
    autovacuum would come for it."""
    asyncio.run(_live(url, name))


async def _live(url: str, name: str) -> None:
    engine = Engine(Config(database_url=url))
    store = await engine.store()
    with psycopg.connect(url, autocommit=True) as connection:
        rows, limit = _size(connection)
        dead = 0
        for _ in range(0, int(rows * SHARE), BATCH):
            await _batch(store, name, engine.config.default_retry)
            dead += 2 * BATCH
            if dead > limit:
                connection.execute("VACUUM tasks")
                dead = 0
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")
    await engine.close()


def _size(connection: psycopg.Connection) -> tuple[int, float]:
    """Rows of the table, and how many dead ones autovacuum comes for: what the table's own settings say."""
    found = connection.execute(
        "SELECT c.reltuples, jsonb_object_agg(split_part(o, '=', 1), split_part(o, '=', 2)::float)"
        " FROM pg_class c, unnest(c.reloptions) AS o WHERE c.oid = 'tasks'::regclass GROUP BY 1"
    ).fetchone()
    assert found is not None
    rows, options = found
    return int(rows), options["autovacuum_vacuum_threshold"] + options["autovacuum_vacuum_scale_factor"] * rows


async def _batch(store: Store, name: str, policy: RetryPolicy) -> None:
    now = time.time_ns() // 1_000_000
    ids = [uuid7(now, number, secrets.randbits(62)) for number in range(BATCH)]
    await store.insert([NewTask(id, name, '{"number": 1}') for id in ids])
    claimed = await store.claim(ClaimRequest(worker_id="before", names=[name], slots=BATCH))
    await store.settle([decide.settle(claim, Completed('{"value": 1}'), policy) for claim in claimed.claims])
