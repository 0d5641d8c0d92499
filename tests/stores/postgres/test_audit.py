"""What PostgreSQL refuses to keep in the audit trail is not done."""

import psycopg
import pytest

from tasklib.core.errors import StoreError
from tasklib.stores.sql.postgres.store import PostgresStore
from tasklib.stores.values import AuditEntry
from tests.conformance.access import made_token

ENTRY = AuditEntry(actor="ada", action="act")


async def test_a_token_and_its_entry_are_one_transaction(store: PostgresStore, postgres_server: str, schema: str):
    await store.add_token(made_token("old"))
    before = await store.tokens()
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"ALTER TABLE {schema}.task_audit ADD CONSTRAINT no_entry CHECK (actor <> 'ada')".encode())
    with pytest.raises(StoreError):
        await store.add_token(made_token("new"), audit=[ENTRY])
    with pytest.raises(StoreError):
        await store.revoke_token("old", audit=[ENTRY])
    assert await store.tokens() == before
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"ALTER TABLE {schema}.task_audit DROP CONSTRAINT no_entry".encode())
    await store.add_token(made_token("new"), audit=[ENTRY])
    assert await store.revoke_token("old", audit=[ENTRY])
    assert len(await store.list_audit()) == 2
