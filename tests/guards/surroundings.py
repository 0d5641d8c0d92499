"""What happens around a queue: its file is moved, a clock is set."""

from tests.guards.fencing import one
from tests.guards.guard import Cut, Guard

LANE = "stores/sql/sqlite/connection_thread.py"
FILE = "stores/sql/sqlite/filesystem.py"
NAMES = "tests/stores/sqlite/test_names.py::"
GONE = f"{NAMES}test_nothing_is_acknowledged_once_the_file_is_gone"

FILES = (
    one(
        "sqlite: nothing is acknowledged once the file is gone",
        LANE,
        "if gone is not None:",
        f"{GONE}[deleted-is no longer there-by_submit]",
        f"{GONE}[replaced-another file is there now-by_claim]",
        put="if False:",
        within="def _finish",
    ),
    one(
        "sqlite: nor by a submit in the caller's thread",
        LANE,
        "if (gone := self._gone()) is not None:",
        f"{GONE}[deleted-is no longer there-by_submit_here]",
        put="if (gone := None) is not None:",
        within="def try_here",
    ),
    one(
        "sqlite: a file that is gone is not made anew while another store has it open",
        LANE,
        "create=not known",
        f"{NAMES}test_a_file_that_goes_while_another_store_opens_it_is_not_made_anew",
        put="create=True",
    ),
    one(
        "sqlite: a process does not open two files under one name",
        LANE,
        "if (gone := thread._gone()) is not None:",
        f"{NAMES}test_another_store_of_the_process_does_not_open_what_took_the_place_of_the_file",
        put="if (gone := None) is not None:",
    ),
    Guard(
        "a worker does not wait for a file that is gone",
        tuple(
            Cut(f"worker/{part}.py", "        except StoreGone:\n", "        except ZeroDivisionError:\n")
            for part in ("fetcher", "scheduler")
        ),
        ("tests/worker/test_recovery.py::test_a_worker_does_not_wait_for_a_file_that_is_gone",),
    ),
    one(
        "sqlite: a file with two names is refused",
        FILE,
        "if names > 1:",
        f"{NAMES}test_a_second_name_is_refused",
        put="if False:",
    ),
)

CLOCKS = (
    one(
        "sqlite: leases and heartbeats go by the clock that is never set",
        "stores/sql/sqlite/clock.py",
        "if self._added_ms is None else",
        "tests/stores/sqlite/test_clock.py::test_a_worker_that_lives_is_not_lost[forward]",
        "tests/stores/sqlite/test_clock.py::test_a_worker_that_died_is_lost_in_time[back]",
        "tests/stores/sqlite/test_clock.py::test_a_claim_by_hand_is_not_taken_over[forward]",
        put="if True else",
    ),
    one(
        "sqlite: all processes on a file have one steady clock",
        "stores/sql/sqlite/clock.py",
        "if boot is not None:",
        "tests/stores/sqlite/test_clock.py::test_a_worker_that_lives_is_not_lost[forward]",
        put="if boot is not None and self._added_ms is not None:",
    ),
    one(
        "nats: what was put off starts by the earliest time that it can be",
        "stores/nats/clock.py",
        "(self._shift if low == -math.inf else low)",
        "tests/stores/nats/test_clock.py::test_a_task_that_was_put_off_never_starts_early_by_a_clock_that_is_not_sure",
        put="self._shift",
    ),
)

CONNECTIONS = (
    one(
        "nats: a connection that was lost without a word is noticed",
        "stores/nats/connection.py",
        "while self._client is not None and not self._client.is_closed:",
        "tests/stores/nats/test_faults.py::test_a_line_that_is_cut_while_much_is_to_be_sent_is_made_anew",
        put="while True:",
    ),
)

GUARDS = (*FILES, *CLOCKS, *CONNECTIONS)
