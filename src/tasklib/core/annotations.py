"""What annotations say: of parameters and results, for Pydantic and for us."""

from __future__ import annotations

import keyword
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import is_typeddict

from tasklib.core.errors import TaskDefinitionError, TaskValidationError


def resolved_hints(function: Callable[..., Any], label: str, depth: int) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        # Types defined inside the function around the task: look in the frames where it is being defined.
        names: dict[str, Any] = {}
        frame = sys._getframe(depth)
        while frame is not None:
            names = {**frame.f_locals, **names}
            frame = frame.f_back if frame.f_back and frame.f_code.co_name != "<module>" else None  # type: ignore[assignment]
        try:
            return typing.get_type_hints(function, localns=names, include_extras=True)
        except NameError as error:
            raise TaskDefinitionError(f"{label}: an annotation cannot be resolved: {error}") from None


def adapter_config(annotation: Any) -> ConfigDict | None:
    """Pydantic takes no outside configuration for types that carry their own."""
    carries = isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or hasattr(annotation, "__dataclass_fields__") or is_typeddict(annotation)
    )
    return (
        None if carries else ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
    )


def is_loose(annotation: Any) -> bool:
    """True where a dict of any keys would pass."""
    if annotation in (Any, object, dict, list, tuple):
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is dict:
        return arguments[0] in (str, Any) and is_loose(arguments[1])
    return origin in (list, tuple, typing.Union, types.UnionType, typing.Annotated) and any(map(is_loose, arguments))


def plain_type(annotation: Any) -> type | None:
    """The annotation, if a value of exactly this type fits it; `object` where anything does."""
    if annotation in (Any, object):
        return object
    return annotation if annotation in (type(None), bool, int, float, str) else None


def field_name(parameter: str) -> str:
    if parameter.startswith("_") or hasattr(BaseModel, parameter) or keyword.iskeyword(parameter):
        return f"param_{parameter.strip('_')}"
    return parameter


def refusal(error: ValidationError, model: str, hint: str = "") -> TaskValidationError:
    """Of arguments or of a payload."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return refused([dict(item) for item in found], model, hint)


def refused(details: list[dict[str, Any]], model: str, hint: str = "") -> TaskValidationError:
    """By a list like Pydantic's."""
    count = f"{len(details)} validation error{'s' if len(details) != 1 else ''} for {model}"
    named = [(".".join(map(str, item["loc"])) or model, item["msg"]) for item in details]
    lines = [f"{name}: {message}" for name, message in named]
    return TaskValidationError("\n".join([count, *lines]) + hint, errors=details, field=named[0][0] if named else None)
