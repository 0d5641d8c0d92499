"""Who calls: web frameworks, code inside and outside event loops, many loops one after the other."""

import asyncio
import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import flask
import httpx
import psycopg
import pytest
from fastapi import FastAPI

import tasklib
from tasklib.api.decorator import TaskFunction, task
from tasklib.api.sync import run_sync
from tasklib.core.registry import Registry
from tasklib.engine.config import Config
from tasklib.engine.default import use_engine
from tasklib.engine.engine import Engine
from tasklib.testing.drain import drain_async
from tests.databases import new_database

Add = TaskFunction[[int, int], int, int]


@pytest.fixture
def add(registry: Registry) -> Add:
    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    return add


@pytest.fixture
def backend_url(sqlite_url: str) -> str:
    """In this file the default queue is a SQLite file, where nothing else is said."""
    return sqlite_url


async def test_a_fastapi_handler_and_a_flask_view_submit_to_one_queue(engine: Engine, add: Add, registry: Registry):
    asgi = FastAPI()
    wsgi = flask.Flask("shop")

    @asgi.post("/add")
    async def add_async(a: int, b: int) -> dict[str, Any]:
        task_id = await tasklib.submit_task(add, a=a, b=b)
        found = tasklib.get_task(task_id)  # a blocking call inside a running loop, as people write it
        assert found is not None
        return {"task_id": task_id, "state": found.state}

    @asgi.post("/add-in-thread")
    def add_in_thread(a: int, b: int) -> dict[str, Any]:
        return {"task_id": add.submit(a, b).id}

    @wsgi.post("/add")
    def add_sync() -> dict[str, Any]:
        return {"task_id": tasklib.submit_task_sync(add, a=int(flask.request.args["a"]), b=1)}

    transport = httpx.ASGITransport(app=asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        first = (await client.post("/add", params={"a": 1, "b": 1})).json()
        second = (await client.post("/add-in-thread", params={"a": 2, "b": 1})).json()
        many = await asyncio.gather(*(client.post("/add", params={"a": 9, "b": 1}) for _ in range(20)))
    third = wsgi.test_client().post("/add?a=3").json
    assert third is not None
    assert first["state"] == "pending"
    assert len({answer.json()["task_id"] for answer in many}) == 20

    await drain_async(engine, registry=registry)

    results = [await engine.get_or_raise(UUID(answer["task_id"])) for answer in (first, second, third)]
    assert [found.result for found in results] == [{"value": 2}, {"value": 3}, {"value": 4}]


async def test_blocking_calls_inside_a_running_loop(engine: Engine, add: Add, registry: Registry):
    handle = add.submit(1, 2)
    assert tasklib.get_task(handle.id) == await tasklib.get_task_async(str(handle.id))
    assert [found.id for found in tasklib.list_tasks(state="pending")] == [handle.id]
    assert await tasklib.list_tasks_async(name="add") == tasklib.list_tasks(name="add")
    with pytest.raises(tasklib.WaitTimeout):
        handle.wait(timeout=0.05)
    await drain_async(engine, registry=registry)
    assert handle.result(timeout=10) == 3
    assert tasklib.wait_for(handle.id, timeout=10).result == {"value": 3}


async def test_a_running_loop_goes_on_while_others_wait_for_a_result(engine: Engine, add: Add, registry: Registry):
    """The waiting threads are woken by the worker in this loop: nobody holds anybody up."""
    handles = [add.submit(number, 1) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(handle.result, 30) for handle in handles]
        await drain_async(engine, registry=registry)
        results = [await asyncio.wrap_future(future) for future in waiting]
    assert results == [number + 1 for number in range(8)]


def test_from_many_threads(sqlite_url: str, add: Add):
    before = use_engine(Engine(Config(database_url=sqlite_url)))
    try:
        with ThreadPoolExecutor(16) as threads:
            handles = list(threads.map(lambda number: add.submit(number, 1), range(200)))
        assert len({handle.id for handle in handles}) == 200
        assert len(tasklib.list_tasks(limit=1000)) == 200
    finally:
        engine = use_engine(before)
        assert engine is not None
        run_sync(engine.close())


def test_submits_that_a_loop_was_stopped_in(sqlite_url: str, add: Add):
    """A loop that ends in the middle of a submit leaves a queue that works in the next loop."""
    engine = Engine(Config(database_url=sqlite_url))
    before = use_engine(engine)

    async def give_up() -> None:
        submitting = asyncio.create_task(add.submit_async(1, 1))
        await asyncio.wait([submitting], timeout=0)
        submitting.cancel()

    try:
        for _ in range(5):
            asyncio.run(give_up())
        handle = asyncio.run(add.submit_async(2, 2))
        assert tasklib.get_task(handle.id) is not None
    finally:
        use_engine(before)
        run_sync(engine.close())


# -- one loop after the other ------------------------------------------------------------------------------------------

AGAIN_AND_AGAIN = """
import asyncio, gc, sys, threading, time
import psutil
import tasklib

url, watch = sys.argv[1:]
tasklib.init(tasklib.Config(database_url=url))

@tasklib.task
def add(a: int, b: int) -> int:
    return a + b

me = psutil.Process()

def open_now():
    gc.collect()
    if watch:
        return sum(file.path.startswith(watch) for file in me.open_files())
    return len(me.net_connections())

def threads_now(most):
    # A thread that was joined may still be on its way out of the operating system.
    deadline = time.monotonic() + 10
    while (number := me.num_threads()) > most and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return number

ids, before = set(), me.num_threads()
for number in range(10):
    ids.add(asyncio.run(tasklib.submit_task(add, a=number, b=1)))
    assert open_now() == 0, (number, open_now())
    assert threads_now(before) == before
assert len(ids) == 10

async def several():
    first = await tasklib.submit_task(add, a=1, b=1)
    return [first, *await asyncio.gather(*(tasklib.submit_task(add, a=1, b=1) for _ in range(9)))]

for _ in range(3):
    ids.update(asyncio.run(several()))
    assert open_now() == 0
print(len(ids), len(tasklib.list_tasks()))
"""


def run_script(script: str, *args: str) -> str:
    """In a process of its own, where every warning is an error: a connection that nobody closed is a warning too."""
    command = [sys.executable, "-W", "error", "-c", script, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def test_asyncio_run_again_and_again_on_sqlite(tmp_path: Path):
    path = tmp_path / "tasks.db"
    assert run_script(AGAIN_AND_AGAIN, f"sqlite:///{path}", str(path)) == "40 40"


def test_asyncio_run_again_and_again_on_postgres(postgres_server: str):
    with new_database(postgres_server) as url:
        assert run_script(AGAIN_AND_AGAIN, url, "") == "40 40"
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(postgres_server) as connection:
            left = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]).fetchone()
    assert left == (0,)


def test_loops_in_several_threads_at_once(sqlite_url: str, add: Add):
    engine = Engine(Config(database_url=sqlite_url))
    before = use_engine(engine)
    barrier = threading.Barrier(4)

    def one_loop(number: int) -> list[UUID]:
        async def work() -> list[UUID]:
            return [(await add.submit_async(number, step)).id for step in range(10)]

        barrier.wait(30)
        return asyncio.run(work())

    try:
        with ThreadPoolExecutor(4) as threads:
            ids = [task_id for batch in threads.map(one_loop, range(4)) for task_id in batch]
        gc.collect()
        assert len(set(ids)) == 40
        assert len(tasklib.list_tasks(limit=100)) == 40
    finally:
        use_engine(before)
        run_sync(engine.close())


def test_a_program_that_only_submits_ends_in_silence(sqlite_url: str, postgres_url: str, memory_url: str):
    script = """
import sys, tasklib
tasklib.init(tasklib.Config(database_url=sys.argv[1]))
@tasklib.task
def add(a: int, b: int) -> int:
    return a + b
print(add.submit(1, 2).get().state)
"""
    for url in (sqlite_url, postgres_url, memory_url):
        assert run_script(script, url) == "pending"
