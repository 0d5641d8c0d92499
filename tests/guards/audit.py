"""An operator's action and its audit entry are one transaction, and an entry tells only of what was applied."""

from tests.guards.fencing import NATS, one, suite
from tests.guards.guard import Cut, Guard

SETTLE = "stores/sql/settle.py"
UPKEEP = "stores/sql/upkeep.py"
NOT_DONE = "tests/server/test_audit.py::test_what_cannot_be_kept_in_the_audit_trail_is_not_done"
OF_SETTLES = "test_of_a_settle_that_comes_too_late_none"
NEW_ONES = "test_of_submits_those_that_are_new_are_in_the_trail"
ONE_LINE = "test_a_mass_action_is_one_line_with_all_its_batches"
REFUSED = "test_a_write_whose_entry_cannot_be_made_is_not_made"


def not_done(action: str) -> tuple[str, ...]:
    return tuple(f"{NOT_DONE}[postgres-{way}-{action}]" for way in ("lock", "grant", "trigger"))


def one_transaction(name: str, verb: str, action: str) -> Guard:
    begin = "    if audit is not None:\n        yield BEGIN\n"
    return Guard(f"audit: {name} and its entry are one transaction", (Cut(UPKEEP, begin, "", verb),), not_done(action))


GUARDS = (
    one(
        "audit: a cancel or retry and its entry are one transaction",
        SETTLE,
        "begin or len(queries) > 1",
        *not_done("cancel"),
        *not_done("retry"),
        put="len(queries) > 1",
    ),
    one_transaction("a request to stop", "def request_cancel", "cancel a running one"),
    one_transaction("a delete", "def delete", "delete"),
    one_transaction("a clean-up", "def _prune", "clean up"),
    one(
        "audit: a token and its entry are one transaction",
        "stores/sql/access.py",
        "    if audit:\n        yield BEGIN\n",
        "tests/stores/postgres/test_audit.py::test_a_token_and_its_entry_are_one_transaction",
        times=2,
    ),
    one(
        "audit: of changes only those that were applied",
        SETTLE,
        "if result is WriteResult.APPLIED",
        suite(OF_SETTLES, "sqlite"),
        suite(OF_SETTLES, "postgres"),
    ),
    one(
        "audit: of tokens only what was revoked",
        "stores/sql/access.py",
        "if revoked:",
        suite("test_of_tokens_what_was_made_and_revoked", "postgres"),
        put="if True:",
    ),
    one(
        "audit: nats: a change and its entry are one batch",
        NATS,
        "if audit is None or not writes:",
        suite(REFUSED, "nats"),
        suite("test_of_a_settle_those_that_were_applied", "nats"),
        put="if True:",
    ),
    one(
        "audit: nats: a delete and its entry are one batch",
        "stores/nats/operate.py",
        "writes += audit_writes(self._kv, audit(list(doubt)))",
        suite(REFUSED, "nats"),
        suite("test_of_deletes_those_that_are_gone", "nats"),
        put="pass",
    ),
    one(
        "audit: nats: a control and its entry are one batch",
        "stores/nats/kv.py",
        ", *beside()])",
        suite("test_a_control_and_its_entry", "nats"),
        put="])",
    ),
    one(
        "audit: a submit or a copy and its entry are one transaction",
        "stores/sql/submit.py",
        "    yield BEGIN\n",
        *not_done("run again"),
        within="def submit_told",
    ),
    one(
        "audit: of submits only those that are new",
        "stores/sql/submit.py",
        "if each.created",
        suite(NEW_ONES, "sqlite"),
        suite(NEW_ONES, "postgres"),
        within="def submit_told",
    ),
    one(
        "audit: nats: a submit and its entry are one batch",
        "stores/nats/submit.py",
        "[*audit_writes(self._kv, self._audit(list(self._left))), *writes]",
        suite(NEW_ONES, "nats"),
        put="writes",
    ),
    one(
        "audit: a drain and its entry are one transaction",
        "stores/sql/workers.py",
        "    yield BEGIN\n",
        *not_done("drain"),
        within="def request_drain",
    ),
    one(
        "audit: a mass action is listed once",
        "stores/sql/shared.sql",
        " AND b.number < a.number",
        suite(ONE_LINE, "sqlite"),
        suite(ONE_LINE, "postgres"),
        within="-- name: list_audit_folded",
    ),
    one(
        "audit: a mass action goes on as one's own only",
        "server/tasks.py",
        "if (entry.actor, entry.action) != (who.label, action):",
        "tests/server/test_ways_back.py::test_many_are_revived_in_one_action_that_their_trail_leads_to",
        put="if False:",
    ),
    one(
        "run now: what has fallen due meanwhile is not asked to stop",
        "engine/bulk.py",
        "if action is Action.CANCEL:",
        "tests/server/test_ways_back.py::test_what_has_fallen_due_meanwhile_is_not_asked_to_stop",
        put="if True:",
    ),
    one(
        "a copy gets no mask for a secret",
        "engine/repeating.py",
        "if MASK in json.dumps(found) and MASK not in json.dumps(kept):",
        "tests/server/test_ways_back.py::test_a_finished_task_is_run_again_under_a_new_id",
        put="if False:",
    ),
    one(
        "only what is over is run again",
        "engine/repeating.py",
        "    decide.check_over(task)\n",
        "tests/server/test_ways_back.py::test_a_finished_task_is_run_again_under_a_new_id",
    ),
)
