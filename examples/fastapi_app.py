"""Tasks from a FastAPI application: `uvicorn --app-dir examples fastapi_app:app`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from fastapi import FastAPI, HTTPException
from tasks import send_email

import tasklib


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    tasklib.init(tasklib.Config())
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/email", status_code=202)
async def send(to: str) -> dict[str, UUID]:
    task_id = await tasklib.submit_task(send_email, to=to)
    return {"task_id": task_id}


@app.get("/task/{task_id}")
async def status(task_id: UUID) -> dict[str, Any]:
    task = await tasklib.get_task_async(task_id)
    if task is None:
        raise HTTPException(404, "no such task")
    return {"state": task.state, "result": task.result, "error": task.error}
