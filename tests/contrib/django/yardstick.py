"""What the database backend of `django-tasks` (the package `django-tasks-db` 0.13) is tested for, in our words, and our
tests of the same. Where ours behaves in another way on purpose, the second table says how, and which test shows it.

`backend`, `worker` and `site` are the tests in `project/jobs`: test_project.py runs them on PostgreSQL and SQLite, with
Django 5.2 and Django 6. test_yardstick.py sees to it that every test named here is there.
"""

THE_SAME = {
    "the backend that is configured is the one that is used; it supports all there is": [
        "backend::BackendTests::test_it_is_the_backend_and_supports_all_there_is"
    ],
    "enqueue, of functions and coroutines: one query, an id, READY, no times, no result yet, the arguments": [
        "backend::BackendTests::test_enqueue",
        "backend::BackendTests::test_each_is_one_query",
    ],
    "aenqueue: the same": ["backend::BackendTests::test_enqueue_async"],
    "get a result: one query, equal to what enqueue gave; async": [
        "backend::BackendTests::test_each_is_one_query",
        "backend::BackendTests::test_enqueue_async",
    ],
    "refresh a result: one query, status, times, attempts, value; async": [
        "backend::BackendTests::test_get_and_refresh",
        "backend::BackendTests::test_get_and_refresh_async",
    ],
    "an id that is missing: TaskResultDoesNotExist; async": [
        "backend::BackendTests::test_ids_that_are_missing_or_malformed",
        "backend::BackendTests::test_ids_that_are_missing_or_malformed_async",
    ],
    "an id that is none: TaskResultDoesNotExist; async": [
        "backend::BackendTests::test_ids_that_are_missing_or_malformed",
        "backend::BackendTests::test_ids_that_are_missing_or_malformed_async",
    ],
    "a stored path that leads to something else than a task is refused": [
        "worker::WorkerTests::test_a_row_that_no_code_is_for_is_left_alone_and_named"
    ],
    "tasks have names to read": ["backend::BackendTests::test_names_are_module_paths"],
    "the check finds nothing in a project that is well": ["site::CheckTests::test_a_project_that_is_well"],
    "the check says that the app is missing, and which": ["site::CheckTests::test_the_app_is_missing"],
    "priorities go from -100 to 100, and are whole": ["backend::BackendTests::test_priorities_and_queues_out_of_range"],
    "an enqueue inside atomic() is seen there at once, by others after the commit": [
        "backend::TransactionTests::test_a_task_is_part_of_the_transaction"
    ],
    "an enqueue is logged and signalled, once": ["backend::BackendTests::test_the_signal_and_the_log_of_an_enqueue"],
    "what is due is found by an index": [
        "tests/stores/postgres/test_plans.py",
        "tests/stores/sqlite/test_plans.py",
    ],
    "run_after with and without USE_TZ, and none where none was given": [
        "backend::BackendTests::test_without_a_time_there_is_none",
        "backend::BackendTests::test_times_without_zones",
    ],
    "the queue is checked again at the enqueue; async": [
        "backend::BackendTests::test_priorities_and_queues_out_of_range",
        "backend::BackendTests::test_a_queue_is_looked_at_again_by_an_async_enqueue",
    ],
    "a worker runs what is enqueued; times in their order, one attempt": [
        "worker::WorkerTests::test_it_runs_what_is_enqueued"
    ],
    "a batch runs all, failures too, and ends; also when there is nothing": [
        "worker::WorkerTests::test_it_runs_what_is_enqueued",
        "test_project.py::test_several_workers_run_each_task_once",
    ],
    "a worker of one queue leaves others alone; of all; of all but one; of several": [
        "worker::WorkerTests::test_queues_are_chosen_and_left_out"
    ],
    "a failure: FAILED, no value, the class of its exception, its traceback": [
        "worker::WorkerTests::test_an_exception_is_kept_with_its_class_and_traceback"
    ],
    "exceptions inside exceptions, and those that nothing can pickle": [
        "worker::WorkerTests::test_an_exception_is_kept_with_its_class_and_traceback"
    ],
    "a return value that is no JSON fails the task": ["worker::WorkerTests::test_return_values"],
    "a worker of one backend leaves the tasks of others alone": [
        "test_project.py::test_each_alias_is_a_queue_of_its_own"
    ],
    "a backend that is unknown, or another's, is refused by name": [
        "worker::WorkerTests::test_a_backend_that_is_not_there_or_not_tasklibs"
    ],
    "intervals below zero or infinite are refused, fractions are taken": [
        "worker::WorkerTests::test_what_the_command_refuses"
    ],
    "not before run_after": ["worker::WorkerTests::test_not_before_its_time"],
    "by priority, then by age": ["worker::WorkerTests::test_by_priority_and_then_by_age"],
    "starts and ends are logged, a failure with its exception": [
        "worker::WorkerTests::test_the_log_of_a_failure_has_its_exception",
        "test_page.py::test_the_page_word_for_word",
    ],
    "signals of a run": ["worker::WorkerTests::test_the_signals_of_a_run"],
    "SystemExit and KeyboardInterrupt fail the task, and the worker goes on and ends in order": [
        "worker::WorkerTests::test_a_task_that_ends_its_program_ends_itself_alone",
        "test_project.py::test_several_workers_run_each_task_once",
    ],
    "rows that somebody has locked are passed over": [
        "worker::WorkerTests::test_rows_that_somebody_has_locked_are_left_alone"
    ],
    "no task is claimed twice: what their tests of locks and of exclusive transactions are for": [
        "test_project.py::test_several_workers_run_each_task_once",
        "tests/races",
    ],
    "a task may take its context: its result, its attempt": ["worker::WorkerTests::test_tasks_that_take_a_context"],
    "several workers at once: each task runs once, all of them end in order": [
        "test_project.py::test_several_workers_run_each_task_once"
    ],
    "SIGINT and SIGTERM: the running task is finished, the worker ends in order": [
        "test_project.py::test_a_signal_to_stop_lets_the_running_task_finish"
    ],
    "prune: what has ended, by age and state; nothing that waits; only counted in a dry run; no age below zero": [
        "worker::WorkerTests::test_prune"
    ],
    "prune: nothing that runs": ["test_project.py::test_a_signal_to_stop_lets_the_running_task_finish"],
    "with Django 6 its own classes are used, with 5.2 those of the package": ["test_project.py::test_on_postgres"],
    "the admin shows when a task is due": ["site::AdminTests::test_one_task"],
}

ANOTHER_WAY = {
    "of one priority what was enqueued first is first; there what has the earlier run_after": [
        "worker::WorkerTests::test_run_after_says_from_when_and_not_in_which_order"
    ],
    "ids are UUIDs of version 7, in the order of their making; a function for them cannot be given": [
        "backend::BackendTests::test_enqueue"
    ],
    "a row that no code is for waits, and `stats`, `doctor` and the dashboard name it; there it fails": [
        "worker::WorkerTests::test_a_row_that_no_code_is_for_is_left_alone_and_named"
    ],
    "a queue that no task is in is refused by --exclude-queues as by --queues; there it is taken": [
        "worker::WorkerTests::test_queues_are_chosen_and_left_out"
    ],
    "--queues and --exclude-queues may be given together; there one excludes the other": [
        "worker::WorkerTests::test_queues_are_chosen_and_left_out"
    ],
    "after a second Ctrl-C, or SIGKILL, another worker fails the task; there it stays RUNNING after SIGKILL": [
        "test_project.py::test_the_task_of_a_worker_that_is_gone_has_failed_and_says_so"
    ],
    "an interval of zero is refused: workers are woken, and look only in case that was missed": [
        "worker::WorkerTests::test_what_the_command_refuses"
    ],
    "prune by queue is `tasklib delete --name`, as a queue is a property of a type": [
        "worker::WorkerTests::test_queues_are_chosen_and_left_out"
    ],
    "workers name themselves, and do not end after so many tasks: `executor='process'` is for code that leaks": [
        "test_project.py::test_a_worker_outlives_its_database"
    ],
}
