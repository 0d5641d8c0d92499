"""Wake-ups from one process to another, without a server between them."""

import asyncio
import signal
from pathlib import Path

import pytest

from tasklib.core.task import Task
from tasklib.stores.sql.sqlite import SqliteStore
from tasklib.stores.values import Hint
from tests.conformance.builders import WORK, claim, submit, submit_several, within_deadline
from tests.stores.sqlite.scripts import Run
from tests.waiting import eventually_async


@pytest.fixture
def wake_directory(path: Path) -> Path:
    return path.with_name(path.name + "-wake")


SUBMIT_ONE = """
async def main():
    store = SqliteStore(url)
    await store.open()
    wait_for_word()
    tell(await submit(store, arguments[0]))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("name", [WORK, 'with "quotes"\nand a line', "ünïcödé " * 30])
async def test_a_submit_in_another_process_wakes_a_listener(run: Run, store: SqliteStore, name: str):
    heard: list[Hint] = []
    event = asyncio.Event()

    def wake(hint: Hint) -> None:
        heard.append(hint)
        event.set()

    store.listen(wake)
    script = run(SUBMIT_ONE, name)
    script.say()
    await within_deadline(event, "a wake-up from another process")
    assert heard in ([name], [None]), "a name that is too long for one line is a call to look at everything"
    assert script.end() == 0


LISTEN = """
async def main():
    store = SqliteStore(url)
    await store.open()
    event = asyncio.Event()
    stop = store.listen(lambda name: (tell(repr(name)), event.set()))
    tell("ready")
    await event.wait()
    stop()
    await store.close()

asyncio.run(main())
"""


async def test_a_listener_in_another_process_is_woken(run: Run, store: SqliteStore, wake_directory: Path):
    script = run(LISTEN)
    assert script.hear() == "ready"
    assert len(list(wake_directory.iterdir())) == 1
    await submit(store, "mail")
    assert await script.hear_async() == "'mail'"
    assert script.end() == 0
    assert list(wake_directory.iterdir()) == []


@pytest.mark.parametrize(("number", "named"), [(2, 2), (200, 0)])
async def test_a_cancel_is_told_in_one_message_however_many_are_asked(
    run: Run, store: SqliteStore, number: int, named: int
):
    ids = await submit_several(store, number)
    await claim(store, number)
    script = run(LISTEN.replace("repr(name)", "len(name.ids)").replace("event.set()", "None"))
    assert script.hear() == "ready"
    await store.request_cancel(ids)
    assert await script.hear_async() == str(named)
    await store.request_cancel(ids[:1])
    assert await script.hear_async() == "1", "nothing came in between"
    script.kill()


async def test_a_listener_that_died_is_forgotten(run: Run, store: SqliteStore, wake_directory: Path):
    script = run(LISTEN)
    assert script.hear() == "ready"
    assert len(list(wake_directory.iterdir())) == 1
    script.kill()
    await submit(store)
    await eventually_async(lambda: not list(wake_directory.iterdir()))


async def test_a_listener_that_died_between_two_rings_is_forgotten(run: Run, store: SqliteStore, wake_directory: Path):
    script = run(LISTEN.replace("await event.wait()", "await asyncio.Event().wait()"))
    assert script.hear() == "ready"
    await submit(store)
    assert await script.hear_async() == repr(WORK)
    script.kill()
    await submit(store)
    await eventually_async(lambda: not list(wake_directory.iterdir()))


async def test_a_listener_that_never_reads_holds_up_nobody(run: Run, store: SqliteStore, wake_directory: Path):
    script = run(LISTEN)
    assert script.hear() == "ready"
    script.process.send_signal(signal.SIGSTOP)
    name = "n" * 200
    for _ in range(500):  # more than a pipe holds
        await submit(store, name)
    assert len(list(wake_directory.iterdir())) == 1
    script.process.send_signal(signal.SIGCONT)
    assert await script.hear_async() == repr(name)


FINISH = """
async def main():
    store = SqliteStore(url)
    await store.open()
    [one] = await claim(store)
    tell("claimed")
    wait_for_word()
    await apply(store, completed(one, "from afar"))
    await store.close()

asyncio.run(main())
"""


async def test_a_finish_in_another_process_wakes_who_waits(
    run: Run, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tasklib.stores.listeners.FIRST_POLL", 3600.0)  # polling is not to be the reason
    task_id = await submit(store)
    script = run(FINISH)
    assert script.hear() == "claimed"
    seen: list[Task | None] = []

    async def wait() -> None:
        async for task in store.watch(task_id):
            seen.append(task)
            if len(seen) == 1:
                script.say()
            else:
                return

    await asyncio.wait_for(wait(), 20)
    assert [(task.state, task.result) for task in seen if task] == [
        ("running", None),
        ("completed", {"value": "from afar"}),
    ]
    assert script.end() == 0
