"""Unique indexes and triggers that people put on the table: what they keep out is told, and never called stored."""

from collections.abc import Callable, Sequence

import pytest

from tasklib.core.errors import StoreRefused, TaskConflict
from tasklib.core.task import NewTask
from tasklib.stores.protocol import Store
from tasklib.stores.sql.postgres import PostgresStore
from tasklib.stores.values import Inserted
from tests.conformance.builders import alike_tasks, new_task, submit
from tests.stores.conftest import Execute, number_of

KEPT_OUT = 7
"""The priority that is taken, or dropped."""

Make = Callable[[], Sequence[NewTask]]

several = pytest.mark.parametrize(
    "make",
    [
        lambda: [new_task(priority=KEPT_OUT)],
        lambda: alike_tasks(3, priority=KEPT_OUT),
        lambda: [new_task(priority=1), new_task(priority=KEPT_OUT)],
        lambda: [new_task(priority=KEPT_OUT, key="once")],
        lambda: [new_task(priority=1, key="once"), new_task(priority=KEPT_OUT)],
        lambda: [new_task(priority=1), new_task(priority=KEPT_OUT, key="once")],
    ],
    ids=["lone", "alike", "batch", "key", "keys and none", "none and keys"],
)


@pytest.fixture
def one_waiting(store: Store, by_hand: Execute) -> None:
    by_hand("CREATE UNIQUE INDEX one_waiting ON tasks ((priority + 0)) WHERE state = 'pending'")


@pytest.fixture
def dropped(store: Store, by_hand: Execute) -> None:
    if isinstance(store, PostgresStore):
        by_hand(f"""
            CREATE FUNCTION drop_some() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN IF NEW.priority = {KEPT_OUT} THEN RETURN NULL; END IF; RETURN NEW; END $$;
            CREATE TRIGGER drop_some BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION drop_some()
        """)
    else:
        by_hand(f"""
            CREATE TRIGGER drop_some BEFORE INSERT ON tasks WHEN NEW.priority = {KEPT_OUT}
            BEGIN SELECT RAISE(IGNORE); END
        """)


@several
@pytest.mark.usefixtures("one_waiting")
async def test_what_a_unique_index_keeps_out_is_refused_by_its_name(store: Store, make: Make):
    """Fault 25: an index of somebody else's on our table."""
    await submit(store, priority=KEPT_OUT)
    with pytest.raises(TaskConflict, match="one_waiting"):
        await store.insert(make())
    assert await number_of(store) == 1, "all of it or nothing"


@pytest.mark.parametrize("key", [None, "once"])
@pytest.mark.usefixtures("one_waiting")
async def test_what_is_repeated_is_found_beside_a_unique_index(store: Store, key: str | None):
    """Its own first copy is in its way, in the index as well."""
    tasks = [new_task(priority=KEPT_OUT, key=key), new_task(priority=8)]
    for repeated in ([tasks[0]], tasks[1:]):
        await store.insert(repeated)
        assert await store.insert(repeated) == [Inserted(repeated[0].id, True)]
    assert await store.insert(tasks) == [Inserted(task.id, True) for task in tasks]
    assert await number_of(store) == 2


@several
@pytest.mark.usefixtures("dropped")
async def test_what_a_trigger_drops_is_not_called_stored(store: Store, make: Make):
    with pytest.raises(StoreRefused, match="trigger"):
        await store.insert(make())


@pytest.mark.usefixtures("dropped")
async def test_a_trigger_that_drops_some_lets_the_others_in(store: Store):
    [inserted] = await store.insert([new_task(priority=1)])
    assert inserted.created
    with pytest.raises(StoreRefused, match="trigger"):
        await store.insert([new_task(priority=KEPT_OUT)])
    assert await number_of(store) == 1
