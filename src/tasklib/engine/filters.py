"""Filters, checked before any store is asked: the same is refused on every backend, whichever API it came through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tasklib.core.codec import text_problem
from tasklib.core.errors import InvalidOption
from tasklib.core.options import check_tags
from tasklib.core.task import TaskState
from tasklib.stores.values import Filter


def checked(where: Filter) -> Filter:
    """The filter itself. A text that no task can hold is refused, and so is what is not text."""
    for text, field in _texts(where):
        _check(text, field)
    for tags in (where.tags, where.tag_texts):
        if tags is not None:
            check_tags(tags)
    return where


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
    for field in ("name_prefix", "worker_id", "error_text"):
        text = getattr(where, field)
        if text is not None:
            yield text, field


def _check(text: object, field: str) -> None:
    if not isinstance(text, str):
        raise InvalidOption(f"{field} must be text, got {text!r:.60}", field=field)
    problem = text_problem(text)
    if problem:
        raise InvalidOption(f"{field} {problem}", field=field)
