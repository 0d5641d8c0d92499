"""The command `tasklib`: puts the commands together, and is where a run begins and ends."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from tasklib import __version__
from tasklib.cli.commands import Commands
from tasklib.cli.ending import EXIT_SECONDS, end_within
from tasklib.cli.exits import MEANINGS, Exit
from tasklib.cli.output import Printer
from tasklib.cli.shared import DatabaseUrl, Debug, Json, Shared, UsageError, errors_told, leave_pipe

_EPILOG = "\n".join(
    [
        "Start here:  tasklib demo",
        "",
        "Exit codes:",
        *(f"{code.value:>5}  {meaning}" for code, meaning in MEANINGS.items()),
    ]
)

app = typer.Typer(
    name="tasklib",
    cls=Commands,
    help="A durable task queue: submit tasks, run workers, look after the queue.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tasklib {__version__}")
        raise typer.Exit()


@app.callback()
def _shared(
    ctx: typer.Context,
    database_url: DatabaseUrl = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    ctx.obj = Shared(database_url, json, debug)


def run(arguments: Sequence[str] | None = None, *, program: str = "tasklib") -> int:
    """Runs one command line and returns its exit code. `program`: how it was called."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # What goes wrong is said by the command itself; those that log say where to.
    logging.getLogger("tasklib").addHandler(logging.NullHandler())
    printer = Printer(as_json="--json" in arguments)
    code: object = Exit.OK
    try:
        with errors_told(printer, debug="--debug" in arguments):
            code = app(args=arguments, prog_name=program, standalone_mode=False)
    except UsageError as error:
        return _explain(error, printer)
    except typer.Abort:
        return Exit.INTERRUPTED
    except typer.Exit as request:
        return request.exit_code
    except SystemExit as request:  # Typer's, for shell completion; or Rich's, when a pipe closed on the help text
        if not isinstance(request.__context__, BrokenPipeError):
            code = request.code
    return code if isinstance(code, int) else Exit.OK


def _explain(error: Exception, printer: Printer) -> int:
    """Wrong usage: what was wrong, and where to read how it is done."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return Exit.OK
    message = getattr(error, "format_message", error.__str__)()
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "tasklib"
    printer.error(message, "usage", Exit.USAGE)
    if not printer.as_json:
        printer.note(f"Try: {where} --help")
    return Exit.USAGE


def main() -> NoReturn:
    _mend_streams()
    code = run()
    leave_pipe()  # what is still buffered is written now, while a failure to do so can be handled
    end_within(EXIT_SECONDS, code, "a thread or an exit handler of the application does not end")
    sys.exit(code)


def _mend_streams() -> None:
    """Streams that were closed before we started become /dev/null, lest a database gets their number; text that the
    terminal cannot show is escaped."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
        stream = getattr(sys, name)
        if number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
