"""What a run came to, for people (Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.story import Story

if TYPE_CHECKING:
    from tests.chaos.run import Result

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
    faults: dict[str, int]


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
        faults=dict(sorted(story.faults.items())),
    )


def write(result: Result, folder: Path) -> str:
    """Leaves both forms in the folder and returns the readable one."""
    text = markdown(result)
    (folder / f"chaos-{result.backend}.md").write_text(text)
    whole = {**asdict(result), "folder": str(result.folder)}
    (folder / f"chaos-{result.backend}.json").write_text(json.dumps(whole, indent=2, default=str) + "\n")
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
