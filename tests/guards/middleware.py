"""An application's own code around tasks can change nothing of what is promised."""

from tests.guards.fencing import one

MIDDLEWARE = "tests/worker/test_middleware.py::"
LISTENERS = "tests/worker/test_listeners.py::"

GUARDS = (
    one(
        "a worker that lost its claim tells no listener",
        "worker/completer.py",
        "if write_result is WriteResult.APPLIED or write_result is WriteResult.DUPLICATE:",
        f"{LISTENERS}test_a_worker_that_lost_its_claim_tells_nothing",
        put="if True:",
    ),
    one(
        "a failure that met a cancel is told as what was written",
        "engine/engine.py",
        "decide.written(each.change, rows.get(each.change.id))",
        f"{LISTENERS}test_a_cancel_that_comes_while_it_runs_is_told_as_what_was_written",
        put="each.change",
    ),
    one(
        "a listener that fails stops no other",
        "engine/listeners.py",
        "except BaseException:",
        f"{LISTENERS}test_a_listener_that_fails_is_logged_and_changes_nothing",
        put="except ZeroDivisionError:",
    ),
    one(
        "slow listeners do not fill the memory",
        "engine/listeners.py",
        "dropping = self._queue.qsize() >= WAITING_LIMIT",
        f"{LISTENERS}test_a_slow_listener_delays_no_task_and_keeps_few_events",
        put="dropping = False",
    ),
    one(
        "a failure that middleware swallows is a failure",
        "worker/runner.py",
        "if raised is not None:",
        f"{MIDDLEWARE}test_a_swallowed_failure_is_a_failure[def]",
        put="if False:",
        within="def _inside",
    ),
    one(
        "a failure that middleware swallows is a failure, in a coroutine",
        "worker/runner.py",
        "if raised is not None:",
        f"{MIDDLEWARE}test_a_swallowed_failure_is_a_failure[async def]",
        put="if False:",
        within="async def _inside_async",
    ),
    one(
        "what a child's own child logs does not get between its answers",
        "worker/executors/logs.py",
        "if os.getpid() != self._pid:",
        "tests/worker/test_log_context.py::test_what_a_child_process_says_is_handled_as_the_workers_own_words",
        put="if False:",
    ),
    one(
        "children run the middleware that their worker has",
        "worker/executors/processes.py",
        "if unknown:",
        f"{MIDDLEWARE}test_a_child_that_does_not_have_it_is_refused_at_the_start",
        put="if False:",
    ),
)
