"""What documents print, run and compared: Python with `await` at the top, and records as JSON."""

import ast
import dataclasses
import inspect
import json
import re
import types
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

import tasklib
from tasklib.engine.engine import Engine

TIMES = ("scheduled_at", "started_at", "completed_at", "created_at", "next_retry_at", "locked_until")
PATIENCE = timedelta(seconds=60)
"""By how much the real clock may run on between two steps of a test."""


async def run_printed(text: str, names: dict[str, Any], url: str = "") -> dict[str, Any]:
    """Runs an example as it stands, with a real address in place of `postgresql://...`. `names` holds the imports that
    the example leaves out, and afterwards what it defined."""
    names.setdefault("__name__", "printed")
    code = compile(real_address(text, url), "<printed>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    started = types.FunctionType(code, names)()
    if inspect.iscoroutine(started):
        await started
    return names


def real_address(text: str, url: str) -> str:
    return text.replace("postgresql://...", url)


def records(engine: Engine, task_id: UUID) -> list[dict[str, Any]]:
    """The task as `get_task` gives it and, on PostgreSQL, as psql would show it."""
    found = tasklib.get_task(task_id)
    assert found is not None
    seen = [dataclasses.asdict(found)]
    url, _, schema = engine.config.database_url.partition("?schema=")
    if url.startswith("postgresql"):
        with psycopg.connect(url, row_factory=dict_row) as connection:
            row = connection.execute(f"SELECT * FROM {schema}.tasks WHERE id = %s", [task_id]).fetchone()
        assert row is not None
        seen.append(row)
    return seen


def compare(printed: str, engine: Engine, task_id: UUID) -> None:
    """Each printed column is there with the printed value. Of times: null where null is printed, and otherwise as far
    from the submit as printed. Ids are the task's own, of an error the printed first line is somewhere in it."""
    expected = json.loads(re.sub(r"\s+-- .*", "", printed))
    for record in records(engine, task_id):
        assert set(expected) <= set(record)
        for column, value in expected.items():
            actual = record[column]
            if column == "id":
                assert actual == task_id
            elif column in TIMES and value is not None and "created_at" in expected:
                submitted = datetime.fromisoformat(expected["created_at"])
                offset = datetime.fromisoformat(value) - submitted
                assert timedelta(0) <= actual - record["created_at"] - offset < PATIENCE, (column, actual, offset)
                assert actual.utcoffset() is not None
            elif column in TIMES:
                assert (actual is None) == (value is None), column
            elif column == "error" and value is not None:
                assert value.partition("\n")[0] in actual
                assert "Traceback" in actual
                assert "in send_email" in actual
            else:
                assert actual == value, column


DEFINE = '''
@tasklib.task
def send_email(to: str, subject: str) -> bool:
    """Function parameters are auto-validated with Pydantic."""
    # Your code here
    return True

@tasklib.task(max_retries=5, timeout_seconds=30)
def process_image(path: str) -> str:
    """Custom retry and timeout settings."""
    return f"processed_{path}"
'''
"""The tasks that most of the printed examples submit."""
