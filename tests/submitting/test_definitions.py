"""What is no task, and arguments that are options: errors that say what to do instead."""

from collections.abc import Callable
from typing import Any

import pytest

from tasklib import TaskDefinitionError, TaskValidationError
from tasklib.api.decorator import task
from tasklib.core.options import OPTION_NAMES
from tasklib.core.registry import Registry, TaskOptions, define, define_handler
from tasklib.engine.engine import Engine


class Mailer:
    def send(self, to: str) -> None: ...

    def close(self) -> None: ...

    async def send_async(self, to: str) -> None: ...

    def make(cls, to: str) -> None:  # noqa: N805 - as under a classmethod
        ...

    def handle(self, payload: Any) -> str:
        return f"handled {payload}"


METHODS: list[Callable[..., Any]] = [Mailer.send, Mailer.close, Mailer.send_async, Mailer.make]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_no_task(method: Callable[..., Any]):
    with pytest.raises(TaskDefinitionError, match=r"a method of Mailer cannot be a task.*staticmethod"):
        define(method, name=None, options=TaskOptions())


def test_a_method_of_no_object_is_no_handler():
    with pytest.raises(TaskDefinitionError, match="a method of Mailer"):
        define_handler("close", Mailer.close)
    assert define_handler("handle", Mailer().handle).function("it") == "handled it"


def test_a_function_may_call_its_parameter_self(registry: Registry):
    @task(registry=registry)
    def outer(self: int) -> int:
        return self

    assert outer(3) == 3


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_a_staticmethod_can_be_a_task(memory: Engine, registry: Registry, order: str):
    class Shop:
        if order == "inside":

            @task(registry=registry)
            @staticmethod
            def add(a: int, b: int = 2) -> int:
                return a + b

        else:

            @staticmethod
            @task(registry=registry)
            def add(a: int, b: int = 2) -> int:
                return a + b

    assert Shop.add(1) == 3
    assert Shop().add.submit(1).get().kwargs == {"a": 1, "b": 2}


@pytest.mark.parametrize("option", sorted(OPTION_NAMES))
async def test_an_option_among_the_arguments(memory: Engine, registry: Registry, option: str):
    @task(registry=registry)
    def add(a: int, b: int = 2) -> int:
        return a + b

    given: dict[str, Any] = {option: 5}
    hint = rf"use \.options\({option}=5\)"
    for args, kwargs in (((1,), given), ((), {"a": 1, **given})):
        with pytest.raises(TaskValidationError, match=hint):
            add.submit(*args, **kwargs)
        with pytest.raises(TaskValidationError, match=hint):
            await add.submit_async(*args, **kwargs)
    with pytest.raises(TaskValidationError, match=hint):
        add.submit_many([{"a": 1, **given}])


def test_other_arguments_get_no_such_advice(memory: Engine, registry: Registry):
    @task(registry=registry)
    def ask(retry: int) -> int:
        return retry

    with pytest.raises(TaskValidationError) as refused:
        ask.submit(retry="x", more=1)  # type: ignore[call-arg, arg-type]
    assert ".options" not in str(refused.value)
