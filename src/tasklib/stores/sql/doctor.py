"""What the check-up looks at on every SQL engine: the tables, and what waits and runs in them."""

from __future__ import annotations

from datetime import timedelta

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.checkup import LEASE_ENDS_SOON, leases, no_tables, unhandled, wrong_schema
from tasklib.stores.sql.migrate import Migrations
from tasklib.stores.sql.steps import Query, Steps
from tasklib.stores.values import Finding


def tables(migrations: Migrations, where: str = "") -> Steps[Finding]:
    try:
        there = yield from migrations.check()
    except SchemaMismatch as error:
        return wrong_schema(error)
    return Finding("ok", "schema", f"version {migrations.newest}{where}") if there else no_tables()


def queue() -> Steps[list[Finding]]:
    names = [name for [name] in (yield Query("unhandled"))]
    [counts] = yield Query("leases", soon=timedelta(seconds=LEASE_ENDS_SOON))
    return [unhandled(names), leases(*counts)]
