"""What is submitted in a flow is stored whole, and what it gets is what it waited for."""

from tests.guards.fencing import one

SUBMITTING = "tests/submitting/test_flows.py::"
WORKER = "tests/worker/test_flows.py::"

GUARDS = (
    one(
        "flows: a block that raises sends nothing",
        "api/flow.py",
        "if error is not None:",
        f"{SUBMITTING}test_nothing_is_stored_before_the_end_and_nothing_if_the_block_raises",
        put="if False:",
    ),
    one(
        "flows: a task of a flow that is not sent cannot be used",
        "engine/collecting.py",
        "if not self.sent:",
        f"{SUBMITTING}test_handles_are_of_no_use_inside_the_block_but_for_other_submits",
        put="if False:",
    ),
    one(
        "flows: a parent in another queue is refused",
        "api/handle.py",
        "if self._engine.config.database_url != queue:",
        f"{SUBMITTING}test_a_parent_in_another_queue_is_refused",
        put="if False:",
    ),
    one(
        "flows: a submit to another queue is no part of a flow",
        "engine/collecting.py",
        "if engine.config.database_url != self.engine.config.database_url:",
        f"{SUBMITTING}test_a_parent_in_another_queue_is_refused",
        put="if False:",
    ),
    one(
        "flows: a task whose results cannot be read goes back",
        "worker/fetcher.py",
        'except TRANSIENT as error:\n            log.warning("cannot read what tasks',
        f"{WORKER}test_a_worker_that_cannot_read_the_results_gives_the_task_back[memory]",
        put='except ZeroDivisionError as error:\n            log.warning("cannot read what tasks',
        within="async def _filled",
    ),
    one(
        "flows: what somebody edited into a payload is not overwritten by a result",
        "core/outputs.py",
        "if _value(found, each) is None:",
        f"{WORKER}test_a_copy_of_a_task_has_the_results_that_it_got",
        put="if True:",
        within="def filled",
    ),
)
