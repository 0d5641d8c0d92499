"""Tokens of the REST API, and the audit trail: who did what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tasklib.core.errors import InvalidValue, StoreError
from tasklib.stores.sql.columns import AUDIT, NEW_AUDIT, TOKEN, Batch
from tasklib.stores.sql.steps import BEGIN, Bound, Query, Steps, T
from tasklib.stores.values import Audit, AuditEntry, AuditFilter, Token

_NUMBER = re.compile("[0-9]{1,18}")


def add_token(token: Token, *, audit: Sequence[AuditEntry] = ()) -> Steps[None]:
    """Sent again after a lost reply, it finds itself there."""
    if audit:
        yield BEGIN
    made = yield Query("add_token", id=token.id, label=token.label, role=token.role, digest=token.digest)
    if not made and (token.id, token.digest) not in [(each.id, each.digest) for each in (yield from tokens())]:
        raise StoreError(f"there is a token {token.id!r} already")
    if made:
        yield from add_audit(audit)


def tokens() -> Steps[list[Token]]:
    found: list[Token] = yield Query("tokens", TOKEN)
    return found


def revoke_token(token_id: str, *, audit: Sequence[AuditEntry] = ()) -> Steps[bool]:
    if audit:
        yield BEGIN
    revoked = yield Query("revoke_token", id=token_id)
    if revoked:
        yield from add_audit(audit)
    return bool(revoked)


def add_audit_of(audit: Audit[T] | None, applied: Sequence[T]) -> Steps[None]:
    if audit is not None and applied:
        yield from add_audit(audit(applied))


def add_audit(entries: Sequence[AuditEntry]) -> Steps[None]:
    rows = [tuple(getattr(entry, name) for name in NEW_AUDIT.names) for entry in entries]
    if rows:
        yield Query("add_audit", batch=Batch(NEW_AUDIT, rows))


def list_audit(where: AuditFilter, limit: int, cursor: str | None) -> Steps[list[AuditEntry]]:
    conditions: dict[str, Any] = {
        "task_id = :task_id": where.task_id,
        "actor = :actor": where.actor,
        "action = :action": where.action,
        "name = :name": where.name,
        "at >= :after": where.after and Bound.of(where.after),
        "at < :before": where.before and Bound.of(where.before),
        "task_id IS NULL AND bulk_id = :bulk_id": where.bulk_id,
        "number < :number": None if cursor is None else _number(cursor),
    }
    asked = {condition: value for condition, value in conditions.items() if value is not None}
    parameters = {condition.rpartition(":")[2]: value for condition, value in asked.items()}
    parts = {"where": " AND ".join(asked) or "true"}
    query = "list_audit"
    if where.folded:
        query = "list_audit_folded"
        parts |= {f"type_of_{each}": "true" if where.name is None else f"{each}.name = :name" for each in "ab"}
    found: list[AuditEntry] = yield Query(query, AUDIT, parts=parts, limit=limit, **parameters)
    return found


def _number(cursor: str) -> int:
    if not _NUMBER.fullmatch(cursor):
        raise InvalidValue(f"cursor: {cursor!r:.60} is none of this audit trail's", field="cursor")
    return int(cursor)
