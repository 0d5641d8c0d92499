"""A submit over HTTP: checked against the type's model where the server knows it."""

from __future__ import annotations

from tasklib.core import codec
from tasklib.core.errors import InvalidInput
from tasklib.core.options import SubmitOptions, check_name
from tasklib.core.registry import Registry
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import NewTask
from tasklib.engine.config import Config
from tasklib.engine.submission import new_task, prepare_payload
from tasklib.server.schemas import Options, Submit

MAX_RETRIES = 2
"""Of a type that the server does not know, unless the request says otherwise: three attempts."""

_FIELDS = {"name": "type", "run_at": "options.runAfter"}


def prepare(given: Submit, registry: Registry, config: Config) -> NewTask:
    """Raises before anything is stored."""
    options = given.options or Options()
    text = codec.encode(given.payload, field="payload", limit=config.max_payload_bytes)
    known = registry.get(given.type)
    if known is not None:
        known.decode_call(text)
    try:
        chosen = SubmitOptions(
            run_at=options.run_after,
            max_retries=None if options.max_attempts is None else options.max_attempts - 1,
            timeout_seconds=options.timeout_seconds,
            priority=options.priority,
            tags=options.tags,
            idempotency_key=options.idempotency_key,
        )
        if known is not None:
            return prepare_payload(known, text, chosen, config)
        return new_task(
            check_name(given.type),
            text,
            chosen,
            max_retries=MAX_RETRIES,
            timeout=config.default_task_timeout_seconds,
            retry=RetryPolicy.QUEUE,
        )
    except InvalidInput as error:
        field = error.field or ""
        error.field = f"options.{field}" if field.startswith("tags") else _FIELDS.get(field, error.field)
        raise
