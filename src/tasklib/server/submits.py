"""A submit over HTTP: checked against the type's model where the server knows it."""

from __future__ import annotations

from tasklib.core import codec
from tasklib.core.errors import InvalidInput
from tasklib.core.options import SubmitOptions, check_name
from tasklib.core.registry import Registry
from tasklib.core.retry import RetryPolicy
from tasklib.core.task import NewTask
from tasklib.engine.config import Config
from tasklib.engine.submission import new_task
from tasklib.server.schemas import Options, Submit

MAX_RETRIES = 2
"""Three attempts, unless the type or the request says otherwise."""

_FIELDS = {"name": "type", "run_at": "options.runAfter"}


def prepare(given: Submit, registry: Registry, config: Config) -> NewTask:
    """Raises before anything is stored."""
    options = given.options or Options()
    text = codec.encode(given.payload, field="payload", limit=config.max_payload_bytes)
    known = registry.get(given.type)
    if known is not None:
        known.decode_call(text)
    own = None if known is None else known.options
    tags = {**(own.tags if own is not None else {}), **(options.tags or {})}
    try:
        return new_task(
            check_name(given.type),
            text,
            SubmitOptions(
                run_at=options.run_after,
                max_retries=None if options.max_attempts is None else options.max_attempts - 1,
                timeout_seconds=options.timeout_seconds,
                priority=own.priority if options.priority is None and own is not None else options.priority,
                tags=tags,
                idempotency_key=options.idempotency_key,
            ),
            max_retries=MAX_RETRIES if own is None or own.max_retries is None else own.max_retries,
            timeout=(
                config.default_task_timeout_seconds
                if own is None or own.timeout_seconds is None
                else own.timeout_seconds
            ),
            retry=RetryPolicy.QUEUE if own is None or own.retry is None else own.retry,
        )
    except InvalidInput as error:
        field = error.field or ""
        error.field = f"options.{field}" if field.startswith("tags") else _FIELDS.get(field, error.field)
        raise
