"""Many processes that submit one idempotency key at the same moment: forked from one, to be quick to start."""

import asyncio
import json
import os
import random
import sys
from contextlib import suppress

from tasklib import Config
from tasklib.core.errors import TRANSIENT_OR_SLOW
from tasklib.core.options import SubmitOptions
from tasklib.engine.submission import prepare_call
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
    options = SubmitOptions(idempotency_key=key)
    calls = range(number * SUBMITS, (number + 1) * SUBMITS)
    tasks = [prepare_call(app.work.task_type, (call,), {}, options, engine.config) for call in calls]

    async def one(index: int) -> None:
        with suppress(*TRANSIENT_OR_SLOW):
            await engine.submit([tasks[index]])

    await asyncio.gather(*(one(index) for index in range(SUBMITS)))
    await engine.close()
