"""Adds what workers tell of their task types. Copy this file into your own `versions` folder, beside the first one; set
`down_revision` to your last revision if there are others after that.

It makes exactly what tasklib would make itself. For a schema of its own (`?schema=billing` in tasklib's URL) change
SCHEMA.
"""

from alembic import op

from tasklib.contrib.sqlalchemy import migration

revision = "tasklib_002"
down_revision = "tasklib_001"
branch_labels = None
depends_on = None

SCHEMA = "public"


def upgrade() -> None:
    for statement in migration(2, SCHEMA):
        op.execute(statement)


def downgrade() -> None:
    op.execute(f"DROP TABLE {SCHEMA}.task_types")
    op.execute(f"ALTER TABLE {SCHEMA}.task_workers DROP COLUMN queues")
    op.execute(f"DROP INDEX {SCHEMA}.ix_tasks_retrying")
    for statement in migration(1, SCHEMA):
        if "INDEX ix_tasks_failed " in statement or "INDEX ix_tasks_odd " in statement:
            op.execute(statement)
    op.execute("DELETE FROM {schema}.task_migrations WHERE version = 2".replace("{schema}", SCHEMA))
