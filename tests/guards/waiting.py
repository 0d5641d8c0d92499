"""Handlers that wait for tasks of their own queue."""

from tests.guards.fencing import one

INSIDE = "tests/worker/test_waiting_inside.py::"

GUARDS = (
    one(
        "a handler does not wait where no slot is left to run what it waits for",
        "api/waiting.py",
        "if awaited and",
        f"{INSIDE}test_a_slot_is_looked_at_again_while_it_waits",
        put="if False and",
    ),
    one(
        "waiting for what another worker runs is no deadlock",
        "engine/waits.py",
        "awaited.state != TaskState.RUNNING or awaited.worker_id == self._worker_id",
        f"{INSIDE}test_waiting_for_what_is_over_or_is_run_elsewhere_is_no_deadlock",
        put="True",
    ),
    one(
        "of slots that would wait for ever one gives way, and no other",
        "engine/waits.py",
        " or next(reversed(self.awaited), None) != waiting",
        f"{INSIDE}test_a_slot_that_began_earlier_does_not_give_way",
    ),
)
