"""Who is no longer the holder changes nothing: version, worker and lease, in every write of every store."""

from tests.guards.guard import Cut, Guard

SUITE = "tests/stores/test_conformance.py::TestStores::"
LOCK_ORDER = "tests/stores/postgres/test_lock_order.py::test_the_first_of_several_is_locked_first"
SQLITE_SETTLE = "stores/sql/sqlite/settle.sql"
POSTGRES = "stores/sql/postgres/settle.sql"
NATS = "stores/nats/settle.py"


def suite(test: str, store: str, case: str = "") -> str:
    return f"{SUITE}{test}[{store}-{case}]" if case else f"{SUITE}{test}[{store}]"


def one(name: str, file: str, text: str, *tests: str, put: str = "", within: str = "", times: int = 1) -> Guard:
    return Guard(name, (Cut(file, text, put, within, times),), tests)


BESIDE = "test_beside_one_that_wins_the_losers_change_nothing"
BESIDE_OWN = "test_beside_its_own_a_worker_changes_nothing_of_others"
VERSION = "test_another_version_loses"
WORKER = "test_another_worker_loses"
LISTED = "test_a_lease_extended_after_it_was_listed_is_not_expired"
LISTED_BESIDE = "test_beside_a_lease_that_expired_an_extended_one_stays"
OLD_EXTENDS = "test_an_old_claim_cannot_extend"
OTHER_EXTENDS = "test_another_worker_cannot_extend"
ASKED = "test_what_ends_without_completing_after_it_was_asked_is_cancelled"

SQLITE_GUARDS = (
    one(
        "sqlite: a completion is judged by its version",
        SQLITE_SETTLE,
        " AND t.version = b.version",
        suite(VERSION, "sqlite", "completed"),
        within="-- name: complete",
    ),
    one(
        "sqlite: a completion is judged by its worker",
        SQLITE_SETTLE,
        " AND +t.worker_id = :worker_id",
        suite(WORKER, "sqlite", "completed"),
        within="-- name: complete",
    ),
    one(
        "sqlite: a completion is written under its version",
        SQLITE_SETTLE,
        " AND tasks.version = b.version",
        suite(BESIDE, "sqlite", "completed"),
        within="-- name: complete",
    ),
    one(
        "sqlite: a completion is written under its worker",
        SQLITE_SETTLE,
        " AND +tasks.worker_id = :worker_id",
        suite(BESIDE_OWN, "sqlite", "completed"),
        within="-- name: complete",
    ),
    one(
        "sqlite: failures and releases are judged by their version",
        SQLITE_SETTLE,
        "(b.version IS NULL OR t.version = b.version)",
        suite(VERSION, "sqlite", "failed"),
        suite(VERSION, "sqlite", "released"),
        put="true",
        within="-- name: settle",
    ),
    one(
        "sqlite: failures and releases are judged by their worker",
        SQLITE_SETTLE,
        "AND t.worker_id IS b.worker_id",
        suite(WORKER, "sqlite", "failed"),
        suite(WORKER, "sqlite", "released"),
        within="-- name: settle",
    ),
    one(
        "sqlite: an expiry is judged by the lease it saw",
        SQLITE_SETTLE,
        "(b.locked_until IS NULL OR t.locked_until = b.locked_until)",
        suite(LISTED, "sqlite"),
        put="true",
        within="-- name: settle",
    ),
    one(
        "sqlite: failures and releases are written under their version",
        SQLITE_SETTLE,
        "(b.version IS NULL OR tasks.version = b.version)",
        suite(BESIDE, "sqlite", "failed"),
        suite(BESIDE, "sqlite", "released"),
        put="true",
        within="-- name: settle",
    ),
    one(
        "sqlite: failures and releases are written under their worker",
        SQLITE_SETTLE,
        "AND tasks.worker_id IS b.worker_id",
        suite(BESIDE, "sqlite", "failed"),
        suite(BESIDE, "sqlite", "released"),
        within="-- name: settle",
    ),
    one(
        "sqlite: an expiry is written under the lease it saw",
        SQLITE_SETTLE,
        "(b.locked_until IS NULL OR tasks.locked_until = b.locked_until)",
        suite(LISTED_BESIDE, "sqlite"),
        put="true",
        within="-- name: settle",
    ),
    Guard(
        "sqlite: an extension is judged by its version",
        (
            Cut(SQLITE_SETTLE, " AND t.version = b.version", within="-- name: extend"),
            Cut(SQLITE_SETTLE, "SELECT t.id, t.version,", "SELECT t.id, b.version,", within="-- name: extend"),
        ),
        (suite(OLD_EXTENDS, "sqlite"),),
    ),
    one(
        "sqlite: an extension is judged by its worker",
        SQLITE_SETTLE,
        " AND +t.worker_id = :worker_id",
        suite(OTHER_EXTENDS, "sqlite"),
        within="-- name: extend",
    ),
    one(
        "sqlite: an extension is written under its version",
        SQLITE_SETTLE,
        " AND tasks.version = b.version",
        suite(OLD_EXTENDS, "sqlite"),
        within="-- name: extend",
    ),
    one(
        "sqlite: an extension is written under its worker",
        SQLITE_SETTLE,
        " AND +tasks.worker_id = :worker_id",
        suite(OTHER_EXTENDS, "sqlite"),
        within="-- name: extend",
    ),
    one(
        "sqlite: a task is deleted under its version",
        "stores/sql/sqlite/upkeep.sql",
        " AND b.version = t.version",
        suite("test_a_task_that_moved_on_is_not", "sqlite"),
        within="-- name: delete",
    ),
    one(
        "sqlite: only a finished task is deleted",
        "stores/sql/sqlite/upkeep.sql",
        " AND completed_at IS NOT NULL",
        suite("test_an_unfinished_task_is_not", "sqlite", "running"),
        within="-- name: delete",
    ),
    Guard(
        "sqlite: a request to stop decides in the write",
        (
            Cut(
                SQLITE_SETTLE,
                "t.cancel_requested_at IS NOT NULL AND b.asked_entry IS NOT NULL AS asked",
                "false AS asked",
            ),
            Cut(SQLITE_SETTLE, "tasks.cancel_requested_at IS NULL OR b.asked_entry IS NULL", "true"),
            Cut(SQLITE_SETTLE, "tasks.cancel_requested_at IS NOT NULL AND b.asked_entry", "false AND b.asked_entry"),
        ),
        tuple(suite(ASKED, "sqlite", case) for case in ("failed", "final", "released", "snoozed")),
    ),
)

POSTGRES_GUARDS = (
    one(
        "postgres: settles and heartbeats lock their tasks in one order",
        POSTGRES,
        " ORDER BY id",
        *(f"{LOCK_ORDER}[{write}]" for write in ("complete", "fail", "extend")),
        within="-- name: in_order",
    ),
    one(
        "postgres: a completion is written under its version",
        POSTGRES,
        " AND t.version = b.version",
        suite(VERSION, "postgres", "completed"),
        within="-- name: completing",
    ),
    one(
        "postgres: a completion is written under its worker",
        POSTGRES,
        " AND t.worker_id = :worker_id::text",
        suite(WORKER, "postgres", "completed"),
        within="-- name: completing",
    ),
    one(
        "postgres: failures and releases are written under their version",
        POSTGRES,
        "(b.version IS NULL OR t.version = b.version)",
        suite(VERSION, "postgres", "failed"),
        suite(VERSION, "postgres", "released"),
        put="true",
        within="-- name: settle",
    ),
    one(
        "postgres: failures and releases are written under their worker",
        POSTGRES,
        "AND t.worker_id IS NOT DISTINCT FROM b.worker_id",
        suite(WORKER, "postgres", "failed"),
        suite(WORKER, "postgres", "released"),
        within="-- name: settle",
    ),
    one(
        "postgres: an expiry is written under the lease it saw",
        POSTGRES,
        "(b.locked_until IS NULL OR t.locked_until = b.locked_until)",
        suite(LISTED, "postgres"),
        put="true",
        within="-- name: settle",
    ),
    one(
        "postgres: an extension is written under its version",
        POSTGRES,
        " AND t.version = b.version",
        suite(OLD_EXTENDS, "postgres"),
        within="-- name: extend",
    ),
    one(
        "postgres: an extension is written under its worker",
        POSTGRES,
        " AND t.worker_id = :worker_id::text",
        suite(OTHER_EXTENDS, "postgres"),
        within="-- name: extend",
    ),
    one(
        "postgres: a task is deleted under its version",
        "stores/sql/postgres/upkeep.sql",
        " AND t.version = b.version",
        suite("test_a_task_that_moved_on_is_not", "postgres"),
        within="-- name: delete",
    ),
    one(
        "postgres: only a finished task is deleted",
        "stores/sql/postgres/upkeep.sql",
        " AND coalesce(t.completed_at, 'infinity') < 'infinity'",
        suite("test_an_unfinished_task_is_not", "postgres", "running"),
        within="-- name: delete",
    ),
    Guard(
        "postgres: a request to stop decides in the write",
        (
            Cut(POSTGRES, "t.cancel_requested_at IS NULL OR b.asked_entry IS NULL", "true", "-- name: settle"),
            Cut(
                POSTGRES,
                "WHERE t.cancel_requested_at IS NOT NULL AND b.asked",
                "WHERE false AND b.asked",
                "-- name: settle",
            ),
        ),
        (
            *(suite(ASKED, "postgres", case) for case in ("failed", "final", "released", "snoozed")),
            "tests/races/test_inside.py::test_the_first_of_two_that_wait_for_a_running_task_wins",
        ),
    ),
)

NATS_GUARDS = (
    Guard(
        "nats: every write expects the revision that was read",
        (
            Cut("stores/nats/kv.py", "headers[_EXPECTED] = str(write.expected)", "pass"),
            Cut("stores/nats/schema.py", "if not await kv.run(work):", "if False:"),
        ),
        (suite("test_one_outcome_of_many_is_recorded", "nats", "0"),),
    ),
    one(
        "nats: a server that does not compare is refused",
        "stores/nats/schema.py",
        "if not await kv.run(work):",
        "tests/stores/nats/test_kv.py::test_a_server_that_does_not_compare_is_refused",
        put="if False:",
    ),
    one(
        "nats: a change is judged by its version",
        NATS,
        '(change.version is None or head["version"] == change.version)',
        suite(VERSION, "nats", "completed"),
        suite(VERSION, "nats", "failed"),
        suite(VERSION, "nats", "released"),
        put="True",
        within="def _holds",
    ),
    one(
        "nats: a change is judged by its worker",
        NATS,
        'and head["worker_id"] == change.worker_id',
        suite(WORKER, "nats", "completed"),
        suite(WORKER, "nats", "failed"),
        suite(WORKER, "nats", "released"),
        within="def _holds",
    ),
    one(
        "nats: an expiry is judged by the lease it saw",
        NATS,
        'and (change.locked_until is None or _same(head["locked_until"], change.locked_until))',
        suite(LISTED, "nats"),
        within="def _holds",
    ),
    one(
        "nats: an extension is judged by its version",
        NATS,
        ' and head["version"] == wanted[UUID(head["id"])]',
        suite(OLD_EXTENDS, "nats"),
        within="def prolonged",
    ),
    one(
        "nats: an extension is judged by its worker",
        NATS,
        'head["worker_id"] == worker_id and ',
        suite(OTHER_EXTENDS, "nats"),
        within="def prolonged",
    ),
    one(
        "nats: a task is deleted under its version",
        "stores/nats/operate.py",
        'record.head["version"] != version or ',
        suite("test_a_task_that_moved_on_is_not", "nats"),
    ),
    one(
        "nats: only a finished task is deleted",
        "stores/nats/operate.py",
        ' or record.head["completed_at"] is None',
        suite("test_an_unfinished_task_is_not", "nats", "running"),
    ),
    one(
        "nats: a request to stop decides in the write",
        NATS,
        'if change.if_asked is not None and record.head["cancel_requested_at"] is not None:',
        *(suite(ASKED, "nats", case) for case in ("failed", "final", "released", "snoozed")),
        put="if False:",
    ),
)

GUARDS = (*SQLITE_GUARDS, *POSTGRES_GUARDS, *NATS_GUARDS)
