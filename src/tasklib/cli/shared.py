"""What all commands share: their options, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import typer

from tasklib.cli.exits import Exit, code_of
from tasklib.cli.output import Printer
from tasklib.cli.text import clean
from tasklib.core.errors import TaskLibError

# Typer brings its own Click, whose base class for wrong usage has no public name.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        "-d",
        metavar="URL",
        help="The queue: sqlite:///file.db, postgresql://..., nats://... or memory://. "
        "Without it the variable TASKLIB_DATABASE_URL, without that sqlite:///tasklib.db.",
        rich_help_panel="Everywhere",
        show_default=False,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.", rich_help_panel="Everywhere")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.", rich_help_panel="Everywhere")]


class Shared(NamedTuple):
    """The shared options, where they were given before the command's name."""

    database_url: str | None = None
    as_json: bool = False
    debug: bool = False


@contextmanager
def errors_told(out: Printer, *, debug: bool) -> Iterator[None]:
    """Turns an error into one clear line on stderr and an exit code."""
    try:
        yield
    except BrokenPipeError:
        leave_pipe()
    except (KeyboardInterrupt, EOFError):
        out.note("Interrupted.")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except TaskLibError as error:
        if debug:
            _print_traceback(error)
        code = code_of(error)
        out.error("; ".join(str(error).splitlines()) or type(error).__name__, error.code, code)
        raise typer.Exit(code) from None
    except (typer.Exit, typer.Abort, UsageError):
        raise
    except Exception as error:
        if debug:
            _print_traceback(error)
        more = "" if debug else " (--debug shows where)"
        out.error(f"{type(error).__name__}: {error}{more}", "internal_error", Exit.FAILED)
        raise typer.Exit(Exit.FAILED) from None


def leave_pipe() -> None:
    """Whoever read our output has had enough. That is no failure; nothing more can be written, at exit neither."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _print_traceback(error: BaseException) -> None:
    sys.stderr.write(clean("".join(traceback.format_exception(error)), lines=True))
