"""Submits that go together are independent of each other."""

from tests.guards.fencing import one

TESTS = "tests/test_group_insert.py::"

GUARDS = (
    one(
        "group insert: those that were refused together go again one by one",
        "engine/group_insert.py",
        "if len(batch) == 1:",
        f"{TESTS}test_one_that_is_refused_harms_no_other",
        put="if True:",
    ),
    one(
        "group insert: who has gone is not submitted for",
        "engine/group_insert.py",
        "if not each.answer.done():",
        f"{TESTS}test_who_gives_up_before_it_was_sent_submits_nothing",
        put="if True:",
    ),
    one(
        "group insert: a thread that has gone is not submitted for",
        "engine/group_insert.py",
        "self._given_up = True",
        f"{TESTS}test_a_thread_that_gives_up_before_it_was_sent_submits_nothing",
        put="pass",
    ),
    one(
        "group insert: the loop is called again for what comes after it took over",
        "engine/group_insert.py",
        "self._loop_called = False  # first",
        f"{TESTS}test_threads_that_come_again_are_heard_again",
        put="pass  # first",
    ),
    one(
        "group insert: nobody waits for what is stuck",
        "engine/group_insert.py",
        "return sum(now - began < PATIENCE_SECONDS for began in self._began)",
        f"{TESTS}test_nobody_queues_behind_statements_that_are_stuck",
        put="return len(self._began)",
    ),
)
