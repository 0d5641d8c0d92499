"""One key submitted by fifty processes at once, in each mode of `unique`."""

import asyncio
import json
import subprocess
import sys

import pytest

from tasklib import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import Filter
from tests.faults.unique_submits import MODES
from tests.worker.processes import ROOT

PROCESSES = 50


@pytest.mark.parametrize("store", ["sqlite", "postgres", "nats"])
async def test_of_fifty_processes_one_holds_the_key_and_none_is_refused(store: str, request: pytest.FixtureRequest):
    url: str = request.getfixturevalue(f"{store}_url")
    engine = Engine(Config(database_url=url))
    await engine.store()
    command = [sys.executable, "-W", "error", "-m", "tests.faults.unique_submits", url, str(PROCESSES)]
    done = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    kept = {str(task.id): task for task in (await engine.page(Filter(names=["index"]), limit=1000)).tasks}
    assert len(kept) == len(MODES)
    for mode, rule in MODES.items():
        told = [answer[1:] for answer in answers if answer[0] == mode]
        assert len(told) == PROCESSES
        (holder,) = {task_id for task_id, *_ in told}
        made = [number for _, created, _, number in told if created]
        replacing = [number for _, _, replaced, number in told if replaced]
        assert len(made) == 1, mode
        assert len(replacing) == (PROCESSES - 1 if rule.conflict == "replace" else 0), mode
        task = kept[holder]
        assert task.unique_key == rule.key
        assert task.kwargs["number"] in (replacing or made), mode
    await engine.close()
