"""A submit over HTTP, in the words of its fields."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from tasklib.api.options import from_attempts
from tasklib.core.errors import InvalidInput, TaskValidationError
from tasklib.core.registry import Registry
from tasklib.engine.audit import Auditor
from tasklib.engine.engine import Engine
from tasklib.engine.submission import QUEUE_OPTIONS, Call, Submitted
from tasklib.server.schemas import Options, Submit
from tasklib.stores.values import Audit

_FIELDS = {"name": "type", "run_at": "options.runAfter"}


def audit_of(name: str, auditor: Auditor) -> Audit[UUID]:
    """Of a person, who sends one at a time. What programs submit is not in the trail: there is no end of it."""
    entry = auditor.entry("submit", name=name)
    return lambda made: [replace(entry, task_id=task_id) for task_id in made]


async def submit(given: Submit, registry: Registry, engine: Engine, audit: Audit[UUID] | None = None) -> Submitted:
    """Checked against the type's model where the server knows it, else against what workers have published of it."""
    try:
        chosen = from_attempts(dict(given.options or Options()), Options.model_fields)
        call = Call(given.type, given.payload, chosen, registry.get(given.type), unknown=QUEUE_OPTIONS)
        return await engine.submit(call, dated=True, audit=audit)
    except TaskValidationError:
        raise  # it names an argument
    except InvalidInput as error:
        field = error.field or ""
        error.field = f"options.{field}" if field.startswith("tags") else _FIELDS.get(field, error.field)
        raise
