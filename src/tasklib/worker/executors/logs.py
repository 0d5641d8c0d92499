"""What is logged in a child process goes to the handlers of the worker's root logger, as if it had been logged
there. Handlers that the application's own modules put on loggers of theirs are in the child, too."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tasklib.core.codec import clip_error
from tasklib.engine.log_context import TaskLogFilter

_PLAIN = (str, int, float, bool, type(None))
_FORMATTER = logging.Formatter()


def levels() -> dict[str, int]:
    """Of the loggers here that have one; the empty name is the root's."""
    known = {"": logging.getLogger(), **logging.Logger.manager.loggerDict}
    return {name: each.level for name, each in known.items() if isinstance(each, logging.Logger) and each.level}


class ToWorker(logging.Handler):
    """The root's only handler in a child, until its modules give it others."""

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        super().__init__()
        self._send = send
        self._pid = os.getpid()
        self.addFilter(TaskLogFilter())

    def install(self, levels: Mapping[str, int]) -> None:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        logging.getLogger().addHandler(self)

    def settle(self) -> None:
        """Once the modules are imported: their own settings hold."""
        root = logging.getLogger()
        if any(handler is not self for handler in root.handlers):
            root.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._pid:
            # A process that the handler forked: its words would get between those of the child.
            if logging.lastResort is not None and record.levelno >= logging.lastResort.level:
                logging.lastResort.handle(record)
            return
        try:
            fields = {name: value for name, value in vars(record).items() if isinstance(value, _PLAIN)}
            fields |= {"msg": clip_error(record.getMessage()), "args": None}
            if record.exc_info:
                fields["exc_text"] = fields["traceback"] = clip_error(_FORMATTER.formatException(record.exc_info))
            self._send({"log": fields})
        except Exception:  # a log line that cannot be written is not worth a task
            self.handleError(record)


def handle(fields: dict[str, Any]) -> None:
    """In the worker."""
    record = logging.makeLogRecord(fields)
    for handler in logging.getLogger().handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


class Locked:
    """A way to send that several threads may use."""

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        self._send = send
        self._lock = threading.Lock()

    def __call__(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._send(message)
