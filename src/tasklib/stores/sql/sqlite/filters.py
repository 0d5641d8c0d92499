"""Functions for conditions of lists that SQLite's own do not express."""

from __future__ import annotations

import json
from typing import Any


def same_json(*texts: Any) -> bool:
    """Whether two JSON texts hold the same value. Compared as text: in Python, 1 and True are equal."""
    one, other = (json.dumps(json.loads(text, parse_int=float), sort_keys=True) for text in texts)
    return one == other


def contains_letters(*texts: Any) -> bool:
    """Whether the first text contains the second, whatever the case. SQLite's own `lower` knows ASCII only."""
    text, part = texts
    return str(part).lower() in str(text).lower()
