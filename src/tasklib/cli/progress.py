"""A progress bar for long work."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tasklib.cli.output import Printer


def progress_bar(out: Printer, what: str) -> Progress:
    """Gone when the work is done; not drawn at all where nobody looks."""
    bar = Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=out.console, transient=True
    )
    bar.disable = not out.live
    return bar
