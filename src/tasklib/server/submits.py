"""A submit over HTTP, in the words of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic.alias_generators import to_camel

from tasklib.api.options import from_attempts
from tasklib.core.errors import InvalidInput, TaskValidationError
from tasklib.core.registry import Registry
from tasklib.core.unique import Unique
from tasklib.engine.audit import Auditor
from tasklib.engine.engine import Engine
from tasklib.engine.submission import QUEUE_OPTIONS, Call, Submitted
from tasklib.server.schemas import CommonOptions, Options, Submit
from tasklib.stores.values import Audit

OF_OPTIONS = ("tags", "unique")
_FIELDS = {"name": "type", "run_at": "options.runAfter"}


def audit_of(name: str, auditor: Auditor) -> Audit[UUID]:
    """Of a person, who sends one at a time. What programs submit is not in the trail: there is no end of it."""
    entry = auditor.entry("submit", name=name)
    return lambda made: [replace(entry, task_id=task_id) for task_id in made]


async def submit(given: Submit, registry: Registry, engine: Engine, audit: Audit[UUID] | None = None) -> Submitted:
    """Checked against the type's model where the server knows it, else against what workers have published of it."""
    with fields_of_the_request():
        options = given.options or Options()
        call = call_of(given.type, given.payload, options, registry)._replace(inputs=options.inputs or {})
        return await engine.submit(call, dated=True, audit=audit)


def call_of(name: str, payload: Any, options: CommonOptions, registry: Registry) -> Call:
    given = {name: value for name, value in options if name != "inputs"}
    if given.get("unique") is not None:
        given["unique"] = Unique(**dict(given["unique"]))
    chosen = from_attempts(given, Options.model_fields)
    return Call(name, payload, chosen, registry.get(name), unknown=QUEUE_OPTIONS)


def _camel(field: str) -> str:
    """Fields are in camelCase over HTTP; what a caller calls its tags is left as it is."""
    return ".".join(map(to_camel, field.split("."))) if field.startswith("unique.") else field


@contextmanager
def fields_of_the_request(nested: tuple[str, ...] = (*OF_OPTIONS, "after", "on", "before", "inputs")) -> Iterator[None]:
    """Errors name fields as the request has them. `nested`: those that are among its options."""
    try:
        yield
    except TaskValidationError:
        raise  # it names an argument
    except InvalidInput as error:
        field = error.field or ""
        error.field = (
            f"options.{_camel(field)}" if field.partition(".")[0] in nested else _FIELDS.get(field, error.field)
        )
        raise
