"""Lists and counts under a filter. Statements are put together from list.sql; values are always parameters."""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import Any
from uuid import UUID

import apsw

from tasklib.stores import lists
from tasklib.stores.lists import Region
from tasklib.stores.sqlite import filters
from tasklib.stores.sqlite.batches import SQL, rows_of, values_of
from tasklib.stores.sqlite.rows import read_task
from tasklib.stores.values import Count, Filter, Page

_RANGED = {"range_walk": "walks", "range_finished": "finished", "range_failed": "failed"}
"""Arms that have an order of their own, and the parameter with their ranges."""


def page(
    connection: apsw.Connection,
    where: Filter,
    limit: int,
    cursor: UUID | None,
    offset: int,
    oldest_first: bool,
    clock_offset: float,
) -> Page:
    if limit <= 0 or lists.is_empty(where):
        return Page([], None)
    listing = _survey(connection, where, clock_offset)
    listing.narrow(above=cursor if oldest_first else None, below=None if oldest_first else cursor)
    if not listing.regions:
        return Page([], None)
    rows: list[list[Any]] = []
    end: UUID | None = None
    if listing.crowded:
        # So many pending tasks are soon met, as a rule.
        start = listing.regions[0].low if oldest_first else listing.regions[-1].high
        beside = "nearest_above" if oldest_first else "nearest_below"
        end = _id_of(connection, beside, id=str(start), rows=lists.WALKED_ROWS)
        rows = _rows(connection, listing.walking(end, oldest_first), limit, offset, oldest_first)
    if not listing.crowded or (end is not None and len(rows) <= limit):
        rows = _rows(connection, listing, limit, offset, oldest_first)
    tasks = [read_task(row) for row in rows[:limit]]
    return Page(tasks, tasks[-1].id if len(rows) > limit else None)


def _rows(
    connection: apsw.Connection, listing: _Listing, limit: int, offset: int, oldest_first: bool
) -> list[list[Any]]:
    parameters = {**listing.parameters(), "limit": limit + 1, "offset": offset, "top": limit + 1 + offset}
    return rows_of(connection, listing.text("list", "ASC" if oldest_first else "DESC"), parameters)


def count(connection: apsw.Connection, where: Filter, cap: int, clock_offset: float) -> Count:
    if lists.is_empty(where):
        return Count(0, False)
    listing = _survey(connection, where, clock_offset)
    found: int = connection.execute(listing.text("count", ""), {**listing.parameters(), "top": cap + 1}).get
    return Count(min(found, cap), found > cap)


def _survey(connection: apsw.Connection, where: Filter, clock_offset: float) -> _Listing:
    """What has to be known of the table to serve the filter well."""
    window = lists.Window(where, clock_offset)
    below = above = floor = None
    if where.ids is None and window.low is not None:
        below = _id_of(connection, "nearest_below", id=str(window.low), rows=lists.NEAREST_ROWS)
    if where.ids is None and window.high is not None:
        above = _id_of(connection, "nearest_above", id=str(window.high), rows=lists.NEAREST_ROWS)
    if lists.searches(where):
        floor = _id_of(connection, "search_floor", rows=lists.SEARCHED_ROWS)
    regions = lists.narrowed(window.regions(time.time(), below, above), above=floor)
    if where.ids is not None or lists.wants_walk(where):
        return _Listing(where, None, regions, walks=True)
    known = None
    if lists.wants_known_names(where):
        known = values_of(
            connection, SQL["known_names"], {"prefix": where.name_prefix or "", "most": lists.KNOWN_NAMES}
        )
    names = lists.names_of(where, known)
    pending = _pending(connection, where) if lists.arms(where, names is not None).pending else 0
    walks = lists.needs_walk(where, names is not None) or pending > lists.SORTED_ROWS
    return _Listing(where, names, regions, walks=walks, crowded=not walks and pending > lists.WALKED_ROWS)


def _id_of(connection: apsw.Connection, query: str, **parameters: Any) -> UUID | None:
    text: str | None = connection.execute(SQL[query], parameters).get
    return None if text is None else UUID(text)


def _pending(connection: apsw.Connection, where: Filter) -> int:
    named = filters.names_given(where)
    query = _composed("count_ready", (), tuple(named), (), 0, "")
    parameters = {**filters.parameters(where, named), "most": lists.SORTED_ROWS + 1}
    ready: int = connection.execute(query, parameters).get
    waiting: int = connection.execute(SQL["count_waiting"], {"most": lists.SORTED_ROWS + 1}).get
    return ready + waiting


class _Listing:
    """A filter, ready to be made into a statement."""

    def __init__(
        self, where: Filter, names: list[str] | None, regions: list[Region], *, walks: bool, crowded: bool = False
    ) -> None:
        self._where = where
        self._names = names
        self._walks = walks
        self.crowded = crowded
        """There is much to sort."""
        self.regions = regions
        self._conditions = filters.conditions(where)
        self._wanted = lists.arms(where, names is not None)

    def narrow(self, *, above: UUID | None, below: UUID | None) -> None:
        """For the page behind a cursor."""
        self.regions = lists.narrowed(self.regions, above=above, below=below)

    def walking(self, end: UUID | None, oldest_first: bool) -> _Listing:
        """The same by the primary key, up to an id."""
        regions = lists.narrowed(self.regions, above=None if oldest_first else end, below=end if oldest_first else None)
        return _Listing(self._where, None, regions, walks=True)

    def text(self, query: str, order: str) -> str:
        return _composed(
            query,
            tuple(self._arms()),
            tuple(filters.names_given(self._where)),
            tuple(self._conditions),
            len(self.regions),
            order,
        )

    def parameters(self) -> dict[str, Any]:
        regions = [(str(region.low), str(region.high)) for region in self.regions]
        arms = self._arms()
        found: dict[str, Any] = filters.parameters(self._where, self._conditions)
        if "range_walk" in arms:
            found["walks"] = json.dumps(regions)
        else:
            for number, (low, high) in enumerate(regions):
                found[f"low{number}"], found[f"high{number}"] = low, high
        if "range_finished" in arms:
            found["finished"] = json.dumps(
                [
                    (name, state, *region)
                    for name in self._names or ()
                    for state in self._wanted.finished
                    for region in regions
                ]
            )
        if "range_failed" in arms:
            found["failed"] = json.dumps([(*kind, *region) for kind in self._wanted.failed for region in regions])
        return found

    def _arms(self) -> list[str]:
        if self._where.ids is not None:
            return ["arm_ids"]
        if self._walks:
            return ["range_walk"]
        found = ["arm_odd"]
        if self._wanted.finished:
            found.append("range_finished")
        if self._wanted.failed:
            found.append("range_failed")
        if self._wanted.running:
            found.append("arm_running")
        if self._wanted.pending:
            found += ["arm_ready", "arm_waiting"]
        return found


@lru_cache(maxsize=256)
def _composed(
    query: str, arms: tuple[str, ...], named: tuple[str, ...], conditions: tuple[str, ...], regions: int, order: str
) -> str:
    """A statement from parts that are all ours."""
    within = " OR ".join(f"f.id BETWEEN :low{number} AND :high{number}" for number in range(regions))
    text = SQL[query].replace("<arms>", " UNION ALL ".join(_arm(name, query) for name in arms))
    text = text.replace("<where>", filters.joined(conditions)).replace("<named>", filters.joined(named))
    return text.replace("<within>", f"({within})").replace("<order>", order)


def _arm(name: str, query: str) -> str:
    listed = query == "list"
    if name not in _RANGED:
        return SQL[name] if listed else SQL.get(f"{name}_counted", SQL[name])
    text = SQL["ranged_list" if listed else "ranged_count"].replace("<ranges>", _RANGED[name])
    return text.replace("<range>", SQL[name].replace("<on>", "WHERE" if listed else "ON"))
