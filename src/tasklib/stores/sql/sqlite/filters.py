"""Functions for conditions of lists that SQLite's own do not express."""

from __future__ import annotations

import json
from typing import Any

from tasklib.core.words import at_path, is_in_value, short_id
from tasklib.stores.sql.dialect import json_value


def same_json(*texts: Any) -> bool:
    """Whether two JSON texts hold the same value. Compared as text: in Python, 1 and True are equal."""
    one, other = (json.dumps(json.loads(text, parse_int=float), sort_keys=True) for text in texts)
    return one == other


def holds_values(*texts: Any) -> bool:
    """Whether each path leads to one of its values in the payload."""
    payload, wanted = texts
    value = json_value(payload)
    return all(
        any(same_json(json.dumps(found), json.dumps(choice)) for found in at_path(value, path) for choice in choices)
        for path, choices in json.loads(wanted)
    )


def holds_word(*texts: Any) -> bool:
    """See `words.is_found`."""
    word, task_id, name, key, error, tags, payload, secret_keys = texts
    small = word.lower()
    if any(text is not None and small in text.lower() for text in (name, key, error)) or small == short_id(task_id):
        return True
    if secret_keys is None:
        return False
    return is_in_value(small, [json_value(tags), json_value(payload)], tuple(json.loads(secret_keys)))


def contains_letters(*texts: Any) -> bool:
    """Whether the first text contains the second, whatever the case. SQLite's own `lower` knows ASCII only."""
    text, part = texts
    return str(part).lower() in str(text).lower()
