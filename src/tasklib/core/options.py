"""Options of a submit, checked one by one: the same limits and the same words through every API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, TypedDict, cast
from uuid import UUID

from tasklib.core import codec
from tasklib.core.checks import INT32, KEY_LIMIT, check_delay, check_text, check_whole, shown
from tasklib.core.durations import Seconds, WholeSeconds, in_seconds
from tasklib.core.errors import InvalidInput, InvalidOption
from tasklib.core.flows import FLOW_FEEDS_LIMIT, On
from tasklib.core.ids import as_task_id
from tasklib.core.outputs import Awaited, Output, TaskReference
from tasklib.core.retry import RetryPolicy
from tasklib.core.unique import Unique

NAME_LIMIT = 255
TAGS_LIMIT = 16 * 1024
DEFAULT_QUEUE = "default"
"""Of task types that say no other."""


class CommonOptions(TypedDict, total=False):
    """What a caller may say of one task, through every API. None: as if it were not given."""

    timeout_seconds: WholeSeconds | None
    priority: int | None
    tags: Mapping[str, Any] | None
    idempotency_key: str | None
    unique: Unique | None
    after: Iterable[Awaited] | None
    """Tasks that must have completed first, by handle or id; an empty list: none."""
    on: On | None
    """"end": runs whatever becomes of what it is after; "success" unless given."""
    before: Iterable[Awaited] | None
    """Tasks that wait already, and are to wait for this one, too."""


class CamelOptions(TypedDict, total=False):
    """The same in camelCase, where that is another word."""

    timeoutSeconds: WholeSeconds | None
    idempotencyKey: str | None


class SubmitOptions(CommonOptions, total=False):
    """The options of a submit. Where none is given, the task type's own value holds, or the configuration's."""

    delay_seconds: Seconds | None
    run_at: datetime | None
    max_retries: int | None
    retry: RetryPolicy | None


def check_options(given: Mapping[str, Any]) -> SubmitOptions:
    """The options that were given, by the names of NewTask and as it takes them; Nones are left out."""
    refuse_unknown(given, SubmitOptions.__optional_keys__)
    checked = {name: check(given[name]) for name, check in _CHECKS.items() if given.get(name) is not None}
    if "delay_seconds" in checked and "run_at" in checked:
        raise InvalidOption("give delay_seconds or run_at, not both", field="run_at")
    return cast(SubmitOptions, checked)


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Names the option that was probably meant."""
    for name in given:
        if name not in known:
            near = get_close_matches(str(name), known, 1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            raise InvalidOption(f"unknown option {shown(name)}; {hint}", field=str(name))


def check_name(name: object, field: str = "name") -> str:
    return check_text(field, name, NAME_LIMIT)


def check_key(key: object) -> str:
    return check_text("idempotency_key", key, KEY_LIMIT)


def check_unique(value: object) -> Unique:
    if not isinstance(value, Unique):
        raise InvalidOption(
            f"unique must be Unique(...), debounce(...) or throttle(...), got {shown(value)}", field="unique"
        )
    return value


def check_awaited(value: object, field: str) -> tuple[TaskReference | UUID, ...]:
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping, Output)):
        raise InvalidOption(f"{field} must be a list of handles or ids of tasks, got {shown(value)}", field=field)
    return tuple(_reference(each, field) for each in value)


def check_before(value: object) -> tuple[TaskReference | UUID, ...]:
    found = check_awaited(value, "before")
    if len(found) > FLOW_FEEDS_LIMIT:
        text = f"before: at most {FLOW_FEEDS_LIMIT} tasks can wait for one, got {len(found)}"
        raise InvalidOption(text, field="before")
    return found


def check_waits(on: object, after: object, inputs: object) -> None:
    """How it waits can be said of what waits for something. An empty list of tasks is something: it may have been
    longer."""
    if on is not None and after is None and not inputs:
        raise InvalidOption("on: says how it runs after other tasks; give after=[...]", field="on")


def _reference(value: Any, field: str) -> TaskReference | UUID:
    if isinstance(value, Output):
        return value._task
    if not isinstance(value, (UUID, str)) and isinstance(getattr(value, "id", None), UUID):
        reference: TaskReference = value
        return reference
    try:
        return as_task_id(value)
    except InvalidInput:
        raise InvalidOption(f"{field} takes handles or ids of tasks, got {shown(value)}", field=field) from None


def check_on(value: object) -> On:
    if value not in ("success", "end"):
        raise InvalidOption(f"on must be 'success' or 'end', got {shown(value)}", field="on")
    return value


def check_run_at(value: object, field: str = "run_at") -> datetime:
    if not isinstance(value, datetime):
        raise InvalidOption(f"{field} must be a datetime, got {shown(value)}", field=field)
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidOption(f"{field} must have a time zone, for example datetime.now(UTC)", field=field)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidOption(f"{field} is out of range: {shown(value)}", field=field) from None


def check_max_retries(value: object) -> int:
    return check_whole("max_retries", value, -1, INT32 - 1, "; -1 is unlimited")


def check_timeout(value: object) -> int:
    return check_whole("timeout_seconds", in_seconds(value), 1, INT32, " seconds")


def check_priority(value: object) -> int:
    return check_whole("priority", value, -INT32 - 1, INT32)


def check_retry(value: object) -> RetryPolicy:
    if not isinstance(value, RetryPolicy):
        raise InvalidOption(f"retry must be a RetryPolicy, got {shown(value)}", field="retry")
    return value


def check_tags(value: object) -> str:
    """Tags as JSON text."""
    if not isinstance(value, Mapping):
        raise InvalidOption(f"tags must be a mapping of text to JSON values, got {shown(value)}", field="tags")
    return codec.encode(dict(value), field="tags", limit=TAGS_LIMIT)


def _checked_tags(value: Mapping[str, Any]) -> Mapping[str, Any]:
    check_tags(value)
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "max_retries": check_max_retries,
    "priority": check_priority,
    "tags": _checked_tags,
    "timeout_seconds": check_timeout,
    "delay_seconds": check_delay,
    "run_at": check_run_at,
    "idempotency_key": check_key,
    "unique": check_unique,
    "after": lambda value: check_awaited(value, "after"),
    "on": check_on,
    "before": check_before,
    "retry": check_retry,
}
"""In this order, that of the REST API, however they were given: of several that are wrong, all APIs name the same."""

OPTION_NAMES = frozenset({*_CHECKS, "connection"})
RESERVED = OPTION_NAMES - {"retry"}
"""Names that `submit_task` takes for itself. A task may have a parameter called retry."""
