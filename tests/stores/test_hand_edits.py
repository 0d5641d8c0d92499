"""People edit rows with psql: what is due is found from state and times alone, and what is odd harms nobody."""

from tasklib.core.decide import WriteResult
from tasklib.core.lifecycle import Phase
from tasklib.core.retry import RetryPolicy
from tasklib.stores.protocol import Store
from tasklib.stores.values import Filter
from tests.conformance.builders import (
    apply,
    cancelled,
    claim,
    claim_one,
    completed,
    failed,
    fetch,
    in_phase,
    next_id,
    settle,
    submit,
    submit_several,
)
from tests.stores.conftest import Execute


async def test_a_row_inserted_by_hand_is_claimed(store: Store, by_hand: Execute):
    made = next_id()
    by_hand(f"""INSERT INTO tasks (id, name, kwargs) VALUES ('{made}', 'work', '{{"a": 1}}')""")
    by_hand(f"INSERT INTO tasks (id, name, kwargs, scheduled_at) VALUES ('{next_id()}', 'work', '{{}}', <500>)")
    task = await fetch(store, made)
    assert (task.state, task.kwargs, task.max_retries, task.history) == ("pending", {"a": 1}, 3, [])
    running = await claim_one(store)
    assert (running.id, running.kwargs.replace(" ", "")) == (made, '{"a":1}')
    await apply(store, completed(running))
    assert await claim(store) == []


async def test_a_task_put_off_by_hand_waits(store: Store, by_hand: Execute):
    first, second = await submit_several(store, 2)
    by_hand(f"UPDATE tasks SET scheduled_at = <500> WHERE id = '{first}'")
    assert [claimed.id for claimed in await claim(store, 5)] == [second]
    assert await claim(store, 5) == []
    store.clock_offset += 501
    assert [claimed.id for claimed in await claim(store, 5)] == [first]


async def test_a_delayed_task_brought_forward_by_hand_is_claimed(store: Store, by_hand: Execute):
    task_id = await submit(store, delay_seconds=5000)
    assert await claim(store) == []
    by_hand(f"UPDATE tasks SET scheduled_at = <0> WHERE id = '{task_id}'")
    store.clock_offset += 1
    assert (await claim_one(store)).id == task_id


async def test_a_retry_brought_forward_by_hand_is_claimed(store: Store, by_hand: Execute):
    task = await in_phase(store, Phase.WAITING)
    by_hand(f"UPDATE tasks SET next_retry_at = <0> WHERE id = '{task.id}'")
    store.clock_offset += 1
    assert (await claim_one(store, task.name)).attempt == 2


async def test_a_final_failure_put_back_by_hand_is_claimed(store: Store, by_hand: Execute):
    task = await in_phase(store, Phase.FAILED)
    by_hand(f"UPDATE tasks SET state = 'pending', completed_at = NULL, retry_count = 0 WHERE id = '{task.id}'")
    assert (await claim_one(store, task.name)).id == task.id


async def test_a_running_task_taken_away_by_hand_is_lost_to_its_holder(store: Store, by_hand: Execute):
    await submit(store)
    old = await claim_one(store)
    by_hand(
        f"UPDATE tasks SET state = 'pending', worker_id = NULL, locked_until = NULL, version = version + 1 "
        f"WHERE id = '{old.id}'"
    )
    assert await settle(store, completed(old)) is WriteResult.STALE
    assert (await claim_one(store)).id == old.id


async def test_an_unknown_state_is_skipped_and_shown_until_it_is_put_right(store: Store, by_hand: Execute):
    """Fault 21, an unknown state: shown, skipped, its neighbours proceed."""
    odd, ordinary = await submit(store, priority=10), await submit(store)
    by_hand(f"UPDATE tasks SET state = 'on hold' WHERE id = '{odd}'")
    assert [claimed.id for claimed in await claim(store, 5)] == [ordinary]
    task = await fetch(store, odd)
    assert task.state == "on hold"
    assert (await store.page(Filter(states=["on hold"]), limit=5)).tasks == [task]
    by_hand(f"UPDATE tasks SET state = 'pending' WHERE id = '{odd}'")
    assert [claimed.id for claimed in await claim(store, 5)] == [odd]


async def test_many_odd_rows_do_not_hide_the_ordinary_ones(store: Store, by_hand: Execute):
    """Although they come first by priority, and are many more than one claim takes."""
    await submit_several(store, 300, priority=10)
    by_hand("UPDATE tasks SET state = 'on hold'")
    await submit_several(store, 300, priority=10)
    by_hand("UPDATE tasks SET scheduled_at = <5000> WHERE state = 'pending'")
    ordinary = await submit(store)
    found: list[object] = []
    for _ in range(5):
        found += [claimed.id for claimed in await claim(store)]
    assert found == [ordinary]


async def test_a_task_completed_by_hand_is_not_claimed(store: Store, by_hand: Execute):
    task_id = await submit(store)
    by_hand(f"UPDATE tasks SET state = 'completed', completed_at = <0> WHERE id = '{task_id}'")
    assert await claim(store) == []


async def test_a_renamed_task_waits_for_a_worker_of_that_name(store: Store, by_hand: Execute):
    """Fault 21, an unknown name: it waits, and nobody stumbles over it."""
    task_id = await submit(store)
    by_hand("UPDATE tasks SET name = 'other'")
    assert await claim(store) == []
    assert (await claim_one(store, "other")).id == task_id


async def test_a_delete_by_hand_keeps_the_figures_exact(store: Store, by_hand: Execute):
    doomed = [await in_phase(store, phase, "work") for phase in (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)]
    await in_phase(store, Phase.COMPLETED, "work")
    waiting = await in_phase(store, Phase.WAITING, "work")
    for task in (*doomed, waiting):
        by_hand(f"DELETE FROM tasks WHERE id = '{task.id}'")
    stats = (await store.stats())["work"]
    assert (stats.completed, stats.failed, stats.cancelled, stats.waiting) == (1, 0, 0, 0)


async def test_odd_contents_do_not_stop_a_task(store: Store, by_hand: Execute):
    task_id = await submit(store)
    by_hand("""UPDATE tasks SET history = '{"a": 1}', retry_policy = '["soon"]'""")
    running = await claim_one(store)
    assert running.retry_policy is not None
    assert RetryPolicy.from_json(running.retry_policy) == RetryPolicy()
    await apply(store, failed(running, delay=600))
    task = await fetch(store, task_id)
    assert [entry["attempt"] for entry in task.history] == [1]
    await apply(store, cancelled(task))


async def test_a_running_row_without_a_lease_is_lost(store: Store, by_hand: Execute):
    """Otherwise it would run for ever."""
    await submit(store)
    running = await claim_one(store)
    by_hand("UPDATE tasks SET locked_until = NULL")
    assert [task.id for task in await store.lost_leases(30, 10)] == [running.id]
