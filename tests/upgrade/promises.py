"""What submitters were promised, and whether it was kept."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from tasklib.stores.protocol import Store

CLOCKS_APART_SECONDS = 0.05
"""A submitter and its database read the same clock, but cut it off differently."""


@dataclass
class Promises:
    """Read from the file that `tests.upgrade.submitter` writes."""

    name: str
    path: Path
    made: dict[str, tuple[int, str]] = field(default_factory=dict)
    """For each task how often it is to start, and how it is to end."""
    joined: dict[str, float] = field(default_factory=dict)
    """When a unique task was joined for the last time."""
    errors: list[str] = field(default_factory=list)
    longest: float = 0.0

    def read(self) -> None:
        for line in map(json.loads, self.path.read_text().splitlines()):
            if isinstance(line, str):
                self.errors.append(line)
                continue
            task_id, starts, state, took, joined_at = line
            self.made[task_id] = (starts, state)
            self.longest = max(self.longest, took)
            if joined_at is not None:
                self.joined[task_id] = joined_at


async def broken_promises(store: Store, promises: Promises, starts: Counter[str]) -> list[str]:
    broken = []
    ids = list(promises.made)
    for first in range(0, len(ids), 1000):
        some = ids[first : first + 1000]
        for task_id, task in zip(some, await store.get([UUID(each) for each in some]), strict=True):
            wanted, state = promises.made[task_id]
            if task is None:
                broken.append(f"{task_id} was promised and is not there")
            elif (starts[task_id], task.state) != (wanted, state):
                broken.append(f"{task_id} started {starts[task_id]} times, not {wanted}, and is {task.state}")
            elif task.unique_until == "started" and task_id in promises.joined:
                began = task.started_at
                if began is None or began.timestamp() < promises.joined[task_id] - CLOCKS_APART_SECONDS:
                    broken.append(f"{task_id} was joined when it had begun already")
    return broken
