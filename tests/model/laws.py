"""What holds of every queue at every time, whatever the model thinks: checked on the rows alone."""

from collections import Counter
from collections.abc import Collection, Mapping
from uuid import UUID

from tasklib.stores.values import NameStats
from tests.model.rows import Row

TERMINAL = ("completed", "failed", "cancelled")
_MOVE_ALONE = {"locked_until", "cancel_requested_at", "updated_at"}
"""What heartbeats and requests to stop change without a new version."""


def check_row(row: Row) -> None:
    runs, over = row["state"] == "running", row["completed_at"] is not None
    assert runs == (row["worker_id"] is not None) == (row["locked_until"] is not None), row
    assert not over or row["state"] in TERMINAL, row
    assert over or row["state"] not in ("completed", "cancelled"), row
    assert (row["result"] is not None) == (row["state"] == "completed"), row
    assert (row["next_retry_at"] is not None) == (row["state"] == "failed" and not over), row
    check_attempts(row)


def check_attempts(row: Row) -> None:
    """One entry for each attempt that did not complete, numbered without a gap; an operator's retry begins anew."""
    latest = 0
    for entry in row["history"]:
        if "snoozed" in entry:
            continue  # that attempt was given back
        assert entry["attempt"] in (latest + 1, 1), row
        latest = entry["attempt"]
        assert row["max_retries"] < 0 or latest <= row["max_retries"] + 1, row
    if row["state"] == "failed":
        assert latest == row["retry_count"] + (row["completed_at"] is not None), row


def check_step(before: Mapping[UUID, Row], after: Mapping[UUID, Row], retried: Collection[UUID]) -> None:
    """What one step may have done. `retried`: those that an operator's retry was accepted for in this step."""
    for task_id, new in after.items():
        old = before.get(task_id)
        if old is None:
            assert (new["version"], new["state"]) == (0, "pending"), new
            continue
        assert new["version"] >= old["version"], (old, new)
        changed = {name for name in new if new[name] != old[name]}
        if changed - _MOVE_ALONE:
            assert new["version"] > old["version"], (old, new)
        if old["completed_at"] is not None and task_id not in retried:
            assert not changed, (old, new)
    for task_id in before.keys() - after.keys():
        assert before[task_id]["completed_at"] is not None, before[task_id]


def check_keys(rows: Mapping[UUID, Row]) -> None:
    keys = Counter(row["idempotency_key"] for row in rows.values() if row["idempotency_key"] is not None)
    assert all(number == 1 for number in keys.values()), keys


def check_stats(rows: Mapping[UUID, Row], stats: Mapping[str, NameStats]) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for row in rows.values():
        waits = row["state"] == "failed" and row["completed_at"] is None
        counted[row["name"], "waiting" if waits else row["state"]] += 1
    for name in stats.keys() | {name for name, _ in counted}:
        shown = stats.get(name, NameStats())
        for state in ("pending", "running", "waiting", *TERMINAL):
            assert getattr(shown, state) == counted[name, state], (name, state, shown, counted)
