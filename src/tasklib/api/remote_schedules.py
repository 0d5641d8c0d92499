"""Schedules over HTTP: `remote.schedules["weekly"].pause()`, in the words of `schedules`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from tasklib.api.rest_client import RestClient, instant, need
from tasklib.api.sync import run_sync
from tasklib.core import codec
from tasklib.core.cron import Timing, check_timing, timing_of
from tasklib.core.options import check_name
from tasklib.core.schedules import RUNS_KEPT, Definition, Run, Schedule
from tasklib.core.task import NewTask

_ALL = "/api/schedules"
_PAGE = 100


class RemoteSchedule:
    """A schedule by its name. Each method has an `_async` twin. Raises ScheduleNotFound if there is none."""

    def __init__(self, api: RestClient, name: str) -> None:
        self.name = check_name(name)
        self._api = api
        # Names may hold slashes and dots, which a path would be read by.
        self._path = f"{_ALL}/{quote(name, safe='').replace('.', '%2E')}"

    def __repr__(self) -> str:
        return f"RemoteSchedule({self.name!r})"

    async def get_async(self) -> Schedule:
        return schedule_of(await self._api.call("GET", self._path))

    def get(self) -> Schedule:
        """The schedule as it is now. Its `definition` is what holds, with secrets masked."""
        return run_sync(self.get_async())

    async def pause_async(self) -> Schedule:
        return await self._act("pause")

    def pause(self) -> Schedule:
        """It does not fire until `resume`."""
        return run_sync(self.pause_async())

    async def resume_async(self) -> Schedule:
        return await self._act("resume")

    def resume(self) -> Schedule:
        """It fires again from now on. Times that passed meanwhile are not made up for."""
        return run_sync(self.resume_async())

    async def clear_async(self) -> Schedule:
        return await self._act("clear")

    def clear(self) -> Schedule:
        """Takes an operator's edit back: what the code says holds again."""
        return run_sync(self.clear_async())

    async def trigger_async(self) -> UUID:
        return UUID((await self._api.call("POST", f"{self._path}/trigger"))["id"])

    def trigger(self) -> UUID:
        """Submits a task of it now, also while it is paused, and returns the task's id."""
        return run_sync(self.trigger_async())

    async def next_async(self, number: int = 1) -> list[datetime]:
        answer = await self._api.call("GET", self._path, query={"times": number})
        return [need(at) for at in answer["nextTimes"]]

    def next(self, number: int = 1) -> list[datetime]:
        """Its next times. None while it is paused."""
        return run_sync(self.next_async(number))

    async def delete_async(self) -> None:
        await self._api.call("DELETE", self._path)

    def delete(self) -> None:
        """Its tasks stay. Refused while workers have it in their code."""
        run_sync(self.delete_async())

    async def put_async(self, timing: Timing, name: str, payload: Any, options: str) -> None:
        """`options`: as the server takes them."""
        times = json.dumps(check_timing(timing).as_json())[1:-1]
        text = codec.encode(payload, field="payload")
        body = f'{{{times},"type":{json.dumps(check_name(name))},"payload":{text},"options":{options}}}'
        await self._api.call("PUT", self._path, body=body)

    async def _act(self, action: str) -> Schedule:
        return schedule_of(await self._api.call("POST", f"{self._path}/{action}"))


class RemoteSchedules:
    """What `remote.schedules` is: the schedules of that queue."""

    def __init__(self, api: RestClient) -> None:
        self._api = api

    def __getitem__(self, name: str) -> RemoteSchedule:
        return RemoteSchedule(self._api, name)

    async def all_async(self) -> list[Schedule]:
        query: dict[str, Any] = {"limit": _PAGE, "runs": RUNS_KEPT}
        found: list[Schedule] = []
        while True:
            answer = await self._api.call("GET", _ALL, query=query)
            found += map(schedule_of, answer["schedules"])
            query["cursor"] = answer["nextCursor"]
            if query["cursor"] is None:
                return found

    def all(self) -> list[Schedule]:
        """All, by name."""
        return run_sync(self.all_async())


def schedule_of(shown: dict[str, Any]) -> Schedule:
    """The record behind its JSON form, which has one definition: the one that holds."""
    definition = None if shown["type"] is None else _definition_of(shown)
    return Schedule(
        name=shown["name"],
        declared=None if shown["edited"] else definition,
        operator=definition if shown["edited"] else None,
        paused=shown["paused"],
        next_at=instant(shown["nextAt"]),
        declared_at=instant(shown["declaredAt"]),
        runs=tuple(
            Run(need(run["slot"]), UUID(run["taskId"]), need(run["firedAt"]), run["created"]) for run in shown["runs"]
        ),
        fired=shown["firedTotal"],
        missed=shown["missedTotal"],
        created_at=instant(shown["createdAt"]),
        updated_at=instant(shown["updatedAt"]),
    )


def _definition_of(shown: dict[str, Any]) -> Definition:
    options = shown["options"]
    task = NewTask(
        UUID(int=0),
        shown["type"],
        codec.encode(shown["payload"], field="payload"),
        max_retries=options["maxAttempts"] - 1,
        timeout_seconds=options["timeoutSeconds"],
        priority=options["priority"],
        tags=codec.encode(options["tags"], field="tags"),
    )
    return Definition(timing_of(shown), task)
