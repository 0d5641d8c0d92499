"""Everything ends: children with what they started, workers after their grace period, waits that nobody would end."""

from tests.guards.fencing import one

FAMILIES = "tests/worker/test_families.py::"
LEFT_BEHIND = "tests/worker/test_left_behind.py::"
ENDING = "tests/cli/test_ending.py::"

RETRY_LISTS = "tests/worker/test_retry_lists.py::"

GUARDS = (
    one(
        "what no_retry_for names is not tried again",
        "core/registry.py",
        "self.no_retry_for is not None and issubclass(raised, self.no_retry_for)",
        f"{RETRY_LISTS}test_only_what_the_lists_allow_is_tried_again",
        f"{RETRY_LISTS}test_in_a_child_process_too",
        put="False",
        within="def retries_after",
    ),
    one(
        "what retry_for does not name is not tried again",
        "core/registry.py",
        "return self.retry_for is None or issubclass(raised, self.retry_for)",
        f"{RETRY_LISTS}test_only_what_the_lists_allow_is_tried_again",
        f"{RETRY_LISTS}test_in_a_child_process_too",
        f"{RETRY_LISTS}test_a_timeout_is_one_of_the_exceptions",
        put="return True",
    ),
    one(
        "a timeout goes by the lists",
        "worker/runner.py",
        "not execution.task_type.options.retries_after(TaskTimedOut)",
        f"{RETRY_LISTS}test_a_timeout_is_one_of_the_exceptions",
        put="False",
    ),
    one(
        "a list of exceptions holds exceptions",
        "core/retry.py",
        "not isinstance(kind, type) or not issubclass(kind, BaseException)",
        f"{RETRY_LISTS}test_what_is_no_list_of_exceptions_is_refused_where_it_is_said",
        put="False",
    ),
    one(
        "a child that dies takes its own children along",
        "worker/executors/guardian.py",
        "code = child.wait()\n    end()",
        f"{FAMILIES}test_a_child_that_dies_takes_its_own_children_along",
        put="code = child.wait()",
    ),
    one(
        "a child's group ends when its worker says so, or is gone",
        "worker/executors/guardian.py",
        "os.killpg(child.pid, signal.SIGKILL)",
        f"{FAMILIES}test_a_timeout_ends_all_of_it",
        f"{FAMILIES}test_nothing_outlives_its_worker",
        put="os.kill(child.pid, signal.SIGKILL)",
    ),
    one(
        "whoever holds a dead child's pipes does not hold up its task",
        "worker/executors/frames.py",
        "if gone is None:",
        f"{FAMILIES}test_one_that_left_the_group_holds_up_nobody",
        put="if True:",
    ),
    one(
        "a thread that ends gives its place back",
        "worker/executors/threads.py",
        "self._slots.restore()",
        f"{LEFT_BEHIND}test_a_thread_that_ends_gives_its_place_back",
        put="pass",
    ),
    one(
        "a worker without a slot does not go on",
        "worker/worker.py",
        "if slots.exhausted:",
        f"{LEFT_BEHIND}test_a_worker_without_a_slot_says_so_signs_off_and_ends",
        put="if False:",
    ),
    one(
        "a worker process ends after its grace although the loop is blocked",
        "cli/worker.py",
        "endings.callback(end_within(after + AFTER_GRACE_SECONDS, Exit.INTERRUPTED, reason))",
        f"{ENDING}test_it_ends_after_its_grace[blocks_the_loop]",
        put="pass",
    ),
    one(
        "a worker process ends although a coroutine does not",
        "cli/worker.py",
        'endings.callback(end_within(EXIT_SECONDS, code, "a coroutine or a thread of a task does not end"))',
        f"{ENDING}test_it_ends_after_its_grace[swallows]",
        put="pass",
    ),
    one(
        "a process ends although a thread does not",
        "cli/main.py",
        'end_within(EXIT_SECONDS, code, "a thread or an exit handler of the application does not end")',
        f"{ENDING}test_it_ends_after_its_grace[has_a_thread]",
        put="pass",
    ),
    one(
        "a supervisor kills a process whose interpreter is held",
        "cli/supervisor.py",
        "process.tell(signal.SIGKILL)\n        return await ended",
        f"{ENDING}test_so_do_all_processes_of_a_supervisor[holds_the_interpreter]",
        put="pass\n        return await ended",
    ),
    one(
        "a supervisor does not start again what ended in order",
        "cli/supervisor.py",
        "            if code == Exit.OK:\n",
        "tests/cli/test_supervisor.py::test_a_process_that_ended_in_order_does_not_start_again",
        put="            if False:\n",
    ),
    one(
        "two signals in the same instant are one",
        "worker/signals.py",
        " or now < self._first + ECHO_SECONDS",
        "tests/cli/test_worker.py::test_two_signals_in_the_same_instant_are_one",
        "tests/cli/test_supervisor.py::test_one_signal_to_the_whole_family_is_one",
    ),
    one(
        "what came between two looks at the backlog is counted once",
        "stores/sql/sampling.py",
        'if (yield Query("sampled", minute=cells[0][0])):',
        "tests/stores/test_sampling.py::test_what_two_saw_at_once_is_kept_once",
        put="if False:",
    ),
)
