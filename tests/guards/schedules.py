"""Each time of a schedule is fired once, and what operators say holds."""

from tests.guards.fencing import one, suite
from tests.guards.guard import Cut, Guard

FROZEN = "test_one_that_was_frozen_over_two_times_fires_nothing_again"
LOST = "test_a_write_that_lost_stores_none_of_its_tasks"
PAUSED = "test_a_pause_that_races_with_the_fire_stops_what_was_not_written"
KEY = "test_the_time_is_in_the_tasks_key"
EDITS = "test_an_operators_edit_survives_deploys_until_it_is_cleared"
ORPHANS = "test_what_no_worker_declares_for_a_day_does_not_fire_until_one_does"
AHEAD = "test_a_clock_that_was_far_ahead_for_a_while_does_not_stop_it"

GUARDS = (
    one(
        "sqlite: a schedule is written under its version",
        "stores/sql/sqlite/schedules.sql",
        " AND s.version = b.version",
        suite(PAUSED, "sqlite"),
        suite(LOST, "sqlite"),
        within="-- name: lock_schedules",
    ),
    one(
        "postgres: a schedule is written under its version",
        "stores/sql/postgres/schedules.sql",
        " AND s.version = b.version",
        suite(PAUSED, "postgres"),
        suite(LOST, "postgres"),
        within="-- name: lock_schedules",
    ),
    one(
        "nats: a schedule is written under its version",
        "stores/nats/schedules.py",
        "return _decode(entry).version == write.schedule.version",
        suite(PAUSED, "nats"),
        suite(LOST, "nats"),
        put="return True",
    ),
    one(
        "a schedule is deleted under its version",
        "stores/sql/shared.sql",
        " AND version = :version",
        suite(LOST, "sqlite"),
        suite(LOST, "postgres"),
        within="-- name: delete_schedule",
    ),
    one(
        "nats: a schedule is deleted under its version",
        "stores/nats/schedules.py",
        " or _decode(entry).version != version",
        suite(LOST, "nats"),
    ),
    Guard(
        "the time is in the key of a schedule's task",
        (Cut("core/schedules.py", 'idempotency_key=_key(schedule.name, f":{_written(slot)}"),'),),
        (suite(KEY, "sqlite"), suite(KEY, "postgres"), suite(KEY, "nats")),
    ),
    one(
        "an older process does not overwrite what a newer one declared",
        "engine/schedules.py",
        " or not newer)",
        suite(EDITS, "sqlite"),
        put=")",
    ),
    one(
        "a process that was started while the clock was ahead does not overwrite what comes later",
        "engine/schedules.py",
        " < now + FAR_AHEAD",
        suite("test_a_version_that_was_started_while_the_clock_was_ahead_gives_way", "sqlite"),
    ),
    one(
        "a schedule goes on when the clock was far ahead: by workers that saw it",
        "engine/schedules.py",
        " or due.now < before - FAR_AHEAD",
        suite(AHEAD, "sqlite-True"),
    ),
    one(
        "a schedule goes on when the clock was far ahead: by workers that start later",
        "engine/schedules.py",
        "before is None or ",
        suite(AHEAD, "sqlite-False"),
        put="before is not None and ",
    ),
    one(
        "what an operator says of a schedule wins",
        "core/schedules.py",
        "return self.operator or self.declared",
        suite(EDITS, "sqlite"),
        put="return self.declared or self.operator",
    ),
    *(
        one(
            f"{engine}: an orphaned schedule is not due",
            "stores/sql/shared.sql",
            " AND (declared_at IS NULL OR declared_at > :declared_after)",
            suite(ORPHANS, engine),
            within="-- name: due_schedules",
        )
        for engine in ("sqlite", "postgres")
    ),
    one(
        "nats: an orphaned schedule is not due",
        "stores/nats/schedules.py",
        " and not each.is_orphaned(now)",
        suite(ORPHANS, "nats"),
    ),
    one(
        "a schedule that workers have in their code is not deleted",
        "engine/schedules.py",
        "if schedule.declared_at is not None and not schedule.is_orphaned(await self._now()):",
        suite(EDITS, "sqlite"),
        put="if False:",
    ),
    one(
        "who may not submit sets no schedule",
        "server/auth.py",
        'if method == "PUT" and path.startswith(SCHEDULES):',
        "tests/server/test_schedules.py::test_who_may_do_what",
        put="if False:",
    ),
)
