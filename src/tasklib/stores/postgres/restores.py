"""Whole records from another queue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from tasklib.core.decide import Verdict
from tasklib.core.task import Task
from tasklib.stores.postgres.calls import Calls
from tasklib.stores.postgres.looks import fetch


async def restore(calls: Calls, tasks: Sequence[Task]) -> list[Verdict]:
    document = json.dumps([asdict(task) for task in tasks], default=str)
    found = {
        task_id: Verdict.APPLIED if made else Verdict.ALREADY if same else Verdict.LOST
        for task_id, made, same in await fetch(calls, "restore", document)
    }
    return [found[task.id] for task in tasks]
