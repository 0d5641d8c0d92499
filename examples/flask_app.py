"""Tasks from a Flask application, or any other code without an event loop: `flask --app examples/flask_app.py run`."""

from typing import Any
from uuid import UUID

from flask import Flask, abort, request
from tasks import send_email

import tasklib

tasklib.init(tasklib.Config())
app = Flask(__name__)


@app.post("/email")
def send() -> tuple[dict[str, str], int]:
    handle = send_email.submit(to=request.args["to"])
    return {"task_id": str(handle.id)}, 202


@app.get("/task/<uuid:task_id>")
def status(task_id: UUID) -> dict[str, Any]:
    task = tasklib.get_task(task_id)
    if task is None:
        abort(404)
    return {"state": task.state, "result": task.result, "error": task.error}
