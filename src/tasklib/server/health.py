"""/healthz and /readyz: is the process alive, is the database there."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from tasklib.core.errors import StoreError
from tasklib.server.docs import problems
from tasklib.server.problems import RETRY_AFTER_SECONDS, ProblemError
from tasklib.server.schemas import Health
from tasklib.server.service import Served

router = APIRouter(tags=["health"])

PATIENCE_SECONDS = 5.0
_OPEN: dict[str, Any] = {"security": []}


@router.get("/healthz", operation_id="is_alive", openapi_extra=_OPEN)
async def healthz() -> Health:
    """The process answers. Asks nothing of the database."""
    return Health(status="ok")


@router.get("/readyz", operation_id="is_ready", openapi_extra=_OPEN, responses={503: problems()[503]})
async def readyz(service: Served) -> Health:
    """The database answers too. Says no more than that: anybody may ask."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await (await service.engine.store()).now()
    except (StoreError, TimeoutError) as error:
        code = error.code if isinstance(error, StoreError) else "store_busy"
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        raise ProblemError(503, code, "the database does not answer", headers=headers) from None
    return Health(status="ok")
