"""Options are declared once: every API takes the same ones, and refuses what it does not know with a hint."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import typer.main
from pydantic.alias_generators import to_camel

import tasklib
from tasklib import InvalidOption, RemoteQueue, TaskManager, TaskQueue, task
from tasklib.api.options import EnqueueOptions, ManagerOptions, RemoteOptions
from tasklib.cli.main import app
from tasklib.core.options import RESERVED, CamelOptions, CommonOptions, SubmitOptions, check_options
from tasklib.core.registry import Registry
from tasklib.core.task import NewTask
from tasklib.engine.engine import Engine
from tasklib.server.schemas import Options

COMMON = CommonOptions.__optional_keys__
OF_FLOWS = {"after", "on", "before", "inputs"}
FLAGS = {"timeout_seconds": "timeout", "tags": "tag", "idempotency_key": "key", "delay_seconds": "delay"}
"""Shorter on the command line."""


def test_every_api_takes_the_common_options():
    for words in (SubmitOptions, ManagerOptions, RemoteOptions, EnqueueOptions):
        assert words.__optional_keys__ > COMMON
    # "inputs" stand for outputs, which are among the arguments here.
    assert set(Options.model_fields) - OF_FLOWS == COMMON - OF_FLOWS | {"max_attempts", "run_after"}


def test_options_are_fields_of_a_new_task_and_have_a_check():
    assert SubmitOptions.__optional_keys__ - set(NewTask._fields) == {"retry", "unique", "on"}
    for name in SubmitOptions.__optional_keys__:
        with pytest.raises(tasklib.InvalidInput) as refused:
            check_options({name: object()})
        assert refused.value.field == name


def test_camel_case_is_there_where_it_is_another_word():
    assert CamelOptions.__optional_keys__ == {to_camel(name) for name in COMMON} - COMMON


@pytest.mark.parametrize("function", [tasklib.submit_task, tasklib.submit_task_sync])
def test_submit_task_has_them_in_its_signature(function: Callable[..., Any]):
    assert set(inspect.signature(function).parameters) == {"func", "kwargs", *RESERVED}


def test_the_command_has_a_flag_for_each():
    command: Any = typer.main.get_command(app)
    flags = {each.name for each in command.commands["submit"].params}
    assert {FLAGS.get(name, name) for name in SubmitOptions.__optional_keys__ - {"retry"} - OF_FLOWS} <= flags


@task(registry=Registry())
def add(a: int, b: int = 2) -> int:
    return a + b


def _queue(engine: Engine) -> TaskQueue:
    return TaskQueue(engine=engine, enable_worker=False)


UNKNOWN: dict[str, tuple[Callable[[Engine], object], str, str]] = {
    "options": (lambda engine: add.options(delay=5), "delay", "delay_seconds"),  # type: ignore[call-arg]
    "submit_many": (lambda engine: tasklib.submit_many_sync(add, [], retries=5), "retries", "max_retries"),  # type: ignore[call-arg]
    "tq": (lambda engine: _queue(engine).enqueue("add", {}, {"maxAttemps": 5}), "maxAttemps", "maxAttempts"),
    "manager": (lambda engine: TaskManager(engine).submit({}, max_retries=5), "max_retries", "max_attempts"),  # type: ignore[call-arg]
    "RemoteQueue": (
        lambda engine: RemoteQueue("http://127.0.0.1:9", token="x").submit("add", {}, run_after=5),  # type: ignore[call-arg]
        "run_after",
        "run_at",
    ),
}


@pytest.mark.parametrize("api", UNKNOWN)
def test_an_unknown_option_is_refused_and_the_nearest_one_named(memory: Engine, api: str):
    submit, wrong, right = UNKNOWN[api]
    with pytest.raises(InvalidOption) as refused:
        submit(memory)
    assert refused.value.field == wrong
    assert f"unknown option {wrong!r}; did you mean {right}?" in str(refused.value)
    assert tasklib.list_tasks() == []


def test_where_none_is_near_all_are_named():
    with pytest.raises(InvalidOption, match="unknown option 'colour'; known: after, before, delay_seconds, "):
        add.options(colour="red")  # type: ignore[call-arg]


def test_none_is_as_if_it_were_not_given():
    assert check_options(dict.fromkeys(SubmitOptions.__optional_keys__)) == {}
