"""Task types: a function's signature becomes a Pydantic model once, when it is decorated."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from tasklib.core import codec
from tasklib.core.annotations import adapter_config, field_name, is_loose, plain_type, refusal, resolved_hints
from tasklib.core.cron import Timing
from tasklib.core.errors import InvalidOption, InvalidValue, TaskDefinitionError, TaskValidationError
from tasklib.core.options import DEFAULT_QUEUE, OPTION_NAMES, RESERVED, check_name, check_options, check_unique
from tasklib.core.retry import RetryPolicy, check_exceptions
from tasklib.core.unique import Unique

Executor = Literal["auto", "process"]
UniqueOption: TypeAlias = Unique | Callable[[Any], str | Unique | None] | Literal["computed"]
COMPUTED: Literal["computed"] = "computed"

_CONFIG = ConfigDict(
    extra="forbid",
    ser_json_bytes="base64",
    val_json_bytes="base64",
    ser_json_inf_nan="constants",
    protected_namespaces=(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What `@task(...)` says about every task of a type. None: the configuration's value."""

    max_retries: int | None = None
    timeout_seconds: int | None = None
    priority: int = 0
    tags: Mapping[str, Any] = field(default_factory=dict)
    retry: RetryPolicy | None = None
    retry_for: tuple[type[BaseException], ...] | None = None
    """Only after these exceptions is it tried again. None: after all."""
    no_retry_for: tuple[type[BaseException], ...] | None = None
    """After these it is not, whatever `retry_for` says."""
    executor: Executor = "auto"
    queue: str = DEFAULT_QUEUE
    """A label by which workers choose what they serve."""
    schedule: Timing | None = None
    """Workers see to it that it is submitted at these times, without arguments."""
    unique: UniqueOption | None = None
    """One rule for all tasks of the type, or a function from the arguments to the key or the rule. `COMPUTED`: there is
    such a function, where the code is."""

    def __post_init__(self) -> None:
        own = ("max_retries", "timeout_seconds", "priority", "tags", "retry")
        check_options({name: getattr(self, name) for name in own})
        check_name(self.queue, "queue")
        if self.schedule is not None and not isinstance(self.schedule, Timing):
            reason = f"schedule must be cron(...) or every(...), got {self.schedule!r:.60}"
            raise TaskDefinitionError(reason, field="schedule")
        if self.unique is not None and self.unique != COMPUTED and not callable(self.unique):
            check_unique(self.unique)
        for name in ("retry_for", "no_retry_for"):
            if getattr(self, name) is not None:
                check_exceptions(getattr(self, name), name)
        if self.executor not in ("auto", "process"):
            raise TaskDefinitionError(f"executor must be 'auto' or 'process', got {self.executor!r}", field="executor")

    def retries_after(self, raised: type[BaseException]) -> bool:
        """Whether an attempt that ended with this exception is worth another, while attempts are left."""
        if self.no_retry_for is not None and issubclass(raised, self.no_retry_for):
            return False
        return self.retry_for is None or issubclass(raised, self.retry_for)


@dataclass(frozen=True, slots=True)
class TaskType:
    """A function that can be submitted, with the model its arguments must fit."""

    name: str
    function: Callable[..., Any]
    params: type[BaseModel]
    options: TaskOptions
    signature: inspect.Signature
    returns: TypeAdapter[Any]
    is_async: bool
    parameters: Mapping[str, str]
    """Model field -> parameter name; they differ where the parameter's name cannot be a field's."""
    plain_return: type | None
    """The return annotation where a look at a value's type is enough to see that it fits; `object`: anything does."""
    loose: frozenset[str]
    """Parameters (and `return`) whose annotation leaves keys of dicts open: there they must be text."""
    positional: tuple[str, ...] = ()
    """Parameters that can be given by their place."""
    takes_payload: bool = False
    """Called with the stored value itself, not with keyword arguments (handlers of the fluent API). `params` is a
    RootModel then."""

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call by their names. Raises TaskValidationError."""
        if not args:
            return kwargs
        if not kwargs and len(args) <= len(self.positional):  # as nearly all calls are, and in a tenth of the time
            return dict(zip(self.positional, args, strict=False))
        try:
            bound = self.signature.bind_partial(*args, **kwargs)
        except TypeError as error:
            raise TaskValidationError(f"{self.params.__name__}: {error}{self._hint(kwargs)}", errors=[]) from None
        named = dict(bound.arguments)
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                named.update(named.pop(parameter.name, {}))
        return named

    def encode(self, arguments: Any, limit: int = codec.MAX_BYTES) -> str:
        """Keyword arguments, or a payload, as JSON text: checked, with defaults. Raises TaskValidationError; nothing is
        stored then."""
        if self.takes_payload:
            return encode_payload(arguments, self.params, limit)
        return self.encode_calls((arguments,), limit)[0]

    def encode_json(self, text: str, limit: int = codec.MAX_BYTES) -> str:
        """The same for what came as JSON, where texts stand for dates and bytes."""
        return _encode(self.params, self.params.__pydantic_validator__.validate_json, text, limit)

    def encode_calls(self, calls: Iterable[Mapping[str, Any]], limit: int = codec.MAX_BYTES) -> list[str]:
        """For many calls, each given by its keyword arguments."""
        validate = self.params.__pydantic_validator__.validate_python
        to_json = self.params.__pydantic_serializer__.to_json
        loose = self.loose
        texts = []
        for kwargs in calls:
            try:
                if loose:
                    for name in loose.intersection(kwargs):
                        codec.check_keys(kwargs[name], field=name)
                model = validate(dict(kwargs))
                texts.append(to_json(model, by_alias=True, round_trip=True, warnings=False).decode())
            except ValidationError as error:
                raise refusal(error, self.params.__name__, self._hint(kwargs)) from None
            except (PydanticSerializationError, UnicodeError, RecursionError) as error:
                raise InvalidValue(f"kwargs: cannot be stored as JSON: {error}", field="kwargs") from None
        return codec.vet_all(texts, field="kwargs", limit=limit)

    def unchecked(self, names: frozenset[str]) -> TaskType:
        """The same, but these parameters take anything: their values are not known yet. A payload is not checked at
        all then."""
        if self.takes_payload:
            return replace(self, params=ANY_PAYLOAD)
        return replace(self, params=_unchecked(self.params, tuple(self.parameters.items()), names))

    def _hint(self, given: Mapping[str, Any]) -> str:
        """What to do with options of a submit that stand among the arguments."""
        misplaced = [name for name in given if name in OPTION_NAMES and name not in self.signature.parameters]
        options = ", ".join(f"{name}={given[name]!r:.60}" for name in misplaced)
        return f"\nuse .options({options}) before the submit" if misplaced else ""

    def decode_call(self, text: str) -> Any:
        """The stored arguments as the function takes them: a dict of keywords, or the payload. Raises
        TaskValidationError."""
        try:
            model = self.params.__pydantic_validator__.validate_json(text)
        except ValidationError as error:
            raise refusal(error, self.params.__name__) from None
        if self.takes_payload:
            return model.root
        values: dict[str, Any] = model.__dict__
        if self.parameters:
            values = {self.parameters.get(name, name): value for name, value in values.items()}
        return {**values, **model.__pydantic_extra__} if model.__pydantic_extra__ else values

    def unique_rule(self, text: str) -> Unique | None:
        """What the type's own function says of the stored arguments."""
        rule = self.options.unique
        if not callable(rule):
            return None
        model = self.params.model_validate_json(text)
        try:
            found = rule(model.root if isinstance(model, RootModel) else model)
        except Exception as error:  # it is the user's
            reason = f"{type(error).__name__}: {error}"
            raise InvalidOption(f"unique: the function of {self.name} failed: {reason}", field="unique") from error
        return Unique(found) if isinstance(found, str) else None if found is None else check_unique(found)

    def encode_result(self, value: Any, limit: int = codec.MAX_BYTES) -> str:
        """The stored form of a result. Raises InvalidValue with the reason: it does not fit its annotation, or
        cannot be stored."""
        if self.plain_return is not object and type(value) is not self.plain_return:
            value = self._fitting(value, self.returns.validator.validate_python)
        if value is None:
            return '{"value":null}'
        try:
            if "return" in self.loose:
                codec.check_keys(value, field="result")
            text = self.returns.serializer.to_json(value, by_alias=True, round_trip=True, warnings=False).decode()
        except InvalidValue:
            raise
        except (PydanticSerializationError, UnicodeError, RecursionError, ValueError, TypeError) as error:
            kind = type(value).__name__
            raise InvalidValue(f"result: a {kind} cannot be stored as JSON: {error}", field="result") from None
        return f'{{"value":{codec.vet(text, field="result", limit=limit)}}}'

    def decode_result(self, value: Any) -> Any:
        """The stored result as the return annotation's type. Raises InvalidValue where it no longer fits that."""
        return self._fitting(codec.encode(value, field="result"), self.returns.validate_json)

    def _fitting(self, value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            reason = "; ".join(str(refusal(error, "result")).splitlines()[1:])  # in one line: logs show the last
        except Exception as error:  # a validator of the annotation's own may raise anything
            reason = f"{type(error).__name__}: {error}"
        raise InvalidValue(f"result: does not fit what {self.name} says it returns: {reason}", field="result")


@functools.lru_cache(maxsize=1024)
def _unchecked(params: type[BaseModel], renamed: tuple[tuple[str, str], ...], names: frozenset[str]) -> type[BaseModel]:
    slots = {dict(renamed).get(slot, slot): slot for slot in params.model_fields}
    fields: dict[str, Any] = {slots[name]: (Any, Field(alias=name)) for name in names if name in slots}
    return create_model(params.__name__, __base__=params, __module__=params.__module__, **fields)


class Registry:
    """Task types by name."""

    def __init__(self) -> None:
        self._types: dict[str, TaskType] = {}

    def add(self, task_type: TaskType) -> None:
        known = self._types.get(task_type.name)
        if known is not None and not _same_definition(known.function, task_type.function):
            raise TaskDefinitionError(
                f"a task named {task_type.name!r} is already defined at {_place(known.function)}; "
                f"give this one (at {_place(task_type.function)}) another name with @task(name=...)",
                field="name",
            )
        self._types[task_type.name] = task_type

    def replace(self, task_type: TaskType) -> None:
        """Puts it in the place of the one that had its name, if any."""
        self._types[task_type.name] = task_type

    def remove(self, name: str) -> bool:
        return self._types.pop(name, None) is not None

    def get(self, name: str) -> TaskType | None:
        return self._types.get(name)

    def of(self, names: Iterable[str]) -> list[TaskType]:
        """Those of these names that there are."""
        return [found for name in names if (found := self._types.get(name)) is not None]

    def names(self) -> tuple[str, ...]:
        return tuple(self._types)

    def __iter__(self) -> Iterator[TaskType]:
        return iter(tuple(self._types.values()))

    def __len__(self) -> int:
        return len(self._types)


def define(function: Callable[..., Any], *, name: str | None, options: TaskOptions, depth: int = 1) -> TaskType:
    """Reads the signature. `depth` is how many frames up the definition stands, for names local to it."""
    label = getattr(function, "__name__", None)
    if not callable(function) or label is None or inspect.isclass(function):
        raise TaskDefinitionError(f"@task goes on a function, not on {function!r:.80}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TaskDefinitionError(f"{label}: a generator cannot be a task; return a list instead")
    if options.unique == COMPUTED:  # what others are told of a function; there is none here
        check_unique(options.unique)
    signature = inspect.signature(function)
    _refuse_method(function, signature, label)
    clashes = RESERVED.intersection(signature.parameters)
    if clashes:
        listed = ", ".join(sorted(clashes))
        raise TaskDefinitionError(f"{label}: parameters named like submit options: {listed}; rename them", field=listed)
    hints = resolved_hints(function, label, depth + 1)
    fields: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    config = ConfigDict(**_CONFIG)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TaskDefinitionError(
                f"{label}: parameter {parameter} has no name to store it under; use ordinary parameters",
                field=parameter.name,
            )
        if parameter.kind is parameter.VAR_KEYWORD:
            config["extra"] = "allow"
            continue
        annotation = hints.get(parameter.name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        slot = field_name(parameter.name)
        if slot != parameter.name:
            renamed[slot] = parameter.name
            default = Field(default, alias=parameter.name)
        fields[slot] = (annotation, default)
    try:
        params = create_model(f"{label}Params", __config__=config, __module__=function.__module__, **fields)
        returns: TypeAdapter[Any] = TypeAdapter(
            hints.get("return", Any), config=adapter_config(hints.get("return", Any))
        )
        if not params.__pydantic_complete__:
            params.model_rebuild(raise_errors=True)
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError) as error:
        raise TaskDefinitionError(f"{label}: Pydantic cannot handle its annotations: {error}") from None
    return TaskType(
        name=check_name(label if name is None else name),
        function=function,
        params=params,
        options=options,
        signature=signature,
        returns=returns,
        is_async=inspect.iscoroutinefunction(function),
        parameters=renamed,
        plain_return=plain_type(hints.get("return", Any)),
        loose=frozenset(name for name in (*signature.parameters, "return") if is_loose(hints.get(name, Any))),
        positional=tuple(
            each.name for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD
        ),
    )


PayloadModel = type[RootModel[Any]]
ANY_PAYLOAD: PayloadModel = RootModel[Any]


@functools.lru_cache(maxsize=1024)
def payload_model(payload_type: Any) -> PayloadModel:
    """The model that payloads of a type must fit; anything that Pydantic can validate makes one."""
    if payload_type is Any:
        return ANY_PAYLOAD
    label = getattr(payload_type, "__name__", "Payload")
    try:
        base: PayloadModel = RootModel[payload_type]
        body = {"__module__": __name__, "model_config": adapter_config(payload_type) or ConfigDict()}
        return types.new_class(label, (base,), {}, lambda namespace: namespace.update(body))
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError) as error:
        raise TaskDefinitionError(f"payload_type: Pydantic cannot handle it: {error}", field="payload_type") from None


def encode_payload(value: Any, model: type[BaseModel], limit: int = codec.MAX_BYTES) -> str:
    """A payload as JSON text. Raises TaskValidationError or InvalidValue; nothing is stored then."""
    if model is ANY_PAYLOAD:
        return codec.encode(value, field="payload", limit=limit)
    return _encode(model, model.__pydantic_validator__.validate_python, value, limit)


def _encode(model: type[BaseModel], validate: Callable[[Any], Any], value: Any, limit: int) -> str:
    try:
        fitting = validate(value)
        text = model.__pydantic_serializer__.to_json(fitting, by_alias=True, round_trip=True, warnings=False)
        return codec.vet(text.decode(), field="payload", limit=limit)
    except ValidationError as error:
        raise refusal(error, model.__name__) from None
    except (PydanticSerializationError, UnicodeError, RecursionError) as error:
        raise InvalidValue(f"payload: cannot be stored as JSON: {error}", field="payload") from None


def define_handler(
    name: str, handler: Callable[..., Any], payload_type: Any = Any, options: TaskOptions | None = None
) -> TaskType:
    """A task type whose function takes the payload itself, or nothing."""
    check_name(name, "type")
    if not callable(handler) or inspect.isclass(handler):
        raise TaskDefinitionError(f"{name}: a handler is a function, not {handler!r:.80}", field="handler")
    plain = inspect.isroutine(handler) or isinstance(handler, functools.partial)
    called: Callable[..., Any] = handler if plain else type(handler).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise TaskDefinitionError(f"{name}: a generator cannot be a handler; return a list instead", field="handler")
    signature = _signature(handler)
    _refuse_method(handler, signature, name)
    try:
        hints = resolved_hints(called, name, 2) if inspect.isroutine(called) else {}
        returned = hints.get("return", Any)
        returns: TypeAdapter[Any] = TypeAdapter(returned, config=adapter_config(returned))
    except (TaskDefinitionError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError):
        returned, returns = Any, TypeAdapter(Any, config=adapter_config(Any))  # judged by what it really returns
    return TaskType(
        name=name,
        function=handler if _takes(signature, None) else _without_payload(name, handler, signature),
        params=payload_model(payload_type),
        options=options or TaskOptions(),
        signature=signature,
        returns=returns,
        is_async=inspect.iscoroutinefunction(called),
        parameters={},
        plain_return=plain_type(returned),
        loose=frozenset({"return"}) if is_loose(returned) else frozenset(),
        takes_payload=True,
    )


def _refuse_method(function: Callable[..., Any], signature: inspect.Signature, label: str) -> None:
    """Its first argument would have to be stored with every task."""
    first = next(iter(signature.parameters), None)
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if first in ("self", "cls") and owner and not owner.endswith("<locals>"):
        raise TaskDefinitionError(
            f"{label}: a method of {owner} cannot be a task: {first} would be one of its arguments; use a function "
            "outside the class, or a staticmethod, and pass what it needs of the object",
            field=first,
        )


def _signature(handler: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(handler)
    except (ValueError, TypeError):  # a builtin that does not tell
        return inspect.signature(lambda payload: None)


def _takes(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _without_payload(name: str, handler: Callable[..., Any], signature: inspect.Signature) -> Callable[[Any], Any]:
    if not _takes(signature):
        raise TaskDefinitionError(
            f"{name}: a handler is called with the payload as its only argument; this one takes {signature}",
            field="handler",
        )
    return lambda _payload: handler()


def _same_definition(known: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """True when a module is merely loaded again (as `__main__`, say, or by a reloader)."""
    before, after = getattr(known, "__code__", None), getattr(new, "__code__", None)
    if before is None or after is None:
        return known is new
    return (before.co_filename, before.co_firstlineno) == (after.co_filename, after.co_firstlineno)


def _place(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


default_registry = Registry()
"""What `@task` fills, and what a worker serves unless it is given another."""
