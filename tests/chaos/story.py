"""A history, sorted by task: what clients asked and were told, what the database wrote down, what was left."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.history import Line

_MARK = re.compile(r'"mark"\s*:\s*"([0-9a-f]+)"')


def mark_of(result: str | None) -> str | None:
    found = _MARK.search(result) if result else None
    return found[1] if found else None


class Move(NamedTuple):
    """One version of a row, as the database wrote it down; in the order of ledger.COLUMNS."""

    at: str
    op: str
    id: str
    version: int
    state: str
    worker: str | None
    retry_count: int
    max_retries: int
    due: str
    locked_until: str | None
    started_at: str | None
    completed_at: str | None
    key: str | None
    result: str | None

    @property
    def attempt(self) -> int:
        return self.retry_count + 1

    @property
    def phase(self) -> str:
        """`waiting` is failed with a retry to come."""
        return "waiting" if self.state == "failed" and self.completed_at is None else self.state


class Asked(NamedTuple):
    key: str | None
    max_retries: int


class Answer(NamedTuple):
    """What a submit was told: the id of its task, or of the one that had its key."""

    id: str
    key: str | None


class Reply(NamedTuple):
    """A claim that a worker was told it has."""

    id: str
    version: int
    attempt: int
    max_retries: int
    started_at: str
    worker: str


class Start(NamedTuple):
    id: str
    attempt: int
    mark: str


class Intent(NamedTuple):
    """A change that somebody asked for."""

    id: str
    version: int | None
    worker: str | None
    state: str
    kind: str
    mark: str | None


class Written(NamedTuple):
    id: str
    version: int | None
    worker: str | None
    write_result: str
    kind: str


@dataclass
class Story:
    asked: dict[str, Asked] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)
    """Ids without a key that were submitted together."""
    answers: list[Answer] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    adopted: list[Reply] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    intents: list[Intent] = field(default_factory=list)
    write_results: list[Written] = field(default_factory=list)
    unheld: int = 0
    """Leases that a heartbeat was told are no longer its own."""
    deleting: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    hands: set[str] = field(default_factory=set)
    """Edited behind the library's back: what is promised of versions and moves does not hold for them."""
    moves: dict[str, list[Move]] = field(default_factory=lambda: defaultdict(list))
    final: dict[str, Move] = field(default_factory=dict)
    has_ledger: bool = False
    faults: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def claims(self, task_id: str) -> list[tuple[Move, Move]]:
        """From the ledger: each move into running, with the one before it."""
        moves = self.moves.get(task_id, [])
        return [
            (before, after)
            for before, after in pairwise(moves)
            if after.op == "update" and after.state == "running" and after.version != before.version
        ]


def tell(lines: Iterable[Line]) -> Story:
    story = Story()
    for line in lines:
        match line["event"]:
            case "submitting":
                story.asked.update({task_id: Asked(key, most) for task_id, key, most, _ in line["tasks"]})
                story.batches.append([task_id for task_id, key, _, _ in line["tasks"] if key is None])
            case "submitted":
                story.answers += [Answer(task_id, key) for task_id, key, _, _ in line["tasks"]]
            case "claim":
                story.replies += [Reply._make([*claim, line["worker"]]) for claim in line["claims"]]
            case "adopt":
                story.adopted += [Reply._make([*claim, line["worker"]]) for claim in line["claims"]]
            case "start":
                story.starts.append(Start(line["id"], line["attempt"], line["mark"]))
            case "settling":
                for task_id, version, worker, state, _, kind, result in line["changes"]:
                    story.intents.append(Intent(task_id, version, worker, state, kind, mark_of(result)))
            case "settled":
                story.write_results += [Written(*each) for each in line["changes"]]
            case "extend":
                story.unheld += sum(not held for _, _, held in line["leases"])
            case "deleting":
                story.deleting.update(task_id for task_id, _ in line["guards"])
            case "deleted":
                story.deleted.update(
                    task_id for task_id, _, write_result in line["guards"] if write_result == "applied"
                )
            case "hand":
                story.hands.update(line["ids"])
            case "moves":
                story.has_ledger = True
                for row in line["rows"]:
                    move = Move(*row)
                    story.moves[move.id].append(move)
            case "final":
                story.final.update({row[2]: Move(*row) for row in line["rows"]})
            case "fault":
                story.faults[line["name"]] += 1
    return story
