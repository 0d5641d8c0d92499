"""Several processes on one SQLite file: no server, and yet no lock that anybody sees."""

import signal
from pathlib import Path
from uuid import UUID

import apsw

from tasklib.stores.sql.sqlite import SqliteStore
from tests.conformance.builders import WORK, submit_several
from tests.stores.conftest import number_of
from tests.stores.sqlite.scripts import Run


def integrity(path: Path) -> str:
    connection = apsw.Connection(str(path))
    try:
        return str(connection.pragma("integrity_check"))
    finally:
        connection.close()


# -- one file ---------------------------------------------------------------------------------------------------------

OPEN_AND_SUBMIT = """
async def main():
    tell("ready")
    wait_for_word()
    store = SqliteStore(url)
    await store.open()
    for _ in range(20):
        await submit(store)
    await submit(store, key="once")
    await store.close()
    tell("done")

asyncio.run(main())
"""


async def test_processes_that_open_an_empty_file_at_once(run: Run, sqlite_url: str, path: Path):
    scripts = [run(OPEN_AND_SUBMIT) for _ in range(8)]
    assert {script.hear() for script in scripts} == {"ready"}
    assert not path.exists()
    for script in scripts:
        script.say()
    assert [script.hear() for script in scripts] == ["done"] * 8
    assert [script.end() for script in scripts] == [0] * 8
    store = SqliteStore(sqlite_url)
    await store.open()
    assert await number_of(store) == 8 * 20 + 1
    assert (await store.stats())[WORK].pending == 8 * 20 + 1
    await store.close()
    assert integrity(path) == "ok"


DRAIN = """
async def main():
    store = SqliteStore(url)
    await store.open()
    tell("ready")
    wait_for_word()
    done = []
    while claims := await claim(store, 7, worker=arguments[0]):
        await apply(store, *(completed(one, arguments[0]) for one in claims))
        done += [str(one.id) for one in claims]
        await store.stats()
    await store.close()
    tell(" ".join(done))

asyncio.run(main())
"""


async def test_processes_that_drain_one_queue_share_it_out(run: Run, store: SqliteStore, path: Path):
    """Fault 16, in small: four processes drain one file and get in nobody's way."""
    ids = await submit_several(store, 400)
    scripts = [run(DRAIN, f"worker-{number}") for number in range(4)]
    assert {script.hear() for script in scripts} == {"ready"}
    for script in scripts:
        script.say()
    shares = [(await script.hear_async()).split() for script in scripts]
    assert [script.end() for script in scripts] == [0] * 4
    assert sum(map(bool, shares)) > 1, "one had them all: nothing was contended"
    assert sorted(task_id for share in shares for task_id in share) == sorted(map(str, ids))
    for number, share in enumerate(shares):
        for task in await store.get([UUID(task_id) for task_id in share]):
            assert task is not None
            assert (task.state, task.result, task.version) == ("completed", {"value": f"worker-{number}"}, 2)
    assert (await store.stats())[WORK].completed == 400
    assert integrity(path) == "ok"


KILLED = """
async def main():
    store = SqliteStore(url)
    await store.open()
    for number in range(1_000_000):
        tell(str(await submit(store)))

asyncio.run(main())
"""


async def test_what_was_acknowledged_outlives_a_kill(run: Run, store: SqliteStore, path: Path):
    script = run(KILLED)
    acknowledged = [script.hear() for _ in range(50)]
    script.process.send_signal(signal.SIGKILL)
    script.process.wait()
    acknowledged += [line for line in script.process.stdout or [] if line.endswith("\n")]
    assert len(acknowledged) >= 50
    found = await store.get([UUID(line.strip()) for line in acknowledged])
    assert None not in found
    assert integrity(path) == "ok"


# -- fork -------------------------------------------------------------------------------------------------------------

FORK = """
async def in_child(inherited):
    try:
        await inherited.now()
    except StoreClosed as error:
        tell(error)
    await inherited.close()
    own = SqliteStore(url)
    await own.open()
    await submit(own)
    await own.close()

loop = asyncio.new_event_loop()
run = loop.run_until_complete
store = SqliteStore(url)

async def listen():
    store.listen(lambda name: None)

run(store.open())
run(listen())
run(submit(store))
child = os.fork()
if child == 0:
    asyncio.run(in_child(store))
    sys.exit(0)
_, status = os.waitpid(child, 0)
tell(status)
run(submit(store))
tell(run(store.count(Filter(), 10)).value)
tell(len(os.listdir(url.removeprefix("sqlite:///") + "-wake")))
run(store.close())
loop.close()
"""


def test_a_store_is_not_carried_over_a_fork(run: Run, path: Path):
    script = run(FORK)
    assert "made before a fork" in script.hear()
    assert script.hear() == "0", "the child did not end well"
    assert script.hear() == "3", "the parent's store suffered"
    assert script.hear() == "1", "the child took the parent's FIFO away"
    assert script.end() == 0
    assert integrity(path) == "ok"


# -- a file that may not grow -----------------------------------------------------------------------------------------

FULL = """
import resource
from tasklib.core.errors import TRANSIENT

async def main():
    store = SqliteStore(url)
    await store.open()
    kept = 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        while True:
            kept += len(await submit_several(store, 10))
    except TRANSIENT as error:
        tell(type(error).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    kept += len(await submit_several(store, 10))
    assert (await store.count(Filter(), 1_000_000)).value == kept
    await store.close()
    tell(kept)

asyncio.run(main())
"""


def test_writes_that_fail_are_told_and_pass(run: Run, path: Path):
    script = run(FULL)
    assert script.hear() in ("StoreFull", "StoreUnavailable")
    assert int(script.hear()) > 10
    assert script.end() == 0
    assert integrity(path) == "ok"
