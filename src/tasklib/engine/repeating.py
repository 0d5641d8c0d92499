"""Running a finished task again: a copy of it under an id of its own, perhaps with other arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from tasklib.core import codec, decide
from tasklib.core.errors import InvalidInput
from tasklib.core.redact import MASK
from tasklib.core.registry import Registry
from tasklib.engine.audit import Auditor
from tasklib.engine.engine import Engine
from tasklib.engine.parents import fill_tasks
from tasklib.engine.submission import Call, Submitted, options_of
from tasklib.stores.values import AuditEntry


class Same:
    """In place of a payload: that of the task itself."""


SAME = Same()


async def repeat(
    engine: Engine, task_id: UUID, *, payload: Any = SAME, registry: Registry, auditor: Auditor
) -> Submitted:
    """Submits it once more, due now, with the same options but for its idempotency key, which stays with the first.
    A payload is one that somebody edited who saw it masked: what is masked there is taken from the task."""
    task = await engine.get_or_raise(task_id)
    decide.check_over(task)
    edited = not isinstance(payload, Same)
    arguments = unmasked(payload, task.kwargs, auditor.redact) if edited else task.kwargs
    if task.after is not None:  # it got results of others, and its copy waits for nobody
        arguments = (await fill_tasks(await engine.store(), [replace(task, kwargs=arguments)]))[0].kwargs
    call = Call(task.name, arguments, options_of(task), registry.get(task.name))

    def audit(made: Sequence[UUID]) -> Sequence[AuditEntry]:
        entries = (auditor.entry("copy", name=task.name, detail={"copy": str(each), "edited": edited}) for each in made)
        return [replace(entry, task_id=task.id) for entry in entries]

    return await engine.submit(call, copy_of=task.id, audit=audit)


def unmasked(given: Any, kept: Any, redact: Callable[[Any], Any]) -> Any:
    """The given value, with what stands there as it was shown put back as it is kept."""
    found = _put_back(given, redact(kept), kept)
    if MASK in json.dumps(found) and MASK not in json.dumps(kept):
        message = f"payload: it holds {MASK}, which hides a secret where it is shown; write the value itself"
        raise InvalidInput(message, field="payload")
    return found


def _put_back(given: Any, shown: Any, kept: Any) -> Any:
    if _text(given) == _text(shown):
        return kept
    if isinstance(given, dict) and isinstance(shown, dict) and isinstance(kept, dict):
        known = shown.keys() & kept.keys()
        return {key: _put_back(each, shown[key], kept[key]) if key in known else each for key, each in given.items()}
    if isinstance(given, list) and isinstance(shown, list) and isinstance(kept, list) and len(shown) == len(kept):
        pairs = list(zip(shown, kept, strict=True))
        return [_put_back(each, *pairs[at]) if at < len(pairs) else each for at, each in enumerate(given)]
    return given


def _text(value: Any) -> str:
    """Equal texts are equal values: 1, 1.0 and true are three."""
    return codec.encode(value, field="payload")
