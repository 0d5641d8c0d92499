"""A submit over HTTP, in the words of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from tasklib.api.options import from_attempts
from tasklib.core.errors import InvalidInput, TaskValidationError
from tasklib.core.registry import Registry
from tasklib.core.unique import Unique
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
    with fields_of_the_request():
        options = dict(given.options or Options())
        if options["unique"] is not None:
            options["unique"] = Unique(**dict(options["unique"]))
        return await engine.submit(call_of(given.type, given.payload, options, registry), dated=True, audit=audit)


def call_of(name: str, payload: Any, options: Mapping[str, Any], registry: Registry) -> Call:
    chosen = from_attempts(options, Options.model_fields)
    return Call(name, payload, chosen, registry.get(name), unknown=QUEUE_OPTIONS)


@contextmanager
def fields_of_the_request() -> Iterator[None]:
    """Errors name fields as the request has them."""
    try:
        yield
    except TaskValidationError:
        raise  # it names an argument
    except InvalidInput as error:
        field = error.field or ""
        nested = field.startswith(("tags", "unique"))
        error.field = f"options.{field}" if nested else _FIELDS.get(field, error.field)
        raise
