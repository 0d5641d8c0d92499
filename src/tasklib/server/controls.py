"""Pause and limits, for all types."""

from __future__ import annotations

from fastapi import APIRouter

from tasklib.server.control_schemas import ControlsView, Paused, RateLimit, RateLimitSet
from tasklib.server.docs import BODY, problems
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.tokens import Identity
from tasklib.server.views import control_fields, control_view
from tasklib.stores.values import ControlChange, Controls

router = APIRouter(tags=["controls"])


@router.post("/api/tasks/pause", operation_id="pause", responses=problems())
async def pause(service: Served, who: IdentityDep) -> Paused:
    """Stop the whole fleet from starting tasks. What runs goes on."""
    return await _pause(service, who, True)


@router.post("/api/tasks/resume", operation_id="resume", responses=problems())
async def resume(service: Served, who: IdentityDep) -> Paused:
    """Undo a pause of all types; types paused by themselves stay so."""
    return await _pause(service, who, False)


@router.post("/api/tasks/rate-limit", operation_id="set_rate_limit", responses=problems(*BODY))
async def rate_limit(given: RateLimit, service: Served, who: IdentityDep) -> RateLimitSet:
    """Limit how many tasks the whole fleet starts a second."""
    entry = service.auditor(who).entry("rate-limit", detail={"tasksPerSecond": given.tasks_per_second})
    await service.engine.control(ControlChange(operator_rate=given.tasks_per_second), audit=[entry])
    return RateLimitSet(tasks_per_second=given.tasks_per_second)


@router.get("/api/controls", operation_id="get_controls", responses=problems())
async def controls(service: Served) -> ControlsView:
    """What is paused and limited, for all types and for each."""
    known = await service.engine.controls()
    types = {name: control_view(each) for name, each in known.items() if name}
    return ControlsView(**control_fields(known.get("", Controls())), types=types)


async def _pause(service: Service, who: Identity, paused: bool) -> Paused:
    entry = service.auditor(who).entry("pause" if paused else "resume")
    after = await service.engine.control(ControlChange(paused=paused, by=who.label), audit=[entry])
    return Paused(paused=after.paused)
