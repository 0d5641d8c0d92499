"""Several processes on one SQLite file: no server, and yet no lock that anybody sees, and a wake-up from one to the
other. The others are real processes; each runs a script given here."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import apsw
import pytest

from tasklib.core.task import Task
from tasklib.stores.sqlite import SqliteStore
from tasklib.testing.suite.builders import (
    WORK,
    submit,
    submit_several,
    within_deadline,
)
from tests.stores.conftest import number_of
from tests.waiting import eventually_async

HEAD = """
import asyncio, os, sys
from tasklib.core.errors import StoreClosed
from tasklib.stores.base import Filter
from tasklib.stores.sqlite import SqliteStore
from tasklib.testing.suite.builders import *

url, *arguments = sys.argv[1:]

def tell(what):
    print(what, flush=True)

def wait_for_word():
    return sys.stdin.readline().strip()
"""


class Script:
    """A process that runs a script, and talks by lines."""

    def __init__(self, body: str, url: str, *arguments: str) -> None:
        command = [sys.executable, "-W", "error", "-c", HEAD + body, url, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout

    def hear(self) -> str:
        return self._stdout.readline().strip()

    async def hear_async(self) -> str:
        """Without holding up the loop, in which something else is to happen meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, self.hear)

    def say(self, word: str = "go") -> None:
        self._stdin.write(word + "\n")
        self._stdin.flush()

    def end(self) -> int:
        """Its exit status."""
        self._stdin.close()
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """What is left of it, whether or not it has ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=60)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()


@pytest.fixture
def run(sqlite_url: str) -> Iterator["Run"]:
    runner = Run(sqlite_url)
    yield runner
    for script in runner.scripts:
        script.kill()


class Run:
    def __init__(self, url: str) -> None:
        self._url = url
        self.scripts: list[Script] = []

    def __call__(self, body: str, *arguments: str) -> Script:
        script = Script(body, self._url, *arguments)
        self.scripts.append(script)
        return script


@pytest.fixture
def wake_directory(path: Path) -> Path:
    return path.with_name(path.name + "-wake")


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


# -- waking -----------------------------------------------------------------------------------------------------------

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
    heard: list[str | None] = []
    event = asyncio.Event()

    def wake(name: str | None) -> None:
        heard.append(name)
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
    monkeypatch.setattr("tasklib.stores.sqlite.store._FIRST_WATCH_PAUSE", 3600.0)  # polling is not to be the reason
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
