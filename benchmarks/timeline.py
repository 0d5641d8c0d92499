"""Draws what one worker waits for while it drains: its claims, its runs and its settles.

.venv-bench/bin/python -m benchmarks.timeline --help
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from benchmarks import plan
from benchmarks.stage import Stage
from benchmarks.turn import Sizes, take

matplotlib.use("Agg")

ROWS = {"settle": "#0f766e", "run": "#2563eb", "claim": "#b45309"}


def main() -> None:
    given = _arguments()
    [ours] = [each for each in plan.entries(quick=False) if each.name == given.who]
    with Stage() as stage, stage.store(ours.engine) as url:
        file = stage.folder / "notes.json"
        source = None if given.source is None else given.source.resolve()
        entry = replace(
            ours,
            path="ours.watched:Watched",
            sizes=Sizes(submit=0, bulk=given.tasks),
            options={**ours.options, "notes": str(file)},
            source=source,
        )
        figures, _ = take(entry, url, stage.folder)
        notes = json.loads(file.read_text())
    began = min(note[1] for note in notes)
    notes = [[what, 1000 * (start - began), 1000 * (end - began), number] for what, start, end, number in notes]
    _draw(notes, given, figures["drain"])
    print(f"{figures['drain']:,.0f} tasks/s; {given.out}")


def _draw(notes: list[list[Any]], given: argparse.Namespace, rate: float) -> None:
    first, last = given.at, given.at + given.span
    figure, axis = plt.subplots(figsize=(12, 2.8), layout="constrained")
    for row, (what, colour) in enumerate(ROWS.items()):
        seen = sorted(note[1:] for note in notes if note[0] == what and note[2] > first and note[1] < last)
        for place, (start, end, number) in enumerate(seen):
            # Those that overlap stand a little above each other.
            height = 0.38 if what != "run" else 0.7
            bottom = row - 0.38 + (0.4 * (place % 2) if what != "run" else 0)
            axis.broken_barh([(start, end - start)], (bottom, height), color=colour, alpha=0.75, linewidth=0)
            if end - start > given.span / 40 and number > 1 and first < (start + end) / 2 < last:
                middle = (start + end) / 2
                axis.text(
                    middle, bottom + height / 2, f"{number:,}", ha="center", va="center", color="white", fontsize=8
                )
    axis.set_yticks(range(len(ROWS)), list(ROWS))
    axis.set_xlim(first, last)
    axis.set_xlabel("milliseconds since the first claim")
    axis.set_title(
        f"One worker drains {given.tasks:,} no-op tasks, {rate:,.0f} a second: what is under way, of how many tasks",
        fontsize=10,
        loc="left",
    )
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(given.out, dpi=150)
    plt.close(figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timeline", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--who", default=plan.OURS, help=f"as in `make bench`: '{plan.OURS}', '{plan.SQLITE_OURS}'")
    parser.add_argument("--tasks", type=int, default=50_000, help="how many are drained (default 50,000)")
    parser.add_argument("--at", type=float, default=300, help="first millisecond that is drawn (default 300)")
    parser.add_argument("--span", type=float, default=100, help="how many are (default 100)")
    parser.add_argument("--source", type=Path, help="folder that tasklib is imported from: another checkout's src")
    parser.add_argument("--out", type=Path, default=Path("timeline.png"), help="the picture (default timeline.png)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
