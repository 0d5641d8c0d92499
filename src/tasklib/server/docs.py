"""What the OpenAPI file says about errors, and how a route is told of them."""

from __future__ import annotations

from typing import Any

from tasklib.server.claim_schemas import ClaimConflict
from tasklib.server.problems import MEDIA_TYPE, TITLES
from tasklib.server.schemas import Problem

Responses = dict[int | str, dict[str, Any]]

_ALWAYS = (400, 401, 403, 421, 503)
"""What any route may answer."""


def problems(*statuses: int) -> Responses:
    """The error responses of a route: those of every route, and the given ones."""
    return {
        status: {
            "description": TITLES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({*_ALWAYS, *statuses})
    }


def claim_conflict() -> Responses:
    """The response to whoever settles a claim that is not theirs."""
    schema = {"$ref": "#/components/schemas/ClaimConflict"}
    return {409: {"description": TITLES[409], "content": {MEDIA_TYPE: {"schema": schema}}}}


BODY = (413, 415)
"""Beside these where there is a body."""


def amend(schema: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's schema with our problems in place of its own errors, and with how to sign in."""
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for model in (Problem, ClaimConflict):
        own = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas[model.__name__] = _inlined(own, schemas)
    schema["components"]["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "A token, as `tasklib token create` prints it."},
    }
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    schema["security"] = [{"token": []}]
    return schema


def _inlined(model: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    schemas.update(model.pop("$defs", {}))
    return model
