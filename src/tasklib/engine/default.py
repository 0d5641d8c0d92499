"""The queue that the module-level functions use: one for the process, set by `init`."""

from __future__ import annotations

import os
import threading

from tasklib.engine.config import Config
from tasklib.engine.engine import Engine

_lock = threading.Lock()
_engine: Engine | None = None


def init(config: Config | None = None) -> None:
    """Sets the queue for this process. Without it, the first call reads the environment."""
    global _engine
    with _lock:
        _engine = Engine(config or Config())


def default_engine() -> Engine:
    if _engine is None:
        with _lock:
            if _engine is None:
                _set(Engine(Config()))
    assert _engine is not None
    return _engine


def use_engine(engine: Engine | None) -> Engine | None:
    """Puts another engine in place (None: none yet) and returns the one before. For tests and for other doors."""
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
