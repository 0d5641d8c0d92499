"""Entries of the audit trail, in one person's name. The store keeps them with the action itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from tasklib.core import codec
from tasklib.core.task import Task
from tasklib.stores.values import Audit, AuditEntry


@dataclass(frozen=True, slots=True)
class Auditor:
    """Writes down who has done what."""

    actor: str
    redact: Callable[[Any], Any]

    def entry(self, action: str, *, name: str | None = None, detail: Any = None) -> AuditEntry:
        """Of what is done to a type, a worker, or to all."""
        text = codec.encode(self.redact({} if detail is None else detail), field="detail")
        return AuditEntry(actor=self.actor, action=action, name=name, detail=text)

    def of_tasks(self, action: str, *, detail: Any = None) -> Audit[Task]:
        """One for each task, so that its own timeline tells."""
        entry = self.entry(action, detail=detail)
        return lambda tasks: [replace(entry, task_id=task.id, name=task.name) for task in tasks]

    def of_bulk(self, action: str, bulk_id: UUID, asked: dict[str, Any]) -> Audit[Task]:
        """One for each task, and for each batch one for each type in it, so that whoever looks at a type finds the mass
        action; all under its id."""
        of_tasks = self.of_tasks(action, detail={"bulk": True})

        def audit(tasks: Sequence[Task]) -> Sequence[AuditEntry]:
            by_type = Counter(task.name for task in tasks)
            told = [*of_tasks(tasks)]
            for name, done in by_type.items():
                of_type = self.entry(f"bulk-{action}", name=name, detail={"filter": asked, "done": done})
                told.append(replace(of_type, done=done))
            return [replace(entry, bulk_id=bulk_id) for entry in told]

        return audit

    def of_clean_up(self, bulk_id: UUID, asked: dict[str, Any]) -> Audit[str]:
        """One for each batch, with how many of each state it deleted."""

        def audit(gone: Sequence[str]) -> Sequence[AuditEntry]:
            by_status = {state: gone.count(state) for state in dict.fromkeys(gone)}
            entry = self.entry("cleanup", detail={**asked, "deleted": len(gone), "byStatus": by_status})
            return [replace(entry, bulk_id=bulk_id, done=len(gone))]

        return audit
