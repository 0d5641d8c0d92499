"""Lists where the table is strange, or bigger than what is sorted: they show what a plain filter does."""

import random
import secrets

import pytest

from tasklib.stores.protocol import Store
from tasklib.stores.sql import lists
from tests.conformance.builders import fetch
from tests.conformance.lists import compare, various
from tests.stores.conftest import Execute

BOUNDS = {
    "found by walking": {},
    "found in their places": {"NEAR_ROWS": 0},
    "too many pending tasks to sort": {"NEAR_ROWS": 5, "SORTED_ROWS": 2},
    "too many types": {"NEAR_ROWS": 5, "KNOWN_NAMES": 2},
    "nothing but walking": {"SORTED_ROWS": 0, "KNOWN_NAMES": 0},
}


@pytest.mark.parametrize("bounds", BOUNDS)
async def test_strange_rows_are_listed_too(
    store: Store, by_hand: Execute, monkeypatch: pytest.MonkeyPatch, bounds: str
):
    for name, value in BOUNDS[bounds].items():
        monkeypatch.setattr(lists, name, value)
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    ids = [task.id for task in await various(store, chance, 40)]
    for task_id in chance.sample(ids, 25):
        state = chance.choice(["pending", "running", "completed", "failed", "cancelled", "on hold", "no such state"])
        over = chance.choice(["NULL", "<-5>"])
        ready = chance.choice(["true", "false"])
        worker = chance.choice(["NULL", "'anna'"])
        by_hand(
            f"UPDATE tasks SET state = '{state}', completed_at = {over}, ready = {ready}, worker_id = {worker} "
            f"WHERE id = '{task_id}'"
        )
    await compare(store, [await fetch(store, task_id) for task_id in ids], chance, 50, f"seed {seed}")
