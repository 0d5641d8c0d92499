"""What must be true of every history. Pure: a story in, violations out, each rule on its own.

Where the database kept a ledger (SQLite, PostgreSQL) it is the truth that clients' accounts are held against; elsewhere
the accounts and the rows that are left are held against each other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.chaos.story import Move, Story, mark_of

OVER = {"completed", "failed", "cancelled"}
MOVES = {
    ("pending", "running"),
    ("waiting", "running"),
    ("running", "completed"),
    ("running", "waiting"),
    ("running", "failed"),
    ("running", "pending"),
    ("running", "cancelled"),
    ("pending", "cancelled"),
    ("waiting", "cancelled"),
    ("waiting", "pending"),
    ("failed", "pending"),
}
"""Written down here once more, so that the library's own table is checked and not believed."""
GRANTED = {"applied", "duplicate"}

Rule = Callable[[Story], Iterator[str]]


def check(story: Story) -> list[str]:
    return [f"{name}: {found}" for name, rule in RULES.items() for found in rule(story)]


def nothing_lost(story: Story) -> Iterator[str]:
    """What was acknowledged is there, and over; or somebody deleted it."""
    for task_id in {answer.id for answer in story.answers}:
        if task_id in story.final:
            continue
        gone = any(move.op == "delete" for move in story.moves.get(task_id, ()))
        if not (gone if story.has_ledger else task_id in story.deleting):
            yield f"task {task_id} was acknowledged and is not there"
    for row in story.final.values():
        if row.phase not in OVER:
            yield f"task {row.id} is {row.phase} after the drain"


def nothing_phantom(story: Story) -> Iterator[str]:
    """Nothing is stored that nobody submitted, and nothing starts that its worker had not claimed."""
    for task_id in {*story.final, *story.moves} - story.asked.keys():
        yield f"task {task_id} is stored and was never submitted"
    claimed = {(reply.id, reply.attempt) for reply in (*story.replies, *story.adopted)}
    for start in story.starts:
        if (start.id, start.attempt) not in claimed:
            yield f"attempt {start.attempt} of task {start.id} started without a claim"


def batches_are_whole(story: Story) -> Iterator[str]:
    """A submit stores all of its batch or none of it, whatever the submitter was told."""
    if not story.has_ledger:
        return
    for batch in story.batches:
        stored = [task_id for task_id in batch if task_id in story.moves]
        if stored and len(stored) < len(batch):
            yield f"{len(stored)} of {len(batch)} tasks that were submitted together are stored: {stored[0]}"


def one_outcome(story: Story) -> Iterator[str]:
    """One change is granted for one version, and only an operator's retry takes a task out of its end."""
    applied = Counter((v.id, v.version) for v in story.write_results if v.write_result == "applied")
    for (task_id, version), count in applied.items():
        if count > 1:
            yield f"{count} changes of version {version} of task {task_id} were accepted"
    by_operator = {(i.id, i.version) for i in story.intents if i.kind == "operator" and i.state == "pending"}
    for moves in _by_library(story):
        for before, after in pairwise(moves):
            if before.phase not in OVER or after.op == "delete" or after.version == before.version:
                continue
            if before.phase != "failed" or (before.id, before.version) not in by_operator:
                yield f"task {before.id} was {before.phase} and became {after.phase} without an operator's retry"


def legal_moves(story: Story) -> Iterator[str]:
    for moves in _by_library(story):
        for before, after in pairwise(moves):
            same = before.phase == after.phase and before.version == after.version
            if after.op == "update" and not same and (before.phase, after.phase) not in MOVES:
                yield f"task {before.id} went from {before.phase} to {after.phase} at version {after.version}"
            if after.op == "delete" and after.phase not in OVER:
                yield f"task {before.id} was deleted while {after.phase}"


def attempts(story: Story) -> Iterator[str]:
    """1, 2, 3 without a gap; a released attempt comes again under its number; never more than allowed; and no attempt
    starts more often than it was claimed."""
    claimed: Counter[tuple[str, int]] = Counter()
    for task_id, moves in story.moves.items():
        following = 1
        for before, after in pairwise(moves):
            if after.op != "update" or before.version == after.version:
                continue
            if after.phase == "running":
                claimed[task_id, after.attempt] += 1
                if after.attempt != following and task_id not in story.hands:
                    yield f"task {task_id} was claimed for attempt {after.attempt} where {following} was next"
                if 0 <= after.max_retries < after.retry_count:
                    yield f"task {task_id} began attempt {after.attempt} of {after.max_retries + 1}"
            elif (before.phase, after.phase) == ("running", "waiting"):
                following += 1
            elif after.phase == "pending" and before.phase in ("waiting", "failed"):
                following = 1  # an operator's retry: all attempts anew
    if not story.has_ledger:
        known = {(reply.id, reply.attempt, reply.version) for reply in (*story.replies, *story.adopted)}
        claimed = Counter((task_id, attempt) for task_id, attempt, _ in known)
    for reply in story.replies:
        if 0 <= reply.max_retries < reply.attempt - 1:
            yield f"task {reply.id} was handed out for attempt {reply.attempt} of {reply.max_retries + 1}"
    for (task_id, attempt), count in Counter((start.id, start.attempt) for start in story.starts).items():
        if count > claimed[task_id, attempt]:
            yield f"attempt {attempt} of task {task_id} started {count} times for {claimed[task_id, attempt]} claims"


def leases(story: Story) -> Iterator[str]:
    """In the database's time, a claim ends before the next of its task begins, and nobody else has its version."""
    lock_owners: dict[tuple[str, int], str] = {}
    for reply in (*story.replies, *story.adopted):
        other = lock_owners.setdefault((reply.id, reply.version), reply.worker)
        if other != reply.worker:
            yield f"version {reply.version} of task {reply.id} was claimed by {other} and by {reply.worker}"
    for moves in _by_library(story):
        ended = ""
        for before, after in pairwise(moves):
            if before.state == "running" and after.state == "running":
                if before.version != after.version or before.worker != after.worker:
                    yield f"task {after.id} went from {before.worker} to {after.worker} without the end of a claim"
            elif after.state == "running" and after.op == "update":
                if (after.started_at or "") < ended:
                    yield f"a claim of task {after.id} began at {after.started_at}, the one before ended at {ended}"
            elif before.state == "running":
                ended = after.at


def results(story: Story) -> Iterator[str]:
    """A result is of the start that the accepted claim made, and its holder asked for it under that claim."""
    marks = {start.mark: start for start in story.starts}
    asked = {(i.id, i.version, i.mark) for i in story.intents if i.state == "completed"}
    rows = list(story.final.values())
    rows += [moves[-1] for moves in story.moves.values() if moves[-1].op == "delete"]
    for row in rows:
        if row.state != "completed":
            if row.result is not None:
                yield f"task {row.id} is {row.state} and has a result"
            continue
        mark = mark_of(row.result)
        start = marks.get(mark or "")
        if start is None or start.id != row.id:
            yield f"the result of task {row.id} is of no start of it: {row.result}"
        elif start.attempt != row.attempt:
            yield f"the result of task {row.id} is of attempt {start.attempt}, not of {row.attempt}"
        elif row.id not in story.hands and (row.id, row.version - 1, mark) not in asked:
            yield f"the result of task {row.id} was not reported under its claim, version {row.version - 1}"


def keys(story: Story) -> Iterator[str]:
    """One key, one row, one id for all who submit it."""
    ids = defaultdict(set)
    for answer in story.answers:
        if answer.key is not None:
            ids[answer.key].add(answer.id)
    rows = Counter(row.key for row in story.final.values() if row.key is not None)
    inserts = Counter(moves[0].key for moves in story.moves.values() if moves[0].key is not None)
    for key in {*ids, *rows, *inserts}:
        if len(ids[key]) > 1 or rows[key] > 1 or inserts[key] > 1:
            yield f"key {key} has {rows[key]} rows, {inserts[key]} inserts and was answered with {sorted(ids[key])}"


def nothing_early(story: Story) -> Iterator[str]:
    for task_id in story.moves:
        for before, after in story.claims(task_id):
            if (after.started_at or "") < before.due:
                yield f"task {task_id} was claimed at {after.started_at}, before {before.due}"
    for row in story.final.values() if not story.has_ledger else ():
        # One that was cancelled may have been put off after its last start, and never have come to its next.
        if row.state != "cancelled" and row.started_at is not None and row.started_at < row.due:
            yield f"task {row.id} was claimed at {row.started_at}, before {row.due}"


def versions_grow(story: Story) -> Iterator[str]:
    """By one with every change, and never back."""
    for moves in _by_library(story):
        for before, after in pairwise(moves):
            changed = (before.state, before.worker, before.retry_count) != (
                after.state,
                after.worker,
                after.retry_count,
            )
            step = after.version - before.version
            if step < 0 or (after.op == "update" and step != changed):
                yield f"task {after.id} went from version {before.version} to {after.version} ({after.phase})"
    seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for reply in story.replies:
        seen[reply.id].append((reply.started_at, reply.version))
    for task_id, claims in seen.items():
        for (first, low), (second, high) in pairwise(sorted(claims)):
            if high <= low:
                yield f"task {task_id} was claimed at version {low} ({first}) and then at {high} ({second})"


def told_the_truth(story: Story) -> Iterator[str]:
    """What a client was told has happened, did: claims it got, changes that were granted, deletions."""
    if not story.has_ledger:
        return
    held = {(a.id, a.version, a.worker) for task_id in story.moves for _, a in story.claims(task_id)}
    for reply in story.replies:
        if (reply.id, reply.version, reply.worker) not in held:
            yield f"{reply.worker} was given version {reply.version} of task {reply.id}, of which nothing is known"
    written = {(move.id, move.version, move.state) for moves in story.moves.values() for move in moves}
    states: dict[tuple[str, int | None, str | None], set[str]] = defaultdict(set)
    for intent in story.intents:
        states[intent.id, intent.version, intent.worker].add(intent.state)
    for told in story.write_results:
        if told.write_result in GRANTED and told.version is not None:
            wanted = states[told.id, told.version, told.worker]
            if not any((told.id, told.version + 1, state) in written for state in wanted):
                yield f"a change of version {told.version} of task {told.id} was {told.write_result} and is not there"
    for task_id in story.deleted:
        if not any(move.op == "delete" for move in story.moves.get(task_id, ())):
            yield f"task {task_id} was reported as deleted and was not"


def rows_match_the_ledger(story: Story) -> Iterator[str]:
    """What the library shows at the end is the last that was written down."""
    for row in story.final.values() if story.has_ledger else ():
        moves = story.moves.get(row.id)
        if moves and (moves[-1].version, moves[-1].state, moves[-1].retry_count) != (
            row.version,
            row.state,
            row.retry_count,
        ):
            yield f"task {row.id} is shown as {row.state} at version {row.version}; the ledger has {moves[-1]}"


def _by_library(story: Story) -> Iterator[list[Move]]:
    for task_id, moves in story.moves.items():
        if task_id not in story.hands:
            yield moves


RULES: dict[str, Rule] = {
    "nothing lost": nothing_lost,
    "nothing phantom": nothing_phantom,
    "batches whole": batches_are_whole,
    "one accepted outcome": one_outcome,
    "legal moves": legal_moves,
    "attempts": attempts,
    "leases never overlap": leases,
    "result of the accepted attempt": results,
    "one row for a key": keys,
    "nothing early": nothing_early,
    "versions only grow": versions_grow,
    "told the truth": told_the_truth,
    "rows match the ledger": rows_match_the_ledger,
}
