"""/api/schedules: what is submitted again and again, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from tasklib.core.cron import timing_of
from tasklib.core.errors import InvalidInput
from tasklib.core.schedules import Schedule
from tasklib.core.task import Task
from tasklib.server.docs import BODY, problems
from tasklib.server.fields import Name
from tasklib.server.problems import shown_status
from tasklib.server.schedule_schemas import (
    Preview,
    PreviewQuery,
    RunView,
    ScheduleDetail,
    SchedulePage,
    ScheduleSet,
    SchedulesQuery,
    ScheduleView,
    ShownOptions,
    TimesQuery,
    Triggered,
)
from tasklib.server.schemas import CommonOptions
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.submits import call_of, fields_of_the_request
from tasklib.server.tokens import Identity
from tasklib.server.types import ANY_NAME
from tasklib.stores.values import AuditEntry

router = APIRouter(tags=["schedules"])

ONE = f"/api/schedules/{{name:{ANY_NAME}}}"
ScheduleName = Annotated[Name, Path(alias="name")]
DETAIL_RUNS = 20


@router.get("/api/schedules", operation_id="list_schedules", responses=problems())
async def list_schedules(query: Annotated[SchedulesQuery, Query()], service: Served) -> SchedulePage:
    """Schedules by name."""
    known = await service.engine.schedules.all()
    behind = [each for each in known if query.cursor is None or each.name > query.cursor]
    page = behind[: query.limit]
    views = await _views(service, page, query.runs)
    more = len(behind) > len(page)
    return SchedulePage(schedules=views, total=len(known), next_cursor=page[-1].name if more else None)


@router.get("/api/schedule-preview", operation_id="preview_schedule", responses=problems())
async def preview(query: Annotated[PreviewQuery, Query()], service: Served) -> Preview:
    """When something with these times would fire next, and what they are in words."""
    timing = timing_of(query.model_dump(include={"cron", "every", "timezone"}))
    zone = ZoneInfo(query.timezone or "UTC")
    found = await service.engine.schedules.preview(timing, query.times)
    return Preview(words=timing.words, times=[at.astimezone(zone) for at in found])


@router.post(f"{ONE}/pause", operation_id="pause_schedule", responses=problems(404))
async def pause(name: ScheduleName, service: Served, who: IdentityDep) -> ScheduleDetail:
    """It does not fire until it is resumed."""
    await service.engine.schedules.pause(name, audit=_audit(service, who, "pause", name))
    return await _detail(service, name)


@router.post(f"{ONE}/resume", operation_id="resume_schedule", responses=problems(404))
async def resume(name: ScheduleName, service: Served, who: IdentityDep) -> ScheduleDetail:
    """It fires again from now on; times that passed meanwhile are not made up for."""
    await service.engine.schedules.resume(name, audit=_audit(service, who, "resume", name))
    return await _detail(service, name)


@router.post(f"{ONE}/clear", operation_id="clear_schedule", responses=problems(404, 409))
async def clear(name: ScheduleName, service: Served, who: IdentityDep) -> ScheduleDetail:
    """Take back an operator's edit: what the code says holds again."""
    await service.engine.schedules.clear(name, audit=_audit(service, who, "clear", name))
    return await _detail(service, name)


@router.post(f"{ONE}/trigger", operation_id="trigger_schedule", responses=problems(404, 409))
async def trigger(name: ScheduleName, service: Served, who: IdentityDep) -> Triggered:
    """Submit a task of it now, also while it is paused."""
    return Triggered(id=await service.engine.schedules.trigger(name, audit=_audit(service, who, "trigger", name)))


@router.get(ONE, operation_id="get_schedule", responses=problems(404))
async def get_schedule(name: ScheduleName, query: Annotated[TimesQuery, Query()], service: Served) -> ScheduleDetail:
    """One schedule, its next times and its latest runs."""
    return await _detail(service, name, query.times)


@router.put(ONE, operation_id="set_schedule", responses=problems(404, 409, *BODY))
async def set_schedule(name: ScheduleName, given: ScheduleSet, service: Served, who: IdentityDep) -> ScheduleDetail:
    """Make a schedule, or change one: what is said here wins over the code until it is cleared. Its arguments are
    checked now."""
    engine = service.engine
    with fields_of_the_request():
        timing = timing_of(given.model_dump())
        if given.model_fields_set.isdisjoint({"type", "payload", "options"}):
            # What is shown of the arguments may be masked: who edits the times need not send them back.
            definition = await engine.schedules.retimed(name, timing)
        else:
            for field in ("type", "payload"):
                if field not in given.model_fields_set or given.type is None:
                    raise InvalidInput(f"{field}: say type and payload, or neither", field=field)
            options = given.options or CommonOptions()
            definition = await engine.schedules.define(
                call_of(given.type or "", given.payload, options, service.registry), timing
            )
        detail = {**timing.as_json(), "type": definition.task.name}
        await engine.schedules.put(name, definition, operator=True, audit=_audit(service, who, "set", name, detail))
    return await _detail(service, name)


@router.delete(ONE, operation_id="delete_schedule", status_code=204, responses=problems(404, 409))
async def delete(name: ScheduleName, service: Served, who: IdentityDep) -> Response:
    """Its tasks stay. Refused while workers have it in their code."""
    await service.engine.schedules.delete(name, audit=_audit(service, who, "delete", name))
    return Response(status_code=204)


def _audit(service: Service, who: Identity, action: str, name: str, more: Any = None) -> list[AuditEntry]:
    return [service.auditor(who).entry(f"schedule-{action}", detail={"schedule": name, **(more or {})})]


async def _detail(service: Service, name: str, times: int = 5) -> ScheduleDetail:
    schedule = await service.engine.schedules.get(name)
    [view] = await _views(service, [schedule], DETAIL_RUNS)
    next_times = await service.engine.schedules.next_times(name, times)
    return ScheduleDetail(**dict(view), next_times=next_times)


async def _views(service: Service, schedules: list[Schedule], runs: int) -> list[ScheduleView]:
    ids = [run.task_id for each in schedules for run in each.runs[-runs:] if runs]
    store = await service.engine.store()
    found = {task.id: task for task in (await store.get(ids) if ids else []) if task is not None}
    now = await store.now()
    return [_view(service, each, runs, found, now) for each in schedules]


def _view(service: Service, schedule: Schedule, runs: int, tasks: Mapping[UUID, Task], now: datetime) -> ScheduleView:
    definition = schedule.definition
    about: dict[str, Any] = dict.fromkeys(
        ("type", "payload", "cron", "every", "timezone", "words", "missed", "late", "overlap", "jitter", "options")
    )
    if definition is not None:
        timing, task = definition.timing, definition.task
        about |= {name: getattr(timing, name) for name in ("words", "missed", "late", "overlap", "jitter")}
        about |= {name: value for name, value in timing.as_json().items() if name in about}
        about |= {
            "type": task.name,
            "payload": service.redact(json.loads(task.kwargs)),
            "options": ShownOptions(
                max_attempts=task.max_retries + 1,
                priority=task.priority,
                tags=service.redact(json.loads(task.tags)),
                timeout_seconds=task.timeout_seconds,
            ),
        }
    return ScheduleView(
        name=schedule.name,
        **about,
        paused=schedule.paused,
        orphaned=schedule.is_orphaned(now),
        declared=schedule.declared is not None,
        declared_at=schedule.declared_at,
        edited=schedule.operator is not None,
        next_at=schedule.next_at,
        runs=[
            RunView(
                slot=run.slot,
                fired_at=run.fired_at,
                task_id=run.task_id,
                created=run.created,
                status=shown_status(tasks[run.task_id].state) if run.task_id in tasks else None,
            )
            for run in (schedule.runs[-runs:] if runs else ())
        ],
        fired_total=schedule.fired,
        missed_total=schedule.missed,
        lateness_seconds=schedule.lateness_seconds,
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
    )
