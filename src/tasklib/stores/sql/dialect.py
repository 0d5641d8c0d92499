"""Named queries as one engine's statements."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tasklib.stores import queries
from tasklib.stores.sql.columns import Shape

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
"""Two colons are a cast of PostgreSQL's."""


def load(package: str) -> dict[str, str]:
    """The queries of an engine: those that all share, and its own."""
    shared, own = queries.load(__package__ or ""), queries.load(package)
    if twice := shared.keys() & own.keys():
        raise ValueError(f"queries of all engines and of {package} have the same names: {sorted(twice)}")
    return shared | own


def fill(text: str, names: Mapping[str, str]) -> str:
    """`{name}` in the text stands for what `names` has for it. All of it is ours; values are always parameters."""
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def numbered(text: str, mark: str) -> tuple[str, tuple[str, ...]]:
    """The text with numbers in place of the parameters' names ($1 or ?1), and the names in the order of the numbers."""
    order = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    return _PARAMETER.sub(lambda found: f"{mark}{order.index(found[1]) + 1}", text), order


def column_list(shape: Shape[Any]) -> str:
    return ", ".join(shape.names)


def json_value(text: str | None) -> Any:
    """What a JSON text means. One that Python does not read was put in by hand: it is shown as it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
