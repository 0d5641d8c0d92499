"""Results of tasks as arguments of others: where they go is kept as JSON pointers beside the payload, which has null
there, so that every payload stays possible."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias
from uuid import UUID

from tasklib.core.codec import MAX_DEPTH
from tasklib.core.errors import InvalidInput, InvalidOption, TaskLibError
from tasklib.core.redact import mask_text


class TaskReference(Protocol):
    """Anything that stands for a task: a handle, or its record."""

    @property
    def id(self) -> UUID: ...


Awaited: TypeAlias = TaskReference | UUID | str
"""What `after` and `before` take."""

_made = False


class Output:
    """The result of a task that may not have run yet. It can be handed to a submit among the arguments, and nothing
    else can be done with it."""

    def __init__(self, task: TaskReference) -> None:
        global _made
        _made = True
        self._task = task

    def __repr__(self) -> str:
        return f"<output of task {self._task.id}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python and others look for in every object
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TaskLibError(
            f"{self!r} is not known yet: give it to another submit as an argument, or a part of one; what is to be "
            "done with it belongs into that task"
        )

    __str__ = __format__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __call__ = _refuse
    __int__ = __float__ = __add__ = __radd__ = __lt__ = __gt__ = __le__ = __ge__ = _refuse


def in_use() -> bool:
    """Whether this process has made any: where not, nobody needs to look for them."""
    return _made


def taken_out(arguments: Any) -> tuple[Any, dict[str, TaskReference]]:
    """Arguments with None in place of outputs, and the tasks whose results go there, by JSON pointers."""
    inputs: dict[str, TaskReference] = {}
    return _without(arguments, (), inputs), inputs


def _without(value: Any, place: tuple[str | int, ...], inputs: dict[str, TaskReference]) -> Any:
    if isinstance(value, Output):
        inputs[pointer(place)] = value._task
        return None
    if len(place) > MAX_DEPTH:  # refused when it is encoded
        return value
    if isinstance(value, Mapping):
        if any(isinstance(key, Output) for key in value):
            _misplaced(place, "a key")
        return {key: _without(item, (*place, key), inputs) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without(item, (*place, index), inputs) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)) and any(isinstance(item, Output) for item in value):
        _misplaced(place, "in a set")
    return value


def _misplaced(place: Sequence[str | int], where: str) -> NoReturn:
    field = str(place[0]) if place else "payload"
    raise InvalidInput(f"{field}: an output cannot be {where}: it has no place there; use a list", field=field)


def pointer(place: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


def masked_place(place: str) -> str:
    """A pointer for people to read. Its parts are keys of a payload: a URL in one is not known while it is escaped."""
    parts = place.split("/")
    return pointer([mask_text(part.replace("~1", "/").replace("~0", "~")) for part in parts])[1:]


def place_of(pointer: str) -> list[str]:
    """Raises InvalidOption."""
    if pointer and not pointer.startswith("/"):
        raise _no_place(pointer, "a JSON pointer begins with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def with_values(payload: Any, values: Mapping[str, Any]) -> Any:
    """The payload, changed in place, with each value where its pointer says. Raises InvalidOption where there is no
    such place: a name may be new to an object, but whatever leads there must be in the payload."""
    for each, value in values.items():
        place = place_of(each)
        if not place:
            payload = value
            continue
        found = payload
        for part in place[:-1]:
            found = _at(found, part, each)
        _put(found, place[-1], value, each)
    return payload


def filled(payload: str, values: Mapping[str, str | None]) -> str:
    """The same for JSON texts; None is null. A place that is not there any more, or is not null any more, stays as it
    is: somebody edited the payload."""
    found = json.loads(payload)
    for each, value in values.items():
        try:
            if _value(found, each) is None:
                found = with_values(found, {each: None if value is None else json.loads(value)})
        except InvalidOption:
            continue
    return json.dumps(found, ensure_ascii=False)


def _value(payload: Any, pointer: str) -> Any:
    for part in place_of(pointer):
        payload = _at(payload, part, pointer)
    return payload


def _at(found: Any, part: str, pointer: str) -> Any:
    if isinstance(found, Mapping) and part in found:
        return found[part]
    if isinstance(found, list):
        return found[_index(found, part, pointer)]
    raise _no_place(pointer, f"there is no {part!r:.60} in the payload")


def _put(found: Any, part: str, value: Any, pointer: str) -> None:
    if isinstance(found, MutableMapping):
        found[part] = value
    elif isinstance(found, MutableSequence):
        found[_index(found, part, pointer)] = value
    else:
        raise _no_place(pointer, "what leads there is neither an object nor a list")


def _index(found: Sequence[Any], part: str, pointer: str) -> int:
    if part.isascii() and part.isdigit() and int(part) < len(found):
        return int(part)
    raise _no_place(pointer, f"a list of {len(found)} has no {part!r:.60}")


def _no_place(pointer: str, reason: str) -> InvalidOption:
    where = masked_place(pointer)
    return InvalidOption(f"inputs: {where!r:.120} names no place in the payload: {reason}", field="inputs")
