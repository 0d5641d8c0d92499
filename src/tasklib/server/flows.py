"""/api/flows: tasks that wait for tasks, as one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from tasklib.core.errors import FlowNotFound, InvalidOption
from tasklib.core.flows import FlowSummary
from tasklib.core.options import check_waits
from tasklib.core.redact import mask_text
from tasklib.engine import flows
from tasklib.engine.bulk import Action
from tasklib.engine.flows import Part, at_task
from tasklib.server.bulk import act_on
from tasklib.server.docs import BODY, problems
from tasklib.server.flow_schemas import (
    FlowCounts,
    FlowDetail,
    FlowGraph,
    FlowNode,
    FlowPage,
    FlowsQuery,
    FlowSubmit,
    FlowSubmitted,
    FlowTask,
    FlowView,
)
from tasklib.server.schemas import BulkDone, BulkSteps, SubmitOptions
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.submits import OF_OPTIONS, call_of, fields_of_the_request
from tasklib.server.tasks import json_of
from tasklib.server.tokens import Identity
from tasklib.stores.values import Audit, Filter

router = APIRouter(prefix="/api/flows", tags=["flows"])

_LINKS: dict[str, Any] = {
    "flow": {"operationId": "get_flow", "parameters": {"flow_id": "$response.body#/id"}},
    "cancel": {"operationId": "cancel_flow", "parameters": {"flow_id": "$response.body#/id"}},
}


@router.post(
    "",
    status_code=201,
    response_model=FlowSubmitted,
    operation_id="submit_flow",
    responses={
        201: {"links": _LINKS},
        200: {"model": FlowSubmitted, "description": "There is a flow with this idempotency key: this is it"},
        **problems(*BODY, 429),
    },
)
async def submit(given: FlowSubmit, request: Request, service: Served, who: IdentityDep) -> Response:
    """Create tasks that wait for each other, all or none."""
    service.submits.take(who.key)
    engine = service.engine
    with fields_of_the_request(OF_OPTIONS):
        parts = [_part(service, number, task) for number, task in enumerate(given.tasks)]
        batch = await flows.put_together(engine, parts, name=given.name, idempotency_key=given.idempotency_key)
        inserted = await engine.insert(batch.tasks, audit=_audit(service, who, given) if who.signed_in else None)
        first = next(each for task, each in zip(batch.tasks, inserted, strict=True) if task.id == task.flow_id)
        if not first.created:
            await _check_flow(service, first.id)
    for task, each in zip(given.tasks, inserted, strict=True):
        service.meters.submits[task.type] += each.created
    # A flow that has fewer tasks than these answers for all of them with its first.
    others = not first.created and len(inserted) > 1 and {each.id for each in inserted} == {first.id}
    ids = {} if others else {task.ref: each.id for task, each in zip(given.tasks, inserted, strict=True)}
    body = FlowSubmitted(id=first.id, created=first.created, tasks=ids, validated=batch.validated)
    if not first.created:
        return json_of(body)
    return json_of(body, 201, {"Location": f"{request.scope.get('root_path', '')}/api/flows/{first.id}"})


@router.get("", operation_id="list_flows", responses=problems())
async def list_flows(query: Annotated[FlowsQuery, Query()], service: Served) -> FlowPage:
    """List flows, newest first."""
    found = await (await service.engine.store()).flows(query.limit + 1, query.cursor)
    page = found[: query.limit]
    more = len(found) > len(page)
    return FlowPage(flows=[FlowView(**_fields(each)) for each in page], next_cursor=page[-1].id if more else None)


@router.get("/{flow_id}", operation_id="get_flow", responses=problems(404))
async def get_flow(flow_id: UUID, service: Served) -> FlowDetail:
    """One flow as a graph: tasks of one type that wait for the same are one node."""
    summary = await flows.summary(service.engine, flow_id)
    drawn = await flows.graph(service.engine, flow_id)
    nodes = [
        FlowNode(
            key=node.key,
            type=node.name,
            layer=node.layer,
            parents=list(node.parents),
            counts=_counts(node.counts),
            total=node.total,
            task_id=UUID(node.key) if node.total == 1 else None,
        )
        for node in drawn.nodes
    ]
    return FlowDetail(**_fields(summary), graph=FlowGraph(nodes=nodes, truncated=drawn.truncated))


@router.post("/{flow_id}/cancel", operation_id="cancel_flow", responses=problems(404, *BODY))
async def cancel(flow_id: UUID, service: Served, who: IdentityDep, given: BulkSteps | None = None) -> BulkDone:
    """Cancel what is left of it; `dryRun` only counts."""
    return await _act(service, who, Action.CANCEL, flow_id, given)


@router.post("/{flow_id}/retry", operation_id="retry_flow", responses=problems(404, *BODY))
async def retry(flow_id: UUID, service: Served, who: IdentityDep, given: BulkSteps | None = None) -> BulkDone:
    """Retry what failed; what was cancelled because of that waits again. `dryRun` only counts."""
    return await _act(service, who, Action.RETRY, flow_id, given)


async def _act(service: Service, who: Identity, action: Action, flow_id: UUID, given: BulkSteps | None) -> BulkDone:
    await flows.summary(service.engine, flow_id)  # raises where there is none
    where = Filter(flow_id=flow_id)
    return await act_on(service, who, action, where, given or BulkSteps(), {"flow": str(flow_id)})


async def _check_flow(service: Service, task_id: UUID) -> None:
    try:
        await flows.summary(service.engine, task_id)
    except FlowNotFound:
        reason = f"task {task_id}, which has this key, is not the first of a flow"
        raise InvalidOption(f"idempotency_key: {reason}", field="idempotencyKey") from None


def _part(service: Service, number: int, task: FlowTask) -> Part:
    with at_task(number):
        call = call_of(task.type, task.payload, task.options or SubmitOptions(), service.registry)
        check_waits(task.on, task.after, task.inputs)
    return Part(task.ref, call, task.after or (), task.on, task.inputs or {})


def _audit(service: Service, who: Identity, given: FlowSubmit) -> Audit[UUID]:
    entry = service.auditor(who).entry("submit-flow", detail={"name": given.name, "tasks": len(given.tasks)})
    return lambda made: [replace(entry, task_id=made[0])]


def _fields(summary: FlowSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "name": None if summary.name is None else mask_text(summary.name),
        "created_at": summary.created_at,
        "status": summary.status,
        "counts": _counts(summary.counts),
        "total": summary.total,
    }


def _counts(counts: Mapping[str, int]) -> FlowCounts:
    known = {name: counts.get(name, 0) for name in FlowCounts.model_fields}
    return FlowCounts(**{**known, "processing": counts.get("running", 0)})
