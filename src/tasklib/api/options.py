"""The fluent API's options, in Python's spelling and in camelCase, and how they become those of a submit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from tasklib.core.durations import Seconds, WholeSeconds
from tasklib.core.errors import InvalidOption
from tasklib.core.options import INT32, SubmitOptions, check_run_at, check_tags, check_whole


class EnqueueOptions(TypedDict, total=False):
    """What may be said about one task. None: as if it were not given."""

    max_attempts: int | None
    """3 unless given, or what a decorated task of this process says; 0 is unlimited."""
    run_after: datetime | str | None
    """An aware datetime, or ISO 8601 text with a time zone."""
    priority: int | None
    tags: Mapping[str, Any] | None
    timeout_seconds: WholeSeconds | None
    idempotency_key: str | None
    maxAttempts: int | None
    runAfter: datetime | str | None
    timeoutSeconds: WholeSeconds | None
    idempotencyKey: str | None


class CamelSettings(TypedDict, total=False):
    """The arguments of a TaskQueue in camelCase."""

    pollInterval: float
    """Milliseconds."""
    batchSize: int
    enableWorker: bool
    taskTimeout: Seconds


_CAMEL = {
    "maxAttempts": "max_attempts",
    "runAfter": "run_after",
    "timeoutSeconds": "timeout_seconds",
    "idempotencyKey": "idempotency_key",
    "pollInterval": "poll_interval",
    "batchSize": "batch_size",
    "enableWorker": "enable_worker",
    "taskTimeout": "task_timeout",
}
_KNOWN = ("max_attempts", "run_after", "priority", "tags", "timeout_seconds", "idempotency_key")


def submit_options(*given: Mapping[str, Any] | None) -> SubmitOptions:
    """Checked by the names of this API. Later mappings win."""
    chosen: dict[str, Any] = {}
    for each in given:
        chosen |= _known(each)
    if chosen.get("tags") is not None:
        check_tags(chosen["tags"])
    attempts = chosen.get("max_attempts")
    return SubmitOptions(
        max_retries=None if attempts is None else check_whole("max_attempts", attempts, 0, INT32) - 1,
        run_at=_instant(chosen.get("run_after")),
        priority=chosen.get("priority"),
        tags=chosen.get("tags"),
        timeout_seconds=chosen.get("timeout_seconds"),
        idempotency_key=chosen.get("idempotency_key"),
    )


def settings(plain: Mapping[str, Any], camel: Mapping[str, Any]) -> dict[str, Any]:
    """A queue's settings by their Python names and in seconds."""
    unknown = ", ".join(sorted(set(camel).difference(CamelSettings.__annotations__)))
    if unknown:
        raise TypeError(f"TaskQueue has no argument {unknown}")
    found = dict(plain)
    for name, value in camel.items():
        if name == "pollInterval" and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = value / 1000
        found[_CAMEL[name]] = value
    return found


def _known(given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidOption(f"options must be a mapping, got {given!r:.60}", field="options")
    found: dict[str, Any] = {}
    for spelling, value in given.items():
        name = _CAMEL.get(spelling, spelling)
        if name not in _KNOWN:
            raise InvalidOption(f"unknown option {spelling!r:.60}; known: {', '.join(_KNOWN)}", field=str(spelling))
        if name in found:
            raise InvalidOption(f"{name} was given in both spellings", field=name)
        if value is not None:
            found[name] = value
    return found


def _instant(value: object) -> datetime | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            text = f"run_after must be ISO 8601 with a time zone, got {value!r:.60}"
            raise InvalidOption(text, field="run_after") from None
    return check_run_at(value, "run_after")
