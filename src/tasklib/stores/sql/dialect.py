"""Named queries as one engine's statements."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from typing import Any

from tasklib.stores.sql import queries
from tasklib.stores.sql.columns import Kind, Shape

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
"""Two colons are a cast of PostgreSQL's, and one may stand in the name of a channel."""
_SPELLED = re.compile(r"\{([a-z_]+) (:[a-z_]+)\}")
_MARK = re.compile(r"\{([a-z_]+)\}")


def load(package: str, spellings: Mapping[str, str]) -> dict[str, str]:
    """The queries of an engine: those that all share, and its own. `{name}` in them stands for the text of that name,
    and `{in_ids :ids}` for the engine's spelling of `in_ids`, with the parameter in its place."""
    shared, own = queries.load(__package__ or ""), queries.load(package)
    if twice := shared.keys() & own.keys():
        raise ValueError(f"queries of all engines and of {package} have the same names: {sorted(twice)}")
    texts = shared | own

    def filled(text: str) -> str:
        text = _SPELLED.sub(lambda found: spellings[found[1]].format(found[2]), text)
        return _MARK.sub(lambda found: filled(texts[found[1]]) if found[1] in texts else found[0], text)

    return {name: filled(text) for name, text in texts.items()}


def fill(text: str, names: Mapping[str, str]) -> str:
    """`{name}` in the text stands for what `names` has for it. All of it is ours; values are always parameters."""
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def composed(sql: Mapping[str, str], name: str, parts: Mapping[str, str]) -> str:
    """The text of that name with its parts filled in, in their order: `{name}` in a part stands for another text."""
    text = sql[name]
    for mark, part in parts.items():
        text = text.replace(f"{{{mark}}}", _MARK.sub(lambda found: sql[found[1]], part))
    return text


def numbered(text: str, mark: str) -> tuple[str, tuple[str, ...]]:
    """The text with numbers in place of the parameters' names ($1 or ?1), and the names in the order of the numbers."""
    order = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    return _PARAMETER.sub(lambda found: f"{mark}{order.index(found[1]) + 1}", text), order


def column_list(shape: Shape[Any], as_text: Container[Kind] = ()) -> str:
    """`as_text`: columns of these kinds are asked for as text."""

    def column(name: str, kind: Kind) -> str:
        source = shape.computed.get(name, name)
        if kind in as_text:
            return f"CAST({source} AS text) AS {name}"
        return name if source == name else f"{source} AS {name}"

    return ", ".join(column(name, kind) for name, kind in shape.columns.items())


def json_value(text: str | None) -> Any:
    """What a JSON text means. One that Python does not read was put in by hand: it is shown as it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
