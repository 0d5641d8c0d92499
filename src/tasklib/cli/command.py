"""How a command is defined: its own options and the shared ones, a session, its help text."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import typer

from tasklib.cli.help import PlainCommand, paragraphs
from tasklib.cli.session import Session
from tasklib.cli.shared import DatabaseUrl, Debug, Json, Shared, errors_told

P = ParamSpec("P")


def command(
    app: typer.Typer, name: str, *, example: str, panel: str | None = None
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Adds a function to the app as a command. It gets a Session, and its docstring is the help text. `panel`: where a
    group lists it; what `tasklib` itself lists is in `commands.py`."""

    def add(function: Callable[Concatenate[Session, P], None]) -> Callable[Concatenate[Session, P], None]:
        def run(ctx: typer.Context, database_url: str | None, json: bool, debug: bool, **values: Any) -> None:
            before = ctx.obj if isinstance(ctx.obj, Shared) else Shared()
            session = Session(
                database_url=before.database_url if database_url is None else database_url,
                as_json=json or before.as_json,
                debug=debug or before.debug,
            )
            if not gc.isenabled():
                # Imports make nothing but what stays. To let the collector walk over it takes a tenth of a command.
                gc.freeze()
                gc.enable()
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
