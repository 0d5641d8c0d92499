"""Arguments that only a JSON Schema is known of: checked, and completed with its defaults.

Pydantic makes such schemas and cannot check by them, so a package does that (the extra `schema`). Where it is not
installed nothing is checked, and the answer to a submit says so.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime, time, timedelta
from importlib import import_module
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import pydantic
from pydantic import TypeAdapter, ValidationError

from tasklib.core.annotations import refused

_LEFT_TO_THE_WORKER = ("email", "regex")
"""The package takes less for one than Python does."""


class ArgumentSchema:
    """What the arguments of one task type must fit."""

    def __init__(self, schema: Any, package: Any) -> None:
        self._schema = schema
        self._package = package
        self._checks = self._validator(schema)

    def _validator(self, schema: Any) -> Any:
        return self._package.validator_for(
            schema, formats=_formats(), validate_formats=True, retriever=_refuse, mask="the value"
        )

    def fit(self, arguments: Any, name: str) -> Any:
        """The arguments, with defaults. Raises TaskValidationError."""
        problems = [problem for error in self._checks.iter_errors(arguments) for problem in _problems(error)]
        if problems:
            raise refused(problems, name)
        return self._completed(arguments, self._schema)

    def _completed(self, value: Any, schema: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        schema = self._meant(schema, value)
        if isinstance(value, list):
            first, rest = schema.get("prefixItems", []), schema.get("items")
            schemas = [*first, *([rest] * max(0, len(value) - len(first)))]
            return [self._completed(item, each) for item, each in zip(value, schemas, strict=False)]
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        defaults = {name: each["default"] for name, each in known.items() if "default" in each}
        return defaults | {name: self._completed(item, known.get(name, others)) for name, item in value.items()}

    def _meant(self, schema: Any, value: Any) -> dict[str, Any]:
        """What the schema says of this value itself: references followed, of alternatives the first that it fits."""
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            return self._meant(self._definitions.get(schema["$ref"].removeprefix("#/$defs/")), value)
        for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            if self._validator({"$defs": self._definitions, **branch}).is_valid(value):
                return self._meant(branch, value)
        return schema

    @property
    def _definitions(self) -> dict[str, Any]:
        found: dict[str, Any] = self._schema.get("$defs", {})
        return found


@functools.lru_cache(maxsize=256)
def argument_schema(text: str | None) -> ArgumentSchema | None:
    """None: there is none, it is none, or nothing that checks by it is installed."""
    if text is None:
        return None
    try:
        return ArgumentSchema(json.loads(text), import_module("jsonschema_rs"))
    except (ImportError, ValueError):
        return None


def without_checks(text: str | None, names: Collection[str]) -> str | None:
    """The schema that takes anything for these parameters. None: it is not one of parameters, but of a payload."""
    schema = None if text is None else json.loads(text)
    if not isinstance(schema, dict) or not isinstance(known := schema.get("properties"), dict):
        return None
    return json.dumps({**schema, "properties": {**known, **{name: {} for name in names if name in known}}})


@functools.cache
def _formats() -> dict[str, Callable[[str], bool]]:
    """A format is what Pydantic reads: that decides when the task runs."""

    def reads(adapter: TypeAdapter[Any]) -> Callable[[str], bool]:
        def check(text: str) -> bool:
            try:
                adapter.validate_python(text)
            except ValidationError:
                return False
            return True

        return check

    left = {name: lambda _: True for name in _LEFT_TO_THE_WORKER}
    read_by_pydantic: dict[str, Any] = {
        "date-time": datetime,
        "date": date,
        "time": time,
        "duration": timedelta,
        "uuid": UUID,
        "uri": pydantic.AnyUrl,  # by its module's name: Pydantic imports its own modules when they are asked for
        "ipv4": IPv4Address,
        "ipv6": IPv6Address,
    }
    return left | {name: reads(TypeAdapter(kind)) for name, kind in read_by_pydantic.items()}


def _problems(error: Any) -> Iterator[dict[str, Any]]:
    """In the form that Pydantic's have, and in its words where the field itself is the problem."""
    place, details = tuple(error.instance_path), error.kind.as_dict()
    if "property" in details and error.schema_path[-1:] == ["required"]:
        yield {"type": "missing", "loc": (*place, details["property"]), "msg": "Field required"}
    elif "unexpected" in details:
        for name in details["unexpected"]:
            yield {"type": "extra_forbidden", "loc": (*place, name), "msg": "Extra inputs are not permitted"}
    else:
        yield {"type": str(error.schema_path[-1]), "loc": place, "msg": error.message}


def _refuse(uri: str) -> None:
    raise ValueError(f"a schema is asked for from elsewhere: {uri}")
