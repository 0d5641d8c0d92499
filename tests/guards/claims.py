"""What is claimed, by how many, how often: keys, attempts, locks, limits, pauses."""

from tests.guards.fencing import one, suite
from tests.guards.guard import Cut, Guard

CLAIM = "stores/sql/postgres/claim.sql"
SUBMIT = "stores/sql/submit.py"
SHARED = "stores/sql/shared.sql"
CORE_LIMITS = "core/limits.py"
NATS_CLAIMS = "stores/nats/claim.py"
SQL_CLAIM = "stores/sql/claim.py"
SQLITE_CLAIM = "stores/sql/sqlite/claim.sql"
SQLITE_CLAIMING = "stores/sql/sqlite/claiming.py"
DUE = ('"due": _DUE,', '"due": "true",')
ONCE = "test_a_task_is_claimed_once_however_many_ask_at_once"
PG = "tests/stores/postgres/test_store.py::"
HANDS = f"{PG}test_a_row_in_other_hands_holds_up_no_claim"
DECIDE = "tests/core/test_decide.py::"
NATS_LOST = (
    "tests/stores/nats/test_faults.py"
    "::test_a_submit_whose_reply_was_lost_brings_nothing_back_that_was_deleted_meanwhile"
)
UNIQUE = "tests/stores/test_constraints.py::test_what_a_unique_index_keeps_out_is_refused_by_its_name"
AGAIN = (
    "tests/stores/postgres/test_faults.py::"
    "test_a_submit_that_is_sent_again_brings_nothing_back_that_has_run_and_is_deleted"
)
TRIGGER = "tests/stores/test_constraints.py::test_what_a_trigger_drops_is_not_called_stored"
ISOLATED = "tests/worker/test_isolation.py::"


def each_engine(test: str) -> list[str]:
    return [suite(test, store) for store in ("sqlite", "postgres", "nats")]


KEYS = (
    one(
        "sqlite: one task for a key",
        "stores/sql/sqlite/migrations/0001_tasks.sql",
        "CREATE UNIQUE INDEX ix_tasks_idempotency_key",
        suite("test_other_arguments_do_not_make_another_task", "sqlite"),
        put="CREATE INDEX ix_tasks_idempotency_key",
    ),
    one(
        "postgres: one task for a key",
        "stores/sql/postgres/migrations/0001_tasks.sql",
        "CREATE UNIQUE INDEX ix_tasks_idempotency_key",
        suite("test_fifty_submits_at_once_make_one_task", "postgres"),
        put="CREATE INDEX ix_tasks_idempotency_key",
    ),
    one(
        "nats: one task for a key",
        "stores/nats/submit.py",
        "if key is not None and key not in self._takeovers:",
        suite("test_other_arguments_do_not_make_another_task", "nats"),
        put="if key is not None:\n                return [[write]]\n            if False:",
    ),
)

UNIQUE_KEYS = (
    one(
        "postgres: one task of a type for a unique key",
        "stores/sql/postgres/migrations/0002_schedules_and_flows.sql",
        "CREATE UNIQUE INDEX ix_tasks_unique_key",
        suite("test_batches_with_the_same_unique_keys_in_any_order_do_not_block_each_other", "postgres"),
        put="CREATE INDEX ix_tasks_unique_key",
    ),
    one(
        "postgres: who has a unique key is locked while it is looked at",
        "stores/sql/postgres/submit.sql",
        "FOR UPDATE OF t",
        f"{PG}test_a_holder_that_is_about_to_start_is_waited_for",
    ),
    one(
        "nats: a unique key is its task's only as long as the record says so",
        "stores/nats/batch_submit.py",
        ' if record.head.get("unique_key") == key else None',
        suite("test_until_finished_there_is_one_at_all", "nats"),
    ),
    one(
        "a claim gives up the unique key of what is unique until it starts: postgres",
        CLAIM,
        "unique_key = CASE WHEN unique_until <> 'started' THEN unique_key END,\n        version",
        suite("test_until_started_one_waits_while_one_runs", "postgres"),
        put="version",
    ),
    one(
        "a claim gives up the unique key of what is unique until it starts: sqlite",
        "stores/sql/sqlite/claim.sql",
        "unique_key = iif(unique_until <> 'started', unique_key, NULL),",
        suite("test_until_started_one_waits_while_one_runs", "sqlite"),
        within="-- name: mark_claimed",
    ),
    one(
        "a claim gives up the unique key of what is unique until it starts: nats",
        "core/unique.py",
        "None if until == STARTED else key",
        suite("test_until_started_one_waits_while_one_runs", "nats"),
        put="key",
    ),
    one(
        "a unique key that an older worker left behind is free",
        "core/unique.py",
        "self.over or (self.unique_until == STARTED and self.started)",
        "tests/core/test_unique.py::test_a_key_that_an_older_worker_left_behind_is_free[started-holder1-True]",
        put="self.over and self.unique_until == ELAPSED",
    ),
    one(
        "what runs is not replaced",
        "core/unique.py",
        " and not self.running",
        suite("test_what_runs_is_joined_and_not_replaced", "nats"),
    ),
    one(
        "a unique submit that is sent again is found by its id",
        SUBMIT,
        "if task.id in known or task.idempotency_key in found:",
        suite("test_sent_again_after_a_lost_answer_it_is_the_same_task", "sqlite"),
        suite("test_sent_again_after_a_lost_answer_it_is_the_same_task", "postgres"),
        put="if task.idempotency_key in found:",
    ),
    one(
        "a debounce ends",
        "stores/sql/postgres/submit.sql",
        "THEN least(b.due, t.created_at + b.latest) ELSE t.scheduled_at",
        suite("test_a_debounce_waits_until_it_is_quiet_but_not_for_ever", "postgres"),
        put="THEN b.due ELSE t.scheduled_at",
    ),
)

KEPT_OUT = (
    one(
        "only a submit that is there is taken for one whose reply was lost",
        SUBMIT,
        """if not (yield from existing(ids)) and not (yield Query("deleted_lately", ID, ids=ids)):""",
        f"{UNIQUE}[postgres-lone]",
        f"{UNIQUE}[postgres-batch]",
        f"{UNIQUE}[sqlite-lone]",
        put="if False:",
    ),
    one(
        "postgres: a submit that is sent again asks what was deleted meanwhile",
        SUBMIT,
        """if (yield Query("deleted_lately", ID, ids=ids)):""",
        f"{AGAIN}[plain-1]",
        f"{AGAIN}[keyed-3]",
        f"{AGAIN}[unique-1]",
        f"{AGAIN}[audited-1]",
        put="if False:",
    ),
    one(
        "postgres: deletions of young tasks are remembered",
        "stores/sql/postgres/upkeep.sql",
        "WHERE created_at > {now} + :young::interval",
        f"{AGAIN}[plain-1]",
        put="WHERE false AND :young::interval IS NULL",
    ),
    one(
        "postgres: a submit with a key passes over its key's row alone",
        "stores/sql/postgres/submit.sql",
        "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
        f"{UNIQUE}[postgres-key]",
        put="ON CONFLICT DO NOTHING",
    ),
    one(
        "tasks that a trigger dropped are not stored",
        SUBMIT,
        "if stored < len(tasks):",
        f"{TRIGGER}[postgres-lone]",
        f"{TRIGGER}[postgres-alike]",
        f"{TRIGGER}[postgres-batch]",
        f"{TRIGGER}[sqlite-lone]",
        f"{TRIGGER}[sqlite-batch]",
        put="if False:",
    ),
    Guard(
        "nats: a submit whose reply was lost brings nothing back",
        (
            Cut(
                "stores/nats/submit.py",
                "if keys.task(task_id) in found]",
                "if keys.task(task_id) in found and not found[keys.task(task_id)].deleted]",
            ),
            Cut("stores/nats/submit.py", "list(self._left) if self._tries > 1 else there", "there"),
        ),
        (f"{NATS_LOST}[1-key]", f"{NATS_LOST}[3-None]"),
    ),
    one(
        "nats: what another call has submitted is not taken for this one's whole",
        "stores/nats/submit.py",
        "list(self._left) if self._tries > 1 else there",
        "tests/stores/nats/test_faults.py::test_a_server_that_is_paused_leaves_a_doubt_that_is_resolved",
        put="list(self._left)",
    ),
    one(
        "retention waits until no submit is repeated",
        "worker/janitor.py",
        "max(keep, config.call_timeout_seconds + SUBMIT_SLACK_SECONDS)",
        "tests/worker/test_recovery.py::test_retention_keeps_a_task_while_its_submit_may_be_repeated",
        put="keep",
    ),
    one(
        "sqlite: a submit with a key passes over its key's row alone",
        "stores/sql/sqlite/submit.sql",
        "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
        f"{UNIQUE}[sqlite-key]",
        put="ON CONFLICT DO NOTHING",
    ),
)

ATTEMPTS = (
    one(
        "an attempt that was lost with its worker counts",
        "core/decide.py",
        "attempt.retry_count + again",
        f"{DECIDE}test_an_expired_lease_is_a_failed_attempt_due_now",
        suite("test_a_lost_lease_is_a_failed_attempt_that_says_so", "sqlite"),
        put="attempt.retry_count + (again and not failure.lost)",
    ),
    one(
        "an attempt counts from its claim",
        "core/task.py",
        "(TaskState.RUNNING, TaskState.COMPLETED)",
        suite("test_a_claim_marks_the_task_running_under_the_worker", "sqlite"),
        "tests/core/test_lifecycle.py::test_attempts_are_derived_from_the_retry_count_and_the_state",
        put="(TaskState.COMPLETED,)",
    ),
    one(
        "no attempt after the last",
        "core/decide.py",
        "retry_count < max_retries",
        f"{DECIDE}test_failure_with_none_left",
        f"{DECIDE}test_an_expired_last_attempt_is_final",
        put="retry_count <= max_retries",
        within="def attempts_left",
    ),
    one(
        "an attempt that lost its worker makes a crashed_before",
        "core/decide.py",
        '"lost": lost, ',
        suite("test_a_task_that_lost_its_worker_is_never_prefetched", "sqlite"),
    ),
    one(
        "sqlite: what runs alone is not prefetched",
        SQLITE_CLAIMING,
        "found.no_prefetch or found.name in limited",
        suite("test_a_last_attempt_is_never_prefetched", "sqlite"),
        suite("test_a_task_that_lost_its_worker_is_never_prefetched", "sqlite"),
        put="found.name in limited",
    ),
    one(
        "postgres: what runs alone is not prefetched",
        CLAIM,
        " AND NOT no_prefetch)",
        suite("test_a_last_attempt_is_never_prefetched", "postgres"),
        suite("test_a_task_that_lost_its_worker_is_never_prefetched", "postgres"),
        put=")",
        within="-- name: claim",
    ),
    one(
        "nats: what runs alone is not prefetched",
        NATS_CLAIMS,
        "(found.no_prefetch or allowed.limited(found.name))",
        suite("test_a_last_attempt_is_never_prefetched", "nats"),
        suite("test_a_task_that_lost_its_worker_is_never_prefetched", "nats"),
        put="allowed.limited(found.name)",
    ),
    one(
        "sql: what lost two workers starts apart",
        "stores/sql/columns.py",
        " OR {{lost_before}}",
        suite("test_a_task_that_lost_two_workers_starts_apart", "sqlite"),
        suite("test_a_task_that_lost_two_workers_starts_apart", "postgres"),
    ),
    one(
        "nats: what lost two workers starts apart",
        "stores/nats/record.py",
        " or self._lost(2)",
        suite("test_a_task_that_lost_two_workers_starts_apart", "nats"),
        within="def isolated",
    ),
    one(
        "a crashed_before starts beside nothing that it could take along",
        "worker/isolation.py",
        "if self._clear(now, claimed[0]):",
        f"{ISOLATED}test_a_last_attempt_that_runs_for_long_puts_the_suspect_off_and_nobody_else",
        f"{ISOLATED}test_an_outcome_that_is_not_settled_yet_is_waited_for",
        put="if True:",
    ),
    one(
        "nothing is claimed beside a crashed_before that has just started",
        "worker/isolation.py",
        "if self._lone in self._in_flight and left > 0:",
        f"{ISOLATED}test_a_suspect_in_an_idle_worker_starts_alone_and_nothing_is_claimed_until_it_has_proved_itself",
        put="if False:",
    ),
    one(
        "a finished task is left only by an operator's retry",
        "core/decide.py",
        "if move(phase, Event.RETRY) is None:",
        f"{DECIDE}test_retry_by_hand_of_anything_else_is_refused",
        put="if False:",
        within="def retry_by_hand",
    ),
)

LOCKS = (
    one(
        "postgres: a claim locks what it picks",
        CLAIM,
        "        FOR UPDATE SKIP LOCKED\n",
        suite(ONCE, "postgres"),
        within="-- name: claim",
    ),
    one(
        "postgres: a claim passes over what others hold",
        CLAIM,
        "FOR UPDATE SKIP LOCKED",
        f"{HANDS}[claim]",
        f"{HANDS}[limit]",
        put="FOR UPDATE",
        within="-- name: claim",
    ),
    one(
        "postgres: promotion passes over what others hold",
        CLAIM,
        "FOR UPDATE SKIP LOCKED",
        f"{HANDS}[promotion]",
        put="FOR UPDATE",
        within="-- name: promote",
    ),
    one(
        "sql: a task is taken at the version that was seen",
        SHARED,
        " AND version = :version",
        suite("test_another_version_is_not_taken", "sqlite"),
        suite("test_another_version_is_not_taken", "postgres"),
        within="-- name: claim_by_id",
    ),
    one(
        "postgres: a task that somebody has taken is not taken again",
        SHARED,
        " AND version = :version AND state IN ('pending', 'failed') AND completed_at IS NULL",
        f"{PG}test_a_task_that_was_taken_meanwhile_is_not_taken_again",
        within="-- name: claim_by_id",
    ),
    one(
        "nats: a task is taken at the version that was seen",
        NATS_CLAIMS,
        'record.head["version"] != version or ',
        suite("test_another_version_is_not_taken", "nats"),
    ),
    Guard(
        "sqlite: what is not due is not claimed",
        (
            Cut("stores/sql/sqlite/submit.sql", "due <= now", "true"),
            Cut(SQLITE_CLAIMING, *DUE),
        ),
        (suite("test_a_delayed_task_is_claimed_when_it_is_due_and_not_before", "sqlite"),),
    ),
    Guard(
        "sqlite: a row edited while it was ready is looked at again",
        (Cut(SQLITE_CLAIMING, *DUE),),
        ("tests/stores/test_hand_edits.py::test_a_task_put_off_by_hand_waits[sqlite]",),
    ),
    Guard(
        "postgres: a row edited while it was ready is looked at again",
        (
            Cut(CLAIM, "FROM locked WHERE due", "FROM locked", within="-- name: claim"),
            Cut(CLAIM, "AND NOT EXISTS (SELECT FROM locked WHERE NOT due)", within="-- name: claim"),
        ),
        ("tests/stores/test_hand_edits.py::test_a_task_put_off_by_hand_waits[postgres]",),
    ),
)

LIMITS = (
    one(
        "a rate takes its tokens",
        CORE_LIMITS,
        "self.tokens_at(now) - number",
        *each_engine("test_a_slow_rate_lets_one_start"),
        put="self.tokens_at(now)",
    ),
    one(
        "a concurrency limit counts what runs",
        CORE_LIMITS,
        "control.concurrency - self._running.get(name, 0)",
        *each_engine("test_never_more_at_once"),
        put="control.concurrency",
    ),
    one(
        "a token that lacks less than a millionth is one",
        CORE_LIMITS,
        "control.tokens_at(self._now) + EPSILON",
        *each_engine("test_a_token_that_lacks_less_than_a_millionth_is_one"),
        put="control.tokens_at(self._now)",
    ),
    one(
        "sql: the tokens that were taken are stored",
        SHARED,
        "SET tokens = b.tokens",
        suite("test_a_slow_rate_lets_one_start", "sqlite"),
        suite("test_a_slow_rate_lets_one_start", "postgres"),
        put="SET tokens = c.tokens",
        within="-- name: spend_tokens",
    ),
    one(
        "postgres: limits are read under the locks of their rows",
        SHARED,
        " {for_update}",
        f"{PG}test_a_rate_is_read_after_whoever_has_it",
        f"{PG}test_what_runs_is_counted_after_whoever_has_the_limit[claim]",
        within="-- name: lock_controls",
    ),
    one(
        "sql: a claim that has something does not begin again because of what another saw",
        SQL_CLAIM,
        "        if taken.limits_apply:\n",
        "tests/stores/test_claim_steps.py::test_what_one_claim_saw_does_not_make_another_forget_what_it_has",
        put="        if taken.limits_apply or self._limited:\n",
        within="def claim",
    ),
    one(
        "sql: a task is taken within what is counted under the lock",
        SQL_CLAIM,
        "if not limits.allows(names[0]):",
        f"{PG}test_what_runs_is_counted_after_whoever_has_the_limit[take]",
        put="if False:",
        within="def claim_by_id",
    ),
    one(
        "postgres: a limit turns the everyday claim away",
        CLAIM,
        "WHERE (paused OR limited)",
        suite("test_never_more_at_once", "postgres"),
        suite("test_a_slow_rate_lets_one_start", "postgres"),
        put="WHERE (paused)",
        within="-- name: claim",
    ),
    one(
        "sqlite: a limit turns the everyday claim away",
        SQLITE_CLAIM,
        " OR concurrency IS NOT NULL OR coalesce(operator_rate, default_rate, 0) <> 0",
        suite("test_never_more_at_once", "sqlite"),
        suite("test_a_slow_rate_lets_one_start", "sqlite"),
        within="-- name: survey",
    ),
    one(
        "sql: a taken task takes its token",
        SQL_CLAIM,
        "yield from _spend(limits, found)",
        suite("test_a_rate_holds_for_taking_and_claiming_together", "sqlite", "work"),
        suite("test_a_rate_holds_for_taking_and_claiming_together", "postgres", "work"),
        put="pass",
        within="def claim_by_id",
    ),
    one(
        "nats: claims under one limit exclude each other",
        NATS_CLAIMS,
        'limits = self._snapshot.limit_writes(Counter(record.head["name"] for record in claimed))',
        "tests/stores/nats/test_feed.py::test_claims_under_a_limit_exclude_each_other",
        put="limits: list[Write] = []",
    ),
    one(
        "nats: a taken task takes its token",
        NATS_CLAIMS,
        "[*snapshot.limit_writes({name: 1}), write_of(claimed)]",
        suite("test_a_rate_holds_for_taking_and_claiming_together", "nats", "work"),
        put="[write_of(claimed)]",
    ),
)

PAUSES = (
    one(
        "sql: a pause holds inside the claim",
        CORE_LIMITS,
        "if control.paused:",
        suite("test_a_paused_type_gives_nothing", "sqlite"),
        suite("test_a_paused_type_gives_nothing", "postgres"),
        put="if False:",
        within="def cap",
    ),
    one(
        "sql: a pause of all types holds inside the claim",
        CORE_LIMITS,
        "if control.paused:",
        suite("test_all_types_can_be_paused", "sqlite"),
        suite("test_all_types_can_be_paused", "postgres"),
        put="if control.paused and name:",
        within="def cap",
    ),
    Guard(
        "nats: a pause holds inside the claim",
        (
            Cut(CORE_LIMITS, "if control.paused:", "if False:", "def cap"),
            Cut(NATS_CLAIMS, " and not allowed.paused(name)"),
        ),
        (suite("test_a_paused_type_gives_nothing", "nats"), suite("test_all_types_can_be_paused", "nats")),
    ),
    one(
        "postgres: a pause turns the everyday claim away",
        CLAIM,
        "WHERE (paused OR limited)",
        suite("test_a_paused_type_gives_nothing", "postgres"),
        suite("test_a_pause_holds_at_once_in_every_store", "postgres"),
        put="WHERE (limited)",
        within="-- name: claim",
    ),
    one(
        "sqlite: a pause turns the everyday claim away",
        SQLITE_CLAIM,
        "WHERE paused OR ",
        suite("test_a_paused_type_gives_nothing", "sqlite"),
        put="WHERE ",
        within="-- name: survey",
    ),
    one(
        "sql: nothing is taken under a pause",
        SHARED,
        "c.paused OR ",
        suite("test_nothing_is_taken_under_a_pause", "postgres", "work"),
        suite("test_nothing_is_taken_under_a_pause", "sqlite", "work"),
        within="-- name: claim_by_id",
    ),
)

LEASES = (
    one(
        "sql: a lease that holds is not lost",
        SHARED,
        "t.locked_until <= {lease_now} OR ",
        suite("test_a_lease_that_ran_out_is_lost", "sqlite"),
        suite("test_a_lease_that_ran_out_is_lost", "postgres"),
        put="true OR ",
        within="-- name: lost_leases",
    ),
    one(
        "nats: what runs without a lease is lost",
        "stores/nats/operate.py",
        "found.locked is None or ",
        suite("test_what_runs_without_a_lease_is_lost", "nats"),
        put="found.locked is not None and ",
        within="async def lost_leases",
    ),
    one(
        "a running task is taken over only when its lease has run out",
        "core/claims.py",
        "if task.locked_until is None or task.locked_until <= now:",
        "tests/core/test_claims.py::test_only_a_lease_that_ran_out_is_taken_over",
        put="if True:",
        within="def take_over",
    ),
    one(
        "a claim made by hand is settled by its worker only",
        "core/claims.py",
        "task.worker_id != worker_id",
        "tests/core/test_claims.py::test_others_and_earlier_claims_are_refused",
        put="False",
        within="def holding",
    ),
    one(
        "a claim made by hand is settled at its version only",
        "core/claims.py",
        "version is not None and version != task.version",
        "tests/core/test_claims.py::test_others_and_earlier_claims_are_refused",
        put="False",
        within="def holding",
    ),
)

CHOICE = "worker/choice.py"
CHOSEN = "tests/worker/test_choice.py::test_what_it_was_told_it_serves"
UNKNOWN = "tests/worker/test_choice.py::test_what_there_is_not_is_refused_at_the_start"

CHOICES = (
    one(
        "worker: only types of the queues it was told of",
        CHOICE,
        "and (self.queues is None or queue in self.queues)",
        CHOSEN,
    ),
    one("worker: no types of queues that were excluded", CHOICE, "and queue not in self.exclude_queues", CHOSEN),
    one("worker: a queue that no type has is refused", CHOICE, "if queue not in queues]", UNKNOWN, put="if False]"),
    one(
        "operators: what matches is counted and confirmed before it is changed",
        "cli/operate.py",
        'session.confirm(f"{verb} {_tasks(found.value)} {more}{_WHICH[action]}", yes=yes)',
        "tests/cli/test_operating.py::test_all_that_match_are_retried_after_a_count",
        put="pass",
    ),
)

GUARDS = (*KEYS, *UNIQUE_KEYS, *KEPT_OUT, *ATTEMPTS, *LOCKS, *LIMITS, *PAUSES, *LEASES, *CHOICES)
