"""Lists and counts under a filter.

Every task is in one of four places, also one that somebody edited by hand, and each place has an index:

- what is over, in any state, by type, state and id;
- what is pending and what runs: their indexes are for the claim, so what is found there is sorted;
- the others: what waits for a retry, and states that tasklib does not know, by id.

Before pending tasks are sorted, the page is looked for by walking the primary key a little way: mostly that fills it. A
filter that asks for no type, state or finality walks all the way, and so does one whose places hold too much: it is met
soon. The whole filter is tested in all of them, so a place that holds nothing costs time and no more.

No index has tags, errors, payloads and the ends of ids. A search by them looks at a bounded number of the tasks that
its other conditions leave, from where the page begins: so many, or at least half of them where several types or states
are asked for. If there are more, the page's cursor is behind the last that it has looked at. How long tasks ran is in
no index either: the longest are found among the newest.

When a task ended is in an index for what failed or was cancelled, the few that people look for by it; every completion
would pay for one of all. So a filter by the end that may mean completed tasks is a search, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tasklib.core.ids import uuid7
from tasklib.core.redact import secret_pattern
from tasklib.core.words import PAYLOAD_BYTES
from tasklib.stores import values
from tasklib.stores.sql import reads
from tasklib.stores.sql.columns import ENDED, ID, Kind, Shape, row_values
from tasklib.stores.sql.steps import Bound, Query, Steps
from tasklib.stores.values import Count, EndedCursor, EndedPage, Filter, Page

KNOWN_NAMES = 1_000
"""Where there are more task types than this, lists of what is over that name none of them walk the primary key."""
NEAR_ROWS = 1_000
"""A page with pending tasks is first looked for among so many tasks from its beginning on."""
SORTED_ROWS = 50_000
"""So many pending tasks are sorted for a list; where there are more, walking meets them often enough."""
NEAREST_ROWS = 10_000
"""Ids carry the time of the submitter's clock, `created_at` is the database's. So of the tasks that are just outside a
range of time by their ids, so many are looked at on each side."""

_MINUTE = 60_000
"""Milliseconds: as far as clocks of submitters are off, as a rule."""
_UNORDERED = {"order": "ORDER BY id NULLS FIRST", "sorted": "", "walk_order": "ORDER BY id"}
_ESCAPED = r"\\\g<0>"
_FIRST, _LAST = 0, (1 << 128) - 1
_KIND = Shape(row_values, {"name": Kind.TEXT, "state": Kind.TEXT})


def page(
    where: Filter, *, limit: int, cursor: UUID | None = None, offset: int = 0, oldest_first: bool = False
) -> Steps[Page]:
    where = _over(where)
    above, below = (cursor, None) if oldest_first else (None, cursor)
    between = yield from _between(where, above=above, below=below)
    if limit <= 0 or between is None:
        return Page([], None)
    places, kinds = yield from _places(where)
    places, between, stop = yield from _searched(where, places, kinds, between, oldest_first=oldest_first)
    orders = _orders(oldest_first)
    parameters = {**_given(where), **between, "limit": limit + 1, "skip": offset, "top": limit + 1 + offset}
    ids: list[UUID] = []
    if "list_waiting" in places:  # there may be much to sort
        parts = _parts(where, ["list_near"], orders)
        ids = yield Query("list_ids", ID, parts=parts, near=NEAR_ROWS, **parameters)
        if len(ids) <= limit and (yield from _pending(where)) > SORTED_ROWS:
            places = ["list_walked"]
    if len(ids) <= limit and places:
        parts = _parts(where, places, orders)
        ids = yield Query("list_ids", ID, parts=parts, **kinds, **parameters)
    found = yield from reads.get(ids[:limit])
    return Page([task for task in found if task is not None], ids[limit - 1] if len(ids) > limit else stop)


def page_longest(where: Filter, *, limit: int, offset: int = 0) -> Steps[Page]:
    where = _over(where)
    between = yield from _between(where)
    if limit <= 0 or between is None:
        return Page([], None)
    places, kinds = yield from _places(where)
    places, between, _ = yield from _searched(where, places, kinds, between, oldest_first=False)
    if not places:
        return Page([], None)
    if "list_waiting" in places and (yield from _pending(where)) > SORTED_ROWS:
        places = ["list_walked"]
    parts = _parts(where, places, _orders(oldest_first=False))
    ids: list[UUID] = yield Query(
        "list_longest",
        ID,
        parts=parts,
        top=values.LONGEST_AMONG,
        limit=limit,
        skip=offset,
        **_given(where),
        **between,
        **kinds,
    )
    found = yield from reads.get(ids)
    return Page([task for task in found if task is not None], None)


def page_ended(where: Filter, *, limit: int, cursor: EndedCursor | None = None, offset: int = 0) -> Steps[EndedPage]:
    """Latest end first. Whatever is asked for, it looks at a bounded number of tasks from the cursor on."""
    where = _over(where)
    if limit <= 0 or _is_empty(where):
        return EndedPage([], None)
    behind: dict[str, Any] = {} if cursor is None else {"behind_at": cursor.completed_at, "behind_id": cursor.id}
    place = ["behind"] if behind else []
    bounds = _ended(where)
    most = values.SEARCHED_TASKS
    last: list[EndedCursor] = yield Query(
        "latest_ended", ENDED, parts={"where": _all([*place, *bounds])}, limit=2, skip=most - 1, **behind, **bounds
    )
    stop = last[0] if len(last) == 2 else None
    if stop is not None:
        place.append("up_to")
        behind |= {"last_at": stop.completed_at, "last_id": stop.id}
    parts = {"where": _all([*place, *_conditions(where)])}
    found: list[EndedCursor] = yield Query(
        "latest_ended", ENDED, parts=parts, limit=limit + 1, skip=offset, **behind, **_given(where)
    )
    tasks = yield from reads.get([each.id for each in found[:limit]])
    return EndedPage([task for task in tasks if task is not None], found[limit - 1] if len(found) > limit else stop)


def count(where: Filter, cap: int) -> Steps[Count]:
    where = _over(where)
    between = yield from _between(where)
    if between is None:
        return Count(0, False)
    places, kinds = yield from _places(where)
    if not places:
        return Count(0, False)
    places, between, stop = yield from _searched(where, places, kinds, between, oldest_first=False)
    parts = _parts(where, places, _UNORDERED)
    [[found]] = yield Query("count_listed", parts=parts, top=cap + 1, **_given(where), **between, **kinds)
    return Count(min(found, cap), found > cap or stop is not None)


def _searched(
    where: Filter, places: list[str], kinds: dict[str, Any], between: dict[str, Any], *, oldest_first: bool
) -> Steps[tuple[list[str], dict[str, Any], UUID | None]]:
    """Where a search looks, between which ids, and the last of them if there are others behind it."""
    bounded = not places or places[0] in ("list_by_id", "list_by_idempotency", "list_by_flow", "list_ended")
    if bounded or not (where.searches or where.by_end):
        return places, between, None
    rest = where.without_search
    if where.by_end and places == ["list_walked"]:
        rest = replace(rest, terminal=None)  # nearly all are, and so the primary key alone says how far it looks
    most = values.SEARCHED_TASKS
    parameters = {**_given(rest), **between, **kinds}
    not_over = [place for place in places if place not in ("list_walked", "list_finished")]
    if not_over:
        waiting = most
        if "list_waiting" not in places or (yield from _pending(where)) <= SORTED_ROWS:
            parts = _parts(rest, not_over, _UNORDERED)
            [[waiting]] = yield Query("count_listed", parts=parts, top=most, **parameters)
        if waiting > most // 2:
            places = ["list_walked"]  # it meets them often enough
        most -= waiting
    if places == ["list_walked"]:
        parts = _parts(rest, places, _orders(oldest_first))
        most = values.SEARCHED_TASKS
        last: list[UUID] = yield Query("list_ids", ID, parts=parts, limit=2, skip=most - 1, top=most + 1, **parameters)
        stop = last[0] if len(last) == 2 else None
    else:
        stop = yield from _reach(kinds, between, most, oldest_first)
    return places, between if stop is None else {**between, "high" if oldest_first else "low": stop}, stop


def _reach(kinds: dict[str, Any], between: dict[str, Any], most: int, oldest_first: bool) -> Steps[UUID | None]:
    """Up to which id no more than so many are over, and at least half as many. None: there are no more at all.

    Every type and state has an order of its own, so it is not one walk. But ids begin with the time, so it is tried: a
    minute, twice as far each time, and then between the last two. A try counts no further than that."""

    def count(low: UUID, high: UUID) -> Steps[int]:
        [[found]] = yield Query("count_finished", top=most + 1, low=low, high=high, **kinds)
        return int(found)

    low, high = between["low"], between["high"]
    if not kinds["kind_names"] or (yield from count(low, high)) <= most:
        return None
    nearest = Query("id_above", ID, id=low, rows=0) if oldest_first else Query("id_below", ID, id=high, rows=0)
    [start] = yield nearest
    found, near, far = 0, 0, high.int - start.int if oldest_first else start.int - low.int
    while found < (most + 1) // 2 and far - near > 1:
        tried = 2 * near or _MINUTE << 80
        if tried >= far:
            tried = (near + far) // 2
        last = UUID(int=start.int + tried if oldest_first else start.int - tried)
        there = yield from count(low, last) if oldest_first else count(last, high)
        if there <= most:
            found, near = there, tried
        else:
            far = tried
    return UUID(int=start.int + near if oldest_first else start.int - near)


def _between(where: Filter, *, above: UUID | None = None, below: UUID | None = None) -> Steps[dict[str, Any] | None]:
    """The lowest and the highest id that can match, behind `above` and before `below`. None: nothing can."""
    if _is_empty(where):
        return None
    low = _FIRST if above is None else above.int + 1
    high = _LAST if below is None else below.int - 1
    if where.ids is None and where.created_after is not None:
        start = _id_at(where.created_after, -_MINUTE)
        for nearest in (yield Query("id_below", ID, id=start, rows=NEAREST_ROWS)):
            low = max(low, nearest.int)
    latest = [instant for instant in (where.created_before, where.ended_before) if instant is not None]
    if where.ids is None and latest:
        end = _id_at(min(latest), _MINUTE)  # what ended before was created before
        for nearest in (yield Query("id_above", ID, id=end, rows=NEAREST_ROWS)):
            high = min(high, nearest.int)
    return {"low": UUID(int=low), "high": UUID(int=high)} if low <= high else None


def _places(where: Filter) -> Steps[tuple[list[str], dict[str, Any]]]:
    """Where it is looked, and the types and states of what is over, as parameters."""
    if where.ids is not None:
        return ["list_by_id"], {}
    if where.idempotency_key is not None:
        return ["list_by_idempotency"], {}
    if where.flow_id is not None:
        return ["list_by_flow"], {}
    if where.by_end and where.states is not None and "completed" not in where.states:
        most = values.SEARCHED_TASKS
        bounds = _ended(where)
        [[number]] = yield Query("count_ended", parts={"ended": _all(bounds)}, most=most + 1, **bounds)
        if number <= most:
            return ["list_ended"], {}
    terminal = None if where.by_end else where.terminal
    asked = (where.names, where.name_prefix or None, where.states, terminal, where.worker_id)
    if all(given is None for given in asked):
        return ["list_walked"], {}
    states = where.states if where.worker_id is None else ["running"]
    places: list[str] = []
    kinds: list[tuple[str, str]] = []
    if where.terminal is not False:
        names = where.names
        if names is None:
            names = [name for [name] in (yield Query("known_names", most=KNOWN_NAMES + 1))]
            if len(names) > KNOWN_NAMES:
                return ["list_walked"], {}
        names = [name for name in dict.fromkeys(names) if name.startswith(where.name_prefix or "")]
        known: list[tuple[str, str]] = yield Query("known_kinds", _KIND, names=names)
        kinds = [(name, state) for name, state in known if states is None or state in states]
        if kinds:
            places.append("list_finished")
    if where.terminal is not True:
        if states is None or "running" in states:
            places.append("list_running")
        if states is None or not {"pending", "running"}.issuperset(states):
            places.append("list_retrying")
        if states is None or "pending" in states:
            places += ["list_waiting"] if where.not_due else ["list_ready", "list_waiting"]
    return places, {"kind_names": [name for name, _ in kinds], "kind_states": [state for _, state in kinds]}


def _pending(where: Filter) -> Steps[int]:
    """How many there are to sort."""
    [[number]] = yield Query("count_pending", parts={"key": _key(where)}, most=SORTED_ROWS + 1, **_given(where))
    return int(number)


def _parts(where: Filter, places: Iterable[str], orders: Mapping[str, str]) -> dict[str, str]:
    return {
        "places": " UNION ALL ".join(f"{{{place}}}" for place in places),
        "where": _all(_conditions(where)),
        "key": _key(where),
        "ended": _all(_ended(where)),
        **orders,
    }


def _conditions(where: Filter) -> dict[str, Any]:
    """What is asked for: `where_...` is the condition, and its parameter has the same name."""
    conditions = {
        "names": where.names and list(where.names),
        "name_prefix": where.name_prefix or None,
        "states": where.states and list(where.states),
        "terminal": where.terminal or None,
        "not_terminal": where.terminal is False or None,
        "worker_id": where.worker_id,
        "created_after": where.created_after and Bound.of(where.created_after),
        "created_before": where.created_before and Bound.of(where.created_before),
        **_ended(where),
        "not_due": where.not_due or None,
        "ids": where.ids and list(where.ids),
        "idempotency_key": where.idempotency_key,
        "flow_id": where.flow_id,
        "short_ids": list(where.short_ids) if where.short_ids else None,
        "tags": json.dumps(tags, ensure_ascii=False) if (tags := where.tag_choices()) else None,
        "error_text": where.error_text or None,
        "payload": json.dumps(pairs, ensure_ascii=False) if (pairs := where.payload_choices()) else None,
        "words": list(where.words) if where.words else None,
    }
    return {name: value for name, value in conditions.items() if value is not None}


def _given(where: Filter) -> dict[str, Any]:
    """All parameters of the conditions. `..._hint` is what the text of a row must hold to be worth a closer look; empty
    where the same could be written in several ways."""
    given = _conditions(where)
    if "words" in given:
        keys = where.secret_keys
        given["words_hint"] = [_hint(word.lower()) for word in given["words"]]
        given["words_like"] = [f"%{re.sub('[%_]', _ESCAPED, hint)}%" for hint in given["words_hint"]]
        given["secret_keys"] = None if keys is None else json.dumps(list(keys))
        given["secret_names"] = None if keys is None else secret_pattern(tuple(keys))
    if "payload" in given:
        path, choices = where.payload_choices()[0]
        given["payload_key_hint"] = _hint(path[-1])
        given["payload_value_hint"] = _hint(_written(choices[-1]))
    return {**given, "payload_bytes": PAYLOAD_BYTES}


def _hint(text: str) -> str:
    return text if text.isascii() and json.dumps(text) == f'"{text}"' else ""


def _written(value: Any) -> str:
    """A whole number may be there with a fraction of zero, or without."""
    if isinstance(value, str):
        return value
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def _ended(where: Filter) -> dict[str, Any]:
    bounds = {"ended_after": where.ended_after, "ended_before": where.ended_before}
    return {name: Bound.of(instant) for name, instant in bounds.items() if instant is not None}


def _over(where: Filter) -> Filter:
    """What is asked for by its end is over."""
    if not where.by_end or where.terminal is True:
        return where
    return replace(where, terminal=True, states=where.states if where.terminal is None else [])


def _is_empty(where: Filter) -> bool:
    """An empty list matches nothing."""
    return any(given is not None and not given for given in (where.names, where.states, where.ids))


def _orders(oldest_first: bool) -> dict[str, str]:
    by_id = "ORDER BY id ASC" if oldest_first else "ORDER BY id DESC"
    order = f"{by_id} NULLS FIRST" if oldest_first else f"{by_id} NULLS LAST"  # as the indexes for lists have them
    return {"order": order, "sorted": order, "walk_order": by_id}


def _key(where: Filter) -> str:
    """By these of the conditions a place is looked up."""
    return _all([name for name in ("names", "ids") if getattr(where, name) is not None])


def _all(conditions: Iterable[str]) -> str:
    return " AND ".join(f"{{where_{name}}}" for name in conditions) or "true"


def _id_at(instant: datetime, milliseconds: int) -> UUID:
    return uuid7(max(0, int(instant.timestamp() * 1000) + milliseconds), 0, 0)
