"""Many processes that submit one key at the same moment: forked from one, to be quick to start."""

import asyncio
import json
import os
import random
import sys
from contextlib import suppress

import psycopg

from tasklib import Config, Unique
from tasklib.api.decorator import call_of
from tasklib.core.errors import TRANSIENT_OR_SLOW
from tasklib.core.options import check_options
from tasklib.core.task import NewTask
from tasklib.engine.submission import prepare
from tests.chaos import app
from tests.chaos.recording import RecordingEngine

PROCESSES = 8
SUBMITS = 4


def main(settings: str, key: str) -> None:
    gate, opener = os.pipe()
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if child == 0:
            os.close(opener)
            os.read(gate, 1)  # ends when the parent closes its end: all start at once
            random.seed(f"{key}:{number}")
            asyncio.run(_submit(settings, key, number))
            os._exit(0)
        children.append(child)
    os.close(opener)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(map(abs, codes)))


async def _submit(settings: str, key: str, number: int) -> None:
    engine = RecordingEngine(Config(**json.loads(settings)), app.history)
    is_unique = key.startswith("unique")
    given = {"unique": Unique(key, until="started")} if is_unique else {"idempotency_key": key}
    options = check_options(given)
    calls = range(number * SUBMITS, (number + 1) * SUBMITS)
    kind = (app.only if is_unique else app.work).task_type
    made = [call_of(kind, kind.bind((call,), {}), options) for call in calls]
    tasks = [prepare(call, None, engine.config).task for call in made]
    if number % 4 == 0 and engine.config.database_url.startswith("postgresql"):
        _take_back(engine, tasks[0])

    async def one(task: NewTask) -> None:
        with suppress(*TRANSIENT_OR_SLOW):
            await engine.insert([task])

    await asyncio.gather(*map(one, tasks[1:]))
    await engine.close()


def _take_back(engine: RecordingEngine, task: NewTask) -> None:
    """Submits in a transaction that is rolled back: nobody may be told of this task. It is not in the history, so a row
    with its id would be a phantom."""
    with suppress(psycopg.OperationalError), psycopg.connect(engine.config.database_url) as connection:
        engine.insert_on(connection, [task])
        connection.rollback()
