"""Which version of the application a worker runs, where nobody has said it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from tasklib.core.registry import TaskType

LONGEST = 100


def installed_version(types: Iterable[TaskType]) -> str | None:
    """That of the installed package that the first of these types come from. None: they come from files of no package
    of that name."""
    packages = dict.fromkeys((each.function.__module__ or "").partition(".")[0] for each in types)
    for package in packages:
        try:
            return version(package)[:LONGEST]
        except (PackageNotFoundError, ValueError):
            continue
    return None
