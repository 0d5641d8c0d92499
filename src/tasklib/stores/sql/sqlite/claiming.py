"""What PostgreSQL has as the one statement `claim`, in the statements that SQLite has for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from tasklib.core.task import Claim
from tasklib.stores.sql.columns import CLAIM, Kind, Shape, Taken
from tasklib.stores.sql.dialect import fill
from tasklib.stores.sql.sqlite.rows import seconds_between, waited_ms
from tasklib.stores.sql.steps import Query, Steps

_FIRST_DEPTH = 16
"""How many of each name a claim of several names looks at first, at least."""

_DUE = "state IN ('pending', 'failed') AND completed_at IS NULL AND coalesce(next_retry_at, scheduled_at) <= :now"


class Ranked(NamedTuple):
    rank: int
    created_at: str
    id: str
    name: str


RANKED = Shape(Ranked, {"rank": Kind.INTEGER, "created_at": Kind.TEXT, "id": Kind.TEXT, "name": Kind.TEXT})


class Picked(NamedTuple):
    """Claims as they will be."""

    ids: list[str]
    """Of their tasks, as the table has them."""
    claims: list[Claim]
    stale: bool
    """Somebody edited one of them while it was ready."""


class _PickedShape(Shape[Picked]):
    def rows(self, rows: Iterable[Sequence[Any]]) -> Picked:
        found = list(rows)
        claims = [Claim._make(row[2:]) for row in found]
        return Picked([row[0] for row in found], claims, not all(row[1] for row in found))


PICKED = _PickedShape(
    Picked,
    {"key": Kind.TEXT, "due": Kind.INTEGER, **CLAIM.columns},
    {
        **CLAIM.computed,
        "key": "id",
        "due": _DUE,
        "version": "version + 1",
        "worker_id": ":worker_id",
        "started_at": ":now",
        "waited_ms": fill(CLAIM.computed["waited_ms"], {"waited": waited_ms(":day")}),
    },
)


def claim(
    names: Sequence[str],
    caps: Sequence[int | None],
    slots: int,
    most: int,
    limited: Sequence[str],
    worker_id: str,
    lease: timedelta,
    promoted: bool,
    under_limits: bool,
) -> Steps[Taken]:
    [(now, day, next_due, controlled, busy)] = yield Query("survey", names=names)
    due_in = None if next_due is None else seconds_between(now, next_due)
    most_of = {name: most if cap is None else min(most, cap) for name, cap in zip(names, caps, strict=True)}
    ready = {name: most_of[name] for name in json.loads(busy)}
    limits_apply = not under_limits and bool(ready) and any(name in ("", *ready) for name in json.loads(controlled))
    seen = Taken([], due_in, limits_apply, held_back=0 in ready.values())
    if seen.limits_apply or (seen.unpromoted and not promoted):
        return seen
    picked = yield from _pick(
        {name: cap for name, cap in ready.items() if cap > 0}, most, now=now, day=day, worker_id=worker_id
    )
    if picked.stale:
        return seen._replace(stale=True)
    kept = [
        place
        for place, found in enumerate(picked.claims)
        if place < slots or not (found.no_prefetch or found.name in limited)
    ]
    if kept:
        ids = [picked.ids[place] for place in kept]
        yield Query("mark_claimed", ids=ids, worker_id=worker_id, lease=lease, now=now)
    return Taken([picked.claims[place] for place in kept], due_in, held_back=seen.held_back)


def _pick(caps: dict[str, int], n: int, **claiming: Any) -> Steps[Picked]:
    if not caps:
        return Picked([], [], False)
    if len(caps) == 1:
        ((name, cap),) = caps.items()
        picked: Picked = yield Query("pick", PICKED, name=name, n=cap, **claiming)
    else:
        ids = yield from _best(caps, n)
        picked = yield Query("pick_ranked", PICKED, ids=ids, **claiming)
    return picked


def _best(caps: dict[str, int], n: int) -> Steps[list[str]]:
    """The best n over several names. A few of each are looked at first: mostly that is enough to know the best."""
    depth = max(_FIRST_DEPTH, 2 * n // len(caps))
    while True:
        depth = min(depth, n)
        ranked: list[Ranked] = sorted((yield Query("rank", RANKED, names=list(caps), n=depth)))
        seen: Counter[str] = Counter()
        best: list[str] = []
        for found in ranked:
            seen[found.name] += 1
            if seen[found.name] <= caps[found.name]:
                best.append(found.id)
            if len(best) == n:
                return best
            if seen[found.name] == depth < min(n, caps[found.name]):
                break  # more of this name might come before the others that are left
        else:
            return best
        depth *= 4
