"""tasklib with notes of what its worker waits for: each claim and each settle from the call to the answer, and when
threads run tasks."""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.ours.queue import Tasklib
from tasklib.core.decide import Change, WriteResult
from tasklib.stores.sql.store import SqlStore
from tasklib.stores.values import Claimed, ClaimRequest
from tasklib.worker.executors.threads import ThreadExecutor

ONE_RUN_SECONDS = 0.0003
"""Tasks of one thread with less between them are noted as one piece."""


class Watched(Tasklib):
    """Options: `notes`, the file for what was noted."""

    def work(self) -> None:
        notes: list[list[Any]] = []
        _watch_store(notes)
        _watch_threads(notes)
        try:
            super().work()
        finally:
            Path(self.options["notes"]).write_text(json.dumps(notes))


def _watch_store(notes: list[list[Any]]) -> None:
    claim, settle = SqlStore.claim, SqlStore.settle

    async def watched_claim(self: SqlStore, request: ClaimRequest) -> Claimed:
        began = time.monotonic()
        claimed = await claim(self, request)
        notes.append(["claim", began, time.monotonic(), len(claimed.claims)])
        return claimed

    async def watched_settle(self: SqlStore, changes: Sequence[Change], **options: Any) -> list[WriteResult]:
        began = time.monotonic()
        results = await settle(self, changes, **options)
        notes.append(["settle", began, time.monotonic(), len(changes)])
        return results

    SqlStore.claim, SqlStore.settle = watched_claim, watched_settle  # type: ignore[method-assign]


def _watch_threads(notes: list[list[Any]]) -> None:
    run_one = ThreadExecutor._run_one
    latest: dict[int, list[Any]] = {}

    def watched(self: ThreadExecutor, *arguments: Any) -> None:
        began = time.monotonic()
        run_one(self, *arguments)
        ended = time.monotonic()
        note = latest.get(threading.get_ident())
        if note is None or began - note[2] > ONE_RUN_SECONDS:
            note = latest[threading.get_ident()] = ["run", began, ended, 0]
            notes.append(note)
        note[2] = ended
        note[3] += 1

    ThreadExecutor._run_one = watched  # type: ignore[method-assign]
