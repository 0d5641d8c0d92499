"""The queue that the module-level functions use: one for the process, set by `init`, or by a test for itself."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tasklib.core.errors import InvalidConfig
from tasklib.engine.config import Config, names_queue
from tasklib.engine.engine import Engine

_lock = threading.Lock()
_engine: Engine | None = None
_held: Engine | None = None
"""A test's queue: while it is held in place, nothing that the application says about its own queue leads elsewhere."""

_init_module: str | None = None


def init(config: Config | None = None) -> None:
    """Sets the queue for this process. Without it, the first call reads the environment."""
    global _init_module
    config = config or Config()
    with _lock:
        _init_module = sys._getframe(1).f_globals.get("__name__")
        if _held is None:
            _set(Engine(config))
        else:
            check_held(config)
            _held.adopt(config)
            _set(_held)


def init_module() -> str | None:
    """The module that called `init` last: a child process imports it, to have the same middleware."""
    return _init_module


def default_engine() -> Engine:
    if _engine is None:
        with _lock:
            if _engine is None:
                _set(_held or Engine(Config()))
    assert _engine is not None
    return _engine


def current_engine() -> Engine | None:
    """What is in place now, if anything is; nothing is made for the asking."""
    return _engine


def engine_of(config: Config) -> Engine:
    """An engine with these settings: on the queue they name, or, where they leave that open, on the test's."""
    held = _held
    if held is None or names_queue(config):
        return Engine(config)
    return held.with_settings(config)


def held_engine() -> Engine | None:
    return _held


def check_held(config: Config) -> None:
    """Whoever sets the process's queue by name, during a test that has a queue of its own, would write elsewhere."""
    if _held is not None and names_queue(config) and config.database_url != _held.config.database_url:
        raise InvalidConfig(
            f"database_url: this test has its own queue ({_held.config.shown_url}), and {config.shown_url} would take "
            "its place; in tests leave the URL out: Config() then means the test's queue",
            field="database_url",
        )


@contextmanager
def holding(engine: Engine) -> Iterator[None]:
    """For as long as the block lasts, this is the process's queue, whatever the application passes to `init`."""
    global _held
    with _lock:
        before, _held = (_engine, _held), engine
        _set(engine)
    try:
        yield
    finally:
        with _lock:
            _held = before[1]
            _set(before[0])


def use_engine(engine: Engine | None) -> Engine | None:
    """Puts another engine in place (None: none yet) and returns the one before. For tests and for other APIs."""
    with _lock:
        before = _engine
        _set(engine)
    return before


def _forget_lock() -> None:
    """In a forked child: a thread that is not there may have held it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def _set(engine: Engine | None) -> None:
    global _engine
    _engine = engine
