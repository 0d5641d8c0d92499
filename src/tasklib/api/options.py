"""Options in the words of the APIs that count attempts (`tq`, the manager, REST), and how they become those of a
submit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from pydantic.alias_generators import to_camel, to_snake

from tasklib.core.checks import INT32, check_whole
from tasklib.core.durations import Seconds
from tasklib.core.errors import InvalidOption
from tasklib.core.options import (
    CamelOptions,
    CommonOptions,
    SubmitOptions,
    check_options,
    check_run_at,
    check_tags,
    refuse_unknown,
)
from tasklib.core.outputs import TaskReference


class RemoteOptions(CommonOptions, total=False):
    max_attempts: int | None
    """The first one included; 0 is unlimited."""
    run_at: datetime | None


class ManagerOptions(RemoteOptions, total=False):
    delay_seconds: Seconds | None


class EnqueueOptions(CommonOptions, CamelOptions, total=False):
    """Of the fluent API."""

    max_attempts: int | None
    """3 unless given, or what a decorated task of this process says; 0 is unlimited."""
    run_after: datetime | str | None
    """An aware datetime, or ISO 8601 text with a time zone."""
    maxAttempts: int | None  # noqa: N815
    runAfter: datetime | str | None  # noqa: N815


class CamelSettings(TypedDict, total=False):
    """The arguments of a TaskQueue in camelCase."""

    pollInterval: float
    """Milliseconds."""
    batchSize: int
    enableWorker: bool
    taskTimeout: Seconds


def from_attempts(given: Mapping[str, Any], known: Iterable[str]) -> SubmitOptions:
    """The options of a submit. `known`: what this API takes."""
    refuse_unknown(given, known)
    options = dict(given)
    attempts, after = options.pop("max_attempts", None), options.pop("run_after", None)
    if attempts is not None:
        options["max_retries"] = check_whole("max_attempts", attempts, 0, INT32) - 1
    if after is not None:
        options["run_at"] = _instant(after)
    return check_options(options)


def to_json(given: Mapping[str, Any], inputs: Mapping[str, TaskReference] | None = None) -> str:
    """RemoteQueue's options as REST takes them. `inputs`: whose results go where in the payload."""
    options: dict[str, Any] = {**from_attempts(given, RemoteOptions.__optional_keys__)}
    if "max_retries" in options:
        options["max_attempts"] = options.pop("max_retries") + 1
    if "run_at" in options:
        options["run_after"] = options.pop("run_at").isoformat()
    if "unique" in options:
        options["unique"] = {to_camel(name): value for name, value in asdict(options["unique"]).items()}
    for name in ("after", "before"):
        if name in options:
            options[name] = [str(each if isinstance(each, UUID) else each.id) for each in options[name]]
    if inputs:
        options["inputs"] = {place: str(task.id) for place, task in inputs.items()}
    texts = {name: check_tags(value) if name == "tags" else json.dumps(value) for name, value in options.items()}
    members = ",".join(f'"{to_camel(name)}":{text}' for name, text in texts.items())
    return f"{{{members}}}"


def enqueue_options(*given: Mapping[str, Any] | None) -> SubmitOptions:
    """The fluent API's, in either spelling. Later mappings win."""
    chosen: dict[str, Any] = {}
    for each in given:
        chosen |= _plain(each)
    return from_attempts(chosen, EnqueueOptions.__optional_keys__)


def settings(plain: Mapping[str, Any], camel: Mapping[str, Any]) -> dict[str, Any]:
    """A queue's settings by their Python names and in seconds."""
    unknown = ", ".join(sorted(set(camel).difference(CamelSettings.__optional_keys__)))
    if unknown:
        raise TypeError(f"TaskQueue has no argument {unknown}")
    found = dict(plain)
    for name, value in camel.items():
        if name == "pollInterval" and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = value / 1000
        found[to_snake(name)] = value
    return found


def _plain(given: object) -> dict[str, Any]:
    """By their Python names, without Nones."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidOption(f"options must be a mapping, got {given!r:.60}", field="options")
    refuse_unknown(given, EnqueueOptions.__optional_keys__)
    found: dict[str, Any] = {}
    for spelling, value in given.items():
        name = to_snake(spelling)
        if name in found:
            raise InvalidOption(f"{name} was given in both spellings", field=name)
        if value is not None:
            found[name] = value
    return found


def _instant(value: object) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            text = f"run_after must be ISO 8601 with a time zone, got {value!r:.60}"
            raise InvalidOption(text, field="run_after") from None
    return check_run_at(value, "run_after")
