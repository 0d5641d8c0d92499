"""Lists and counts under a filter. Statements are put together from list.sql; values are always parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tasklib.stores import lists
from tasklib.stores.lists import Region
from tasklib.stores.postgres.calls import Calls, reading
from tasklib.stores.postgres.connect import Connection
from tasklib.stores.postgres.rows import task_of
from tasklib.stores.values import Count, Filter, Page


async def page(
    calls: Calls, where: Filter, *, limit: int, cursor: UUID | None, offset: int, oldest_first: bool
) -> Page:
    if limit <= 0 or lists.is_empty(where):
        return Page([], None)

    async def work(connection: Connection, timeout: float) -> list[Any]:
        async with reading(connection, timeout):
            listing = await _survey(calls, where, connection)
            listing.narrow(above=cursor if oldest_first else None, below=None if oldest_first else cursor)
            if not listing.regions:
                return []
            if listing.crowded:
                # So many pending tasks are soon met, as a rule.
                end = await connection.fetchval(*listing.walked(oldest_first))
                walking = listing.walking(end, oldest_first)
                rows = list(await connection.fetch(*walking.page(limit + 1, offset, oldest_first)))
                if end is None or len(rows) > limit:
                    return rows
            return list(await connection.fetch(*listing.page(limit + 1, offset, oldest_first)))

    tasks = [task_of(row) for row in await calls.run(work)]
    more = len(tasks) > limit
    return Page(tasks[:limit], tasks[limit - 1].id if more else None)


async def count(calls: Calls, where: Filter, cap: int) -> Count:
    if lists.is_empty(where):
        return Count(0, False)

    async def work(connection: Connection, timeout: float) -> int:
        async with reading(connection, timeout):
            listing = await _survey(calls, where, connection, counts=True)
            found: int = await connection.fetchval(*listing.count(cap + 1))
            return found

    found = await calls.run(work)
    return Count(min(found, cap), found > cap)


async def _survey(calls: Calls, where: Filter, connection: Connection, *, counts: bool = False) -> _Listing:
    """What has to be known of the table to serve the filter well, in one look."""
    # Counted by name, because that index is enough. That of the failures is not: it has `completed_at IS NULL` and not
    # `completed_at`, so PostgreSQL fetches each row, and they lie on as many pages.
    by_name = lists.FINISHED if counts else ("completed",)
    window = lists.Window(where, calls.clock_offset)
    query = _Query(calls.sql)
    wanted = {"now": query.text("survey_now")}
    if lists.searches(where):
        wanted["floor"] = query.text("survey_floor", searched_rows=lists.SEARCHED_ROWS)
    if window.low is not None and where.ids is None:
        wanted["below"] = query.text("survey_below", value=window.low, nearest_rows=lists.NEAREST_ROWS)
    if window.high is not None and where.ids is None:
        wanted["above"] = query.text("survey_above", value=window.high, nearest_rows=lists.NEAREST_ROWS)
    by_arms = where.ids is None and not lists.wants_walk(where)
    if by_arms and lists.wants_known_names(where, states=by_name):
        wanted["names"] = query.text("survey_names", known_names=lists.KNOWN_NAMES)
    if by_arms and lists.arms(where, by_name=True).pending:
        named = "where_all" if where.names is None else "where_names"
        condition = query.text(named, value=None if where.names is None else list(where.names))
        wanted["pending"] = query.text("survey_pending", sorted_rows=lists.SORTED_ROWS).replace("{named}", condition)
    found: dict[str, Any] = {}
    if len(wanted) > 1 or where.created_before is not None:
        row = await connection.fetchrow(f"SELECT {', '.join(wanted.values())}", *query.parameters)
        found = dict(zip(wanted, row, strict=True))
    regions = window.regions(found.get("now", 0.0), found.get("below"), found.get("above"))
    names = lists.names_of(where, found.get("names"))
    pending = found.get("pending", 0)
    walks = not by_arms or lists.needs_walk(where, names is not None) or pending > lists.SORTED_ROWS
    crowded = not walks and pending > lists.WALKED_ROWS
    regions = lists.narrowed(regions, above=found.get("floor"))
    return _Listing(calls.sql, where, names, regions, walks=walks, crowded=crowded)


class _Listing:
    """A filter, ready to be made into a statement."""

    def __init__(
        self,
        sql: dict[str, str],
        where: Filter,
        names: list[str] | None,
        regions: list[Region],
        *,
        walks: bool,
        crowded: bool = False,
    ) -> None:
        self._sql = sql
        self._query = _Query(sql)
        self._where = where
        self._names = names
        self._walks = walks
        self.crowded = crowded
        """There is much to sort."""
        self.regions = regions

    def narrow(self, *, above: UUID | None, below: UUID | None) -> None:
        """For the page behind a cursor."""
        self.regions = lists.narrowed(self.regions, above=above, below=below)

    def walked(self, oldest_first: bool) -> Sequence[Any]:
        """For the id that ends the first so many tasks; with its parameters, as below."""
        start = self.regions[0].low if oldest_first else self.regions[-1].high
        name = "survey_above" if oldest_first else "survey_below"
        query = _Query(self._sql)
        text = query.text(name, value=start, nearest_rows=lists.WALKED_ROWS)
        return f"SELECT {text}", *query.parameters

    def walking(self, end: UUID | None, oldest_first: bool) -> _Listing:
        """The same by the primary key, up to an id."""
        regions = lists.narrowed(self.regions, above=None if oldest_first else end, below=end if oldest_first else None)
        return _Listing(self._sql, self._where, None, regions, walks=True)

    def page(self, limit: int, offset: int, oldest_first: bool) -> Sequence[Any]:
        text = self._query.text("list", limit=limit, offset=offset)
        return self._filled(text, limit + offset, "ASC" if oldest_first else "DESC")

    def count(self, top: int) -> Sequence[Any]:
        return self._filled(self._query.text("count"), top, "ASC", counts=True)

    def _filled(self, text: str, top: int, order: str, *, counts: bool = False) -> Sequence[Any]:
        query = self._query
        arms = " UNION ALL ".join(f"({arm})" for arm in self._arms(counts))
        nulls = "NULLS FIRST" if order == "ASC" else "NULLS LAST"
        text = text.replace("{arms}", arms)
        text = text.replace("{order}", order).replace("{order_in_index}", f"{order} {nulls}")
        if "{top}" in text:
            text = text.replace("{top}", query.value(top, "bigint"))
        return text, *query.parameters

    def _arms(self, counts: bool) -> list[str]:
        query, where = self._query, self._where
        everything = query.all(self._conditions())
        if where.ids is not None:
            ids = [task_id for task_id in where.ids if any(low <= task_id <= high for low, high in self.regions)]
            return [self._arm("arm_ids", everything, ids=ids)]
        lows, highs = [region.low for region in self.regions], [region.high for region in self.regions]
        if self._walks:
            return [self._arm("arm_walk", everything, lows=lows, highs=highs)]
        wanted = lists.arms(where, self._names is not None)
        within = self._within()
        found = [self._arm("arm_odd", everything).replace("{within}", within)]
        if wanted.finished:
            found.append(
                self._arm(
                    "arm_finished",
                    query.all(self._contents()),
                    names=self._names,
                    finished=list(wanted.finished),
                    lows=lows,
                    highs=highs,
                )
            )
        if wanted.failed:
            states, waiting = zip(*wanted.failed, strict=True)
            found.append(self._arm("arm_failed", everything, failed=states, waiting=waiting, lows=lows, highs=highs))
        if wanted.running:
            found.append(self._arm("arm_running", everything).replace("{within}", within))
        if wanted.pending:
            found += self._pending(everything, within, counts)
        return found

    def _pending(self, everything: str, within: str, counts: bool) -> list[str]:
        query = self._query
        named = query.all(self._names_given())
        if counts:
            ready = self._arm("arm_ready_counted", everything)
            waiting = self._arm("arm_waiting_counted", everything)
        else:
            indexed = query.all([within, named])
            timed = query.all([indexed, *self._times()])
            ready = self._arm("arm_ready", everything).replace("{indexed}", timed)
            waiting = self._arm("arm_waiting", everything).replace("{indexed}", indexed)
        return [arm.replace("{named}", named).replace("{within}", within) for arm in (ready, waiting)]

    def _arm(self, name: str, conditions: str, **values: Any) -> str:
        return self._query.text(name, **values).replace("{conditions}", conditions)

    def _within(self) -> str:
        regions = [self._query.text("where_within", low=low, high=high) for low, high in self.regions]
        return f"({' OR '.join(regions)})"

    def _conditions(self) -> list[str]:
        where, query = self._where, self._query
        found = [*self._contents(), *self._names_given()]
        if where.states is not None:
            found.append(query.text("where_states", value=list(where.states)))
        if where.terminal is not None:
            found.append(query.text("where_terminal" if where.terminal else "where_not_terminal"))
        if where.worker_id is not None:
            found.append(query.text("where_worker", value=where.worker_id))
        return found

    def _contents(self) -> list[str]:
        """What no index tells."""
        where, query = self._where, self._query
        found = self._times()
        if where.tags:
            found.append(query.text("where_tags", value=json.dumps(where.tags)))
        if where.error_text:
            found.append(query.text("where_error_text", value=where.error_text))
        return found

    def _names_given(self) -> list[str]:
        where, query = self._where, self._query
        found = []
        if where.names is not None:
            found.append(query.text("where_names", value=list(where.names)))
        if where.name_prefix:
            found.append(query.text("where_name_prefix", value=where.name_prefix))
        return found

    def _times(self) -> list[str]:
        where, query = self._where, self._query
        found = []
        if where.created_after is not None:
            found.append(query.text("where_created_after", value=where.created_after))
        if where.created_before is not None:
            found.append(query.text("where_created_before", value=where.created_before))
        return found


class _Query:
    """Pieces of SQL by name, and the parameters they refer to."""

    def __init__(self, sql: dict[str, str]) -> None:
        self._sql = sql
        self.parameters: list[Any] = []

    def text(self, name: str, **values: Any) -> str:
        text = self._sql[name]
        for mark, value in values.items():
            if value is not None:
                text = text.replace(f"{{{mark}}}", self.value(value))
        return text

    def value(self, value: Any, cast: str = "") -> str:
        self.parameters.append(value)
        return f"${len(self.parameters)}" + (f"::{cast}" if cast else "")

    def all(self, conditions: Sequence[str]) -> str:
        return " AND ".join(conditions) or self._sql["where_all"]
