"""Tokens of the REST API, and the audit trail: who did what."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasklib.core.errors import StoreError
from tasklib.stores.sql.columns import AUDIT, NEW_AUDIT, TOKEN, Batch
from tasklib.stores.sql.steps import BEGIN, Query, Steps, T
from tasklib.stores.values import Audit, AuditEntry, Token


def add_token(token: Token, audit: Sequence[AuditEntry]) -> Steps[None]:
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


def revoke_token(token_id: str, audit: Sequence[AuditEntry]) -> Steps[bool]:
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
    rows = [(entry.actor, entry.action, entry.task_id, entry.name, entry.detail) for entry in entries]
    if rows:
        yield Query("add_audit", batch=Batch(NEW_AUDIT, rows))


def list_audit(task_id: UUID | None, limit: int) -> Steps[list[AuditEntry]]:
    if task_id is None:
        found: list[AuditEntry] = yield Query("list_audit", AUDIT, limit=limit)
    else:
        found = yield Query("list_audit_of_task", AUDIT, limit=limit, task_id=task_id)
    return found
