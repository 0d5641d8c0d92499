"""Task types for the worker behind the dashboard under test."""

import threading
from pathlib import Path
from typing import Any

from tasklib import RetryPolicy, task


@task
def echo(value: Any = None) -> Any:
    return value


@task(max_retries=0)
def broken(text: str = "it broke") -> None:
    raise ValueError(text)


@task(max_retries=5, retry=RetryPolicy(base=60, multiplier=2, cap=3600, jitter=0))
def flaky(text: str = "not now") -> None:
    """Waits for its retry after the first failure."""
    raise RuntimeError(text)


@task(max_retries=0)
def fixable(folder: Path) -> str:
    """Fails until somebody has put a file called `fixed` there."""
    if not (folder / "fixed").exists():
        raise ValueError("it is not fixed yet")
    return "fixed"


@task
def slow(folder: Path) -> str:
    """Runs until a file called `go` is there."""
    while not (folder / "go").exists():
        threading.Event().wait(0.05)
    return "went"
