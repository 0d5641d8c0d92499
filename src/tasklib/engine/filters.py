"""Filters, checked before any store is asked: the same is refused on every backend, whichever API it came through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tasklib.core import codec
from tasklib.core.codec import text_problem
from tasklib.core.errors import InvalidOption
from tasklib.core.options import check_tags
from tasklib.core.task import TaskState
from tasklib.core.words import SHORT_ID
from tasklib.stores.values import Filter

MOST_WORDS = 10
"""Words, and values in the payload, that one search may ask for."""
WORDS_COUNTED = 1_000
"""Every task that a word is found in has to be looked at closely, so no more are counted."""
_SHORT_ID = re.compile(rf"[0-9a-f]{{{SHORT_ID}}}")


def checked(where: Filter) -> Filter:
    """The filter itself. A text that no task can hold is refused, and so is what is not text."""
    for text, field in _texts(where):
        _check(text, field)
    for tags in (where.tags, where.tag_texts):
        if tags is not None:
            check_tags(tags)
    for short in where.short_ids or ():
        if not _SHORT_ID.fullmatch(short):
            raise InvalidOption(
                f"short_ids must have {SHORT_ID} digits, 0-9 and a-f, got {short!r:.60}", field="short_ids"
            )
    for field in ("words", "payload_texts"):
        if len(getattr(where, field) or ()) > MOST_WORDS:
            raise InvalidOption(f"{field}: at most {MOST_WORDS} at once", field=field)
    return where


def check_shown(where: Filter, redact: Callable[[Any], Any]) -> Filter:
    """The filter itself. Values that lists mask cannot be searched for: who guesses would be told."""
    for path, text in (where.payload_texts or {}).items():
        value: Any = text
        for name in reversed(path):
            value = {name: value}
        if redact(value) != value:
            raise InvalidOption(
                f"payload: {'.'.join(path)!r:.60} holds a secret, which cannot be searched for", field="payload"
            )
    return where


def count_cap(where: Filter, cap: int) -> int:
    """How far the tasks are counted that match."""
    return min(cap, WORDS_COUNTED) if where.words else cap


def written_payload(pairs: Mapping[str, Any] | None) -> dict[tuple[str, ...], str] | None:
    """The conditions of a payload as people write them: names with dots between them lead further in."""
    found: dict[tuple[str, ...], str] = {}
    for names, value in (pairs or {}).items():
        path = tuple(names.split("."))
        if not all(path):
            raise InvalidOption(f"payload: a name is missing in {names!r:.60}", field="payload")
        found[path] = value if isinstance(value, str) else codec.encode(value, field="payload")
    return found or None


def check_sorted_by_end(where: Filter) -> None:
    """The order of ends is kept for what failed or was cancelled: else every completion would pay for it."""
    if not where.states or not {TaskState.FAILED, TaskState.CANCELLED}.issuperset(where.states):
        raise InvalidOption(
            "sort: by the end only tasks that are failed or cancelled can be listed, so ask for these states and no "
            "others: no index has the order in which tasks were completed",
            field="sort",
        )


def written_tags(tags: Mapping[str, Any] | None) -> dict[str, Any]:
    """The conditions of tags that somebody wrote, for a filter: a text also finds the number, the truth value or the
    null that is written so; what is not text is meant exactly."""
    if not tags:
        return {}
    check_tags(tags)
    texts = {key: value for key, value in tags.items() if isinstance(value, str)}
    exact = {key: value for key, value in tags.items() if key not in texts}
    return {"tags": exact or None, "tag_texts": texts or None}


def _texts(where: Filter) -> Iterable[tuple[object, str]]:
    for name in where.names or ():
        yield name, "name"
    for field in ("name_prefix", "worker_id", "error_text", "idempotency_key"):
        text = getattr(where, field)
        if text is not None:
            yield text, field
    for word in where.words or ():
        yield word, "words"
    for path, text in (where.payload_texts or {}).items():
        for part in (*path, text):
            yield part, "payload_texts"


def _check(text: object, field: str) -> None:
    if not isinstance(text, str):
        raise InvalidOption(f"{field} must be text, got {text!r:.60}", field=field)
    problem = text_problem(text)
    if problem:
        raise InvalidOption(f"{field} {problem}", field=field)
