"""Adds tasklib's tables. Copy this file into your own `versions` folder and set `down_revision` to your last revision.

It makes exactly what tasklib would make itself, so that the application needs no right to create tables. For a schema
of its own (`?schema=billing` in tasklib's URL) change SCHEMA; the schema must exist.
"""

from alembic import op

from tasklib.contrib.sqlalchemy import migration

revision = "tasklib_001"
down_revision = None
branch_labels = None
depends_on = None

SCHEMA = "public"
TABLES = (
    *("tasks", "task_workers", "task_controls", "task_counts", "task_tokens", "task_audit"),
    "task_migrations",
)


def upgrade() -> None:
    for statement in migration(1, SCHEMA):
        op.execute(statement)


def downgrade() -> None:
    """All tasks go with it."""
    for table in TABLES:
        op.execute(f"DROP TABLE {SCHEMA}.{table}")
    for function in ("task_counts_deleted", "task_counts_truncated"):
        op.execute(f"DROP FUNCTION {SCHEMA}.{function}()")
