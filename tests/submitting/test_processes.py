"""Several processes: forks of one that has used the queue, and many that submit the same key at once."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import tasklib
from tasklib.api.decorator import task
from tasklib.api.sync import run_sync
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tests.processes import said_together


@pytest.fixture
def queue(shared_url: str) -> Iterator[Engine]:
    engine = Engine(Config(database_url=shared_url))
    before = use_engine(engine)
    yield engine
    use_engine(before)
    run_sync(engine.close())


HEAD = """
import asyncio, multiprocessing, os, signal, sys, threading, traceback
import tasklib

tasklib.init(tasklib.Config(database_url=sys.argv[1], call_timeout_seconds=10))

@tasklib.task
def add(a: int, b: int) -> int:
    return a + b

def fork(work):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(30)  # a child that hangs is killed, and its parent told
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)

def join(pids):
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)
"""

FORK = """
first = add.submit(1, 2)

def child():
    assert tasklib.get_task(first.id) is not None
    add.submit(3, 4)
    asyncio.run(tasklib.submit_task(add, a=5, b=6))

join([fork(child) for _ in range(4)])
add.submit(7, 8)
asyncio.run(tasklib.submit_task(add, a=9, b=10))
print(len(tasklib.list_tasks()))
"""

FORK_INSIDE_A_LOOP = """
async def main():
    first = await add.submit_async(1, 2)

    def child():
        assert tasklib.get_task(first.id) is not None
        add.submit(3, 4)

    join([fork(child) for _ in range(4)])
    await add.submit_async(5, 6)
    return len(await tasklib.list_tasks_async())

print(asyncio.run(main()))
"""

FORK_AMID_SUBMITS = """
from tasklib.engine.default import default_engine
from tasklib.stores.values import Filter

add.submit(0, 0)
stop = threading.Event()
count = [0] * 4

def keep_submitting(number):
    while not stop.is_set():
        add.submit(number, count[number])
        count[number] += 1

threads = [threading.Thread(target=keep_submitting, args=(number,), daemon=True) for number in range(4)]
for thread in threads:
    thread.start()
children = 0
for _ in range(10):
    join([fork(lambda: add.submit(0, 0)) for _ in range(3)])
    children += 3
stop.set()
for thread in threads:
    thread.join()
total = 1 + sum(count) + children
stored = asyncio.run(default_engine().count(Filter(), cap=1_000_000)).value
print(stored - total)
"""

PARENT_LEAVES_FIRST = """
from tasklib.api.sync import bridge

add.submit(0, 0)
told, tell = os.pipe()
ready, say_ready = os.pipe()

def child():
    add.submit(1, 1)
    os.write(say_ready, b"x")
    os.read(told, 1)
    for number in range(20):
        add.submit(2, number)

pid = fork(child)
os.read(ready, 1)
bridge.close()  # what the end of a program does
os.write(tell, b"x")
join([pid])
"""

COUNT = """
print(len(tasklib.list_tasks()))
"""

POOL = """
def work(number):
    return str(add.submit(number, 1).id)

if __name__ == "__main__":
    work(0)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        ids = pool.map(work, range(30))
    print(len(set(ids)), len(tasklib.list_tasks()))
"""


def run_script(script: str, url: str) -> str:
    # Python 3.12 warns of every fork in a process with threads: that it works is what is shown here.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", HEAD + script, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_fork_after_use(shared_url: str):
    """Fault 17: children of a process that has used the queue have connections of their own."""
    assert run_script(FORK, shared_url) == "11"


def test_fork_inside_a_running_loop(shared_url: str):
    assert run_script(FORK_INSIDE_A_LOOP, shared_url) == "6"


def test_fork_while_other_threads_submit(shared_url: str):
    assert run_script(FORK_AMID_SUBMITS, shared_url) == "0"


def test_what_a_child_submitted_is_there_when_its_parent_has_left(shared_url: str):
    """A child must not go by what its parent knows of locks: it would write into files that are already deleted."""
    run_script(PARENT_LEAVES_FIRST, shared_url)
    assert run_script(COUNT, shared_url) == "22"


def test_multiprocessing_by_fork(shared_url: str):
    """Fault 17, a pool of multiprocessing that forks."""
    assert run_script(POOL, shared_url) == "30 31"


# -- one key -----------------------------------------------------------------------------------------------------------

ONE_KEY = """
from concurrent.futures import ThreadPoolExecutor
tasklib.list_tasks()
gate = threading.Barrier(10)

def submit(number):
    gate.wait(30)
    return add.options(idempotency_key="once").submit(number, 1)

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(10) as threads:
    for handle in threads.map(submit, range(10)):
        print(handle.id, int(handle.created))
"""


def test_fifty_submits_of_one_key_from_five_processes_make_one_task(queue: Engine, shared_url: str):
    """Fault 19: fifty at once, one task, one id for all."""
    tasklib.list_tasks()
    command = [sys.executable, "-W", "error", "-c", HEAD + ONE_KEY, shared_url]
    pairs = [line.split() for line in said_together([command] * 5)]
    assert len(pairs) == 50
    (task_id,) = {pair[0] for pair in pairs}
    assert sum(int(pair[1]) for pair in pairs) == 1
    assert [str(found.id) for found in tasklib.list_tasks()] == [task_id]


def test_fifty_submits_of_one_key_from_fifty_threads_make_one_task(backend_url: str, registry: Registry):
    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    engine = Engine(Config(database_url=backend_url))
    before = use_engine(engine)
    gate = threading.Barrier(50)

    def submit(number: int) -> tasklib.TaskHandle[int]:
        gate.wait(30)
        return add.options(idempotency_key="once").submit(number, 1)

    try:
        with ThreadPoolExecutor(50) as threads:
            handles = list(threads.map(submit, range(50)))
        assert len({handle.id for handle in handles}) == 1
        assert [handle.created for handle in handles].count(True) == 1
        assert len(tasklib.list_tasks()) == 1
        # "The same key with other arguments is still the same task."
        assert add.options(idempotency_key="once").submit(1000, 1).id == handles[0].id
    finally:
        use_engine(before)
        run_sync(engine.close())
