"""How help texts look: flags without a type, paragraphs that wrap where the terminal ends."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))


class PlainGroup(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _plain(super().get_params(ctx))


def _plain(parameters: list[Any]) -> list[Any]:
    """A flag takes no value, so none is named behind it."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


def paragraphs(text: str | None) -> str:
    """A docstring, each paragraph on one line: where it breaks is for the terminal to say."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))
