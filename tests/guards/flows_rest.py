"""Flows over HTTP, and in a queue that moves."""

from tests.guards.fencing import one

REST = "tests/server/test_flows.py::"

GUARDS = (
    one(
        "the name of a flow is masked",
        "server/flows.py",
        "mask_text(summary.name)",
        f"{REST}test_a_flow_is_cancelled_and_a_key_stands_for_one[sqlite]",
        put="summary.name",
    ),
    one(
        "a task's idempotency key is not taken for that of a flow",
        "server/flows.py",
        "if not first.created:\n            await _check_flow",
        f"{REST}test_a_flow_is_cancelled_and_a_key_stands_for_one[sqlite]",
        put="if False:\n            await _check_flow",
    ),
    one(
        "who may submit tasks, and nobody else, may submit flows",
        "server/auth.py",
        ', "/api/flows"',
        f"{REST}test_flows_that_are_not_there_and_who_may_do_what",
    ),
    one(
        "what waits for tasks is due at no time that is shown",
        "server/views.py",
        "in (task.created_at, NEVER)",
        f"{REST}test_a_flow_from_its_making_to_its_end[sqlite]",
        put="in (task.created_at,)",
    ),
    one(
        "links that a queue cannot take over are not dropped by a copy",
        "engine/copying.py",
        "_check_links(page.tasks, reading.traits, writing.traits)",
        "tests/cli/test_copy.py::test_what_waits_for_others_is_released_there[nats]",
        put="pass",
    ),
)
