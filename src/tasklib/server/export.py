"""/api/tasks/export: everything that matches, as a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic_core import to_json
from starlette.responses import StreamingResponse

from tasklib.core.csv_text import csv_line
from tasklib.server.docs import problems
from tasklib.server.events import Stream
from tasklib.server.filters import of_query
from tasklib.server.schemas import Export, ExportFormat, ExportQuery, ListedTask
from tasklib.server.service import Served, Service
from tasklib.stores.values import Filter, Page

router = APIRouter(prefix="/api/tasks", tags=["tasks"])

MOST = 100_000
"""Tasks in one file."""
SECONDS = 60.0
"""How long one file may take; what is left is for the next."""
_PAGE = 100
"""Tasks that are read, and written, at a time: other requests are answered in between."""
COLUMNS = (
    "id",
    "type",
    "status",
    "attempts",
    "max_attempts",
    "priority",
    "created_at",
    "last_attempt_at",
    "completed_at",
    "idempotency_key",
    "run_ms",
    "tags",
    "error_line",
    "payload",
    "result",
)
_MEDIA = {ExportFormat.CSV: "text/csv; charset=utf-8", ExportFormat.JSON: "application/json"}


@router.get(
    "/export",
    operation_id="export_tasks",
    response_class=StreamingResponse,
    responses={
        200: {"model": Export, "content": {"text/csv": {"schema": {"type": "string"}}}},
        **problems(429),
    },
)
async def export(query: Annotated[ExportQuery, Query()], service: Served) -> Stream:
    """All tasks that match, newest first, up to 100,000 or for a minute. Where there are more, the file ends with the
    cursor to go on from."""
    where = of_query(query, service)
    first = await _page(service, where, query.cursor)  # what goes wrong here is answered as a problem
    service.streams.enter()
    rows = _rows(service, where, query, first)
    return Stream(
        _csv(rows) if query.format is ExportFormat.CSV else _json(rows),
        service.streams.leave,
        media_type=_MEDIA[query.format],
        headers={"Content-Disposition": f'attachment; filename="tasks.{query.format}"'},
    )


async def _page(service: Service, where: Filter, cursor: UUID | None) -> Page:
    return await service.engine.page(where, limit=_PAGE, cursor=cursor)


async def _rows(service: Service, where: Filter, query: ExportQuery, page: Page) -> AsyncIterator[ListedTask | UUID]:
    """The tasks; in the end the cursor, if there are others."""
    until = asyncio.get_running_loop().time() + SECONDS
    written = 0
    while True:
        for task in page.tasks:
            yield service.show_listed(task, query.fields or ())
        written += len(page.tasks)
        if page.next_cursor is None:
            return
        if written >= MOST or asyncio.get_running_loop().time() >= until:
            yield page.next_cursor
            return
        page = await _page(service, where, page.next_cursor)


async def _csv(rows: AsyncIterator[ListedTask | UUID]) -> AsyncIterator[str]:
    yield csv_line(ListedTask.model_fields[name].alias or name for name in COLUMNS)
    async for row in rows:
        if isinstance(row, UUID):
            yield csv_line([f"There are more: cursor={row}"])
        else:
            yield csv_line(_cell(row, name) for name in COLUMNS)


async def _json(rows: AsyncIterator[ListedTask | UUID]) -> AsyncIterator[str]:
    separator, cursor = "", None
    yield '{"tasks":['
    async for row in rows:
        if isinstance(row, UUID):
            cursor = row
        else:
            yield separator + row.model_dump_json(by_alias=True)
            separator = ","
    yield f'],"nextCursor":{to_json(cursor).decode()}}}'


def _cell(task: ListedTask, name: str) -> str | int | None:
    value: Any = getattr(task, name)
    preview: str | None = getattr(task, f"{name}_preview", None)
    if preview is not None:
        return f"{preview}…"
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str) and name not in ("payload", "result"):
        return value
    return to_json(value).decode().strip('"') if name.endswith(("_at", "id")) else to_json(value).decode()
