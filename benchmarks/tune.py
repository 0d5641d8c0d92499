"""Tries each peer at several values of the setting that matters most for it, to see whether that in `peers/` is best.

.venv-bench/bin/python -m benchmarks.tune [NAME ...]
"""

import statistics
import sys
from dataclasses import replace

from benchmarks.book import Book
from benchmarks.child import contender_class
from benchmarks.install import not_installed
from benchmarks.plan import ROUNDS, entries
from benchmarks.rounds import turn_of
from benchmarks.stage import Stage
from benchmarks.turn import Entry


def main() -> None:
    wanted = sys.argv[1:]
    book = Book()
    variants: list[Entry] = []
    for entry in entries(quick=False):
        if not entry.path.startswith("peers.") or (wanted and entry.name not in wanted):
            continue
        try:
            knob = contender_class(entry.path).knob
        except ImportError as error:
            print(f"{entry.name}: {error}")
            continue
        for value in knob[2] if knob else ():
            name = f"{entry.name}, {knob[0]} {value}"
            sizes = replace(entry.sizes, latency=0)
            variants.append(replace(entry, name=name, sizes=sizes, options={knob[0]: value}))
    with Stage() as stage:
        for number in range(1, ROUNDS + 1):
            for entry in variants:
                turn_of(entry, stage, book, number, not_installed())
                found = book.values(entry.name, "drain")
                print(f"round {number}: {entry.name}: {found[-1] if found else 0:,.0f}", flush=True)
    for entry in variants:
        found = book.values(entry.name, "drain")
        print(f"{entry.name}: {statistics.median(found):,.0f} tasks/s" if found else f"{entry.name}: none")
    for name, reason in book.failures.items():
        print(f"{name}: {reason}")


if __name__ == "__main__":
    main()
