"""One idempotency key in the transactions of many processes, some of which roll back."""

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from tests.databases import new_database

SCRIPT = """
import os, signal, sys, traceback
import psycopg, tasklib

tasklib.init(tasklib.Config(database_url=sys.argv[1], call_timeout_seconds=30))

@tasklib.task
def add(a: int, b: int) -> int:
    return a + b

def submit(number):
    with psycopg.connect(sys.argv[1]) as connection:
        handle = add.options(idempotency_key="once", connection=connection).submit(number, 0)
        connection.execute("INSERT INTO answers VALUES (%s, %s)", [number, handle.id])
        if number % 3 == 0:
            connection.rollback()

go, start = os.pipe()
children = []
for number in range(50):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        code = 1
        try:
            os.close(start)
            os.read(go, 1)  # until the parent closes its end: all at once
            submit(number)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    children.append(pid)
os.close(start)
print([os.waitpid(pid, 0)[1] for pid in children].count(0))
"""


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    with new_database(postgres_server) as url:
        yield url


def test_fifty_processes_of_which_some_roll_back(database: str):
    """Fault 19: fifty processes submit one key at once, each in a transaction of its own, and every third rolls back.
    There is one task, and all that committed have its id."""
    made = subprocess.run([sys.executable, "-m", "tasklib.cli", "migrate", "--database-url", database], timeout=60)
    assert made.returncode == 0
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE answers (number int, task uuid)")
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, database], capture_output=True, text=True, timeout=100
        )
        assert (done.stdout.strip(), done.stderr) == ("50", "")
        tasks = connection.execute("SELECT id FROM tasks").fetchall()
        answers = connection.execute("SELECT number, task FROM answers").fetchall()
    assert len(tasks) == 1
    assert {number for number, _ in answers} == {number for number in range(50) if number % 3}
    assert {task for _, task in answers} == {tasks[0][0]}
