"""The version of the tables, and the way to the newest."""

from __future__ import annotations

from tasklib.core.errors import SchemaMismatch
from tasklib.stores.sql.queries import Step, load_steps
from tasklib.stores.sql.steps import Query, Script, Steps

STEPS = {engine: load_steps(engine) for engine in ("postgres", "sqlite")}


class Migrations:
    """Those of one engine, for one schema.

    `where` and `elsewhere` are for people: where the tables are, and what to do if others are there."""

    def __init__(self, engine: str, schema: str, *, where: str, elsewhere: str) -> None:
        self._engine = engine
        self._schema = schema
        self._where = where
        self._elsewhere = elsewhere

    @property
    def newest(self) -> int:
        return STEPS[self._engine][-1].version

    def scripts(self) -> list[tuple[str, str]]:
        return [(step.name, step.script(self._schema)) for step in STEPS[self._engine]]

    def version(self) -> Steps[int | None]:
        """None: there are no tables yet. Raises SchemaMismatch for those of others, and for newer ones."""
        tables = [name for [name] in (yield Query("own_tables"))]
        if "task_migrations" not in tables:
            if tables:
                raise SchemaMismatch(f"{self._where} has a table named tasks that is not tasklib's; {self._elsewhere}")
            return None
        [[found]] = yield Query("schema_version")
        if found > self.newest:
            raise SchemaMismatch(
                f"the tables in {self._where} are at version {found}, newer than this tasklib knows ({self.newest}); "
                "upgrade tasklib"
            )
        return int(found)

    def check(self) -> Steps[bool]:
        """Whether there are tables. Raises SchemaMismatch unless this tasklib can work with them."""
        found = yield from self.version()
        if found is not None and found < self.newest:
            raise SchemaMismatch(
                f"the tables in {self._where} are at version {found}, this tasklib needs {self.newest}; "
                "run: tasklib migrate"
            )
        return found is not None

    def missing(self) -> Steps[list[str]]:
        return [step.name for step in self._behind((yield from self.version()))]

    def migrate(self) -> Steps[list[str]]:
        """Inside a transaction that nobody else migrates in."""
        steps = self._behind((yield from self.version()))
        for step in steps:
            yield Script(step.sql.replace("{schema}", self._schema))
            yield Query("record_migration", version=step.version, name=step.name)
        return [step.name for step in steps]

    def _behind(self, version: int | None) -> list[Step]:
        return [step for step in STEPS[self._engine] if step.version > (version or 0)]
