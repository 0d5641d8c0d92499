"""What a worker serves, in the one column that tells it: the names of the task types, and behind them, where some are
not in the default queue, their queues as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from tasklib.stores.values import WorkerBeat

_MARK = '{"queues":'


def written(worker: WorkerBeat) -> list[str]:
    queues = [json.dumps({"queues": dict(worker.queues)}, ensure_ascii=False)] if worker.queues else []
    return [*worker.names, *queues]


class Served(NamedTuple):
    names: tuple[str, ...]
    queues: dict[str, str]
    """Of those that are not in the default queue."""


def read(column: Sequence[str]) -> Served:
    """Whatever stands there: people edit rows by hand."""
    if column and column[-1].startswith(_MARK):
        try:
            queues = json.loads(column[-1])["queues"]
        except ValueError:
            queues = None
        if isinstance(queues, dict):
            return Served(tuple(column[:-1]), {name: str(queue) for name, queue in queues.items()})
    return Served(tuple(column), {})
