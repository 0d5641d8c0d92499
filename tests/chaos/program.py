"""One member of a chaos run's crew: `python -m tests.chaos.program ROLE NAME CONFIG SEED CONCURRENCY`."""

import asyncio
import ctypes
import json
import logging
import random
import signal
import sys

from tasklib import Config, TaskWorker
from tasklib.core.registry import default_registry
from tests.chaos import agent, app, operator, storm, submitter
from tests.chaos.recording import RecordingEngine


async def main(role: str, name: str, settings: str, seed: str, concurrency: str) -> None:
    random.seed(int(seed))
    engine = RecordingEngine(Config(**json.loads(settings), worker_id=name), app.history)
    app.history.note("joined", role=role, name=name)
    if role in ("worker", "steady"):
        # The one that is to live through a soak takes no poison.
        names = [name for name in default_registry.names() if role == "worker" or name != app.poison.name]
        await TaskWorker(engine=engine, concurrency=int(concurrency), poll_interval_seconds=0.2, names=names).run()
        return
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    part = {"submitter": submitter.run, "operator": operator.run, "agent": agent.run}[role]
    await part(engine, random.Random(int(seed)), stop)
    await engine.close()


def _die_with_parent() -> None:
    """A run that was killed leaves nobody behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    _die_with_parent()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("tasklib.tasks").setLevel(logging.CRITICAL)  # failures are what the tasks are for
    if sys.argv[1] == "storm":
        storm.main(sys.argv[3], sys.argv[2])
    else:
        asyncio.run(main(*sys.argv[1:]))
