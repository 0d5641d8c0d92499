"""What a worker tells of a task type, for those who submit without the code: its options, and what it takes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

from pydantic import PydanticInvalidForJsonSchema
from pydantic.json_schema import PydanticJsonSchemaWarning

from tasklib.core import codec
from tasklib.core.errors import TaskLibError
from tasklib.core.registry import COMPUTED, TaskOptions, TaskType
from tasklib.core.retry import RetryPolicy
from tasklib.core.unique import Unique

_OPTIONS = ("max_retries", "timeout_seconds", "priority", "tags")


class PublishedType(NamedTuple):
    name: str
    options: str
    """JSON text: what `@task(...)` says of a submit."""
    schema: str | None
    """JSON text: the JSON Schema of the arguments, or of the payload. None: they cannot be described by one."""

    def task_options(self) -> TaskOptions:
        """Options that are new to this version, or that somebody broke, do not count."""
        try:
            found = json.loads(self.options)
            retry = found.get("retry")
            return TaskOptions(
                **{name: found[name] for name in _OPTIONS if name in found},
                retry=None if retry is None else RetryPolicy.from_json(json.dumps(retry)),
                unique=Unique(**unique) if isinstance(unique := found.get("unique"), dict) else unique and COMPUTED,
            )
        except (ValueError, AttributeError, TypeError):
            return TaskOptions()


def publish(task_types: Iterable[TaskType]) -> list[PublishedType]:
    return [PublishedType(each.name, _options(each.options), _schema(each)) for each in task_types]


def _options(own: TaskOptions) -> str:
    options: dict[str, Any] = {name: getattr(own, name) for name in _OPTIONS}
    options["tags"] = dict(own.tags)
    options["retry"] = None if own.retry is None else asdict(own.retry)
    for name in ("retry_for", "no_retry_for"):  # to be read: whoever runs it has the code
        options[name] = [f"{kind.__module__}.{kind.__qualname__}" for kind in getattr(own, name) or ()] or None
    options["unique"] = asdict(own.unique) if isinstance(own.unique, Unique) else own.unique and COMPUTED
    return codec.encode(options, field="options")


def _schema(task_type: TaskType) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # a default that is not JSON is left out
            return codec.encode(task_type.params.model_json_schema(), field="schema")
    except (PydanticInvalidForJsonSchema, TaskLibError):
        return None
