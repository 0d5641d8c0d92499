"""Claiming: what is due, in order, within the limits; all inside one write transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple
from uuid import UUID

import apsw

from tasklib.core.limits import ALL, Control, Limits
from tasklib.core.task import Claim
from tasklib.stores.sqlite import limits
from tasklib.stores.sqlite.batches import SQL, rows_of, values_of
from tasklib.stores.sqlite.clock import Clock
from tasklib.stores.sqlite.rows import instant, read_claim, seconds, seconds_between
from tasklib.stores.values import Claimed, ClaimRequest

_STRAY_ROUNDS = 10
"""How often a claim looks again after it met rows that were edited while they were ready."""

_FIRST_DEPTH = 16
"""How many of each name a claim of several names looks at first, at least."""


class _Survey(NamedTuple):
    now: str
    """What is due goes by it."""
    steady: str
    """Leases and rates go by it."""
    controls: list[Control]
    next_due: str | None
    busy: list[str]


def claim(connection: apsw.Connection, request: ClaimRequest, clock: Clock) -> Claimed:
    survey = _survey(connection, request.names, clock)
    if survey.next_due is not None and survey.next_due <= survey.now:
        connection.execute(SQL["promote"], {"now": survey.now})
        survey = _survey(connection, request.names, clock)
    permits = _permits(connection, survey)
    caps = _caps(request, survey.busy, permits)
    rows = _pick(connection, caps, _wanted(request, permits), survey.now)
    kept = _may_wait(rows, request.slots, permits)
    claims = _mark(connection, kept, request.worker_id, request.lease_seconds, permits, survey)
    return Claimed(claims, _next_due_in(survey, permits) if len(claims) < request.slots else None)


def take(
    connection: apsw.Connection, task_id: UUID, version: int, worker_id: str, lease_seconds: float, clock: Clock
) -> Claim | None:
    survey = _survey(connection, (), clock)
    parameters = {"id": str(task_id), "version": version, "now": survey.now}
    rows = [row for row in rows_of(connection, SQL["take"], parameters) if row[1]]
    permits = _permits(connection, survey)
    if not rows or not permits.allows(rows[0][3]):
        return None
    return _mark(connection, rows, worker_id, lease_seconds, permits, survey)[0]


def held(connection: apsw.Connection, worker_id: str) -> list[Claim]:
    return [read_claim(row) for row in rows_of(connection, SQL["held"], {"worker_id": worker_id})]


def _survey(connection: apsw.Connection, names: Iterable[str], clock: Clock) -> _Survey:
    parameters = {"offset": seconds(clock.offset), "names": json.dumps(list(names))}
    now, controls, next_due, busy = values_of(connection, SQL["survey"], parameters)
    return _Survey(now, clock.steady(), [limits.read(row) for row in controls], next_due, busy)


def _permits(connection: apsw.Connection, survey: _Survey) -> Limits:
    counted = any(control.concurrency is not None for control in survey.controls)
    running = rows_of(connection, SQL["running_by_name"]) if counted else []
    controls = {each.name: each for each in survey.controls}
    return Limits(controls, instant(survey.steady), {row[0]: row[1] for row in running})


def _wanted(request: ClaimRequest, permits: Limits) -> int:
    """How many to look for. A limit for all types leaves nothing that may wait in a worker."""
    most = request.slots if permits.limited(ALL) else request.slots + request.prefetch
    cap = permits.cap(ALL)
    return most if cap is None else min(most, cap)


def _caps(request: ClaimRequest, busy: list[str], permits: Limits) -> dict[str, int]:
    most = request.slots + request.prefetch
    caps: dict[str, int] = {}
    if not permits.paused(ALL):
        for name in busy:
            bounds = (permits.cap(name), request.per_name.get(name))
            cap = min((bound for bound in bounds if bound is not None), default=most)
            if cap > 0:
                caps[name] = cap
    return caps


def _pick(connection: apsw.Connection, caps: dict[str, int], n: int, now: str) -> list[list[Any]]:
    """The best n, as rows of (rowid, fit, claim columns). A row that was edited into another state or time while it
    was ready is put right, so that it is not met again."""
    rows: list[list[Any]] = []
    for _ in range(_STRAY_ROUNDS):
        rows = _ranked(connection, caps, n, now)
        strays = {row[3] for row in rows if not row[1]}
        if not strays:
            break
        for name in strays:
            connection.execute(SQL["demote"], {"name": name, "now": now})
    return [row for row in rows if row[1]]


def _ranked(connection: apsw.Connection, caps: dict[str, int], n: int, now: str) -> list[list[Any]]:
    if not caps or n <= 0:
        return []
    try:
        if len(caps) == 1:
            ((name, cap),) = caps.items()
            return rows_of(connection, SQL["pick"], {"name": name, "n": min(n, cap), "now": now})
        ids = _best(connection, caps, n)
        return rows_of(connection, SQL["pick_ranked"], {"ids": json.dumps(ids), "now": now})
    except apsw.TooBigError:  # payloads of a gigabyte together: fewer at a time
        if n == 1:
            raise
        return _ranked(connection, caps, n // 2, now)


def _best(connection: apsw.Connection, caps: dict[str, int], n: int) -> list[str]:
    """The best n over several names. A few of each are looked at first: mostly that is enough to know the best."""
    depth = max(_FIRST_DEPTH, 2 * n // len(caps))
    while True:
        depth = min(depth, n)
        ranked = sorted(rows_of(connection, SQL["rank"], {"names": json.dumps(list(caps)), "n": depth}))
        seen: Counter[str] = Counter()
        best: list[str] = []
        for _, _, task_id, name in ranked:
            seen[name] += 1
            if seen[name] <= caps[name]:
                best.append(task_id)
            if len(best) == n:
                return best
            if seen[name] == depth < min(n, caps[name]):
                break  # more of this name might come before the others that are left
        else:
            return best
        depth *= 4


def _may_wait(rows: list[list[Any]], slots: int, permits: Limits) -> list[list[Any]]:
    """Without those that would have to wait in the worker and may not."""
    return rows[:slots] + [row for row in rows[slots:] if not row[14] and not permits.limited(row[3])]


def _mark(
    connection: apsw.Connection, rows: list[list[Any]], worker_id: str, lease: float, permits: Limits, survey: _Survey
) -> list[Claim]:
    """Makes the picked rows this worker's, and takes their tokens."""
    if rows:
        rowids = json.dumps([row[0] for row in rows])
        clocks = {"now": survey.now, "steady": survey.steady}
        connection.execute(SQL["claim"], {"rowids": rowids, "worker_id": worker_id, "lease": seconds(lease), **clocks})
        for name, tokens in permits.used(Counter(row[3] for row in rows)):
            if tokens is not None:
                connection.execute(SQL["take_tokens"], {"name": name, "tokens": tokens, "steady": survey.steady})
    started = instant(survey.now)
    return [
        Claim(
            UUID(r[2]),
            r[3],
            r[4] + 1,
            worker_id,
            r[6],
            r[7],
            r[8],
            r[9],
            r[10],
            started,
            r[12],
            r[13],
            bool(r[14]),
            bool(r[15]),
        )
        for r in rows
    ]


def _next_due_in(survey: _Survey, permits: Limits) -> float | None:
    waits = []
    if survey.next_due is not None:
        waits.append(max(0.0, seconds_between(survey.now, survey.next_due)))
    token = permits.next_token_in(survey.busy)
    if token is not None:
        waits.append(token)
    return min(waits, default=None)
