"""What must be true of every history. Pure: a story in, violations out, each rule on its own.

Where the database kept a ledger (SQLite, PostgreSQL) it is the truth that clients' accounts are held against; elsewhere
the accounts and the rows that are left are held against each other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise

from tests.chaos.story import Move, Story, mark_of

OVER = {"completed", "failed", "cancelled"}
LOST = {"failed", "cancelled"}
"""Over, and not what a task that needs its success waits for."""
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
            if _revived(story, before, after):
                continue
            if before.phase != "failed" or (before.id, before.version) not in by_operator:
                yield f"task {before.id} was {before.phase} and became {after.phase} without an operator's retry"


def legal_moves(story: Story) -> Iterator[str]:
    for moves in _by_library(story):
        for before, after in pairwise(moves):
            same = before.phase == after.phase and before.version == after.version
            known = (before.phase, after.phase) in MOVES or _revived(story, before, after)
            known = known or _replaced(story, before, after)
            if after.op == "update" and not same and not known:
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
            if step < 0 or (after.op == "update" and step != changed and not _replaced(story, before, after)):
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


def after_all_it_waits_for(story: Story) -> Iterator[str]:
    """What waits for others starts after they have ended as it needs them to. What has lost one of them is cancelled,
    and what has lost none is not, unless somebody asked for it."""
    stopped = {intent.id for intent in story.intents if intent.state == "cancelled"}
    for task_id, (parents, on) in story.links.items():
        if story.hands.intersection((task_id, *parents)) or task_id not in story.final:
            continue
        wanted = OVER if on == "end" else {"completed"}
        for parent in parents:
            ends = [move.at for move in story.moves.get(parent, ()) if move.phase in wanted]
            for _, claim in story.claims(task_id)[:1]:
                if not ends or ends[0] > claim.at:
                    yield f"task {task_id} was claimed at {claim.at}, before task {parent} had ended"
        row, left = story.final[task_id], [story.final.get(parent) for parent in parents]
        lost = on == "success" and any(each is not None and each.phase in LOST for each in left)
        if lost and row.started_at is None and row.phase != "cancelled":
            yield f"task {task_id} is {row.phase}, and has lost what it waits for"
        by_hand = task_id in stopped and row.cut_by is None
        if not lost and row.phase == "cancelled" and not by_hand and None not in left:
            yield f"task {task_id} is cancelled, and has lost nothing that it waits for"


def cut_off_whole(story: Story) -> Iterator[str]:
    """The end that loses a task what it needs cuts it off, and an operator's retry of what it lost makes it wait again:
    with whatever follows from that, each in one transaction. So the next move of a child is its parent's doing."""
    turns = {
        parent: [
            after
            for before, after in pairwise(story.moves.get(parent, ()))
            if after.op == "update" and (before.phase in LOST) != (after.phase in LOST)
        ]
        for parents, _ in story.links.values()
        for parent in parents
    }
    for child, (parents, on) in story.links.items():
        if on != "success" or story.hands.intersection((child, *parents)):
            continue
        doings = {turn.tx for parent in parents for turn in turns[parent]}
        for turn in (turn for parent in parents for turn in turns[parent]):
            lost = turn.phase in LOST
            if not (_would_be_cut_off if lost else _would_be_revived)(story, child, turn):
                continue
            then = next((move for move in story.moves[child] if move.seq > turn.seq), None)
            what = "cut off" if lost else "revived"
            if then is None or (then.op == "update" and then.phase != ("cancelled" if lost else "pending")):
                yield f"task {child} was not {what} when task {turn.id} became {turn.phase} at {turn.at}"
            elif child in story.together and (then.cut_by or not lost) and then.tx not in doings | {None}:
                yield f"task {child} was {what} in another transaction than task {turn.id} became {turn.phase}"


def _would_be_cut_off(story: Story, child: str, turn: Move) -> bool:
    now = _before(story, child, turn)
    return now is not None and now.phase == "pending" and now.started_at is None


def _would_be_revived(story: Story, child: str, turn: Move) -> bool:
    """It was cut off, and has lost none of the others."""
    now = _before(story, child, turn)
    others = [_before(story, parent, turn) for parent in story.links[child][0] if parent != turn.id]
    free = not any(each is not None and each.phase in LOST for each in others)
    return now is not None and now.op != "delete" and now.cut_by is not None and free


def _before(story: Story, task_id: str, turn: Move) -> Move | None:
    """How it was at that time."""
    return next((move for move in reversed(story.moves.get(task_id, [])) if move.seq < turn.seq), None)


def nothing_waits_for_ever(story: Story) -> Iterator[str]:
    """After a drain nothing waits for what is over."""
    for row in story.final.values():
        if row.phase != "pending" or row.waits == 0 or row.id in story.hands:
            continue
        parents, _ = story.links.get(row.id, ([], ""))
        left = [story.final.get(parent) for parent in parents]
        if all(each is None or each.phase in OVER for each in left):
            yield f"task {row.id} waits for {row.waits} more, and all it waits for is over"


def one_holder(story: Story) -> Iterator[str]:
    """Of one type, one task has a unique key, until it starts or until it is over, and whoever was told that he has
    joined another has joined one that had the key."""
    holders: dict[tuple[str, str], str] = {}
    held: dict[str, tuple[str, str]] = {}
    ever: set[tuple[str, str, str]] = set()
    for move in story.ledger:
        before = held.pop(move.id, None)
        if before is not None and holders.get(before) == move.id:
            del holders[before]
        if move.op == "delete" or move.unique_key is None:
            continue
        key = (move.name, move.unique_key)
        other = holders.setdefault(key, move.id)
        held[move.id] = key
        ever.add((move.id, *key))
        if other != move.id:
            yield f"key {move.unique_key} is held by task {other} and by task {move.id} at {move.at}"
    for key, count in Counter((row.name, row.unique_key) for row in story.final.values() if row.unique_key).items():
        if count > 1:
            yield f"key {key[1]} is left with {count} tasks"
    for task_id, moves in story.moves.items():
        rule = story.asked[task_id].rule if task_id in story.asked else None
        if rule is not None and rule.until != "elapsed" and task_id not in story.hands:
            yield from _keeps_its_key(moves, rule.until)
    for joined in story.joined if story.has_ledger else ():
        if (joined.id, joined.rule.name, joined.rule.key) not in ever:
            yield f"a submit of key {joined.rule.key} was answered with task {joined.id}, which never had it"


def _keeps_its_key(moves: list[Move], until: str) -> Iterator[str]:
    started = over = False
    for move in moves:
        if move.op == "delete":
            return
        started, over = started or move.state == "running", over or move.phase in OVER
        has = move.unique_key is not None
        keeps = not over and not (until == "started" and started)
        if keeps and not has:
            yield f"task {move.id} gave its key up while {move.phase}, at version {move.version}"
            return
        if has and not keeps:
            yield f"task {move.id} has its key although it is {move.phase}, at version {move.version}"
            return


def each_slot_once(story: Story) -> Iterator[str]:
    """Each time of a schedule is fired once, whoever fires it; one that makes up for what it missed leaves none out."""
    for (schedule, slot), count in Counter((each.schedule, each.slot) for each in story.fired).items():
        if count > 1:
            yield f"the time {slot} of {schedule} was fired {count} times"
    stored = [moves[0].key for moves in story.moves.values()] or [row.key for row in story.final.values()]
    for left in story.schedules:
        head = f"schedule:{left.name}:"
        texts = [key.removeprefix(head) for key in stored if key is not None and key.startswith(head)]
        told = {each.slot for each in story.fired if each.schedule == left.name}
        if len(told) > left.fired:
            yield f"{left.name} counts {left.fired} times, {len(told)} were told as fired"
        if not left.makes_up:
            continue
        slots = sorted(map(datetime.fromisoformat, texts))
        for early, late in pairwise(slots):
            if (late - early).total_seconds() != left.seconds:
                yield f"{left.name} fired nothing between {early} and {late}"
        if (len(slots), 0) != (left.fired, left.missed):
            yield f"{left.name} counts {left.fired} times and {left.missed} missed; {len(slots)} are stored"


def listeners_told_what_happened(story: Story) -> Iterator[str]:
    """An event is of an end that is committed, once for each; and each run of a handler is inside the middleware."""
    for start in story.starts:
        if not start.around:
            yield f"attempt {start.attempt} of task {start.id} ran outside of the middleware"
    told = Counter(story.told)
    for (task_id, kind), count in told.items():
        if task_id in story.hands:
            continue
        phase = {"retry": "waiting"}.get(kind, kind)
        if story.has_ledger:
            into = pairwise(story.moves.get(task_id, ()))
            happened = sum(after.phase == phase and after.version != before.version for before, after in into)
        elif kind != "completed" or task_id not in story.final:
            continue
        else:
            happened = story.final[task_id].phase == phase
        if count > happened:
            yield f"listeners heard {count} times that task {task_id} is {kind}, which happened {int(happened)} times"


def asked_to_stop(story: Story) -> Iterator[str]:
    """What runs and was asked to stop does not start again: it completes, or it is cancelled."""
    for moves in _by_library(story):
        for before, after in pairwise(moves):
            ends = before.state == "running" and after.state != "running" and after.op == "update"
            if ends and before.asked_at is not None and after.phase not in ("completed", "cancelled"):
                yield f"task {after.id} was asked to stop at {before.asked_at} and became {after.phase}"


def _replaced(story: Story, before: Move, after: Move) -> bool:
    """A newer submit of its unique key has given it other arguments before it started."""
    asked = story.asked.get(before.id)
    may = asked is not None and asked.rule is not None and asked.rule.conflict == "replace"
    waits = before.phase == after.phase and before.phase in ("pending", "waiting")
    return may and waits and after.version == before.version + 1


def _revived(story: Story, before: Move, after: Move) -> bool:
    """What was cut off waits again when what it lost is tried again."""
    return before.id in story.links and (before.phase, after.phase) == ("cancelled", "pending")


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
    "after all it waits for": after_all_it_waits_for,
    "cut off and revived whole": cut_off_whole,
    "nothing waits for ever": nothing_waits_for_ever,
    "one holder of a unique key": one_holder,
    "each slot once": each_slot_once,
    "listeners told what happened": listeners_told_what_happened,
    "asked to stop": asked_to_stop,
}
