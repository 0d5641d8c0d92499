"""`make bench`: everything, interleaved, in rounds.

.venv-bench/bin/python -m benchmarks.run --help
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import chart, report
from benchmarks.book import Book
from benchmarks.cases import Run
from benchmarks.install import not_installed
from benchmarks.parts import EVERY_ROUND, ONCE
from benchmarks.plan import ROUNDS
from benchmarks.revision import take_out
from benchmarks.stage import Stage

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    given = _arguments()
    began = time.monotonic()
    only = {name for name in given.only.split(",") if name} or {*EVERY_ROUND, *ONCE}
    unknown = only - {*EVERY_ROUND, *ONCE}
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join([*EVERY_ROUND, *ONCE])}", file=sys.stderr)
        return 2
    book, whole = Book(), True
    console = Console(stderr=True)
    with Stage(given.folder, given.postgres) as stage:
        before = take_out(given.before, stage.folder / "before") / "src" if given.before else None
        run = Run(stage, book, given.quick, not_installed(), given.who, before)
        try:
            _measure(run, only, given.rounds, console)
        except KeyboardInterrupt:
            whole = False
            console.print("stopped: the report has what was measured so far")
    about = {
        "quick": given.quick,
        "rounds": given.rounds,
        "whole": whole,
        "only": sorted(only),
        "postgres_version": given.postgres,
        "before": given.before,
        "seconds": round(time.monotonic() - began),
    }
    text = report.write(book, given.results, about)
    drawn = chart.draw(book, given.results)
    Console().print(Markdown(text))
    console.print(
        f"{about['seconds']} s; {given.results}/bench.md, bench.json{', bench.png, bench.svg' if drawn else ''}"
    )
    return 0


def _measure(run: Run, only: set[str], rounds: int, console: Console) -> None:
    columns = (TextColumn("{task.description}", justify="left"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    plan = [
        (f"round {number}: {step.label}", step.do)
        for number in range(1, rounds + 1)
        for name, case in EVERY_ROUND.items()
        if name in only
        for step in case(run, number)
    ]
    plan += [(step.label, step.do) for name, case in ONCE.items() if name in only for step in case(run, 1)]
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(plan))
        for label, do in plan:
            progress.update(bar, description=label)
            began = time.monotonic()
            try:
                do()
            except Exception as error:  # a fault in one step must not cost the others' figures
                run.book.fail(label, f"{type(error).__name__}: {error}")
                console.print_exception()
            if not console.is_terminal:
                console.print(f"{label}: {time.monotonic() - began:.1f} s")
            progress.advance(bar)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measures tasklib beside its peers and beside the bare database, in the same run.",
        epilog="Parts, for --only: "
        + "; ".join(f"{name} ({(case.__doc__ or '').split(':')[0]})" for name, case in {**EVERY_ROUND, **ONCE}.items())
        + ". Results go to benchmarks/results.",
    )
    parser.add_argument("--quick", action="store_true", help="few peers, small numbers: three minutes")
    parser.add_argument("--only", default="", help="parts to run, with commas: turns,latency")
    parser.add_argument("--who", default="", help="with --only turns: contenders whose names contain this: NATS")
    parser.add_argument("--before", metavar="REVISION", default="", help="with the code of this revision beside it")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often (default {ROUNDS})")
    parser.add_argument("--postgres", type=int, default=16, choices=[16, 18], help="version of PostgreSQL (default 16)")
    parser.add_argument("--folder", type=Path, help="where servers keep their data (default: the temporary folder)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
