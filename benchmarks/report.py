"""A run in Markdown and JSON."""

import json
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import claimers, costs, wire
from benchmarks.book import Book
from benchmarks.goals import Check, checks
from benchmarks.pages import Timing, table
from benchmarks.servers import POSTGRES_SETTINGS, REDIS_SETTINGS

MEASURES = {
    "submit": "submit one, /s",
    "bulk": "bulk, /s",
    "together": "64 clients, /s",
    "drain": "drain, /s",
    "p50": "p50, ms",
    "p99": "p99, ms",
}


def write(book: Book, folder: Path, about: dict[str, Any]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    found = list(checks(book))
    goals = [
        {"goal": c.goal, "what": c.what, "values": c.values, "target": c.target, "at_least": c.at_least, "met": c.met}
        for c in found
    ]
    whole = {"about": {**machine(), **about}, "goals": goals, **book.as_json()}
    (folder / "bench.json").write_text(json.dumps(whole, indent=1) + "\n")
    text = markdown(book, found, whole["about"])
    (folder / "bench.md").write_text(text)
    return text


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "postgres": POSTGRES_SETTINGS,
        "redis": REDIS_SETTINGS,
        "tasklib": version("tasklib-queue"),
    }


def markdown(book: Book, found: list[Check], about: dict[str, Any]) -> str:
    parts = [
        "# Benchmark",
        f"{about['cores']} cores shared by client, worker and server; Python {about['python']}; PostgreSQL "
        f"{about['postgres_version']} with {', '.join(f'{k}={v}' for k, v in about['postgres'].items())}; Redis with "
        f"{', '.join(f'{k}={v}' for k, v in about['redis'].items() if v)}. "
        f"{about['rounds']} rounds, everybody once in each; medians, and in brackets the least and the most. "
        "Rates of other machines and hours say little; ratios inside a run do."
        + ("" if about["whole"] else " **The run was stopped before its end.**")
        + (" A quick run: small numbers, few peers." if about["quick"] else ""),
        "## Goals",
        goals_table(found),
        "## Figures",
        figures_table(book),
        "## Settings",
        "\n".join(f"- **{name}**: {text}" for name, text in book.settings.items() if text),
    ]
    if book.failures:
        failures = "\n".join(f"- **{name}**: {reason}" for name, reason in book.failures.items())
        parts += ["## Not measured, or failed", failures]
    if book.costs:
        parts += ["## What a task writes", costs.table([costs.Cost(**cost) for cost in book.costs])]
    if book.crowding:
        parts += ["## Claimers", claimers.table([claimers.Crowding(**each) for each in book.crowding])]
    if book.pages:
        parts += ["## Server time of each request", table([Timing(**page) for page in book.pages])]
    if book.wire:
        parts += ["## Bytes of a viewer", wire.table([wire.Wire(**each) for each in book.wire])]
    return "\n\n".join(parts) + "\n"


def goals_table(found: list[Check]) -> str:
    lines = ["| # | measure | goal | found | rounds | |", "|--:|---|--:|--:|---|---|"]
    for check in found:
        sign = "≥" if check.at_least else "≤"
        target = f"{sign} {check.target:g} {check.unit}"
        if check.median is None:
            lines.append(f"| {check.goal} | {check.what} | {target} | | | not measured |")
            continue
        mark = "met" if check.met else "**missed**"
        spread = f"{_short(min(check.values))} - {_short(max(check.values))}" if len(check.values) > 1 else ""
        lines.append(
            f"| {check.goal} | {check.what} | {target} | {_short(check.median)} {check.unit} | {spread} | {mark} |"
        )
    counts = [sum(check.met is state for check in found) for state in (True, False, None)]
    return "\n".join([*lines, "", "{} met, {} missed, {} not measured in this run.".format(*counts)])


def figures_table(book: Book) -> str:
    head = ["| |", *(f" {title} |" for title in MEASURES.values())]
    lines = ["".join(head), "|---|" + "--:|" * len(MEASURES)]
    for name, found in book.figures.items():
        if not any(measure in found for measure in MEASURES):
            continue
        cells = [_cell(list(found.get(measure, {}).values())) for measure in MEASURES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name, reason in book.failures.items():
        if name not in book.figures:
            lines.append(f"| {name} | {reason} |" + " |" * (len(MEASURES) - 1))
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    text = _short(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({_short(min(values))} - {_short(max(values))})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
