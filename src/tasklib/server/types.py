"""/api/types: what is known of each task type, its pause and limits."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.convertors import PathConvertor, register_url_convertor

from tasklib.core import codec
from tasklib.core.published import publish
from tasklib.engine.diagnose import is_live
from tasklib.server.control_schemas import ControlSet, TypeDetail, Types, TypeView
from tasklib.server.distributions import TypeTimes
from tasklib.server.docs import BODY, problems
from tasklib.server.fields import Name
from tasklib.server.problems import ProblemError
from tasklib.server.service import IdentityDep, Served, Service
from tasklib.server.views import control_fields, counts_of
from tasklib.stores.values import UNSET, ControlChange, Controls, NameStats

router = APIRouter(prefix="/api/types", tags=["types"])


class _NameConvertor(PathConvertor):
    """Any text: the framework's own kinds of path stop at a slash, or at the end of a line."""

    regex = r"[\s\S]+"


ANY_NAME = "type_name"
register_url_convertor(ANY_NAME, _NameConvertor())

TypeName = Annotated[Name, Path(alias="type")]


@router.get("", operation_id="list_types", responses=problems())
async def list_types(service: Served) -> Types:
    """Every type that has tasks, controls, a handler or a definition."""
    return Types(types=list((await _known(service)).values()))


@router.get("/{type:type_name}", operation_id="get_type", responses=problems(404))
async def get_type(name: TypeName, service: Served) -> TypeDetail:
    """One type, and what it takes."""
    found = (await _known(service)).get(name)
    if found is None:
        raise ProblemError(404, "type_not_found", f"nothing is known of a type {name!r:.80}")
    return TypeDetail(**dict(found), argument_schema=await _schema(service, name))


@router.put("/{type:type_name}", operation_id="set_type", responses=problems(*BODY))
async def set_type(name: TypeName, given: ControlSet, service: Served, who: IdentityDep) -> TypeView:
    """Pause or limit one type, in the whole fleet."""
    said = given.model_fields_set
    change = ControlChange(
        name=name,
        paused=given.paused if "paused" in said else UNSET,
        operator_rate=given.rate_limit if "rate_limit" in said else UNSET,
        concurrency=given.concurrency if "concurrency" in said else UNSET,
        by=who.label,
    )
    detail = given.model_dump(mode="json", by_alias=True, include=set(said))
    entry = service.auditor(who).entry("set-type", name=name, detail=detail)
    after = await service.engine.control(change, audit=[entry])
    known = await _known(service)
    return known.get(name) or _view(service, name, NameStats(), after, TypeTimes(), workers=0, queue=None)


async def _known(service: Service) -> dict[str, TypeView]:
    stats = await service.engine.stats()
    controls = await service.engine.controls()
    live = [worker for worker in await service.engine.workers() if is_live(worker, service.dead_after)]
    handled = Counter(name for worker in live for name in worker.names)
    times = await service.latest_times.by_type()
    queues = {name: worker.queue_of(name) for worker in live for name in worker.names}
    names = sorted({*stats, *(name for name in controls if name), *handled, *service.registry.names()})
    return {
        name: _view(
            service,
            name,
            stats.get(name, NameStats()),
            controls.get(name, Controls(name=name)),
            times.get(name, TypeTimes()),
            workers=handled[name],
            queue=queues.get(name),
        )
        for name in names
    }


async def _schema(service: Service, name: str) -> Any:
    """By the code that the server has loaded, else as workers have published it."""
    defined = service.registry.get(name)
    published = await service.engine.published(name) if defined is None else publish([defined])[0]
    return None if published is None or published.schema is None else codec.decode(published.schema, field="schema")


def _view(
    service: Service,
    name: str,
    stats: NameStats,
    controls: Controls,
    times: TypeTimes,
    *,
    workers: int,
    queue: str | None,
) -> TypeView:
    defined = service.registry.get(name)
    return TypeView(
        type=name,
        queue=queue if defined is None else defined.options.queue,
        registered=defined is not None,
        handled=workers > 0,
        workers=workers,
        counts=counts_of(stats),
        oldest_due_seconds=stats.oldest_due_seconds,
        run_p95_ms=times.run_ms,
        waited_p95_ms=times.waited_ms,
        **control_fields(controls),
    )
