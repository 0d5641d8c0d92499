"""Which version of an application its workers tell."""

from importlib.metadata import version

import pytest

from tasklib import Config
from tasklib.core.errors import InvalidConfig
from tasklib.core.registry import TaskOptions, TaskType, define
from tasklib.worker.app_version import installed_version


def type_of(module: str) -> TaskType:
    def work() -> None: ...

    work.__module__ = module
    return define(work, name=f"{module}.work", options=TaskOptions())


def test_that_of_the_first_installed_package():
    assert installed_version([]) is None
    assert installed_version([type_of("__main__"), type_of("no_such_package.tasks")]) is None
    assert installed_version([type_of("__main__"), type_of("pydantic.tasks")]) == version("pydantic")


@pytest.mark.parametrize("given", ["", "x" * 101])
def test_what_is_no_version_is_refused(given: str):
    with pytest.raises(InvalidConfig, match="app_version"):
        Config(app_version=given)
