"""Logging of the worker: readable lines or JSON on stderr, which can neither be forged nor stop the worker."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

import typer

from tasklib.cli.text import clean
from tasklib.core.codec import clip_error
from tasklib.core.redact import redact
from tasklib.engine import task_log
from tasklib.engine.log_context import TaskLogFilter


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


Level = Annotated[
    LogLevel, typer.Option(metavar="LEVEL", help="What to log, on stderr: debug, info, warning or error.")
]
Format = Annotated[LogFormat, typer.Option(metavar="FORMAT", help="How to log it: text or json.")]


class StubbornHandler(logging.StreamHandler[Any]):
    """Goes on when its stream is closed or its disk is full."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        pass


class TextFormatter(logging.Formatter):
    """One line for each record; tracebacks follow, indented. A message cannot pretend to be a second record."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_second(int(record.created))} {record.levelname:<7} {record.name}: {clean(record.getMessage())}"
        if trace := clean(_trace(self, record), lines=True):
            line += "".join(f"\n    {row}" for row in trace.splitlines())
        return line


@lru_cache(maxsize=8)
def _second(time: int) -> str:
    """A worker has thousands of lines for one."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


FIELDS = ("event", "task_id", "task_name", "task_attempt", "attempt", "run_ms", "will_retry", "more")
"""What engine.task_log tells beside the message, and in which task a handler said it."""


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update({name: value for name in FIELDS if (value := getattr(record, name, None)) is not None})
        if trace := _trace(self, record):
            entry["exception"] = trace
        return json.dumps(redact(entry), ensure_ascii=True)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback that belongs to a record, as it was raised here, or as text from another process."""
    if record.exc_info:
        return clip_error(formatter.formatException(record.exc_info))
    text: str = getattr(record, "traceback", "")
    return text


def configure(level: LogLevel, style: LogFormat, *, quiet: bool = False) -> None:
    """`quiet`: nothing of tasks that went well."""
    logging.raiseExceptions = False  # a log line that cannot be written is not worth a task
    handler = StubbornHandler()
    handler.setFormatter(JsonFormatter() if style is LogFormat.JSON else TextFormatter())
    handler.addFilter(TaskLogFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    task_log.log.setLevel(max(logging.WARNING, root.level) if quiet else logging.NOTSET)
