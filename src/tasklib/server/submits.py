"""A submit over HTTP, in the words of its fields."""

from __future__ import annotations

from tasklib.core.errors import InvalidInput, TaskValidationError
from tasklib.core.options import SubmitOptions
from tasklib.core.registry import Registry
from tasklib.engine.engine import Engine
from tasklib.engine.submission import QUEUE_OPTIONS, Call, Submitted
from tasklib.server.schemas import Options, Submit

_FIELDS = {"name": "type", "run_at": "options.runAfter"}


async def submit(given: Submit, registry: Registry, engine: Engine) -> Submitted:
    """Checked against the type's model where the server knows it, else against what workers have published of it."""
    options = given.options or Options()
    try:
        chosen = SubmitOptions(
            run_at=options.run_after,
            max_retries=None if options.max_attempts is None else options.max_attempts - 1,
            timeout_seconds=options.timeout_seconds,
            priority=options.priority,
            tags=options.tags,
            idempotency_key=options.idempotency_key,
        )
        call = Call(given.type, given.payload, chosen, registry.get(given.type), unknown=QUEUE_OPTIONS)
        return await engine.submit(call, dated=True)
    except TaskValidationError:
        raise  # it names an argument
    except InvalidInput as error:
        field = error.field or ""
        error.field = f"options.{field}" if field.startswith("tags") else _FIELDS.get(field, error.field)
        raise
