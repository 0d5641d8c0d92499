"""From a call to a NewTask, whichever API it came through: arguments, options, id.

The decorator, `submit_task`, `tq`, the manager, REST and the command line each make a `Call`. What becomes of it is
said here alone, so that the same call is the same row.
"""

from __future__ import annotations

import copy
import json
import os
import struct
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from tasklib.core import codec, outputs
from tasklib.core.column_batch import ColumnBatch
from tasklib.core.errors import InvalidOption
from tasklib.core.flows import After, On
from tasklib.core.ids import SEQUENCE_BITS, uuid7s
from tasklib.core.options import SubmitOptions, check_name, check_tags, check_waits
from tasklib.core.outputs import TaskReference
from tasklib.core.published import PublishedType
from tasklib.core.registry import TaskOptions, TaskType
from tasklib.core.retry import RetryPolicy
from tasklib.core.schemas import argument_schema, without_checks
from tasklib.core.task import NewTask, Task
from tasklib.core.unique import Unique, delay_of
from tasklib.engine import tracing
from tasklib.engine.config import Config
from tasklib.engine.current import flow_of_handler
from tasklib.engine.middleware import before_submit


class IdSource:
    """UUIDv7s that grow within this process, also inside one millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._sequence = 0

    def forget_lock(self) -> None:
        """In a forked child: a thread that is not there may have held it."""
        self._lock = threading.Lock()

    def next(self, count: int) -> list[UUID]:
        with self._lock:
            millisecond = time.time_ns() // 1_000_000
            if millisecond > self._last:
                self._last, self._sequence = millisecond, 0
            else:
                self._sequence += 1
            first = (self._last << SEQUENCE_BITS) + self._sequence
            # More than 4096 within one millisecond borrow from the next.
            self._last, self._sequence = divmod(first + count - 1, 1 << SEQUENCE_BITS)
        return uuid7s(range(first, first + count), struct.unpack(f"{count}Q", os.urandom(8 * count)))


_ids = IdSource()
new_ids = _ids.next

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.forget_lock)

NO_OPTIONS = SubmitOptions()
NO_INPUTS: Mapping[str, Any] = MappingProxyType({})
OF_CONFIG = TaskOptions()
"""Of a type that nobody knows: what the configuration says."""
QUEUE_OPTIONS = TaskOptions(max_retries=2, retry=RetryPolicy.QUEUE)
"""Of handlers of the fluent API, and of types that nobody knows through it or over HTTP: three attempts."""
_OF_FLOWS = frozenset({"after", "on", "before"})
CLAIM_OPTIONS = TaskOptions(max_retries=-1, retry=RetryPolicy.AT_ONCE)
"""Of types that nobody knows, for workers that claim by hand: any number of attempts, at once."""


class Call(NamedTuple):
    """A task that somebody asks for."""

    name: str
    args: Any
    """The keyword arguments, or the payload."""
    options: SubmitOptions = NO_OPTIONS
    """What the caller says of this task, as `check_options` gives it."""
    task_type: TaskType | None = None
    """Where this process knows it; else it is as workers have published it."""
    is_json: bool = True
    """False: `args` are Python values, as the function itself takes them."""
    unknown: TaskOptions = OF_CONFIG
    """The options of a type that nobody knows."""
    inputs: Mapping[str, TaskReference | UUID] = NO_INPUTS
    """Tasks whose results go into `args`, by JSON pointers. Outputs among the arguments say the same."""


class Prepared(NamedTuple):
    task: NewTask
    validated: bool
    """False: nobody could tell what arguments it takes."""


class Submitted(NamedTuple):
    id: UUID
    created: bool
    """False: the idempotency key or the unique key was known, and this is the task it stands for."""
    created_at: datetime | None
    """Only where it was asked for."""
    replaced: bool
    """That task has not started, and has taken over what was submitted."""
    validated: bool


def prepare(call: Call, published: PublishedType | None, config: Config) -> Prepared:
    """Raises before anything is stored. `published`: of a type that this process does not know."""
    new, validated = _prepared(call, published, config)
    (trace,) = tracing.submitted(call.name, [new.id])
    return Prepared(new if trace is None else new._replace(trace=trace), validated)


def template(call: Call, published: PublishedType | None, config: Config) -> NewTask:
    """The same for a task that is to be submitted again and again: it belongs to no trace."""
    return _prepared(call, published, config).task


def _prepared(call: Call, published: PublishedType | None, config: Config) -> Prepared:
    call = _with_inputs(call)
    payload, own, validated = _fitted(call, published, config.max_payload_bytes)
    new = NewTask(_ids.next(1)[0], call.name, payload, **_alike(call, own, config))
    rule = _unique_rule(call, own, payload)
    if rule is not None:
        new = _as_unique(new, rule)
    return Prepared(before_submit(config.middleware, new) if config.middleware else new, validated)


def options_of(task: Task) -> SubmitOptions:
    """Those that a task was submitted with, for another like it: no key, and due now."""
    return SubmitOptions(
        max_retries=task.max_retries,
        timeout_seconds=task.timeout_seconds,
        priority=task.priority,
        tags=task.tags,
        retry=None if task.retry_policy is None else RetryPolicy.from_json(json.dumps(task.retry_policy)),
    )


def check(call: Call, config: Config) -> None:
    """Raises what can be told without a look at the queue."""
    call = _with_inputs(call)
    _, own, _ = _fitted(call, None, config.max_payload_bytes)
    alike = _alike(call, own, config)
    if "unique" in call.options:
        _as_unique(NewTask(UUID(int=0), call.name, "", **alike), call.options["unique"])  # type: ignore[arg-type]


def prepare_many(call: Call, arguments: Iterable[Mapping[str, Any]], config: Config) -> Sequence[NewTask]:
    """The same call of a known type with each of these arguments. All are checked before any is stored."""
    assert call.task_type is not None
    if outputs.in_use():
        arguments = list(arguments)
        if any(outputs.taken_out(each)[1] for each in arguments):
            _check_one_key(call, len(arguments))
            return [prepare(call._replace(args=each), None, config).task for each in arguments]
    payloads = call.task_type.encode_calls(arguments, config.max_payload_bytes)
    _check_one_key(call, len(payloads))
    alike = _alike(call, call.task_type.options, config)
    if not payloads:
        return []
    ids = _ids.next(len(payloads))
    first = NewTask(ids[0], call.name, payloads[0], **alike)
    if call.options.get("unique") or call.task_type.options.unique is not None:
        return _unique_batch(call, first, ids, payloads, config)
    columns: dict[str, Sequence[Any]] = {"id": ids, "kwargs": payloads}
    if config.middleware:
        columns["tags"] = [before_submit(config.middleware, each).tags for each in ColumnBatch(first, **columns)]
    traces = tracing.submitted(call.name, ids)
    if any(traces):
        columns["trace"] = traces
    return ColumnBatch(first, **columns)


def _check_one_key(call: Call, number: int) -> None:
    if "idempotency_key" in call.options and number > 1:
        raise InvalidOption("idempotency_key: one key cannot stand for several calls", field="idempotency_key")


def _with_inputs(call: Call) -> Call:
    """With null in the arguments wherever the result of another task goes."""
    if call.inputs:
        call = call._replace(args=outputs.with_values(copy.deepcopy(call.args), dict.fromkeys(call.inputs)))
    if outputs.in_use():
        arguments, found = outputs.taken_out(call.args)
        if found:
            return call._replace(args=arguments, inputs={**call.inputs, **found})
    return call


def _fitted(call: Call, published: PublishedType | None, limit: int) -> tuple[str, TaskOptions, bool]:
    """The arguments as they are stored, the options of the type, and whether anybody checked the arguments."""
    known = call.task_type
    unchecked = frozenset(place[0] for each in call.inputs if (place := outputs.place_of(each)))
    if known is not None:
        known = known.unchecked(unchecked) if call.inputs else known
        if not call.is_json:
            return known.encode(call.args, limit), known.options, True
        return known.encode_json(codec.encode(call.args, field="payload", limit=limit), limit), known.options, True
    check_name(call.name)
    text = codec.encode(call.args, field="payload", limit=limit)
    if published is None:
        return text, call.unknown, False
    schema = argument_schema(without_checks(published.schema, unchecked) if call.inputs else published.schema)
    if schema is None:
        return text, published.task_options(), False
    fitting = schema.fit(json.loads(text), call.name)
    return codec.encode(fitting, field="payload", limit=limit), published.task_options(), True


def _alike(call: Call, own: TaskOptions, config: Config) -> dict[str, Any]:
    """The fields of a NewTask that options decide: what the caller says; else what the type says; else what the
    configuration says."""
    chosen: dict[str, Any] = {
        "max_retries": config.max_retries if own.max_retries is None else own.max_retries,
        "timeout_seconds": config.default_task_timeout_seconds if own.timeout_seconds is None else own.timeout_seconds,
        "priority": own.priority,
        "retry": own.retry,
        **call.options,
    }
    chosen.pop("unique", None)
    if call.inputs or not _OF_FLOWS.isdisjoint(chosen):
        for name in _OF_FLOWS:
            chosen.pop(name, None)
        chosen |= _links(call, config)
    retry, tags = chosen.pop("retry"), {**own.tags, **chosen.pop("tags", {})}
    chosen["retry_policy"] = None if retry is None else retry.to_json()
    chosen["tags"] = check_tags(tags) if tags else "{}"
    return chosen


def _links(call: Call, config: Config) -> dict[str, Any]:
    """What it waits for, and what is to wait for it."""
    options, queue = call.options, config.database_url
    inputs = [(place, _id_in(queue, task, "inputs")) for place, task in call.inputs.items()]
    named = [_id_in(queue, task, "after") for task in options.get("after") or ()]
    check_waits(options.get("on"), options.get("after"), inputs)
    links: dict[str, Any] = {"after": after_of(named, options.get("on"), inputs)}
    before = tuple(dict.fromkeys(_id_in(queue, task, "before") for task in options.get("before") or ()))
    if before:
        links |= {"before": before, "flow_id": flow_of_handler(queue)}
    return links


def after_of(named: Iterable[UUID], on: On | None, inputs: Sequence[tuple[str, UUID]]) -> After | None:
    """What a task waits for: those that were named, and those whose results it gets."""
    parents = tuple(dict.fromkeys([*named, *(parent for _, parent in inputs)]))
    return After(parents, on or "success", tuple(inputs)) if parents else None


def _id_in(queue: str, task: Any, field: str) -> UUID:
    """The id of a task that is in this queue, as far as its handle can tell."""
    if isinstance(task, UUID):
        return task
    check = getattr(task, "check_usable_in", None)
    if check is not None:
        check(queue, field)
    task_id: UUID = task.id
    return task_id


def _unique_rule(call: Call, own: TaskOptions, payload: str) -> Unique | None:
    """What the caller says; else what the type says of these arguments."""
    given = call.options.get("unique")
    if given is not None:
        return given
    if own.unique is None or isinstance(own.unique, Unique):
        return own.unique
    if call.inputs:
        reason = f"{call.name} makes its key from arguments that are not known yet; give unique= with the submit"
        raise InvalidOption(f"unique: {reason}", field="unique")
    if call.task_type is None:
        reason = f"{call.name} makes its key by code that is not here; give unique= with the submit"
        raise InvalidOption(f"unique: {reason}", field="unique")
    return call.task_type.unique_rule(payload)


def _as_unique(new: NewTask, rule: Unique) -> NewTask:
    if new.after is not None and rule.conflict == "replace":
        raise InvalidOption(
            "unique: what waits for other tasks cannot replace a task; use conflict='join'", field="unique"
        )
    delay = delay_of(rule)
    if delay is None:
        return new._replace(unique_rule=rule)
    if new.delay_seconds is not None or new.run_at is not None:
        raise InvalidOption("unique: a debounce says when the task runs: no delay_seconds, no run_at", field="unique")
    return new._replace(unique_rule=rule, delay_seconds=delay)


def _unique_batch(
    call: Call, first: NewTask, ids: Sequence[UUID], payloads: Sequence[str], config: Config
) -> Sequence[NewTask]:
    """Task by task: each may have a key of its own."""
    assert call.task_type is not None
    tasks = []
    for task_id, payload, trace in zip(ids, payloads, tracing.submitted(call.name, ids), strict=True):
        new = first._replace(id=task_id, kwargs=payload, trace=trace)
        rule = _unique_rule(call, call.task_type.options, payload)
        new = new if rule is None else _as_unique(new, rule)
        tasks.append(before_submit(config.middleware, new) if config.middleware else new)
    return tasks
