"""Who waits for others is released once, by the last of them, and is never forgotten."""

from tests.guards.fencing import one, suite
from tests.guards.guard import Cut, Guard

ATTACKS = "tests/stores/test_flows.py::"
LATE = "tests/stores/postgres/test_flows.py::"
CORE = "tests/core/test_flows.py::"
BUCKET = "tests/stores/nats/test_flows.py::"
LINKED = "test_a_link_to_what_is_there"
CUT = "test_a_failure_cuts_off_what_needs_its_success"
REVIVED = "test_one_revived_with_a_parent_that_has_lost_another_ends_again"
AWAITED = "test_what_is_awaited_is_not_deleted"
POSTGRES, SQLITE = "stores/sql/postgres/", "stores/sql/sqlite/"

GUARDS = (
    one(
        "flows, postgres: a completion that releases nothing passes over what others wait for",
        f"{POSTGRES}settle.sql",
        " AND t.feeds IS NULL",
        suite(LINKED, "postgres"),
        within="-- name: complete",
    ),
    Guard(
        "flows, sqlite: a completion that releases nothing passes over what others wait for",
        (
            Cut(f"{SQLITE}settle.sql", " AND (t.feeds IS NULL OR :feeding)", within="-- name: complete"),
            Cut(f"{SQLITE}settle.sql", "\n    AND (tasks.feeds IS NULL OR :feeding)", within="-- name: complete"),
        ),
        (suite(LINKED, "sqlite"),),
    ),
    one(
        "flows, postgres: an end that cuts off nothing passes over what others wait for",
        f"{POSTGRES}settle.sql",
        "(:feeding::boolean OR CASE",
        suite(CUT, "postgres"),
        put="(true OR CASE",
        within="-- name: settle",
    ),
    one(
        "flows, sqlite: an end that cuts off nothing passes over what others wait for",
        f"{SQLITE}settle.sql",
        "(:feeding OR CASE",
        suite(CUT, "sqlite"),
        put="(true OR CASE",
        within="-- name: not_fed",
    ),
    one(
        "flows: what is revived with one it waits for is looked at when both are written",
        "stores/sql/release.py",
        " and child not in settled",
        *(suite(REVIVED, store, "True") for store in ("sqlite", "postgres")),
    ),
    one(
        "flows, postgres: what does not wait is not released",
        f"{POSTGRES}settle.sql",
        " AND t.waits > 0",
        f"{ATTACKS}test_rows_that_somebody_edited[postgres]",
        within="-- name: complete_feeding",
    ),
    one(
        "flows, sqlite: what does not wait is not released",
        f"{SQLITE}flows.sql",
        "\nWHERE c.waits > 0",
        f"{ATTACKS}test_rows_that_somebody_edited[sqlite]",
        within="-- name: fed_children",
    ),
    one(
        "flows, postgres: ends of parents are counted down, not looked at",
        f"{POSTGRES}settle.sql",
        "t.waits <= fed.number AND",
        f"{LATE}test_two_last_parents_that_are_inside_their_settles_at_once",
        put="""NOT EXISTS (
                SELECT FROM {schema}.tasks p
                WHERE jsonb_exists(t.after -> 'parents', p.id::text) AND p.completed_at IS NULL
                  AND p.id NOT IN (SELECT id FROM done)
            ) AND""",
        within="-- name: complete_feeding",
    ),
    one(
        "flows: what the settle could not see is looked at again",
        "stores/sql/settle.py",
        "    yield from recount(unseen)\n",
        f"{LATE}test_a_late_link_is_released_by_a_second_look",
    ),
    one(
        "flows, postgres: whoever links to a task holds it",
        f"{POSTGRES}flows.sql",
        " FOR NO KEY UPDATE",
        f"{LATE}test_a_link_waits_for_an_end_that_is_under_way",
        within="-- name: lock_children",
    ),
    one(
        "flows, postgres: what others wait for is deleted only by those who hold it",
        f"{POSTGRES}upkeep.sql",
        " WHEN NOT :fed::boolean THEN false",
        f"{LATE}test_a_late_link_holds_off_a_delete",
        within="-- name: not_awaited",
    ),
    one(
        "flows, postgres: what an unfinished task waits for is kept",
        f"{POSTGRES}upkeep.sql",
        "ELSE NOT EXISTS (",
        suite(AWAITED, "postgres"),
        put="ELSE true OR NOT EXISTS (",
        within="-- name: not_awaited",
    ),
    one(
        "flows, sqlite: what an unfinished task waits for is kept",
        f"{SQLITE}upkeep.sql",
        "ELSE NOT EXISTS (",
        suite(AWAITED, "sqlite"),
        put="ELSE true OR NOT EXISTS (",
        within="-- name: not_awaited",
    ),
    one(
        "flows: only what waits is cut off",
        "core/flows.py",
        " and child.waiting",
        f"{CORE}test_what_does_not_wait_any_more_is_neither_released_nor_cut_off",
        within="def after_ends",
    ),
    one(
        "flows: what is held down by another failure is not revived",
        "core/flows.py",
        "    if failed is not None:\n        return _cut_off(child._replace(waits=waits), failed)\n    kept",
        suite("test_what_another_failure_holds_down_stays_down", "sqlite"),
        put="    kept",
        within="def recounted",
    ),
    one(
        "flows: of parents that nobody knows nothing is concluded",
        "core/flows.py",
        " or parents is None",
        f"{CORE}test_of_parents_that_nobody_knows_nothing_is_concluded",
        within="def recounted",
    ),
    one(
        "flows: what waits is not run now",
        "core/decide.py",
        "if task.waits > 0:",
        suite("test_what_waits_is_not_due_whatever_is_asked", "sqlite"),
        put="if False:",
        within="def run_now",
    ),
    one(
        "flows: tasks of a batch do not wait for each other",
        "stores/sql/links.py",
        "    _check_order(new)\n",
        suite("test_what_is_not_there_cannot_be_waited_for", "sqlite"),
    ),
    one(
        "flows: what is not there is not waited for",
        "stores/sql/links.py",
        "if parent not in new and parent not in found:",
        suite("test_what_is_not_there_cannot_be_waited_for", "sqlite"),
        put="if False:",
    ),
    one(
        "flows: what was released is not made to wait again",
        "stores/sql/links.py",
        "if not child.waiting:",
        suite("test_before_adds_to_what_is_awaited", "sqlite"),
        put="if False:",
    ),
    one(
        "flows: so many wait for one, and no more",
        "stores/sql/links.py",
        "if number > FLOW_FEEDS_LIMIT:",
        suite("test_so_many_may_wait_for_one", "sqlite"),
        put="if False:",
    ),
    one(
        "flows: before makes no circle",
        "stores/sql/links.py",
        " and not below.isdisjoint(after.parents)",
        suite("test_before_cannot_make_a_circle", "sqlite"),
        put=" and False",
    ),
    one(
        "flows, nats: the end of a parent and what becomes of its children are one batch",
        "stores/nats/settle.py",
        "await self._kv.write(writes[start : start + LARGEST_BATCH])",
        f"{BUCKET}test_ends_of_many_parents_at_once_release_their_child_once",
        put="await self._kv.write_each(writes[start : start + LARGEST_BATCH])",
    ),
    one(
        "flows, nats: of two that change the parents of what is cut off the second looks again",
        "stores/nats/flows.py",
        " and not child.cut_off:",
        f"{BUCKET}test_two_parents_that_are_retried_at_once_revive_their_child",
        put=":",
    ),
    one(
        "flows, nats: what a batch cannot hold is refused",
        "stores/nats/batch_submit.py",
        "if len(tasks) > FLOW_LIMIT:",
        f"{BUCKET}test_a_flow_of_a_thousand_goes_in_and_a_larger_one_is_refused_by_name",
        put="if False:",
    ),
    one(
        "flows, nats: what is awaited is not deleted",
        "stores/nats/operate.py",
        "elif any(is_unfinished(children.get(child)) for child in children_of(record)):",
        suite(AWAITED, "nats"),
        put="elif False:",
    ),
    one(
        "flows, nats: what is revived by hand is judged by what became of its parents",
        "stores/nats/settle.py",
        'revived and settled.head.get("waits_for")',
        suite("test_a_task_that_is_revived_waits_for_what_is_left", "nats"),
        put="False",
    ),
)
