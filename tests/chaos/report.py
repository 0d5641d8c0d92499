"""What a run came to, for people (Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.chaos.story import Story

SHOWN = 30


@dataclass
class Figures:
    tasks: int
    ends: dict[str, int]
    claims: int
    starts: int
    moves: int
    lost_leases: int
    """Attempts whose worker was taken for dead, and heartbeats that found their lease gone."""
    refused: int
    """Outcomes that came too late and were dropped."""
    already: int
    """Outcomes whose reply was lost, and that were recognised when they were sent again."""
    adopted: int
    replaced: int
    slots: int
    """Times of schedules that were fired."""
    flows: int
    cut_off: int
    revived: int
    joined: int
    """Submits of unique tasks that were answered with another one, or gave it new arguments."""
    cancelled_running: int
    events: int
    """What middleware was told."""
    faults: dict[str, int]


@dataclass
class Result:
    backend: str
    seed: int
    seconds: float
    folder: Path
    problems: list[str]
    figures: Figures
    missed: dict[str, int] = field(default_factory=dict)


def figures(story: Story, replaced: int) -> Figures:
    expired = sum(each.write_result == "applied" and each.kind == "expire" for each in story.write_results)
    deleted = sum(moves[-1].op == "delete" for moves in story.moves.values()) or len(story.deleted)
    ends = Counter(row.state for row in story.final.values())
    return Figures(
        tasks=len(story.moves) or len(story.final) + deleted,
        ends={**dict(ends.most_common()), "deleted": deleted},
        claims=len(story.replies),
        starts=len(story.starts),
        moves=sum(map(len, story.moves.values())),
        lost_leases=expired + story.unheld,
        refused=sum(each.write_result == "stale" and each.kind == "holder" for each in story.write_results),
        already=sum(each.write_result == "duplicate" and each.kind == "holder" for each in story.write_results),
        adopted=len(
            {(reply.id, reply.version) for reply in story.adopted}
            - {(reply.id, reply.version) for reply in story.replies}
        ),
        replaced=replaced,
        slots=sum(schedule.fired for schedule in story.schedules),
        flows=story.flows,
        cut_off=_became(story, "cancelled"),
        revived=_became(story, "pending"),
        joined=len(story.joined),
        cancelled_running=sum(
            before.asked_at is not None and after.state == "cancelled"
            for moves in story.moves.values()
            for before, after in pairwise(moves)
        ),
        events=len(story.told),
        faults=dict(sorted(story.faults.items())),
    )


def _became(story: Story, phase: str) -> int:
    """How often tasks were cut off, or revived, as the ledger has it; without one, what is cut off at the end."""
    if not story.has_ledger:
        return sum(row.cut_by is not None and row.phase == phase for row in story.final.values())
    return sum(
        after.phase == phase and before.phase != phase and (before.cut_by or after.cut_by) is not None
        for moves in story.moves.values()
        for before, after in pairwise(moves)
    )


def write(result: Result, folder: Path) -> str:
    """Leaves both forms in the folder and returns the readable one."""
    text = markdown(result)
    (folder / f"chaos-{result.backend}-{result.seed}.md").write_text(text)
    whole = {**asdict(result), "folder": str(result.folder)}
    (folder / f"chaos-{result.backend}-{result.seed}.json").write_text(json.dumps(whole, indent=2, default=str) + "\n")
    return text


def markdown(result: Result) -> str:
    found = result.figures
    ends = ", ".join(f"{count:,} {state}" for state, count in found.ends.items())
    lines = [
        f"# Chaos on {result.backend}: {'passed' if not result.problems else 'FAILED'}",
        "",
        f"Seed {result.seed}, {result.seconds:.0f} seconds.",
        "",
        "| | |",
        "|---|---|",
        f"| tasks | {found.tasks:,} ({ends}) |",
        f"| claims, starts, moves in the ledger | {found.claims:,}, {found.starts:,}, {found.moves:,} |",
        f"| lost leases | {found.lost_leases:,} |",
        f"| outcomes refused because they came too late | {found.refused:,} |",
        f"| outcomes whose reply was lost, recognised | {found.already:,} |",
        f"| claims whose reply was lost, taken up | {found.adopted:,} |",
        f"| processes replaced | {found.replaced:,} |",
        f"| times of schedules fired | {found.slots:,} |",
        f"| flows | {found.flows:,} ({found.cut_off:,} tasks cut off, {found.revived:,} revived) |",
        f"| submits that met a unique key | {found.joined:,} |",
        f"| running tasks cancelled | {found.cancelled_running:,} |",
        f"| events that middleware heard of | {found.events:,} |",
        f"| faults | {sum(found.faults.values()):,} of {len(found.faults)} kinds |",
        "",
        "| fault | times |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in found.faults.items()),
    ]
    if result.problems:
        lines += ["", f"## {len(result.problems)} problems", ""]
        lines += [f"- {problem}" for problem in result.problems[:SHOWN]]
        lines += [f"- and {len(result.problems) - SHOWN} more"] if len(result.problems) > SHOWN else []
    return "\n".join(lines) + "\n"


def summary(results: Sequence[Result]) -> str:
    """Of several runs: a line for each and their sum, then how often each fault struck."""
    heads = ["backend", "seed", "seconds", "tasks", "starts", "slots", "flows", "lost leases", "faults", "verdict"]
    rows = [_line(result.backend, result.seed, [result]) for result in results]
    backends = sorted({result.backend for result in results})
    of_backend = {backend: [each for each in results if each.backend == backend] for backend in backends}
    rows += [_line(f"all of {backend}", len(found), found) for backend, found in of_backend.items()]
    struck: dict[str, Counter[str]] = {backend: Counter() for backend in backends}
    for result in results:
        struck[result.backend].update(result.figures.faults)
    kinds = sorted({kind for counter in struck.values() for kind in counter})
    return "\n".join(
        [
            *_table(heads, rows),
            "",
            *_table(["fault", *backends], [[kind, *(struck[each][kind] or "" for each in backends)] for kind in kinds]),
            *(f"\n{each.backend}, seed {each.seed}: {text}" for each in results for text in each.problems[:SHOWN]),
            "",
        ]
    )


def _line(backend: str, seed: int, results: Sequence[Result]) -> list[object]:
    found = [result.figures for result in results]
    problems = sum(len(result.problems) for result in results)
    sums = [
        sum(result.seconds for result in results),
        *(sum(getattr(each, name) for each in found) for name in ("tasks", "starts", "slots", "flows", "lost_leases")),
        sum(sum(each.faults.values()) for each in found),
    ]
    return [backend, seed, *(f"{number:,.0f}" for number in sums), f"{problems} problems" if problems else "clean"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]
