"""How a command is defined: the options all of them share, and what becomes of their errors."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from tasklib.cli.exits import Exit, code_of
from tasklib.cli.help import PlainCommand, paragraphs
from tasklib.cli.output import Printer
from tasklib.cli.session import Session
from tasklib.cli.text import clean
from tasklib.core.errors import TaskLibError

P = ParamSpec("P")

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


@dataclass(frozen=True)
class Shared:
    """The shared options, where they were given before the command's name."""

    database_url: str | None = None
    as_json: bool = False
    debug: bool = False


def command(
    app: typer.Typer, name: str, *, example: str, panel: str
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Adds a function to the app as a command. It gets a Session, and its docstring is the help text."""

    def add(function: Callable[Concatenate[Session, P], None]) -> Callable[Concatenate[Session, P], None]:
        def run(ctx: typer.Context, database_url: str | None, json: bool, debug: bool, **values: Any) -> None:
            before = ctx.obj if isinstance(ctx.obj, Shared) else Shared()
            session = Session(
                database_url=before.database_url if database_url is None else database_url,
                as_json=json or before.as_json,
                debug=debug or before.debug,
            )
            with errors_told(session.out, debug=session.debug):
                function(session, **values)  # type: ignore[call-arg]

        run.__signature__ = _signature(function)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        text = paragraphs(function.__doc__)
        app.command(name, cls=PlainCommand, help=text, epilog=f"Example:  {example}", rich_help_panel=panel)(run)
        return function

    return add


def _signature(function: Callable[..., None]) -> inspect.Signature:
    """The function's own parameters without the session, and the shared ones."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        inspect.Parameter("database_url", inspect.Parameter.KEYWORD_ONLY, annotation=DatabaseUrl, default=None),
        inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, annotation=Json, default=False),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, annotation=Debug, default=False),
    ]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    return inspect.Signature([*keywords, *shared])


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
