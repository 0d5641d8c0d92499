"""Alerts are told once by a fleet, no faster than their `for`, and again where they did not arrive."""

from tests.guards.fencing import one, suite
from tests.guards.guard import Cut, Guard

ONE_DOES = "test_one_of_those_who_write_a_version_does"
FLEET = "tests/test_alerts.py::test_a_fleet_tells_once_that_it_begins_and_once_that_it_is_over"
AGAIN = "tests/test_alerts.py::test_what_did_not_arrive_is_told_again_by_whoever_is_there"
STEADY = "tests/core/test_alerts.py::test_it_fires_once_and_is_over_once_and_never_flaps_faster_than_for"

GUARDS = (
    one(
        "alerts: a state is written in place of the version before its own",
        "stores/sql/shared.sql",
        "WHERE t.version = excluded.version - 1",
        suite(ONE_DOES, "sqlite"),
        suite(ONE_DOES, "postgres"),
    ),
    one(
        "alerts: nats: a state is written in place of the version before its own",
        "stores/nats/alerts.py",
        "if entry is not None and _alert(entry).version != alert.version - 1:",
        suite(ONE_DOES, "nats"),
        put="if False:",
    ),
    Guard(
        "alerts: one of a fleet looks, and one tells",
        (
            Cut("engine/alerts.py", "if not await _write(store, replace(turn, since=now)):", "if False:"),
            Cut("engine/alerts.py", "if after is before or not await _write(store, after):", "if after is before:"),
        ),
        (f"{FLEET}[sqlite]", f"{FLEET}[postgres]"),
    ),
    one(
        "alerts: what did not arrive is not sent at every check",
        "core/alert_state.py",
        "and (self.try_at is None or self.try_at <= now)",
        AGAIN,
    ),
    one(
        "alerts: a rule holds for a while before it fires",
        "core/alerts.py",
        "if rule.lasting and alert.state != between:",
        STEADY,
        put="if False:",
    ),
)
