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
    name: str = ""
    unique_key: str | None = None
    waits: int = 0
    cut_by: str | None = None
    """The task whose end cancelled it."""
    asked_at: str | None = None
    """When somebody asked the running task to stop."""
    tx: str | None = None
    """The transaction, where the database names it."""
    seq: int = 0
    """Its place among all moves of the run."""

    @property
    def attempt(self) -> int:
        return self.retry_count + 1

    @property
    def phase(self) -> str:
        """`waiting` is failed with a retry to come."""
        return "waiting" if self.state == "failed" and self.completed_at is None else self.state


class Rule(NamedTuple):
    """What was said of a unique task."""

    name: str
    key: str
    until: str
    conflict: str


class Asked(NamedTuple):
    key: str | None
    max_retries: int
    rule: Rule | None = None


class Answer(NamedTuple):
    """What a submit was told: the id of its task, or of the one that had its key."""

    id: str
    key: str | None


class Joined(NamedTuple):
    """A submit of a unique task that was answered with another one, which had its key."""

    id: str
    rule: Rule


class Fired(NamedTuple):
    """A time of a schedule for which a worker was told that it has submitted the task, or joined an earlier one."""

    schedule: str
    slot: str
    id: str
    created: bool


class Scheduled(NamedTuple):
    """A schedule as it was at the end."""

    name: str
    seconds: float
    makes_up: bool
    """Each time that was missed is made up for, and nobody paused it: its times have no gap."""
    fired: int
    missed: int


class Told(NamedTuple):
    """An event that the application's middleware heard of."""

    id: str
    kind: str


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
    around: bool = True
    """Inside the application's middleware."""


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
    links: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    """What tasks wait for, and whether for success or for an end."""
    flows: int = 0
    together: set[str] = field(default_factory=set)
    """Tasks that were submitted together with all that they wait for."""
    joined: list[Joined] = field(default_factory=list)
    replaced: int = 0
    fired: list[Fired] = field(default_factory=list)
    schedules: list[Scheduled] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
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
    ledger: list[Move] = field(default_factory=list)
    """All moves, in their order."""
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
                _submitting(story, line)
            case "links":
                story.links.update({task_id: (parents, on) for task_id, parents, on in line["tasks"]})
                batch = set(line["batch"])
                story.together.update(task_id for task_id, parents, _ in line["tasks"] if batch.issuperset(parents))
                story.flows += len(batch) > 1
            case "submitted":
                _submitted(story, line)
            case "fired":
                story.fired += [Fired(*each) for each in line["slots"]]
            case "schedules":
                story.schedules += [Scheduled(*each) for each in line["rows"]]
            case "told":
                story.told.append(Told(line["id"], line["kind"]))
            case "claim":
                story.replies += [Reply._make([*claim, line["worker"]]) for claim in line["claims"]]
            case "adopt":
                story.adopted += [Reply._make([*claim, line["worker"]]) for claim in line["claims"]]
            case "start":
                around = line.get("around", True)
                story.starts.append(Start(line["id"], line["attempt"], line["mark"], around))
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
                    move = Move(*row)._replace(seq=len(story.ledger))
                    story.moves[move.id].append(move)
                    story.ledger.append(move)
            case "final":
                story.final.update({row[2]: Move(*row) for row in line["rows"]})
            case "fault":
                story.faults[line["name"]] += 1
    return story


def _submitting(story: Story, line: Line) -> None:
    """Each task: its id, its key, how often it may be retried, its delay, and its rule if it is unique."""
    together = []
    for task_id, key, most, _, *rule in line["tasks"]:
        unique = Rule(*rule[0]) if rule and rule[0] else None
        story.asked[task_id] = Asked(key, most, unique)
        if key is None and unique is None:
            together.append(task_id)
    story.batches.append(together)


def _submitted(story: Story, line: Line) -> None:
    for task_id, key, created, asked_id, *replaced in line["tasks"]:
        rule = story.asked[asked_id].rule if asked_id in story.asked else None
        if created or rule is None:
            story.answers.append(Answer(task_id, key))
        else:
            story.answers.append(Answer(task_id, None))
            story.joined.append(Joined(task_id, rule))
        story.replaced += any(replaced)
