"""What running workers are told at once: cancels, pauses, and to drain."""

from tests.guards.fencing import one, suite

HEARD = "test_a_listener_hears_which_running_tasks_were_asked_to_stop"
DRAIN_HEARD = "test_a_listener_hears_which_worker_was_asked_to_drain"
DRAIN_TOLD = "test_a_worker_is_told_that_it_was_asked_to_drain"
PUSH = "tests/worker/test_push.py::"

GUARDS = (
    one(
        "sqlite: a cancel is told",
        "stores/sql/sqlite/driver.py",
        "messages.append(cancel_message(each.cancel_requested))",
        suite(HEARD, "sqlite", "1"),
        suite(HEARD, "sqlite", "30"),
        put="pass",
    ),
    one(
        "postgres: a cancel is told",
        "stores/sql/postgres/upkeep.sql",
        "pg_notify({work_channel}, ",
        suite(HEARD, "postgres", "1"),
        suite(HEARD, "postgres", "30"),
        put="concat(",
        within="-- name: request_cancel",
    ),
    one(
        "postgres: a cancel of many fits into one message",
        "stores/sql/postgres/upkeep.sql",
        "count(*) <= :most_named",
        "tests/stores/postgres/test_notify.py::test_a_cancel_is_told_in_one_message_however_many_are_asked",
        put="count(*) <= :most_named + 200",
        within="-- name: request_cancel",
    ),
    one(
        "nats: a cancel is told",
        "stores/nats/cache.py",
        "self._wake(UUID(bytes=task))",
        suite(HEARD, "nats", "1"),
        suite(HEARD, "nats", "30"),
        put="pass",
    ),
    one(
        "a worker that hears of a cancel looks",
        "worker/fetcher.py",
        "self._heartbeat.look_at(hint.ids)",
        f"{PUSH}test_a_cancel_of_many_reaches_all_of_them[sqlite]",
        put="pass",
        within="def _heard",
    ),
    one(
        "a cancel that is heard of before the claim is known is not missed",
        "worker/fetcher.py",
        "self._heartbeat.look_at(hint.ids)",
        f"{PUSH}test_a_cancel_that_comes_before_the_claim_is_known_is_not_missed[sqlite]",
        put="pass",
        within="async def _claim",
    ),
    one(
        "a cancel that was only heard of stops nothing",
        "worker/heartbeat.py",
        "if answer.cancel_requested and not execution.cancel_requested:",
        f"{PUSH}test_what_was_heard_is_not_believed[sqlite]",
        put="if not execution.cancel_requested:",
    ),
    one(
        "an answer about an attempt that is over does not stop the next",
        "worker/heartbeat.py",
        "if execution is None or execution.claim.version != lease.version:",
        f"{PUSH}test_an_answer_about_an_attempt_that_is_over_does_not_stop_the_next[sqlite]",
        put="if execution is None:",
    ),
    one(
        "a pause gives back what waits in a worker",
        "worker/fetcher.py",
        "await self._free_paused(store)",
        f"{PUSH}test_a_pause_gives_back_what_waits_in_a_worker[sqlite-def-its type]",
        put="pass",
    ),
    one(
        "sqlite: a drain is told",
        "stores/sql/sqlite/driver.py",
        "messages.append(drain_message(each.drain_requested))",
        suite(DRAIN_HEARD, "sqlite"),
        put="pass",
    ),
    one(
        "postgres: a drain is told",
        "stores/sql/postgres/statements.py",
        "if notify.drain_requested is not None:",
        suite(DRAIN_HEARD, "postgres"),
        put="if False:",
    ),
    one(
        "nats: a drain is told",
        "stores/nats/cache.py",
        "self._wake(DrainRequested(keys.text_of(key[len(keys.WORKER) :])))",
        suite(DRAIN_HEARD, "nats"),
        put="pass",
    ),
    one(
        "a worker that hears of its drain looks",
        "worker/fetcher.py",
        "self._heartbeat.beat_now()",
        f"{PUSH}test_an_operators_drain_lets_it_finish_and_end[sqlite]",
        put="pass",
    ),
    one(
        "a drain is asked for once, and of those that work",
        "stores/sql/shared.sql",
        " AND stopped_at IS NULL AND drain_requested_at IS NULL",
        suite(DRAIN_TOLD, "sqlite"),
        suite(DRAIN_TOLD, "postgres"),
        within="-- name: request_drain",
    ),
    one(
        "nats: a drain is asked for once, and of those that work",
        "stores/nats/operate.py",
        ' or about["stopped_at"] is not None or about.get("drain") is not None',
        suite(DRAIN_TOLD, "nats"),
    ),
    one(
        "nats: a heartbeat keeps what was asked of the worker",
        "stores/nats/operate.py",
        ', "drain": before.get("drain")',
        suite(DRAIN_TOLD, "nats"),
    ),
)
