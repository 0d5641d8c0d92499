"""Adds the index of what failed or was cancelled, by when it ended. Copy this file into your own `versions` folder,
beside the others; set `down_revision` to your last revision if there are others after those.

It makes exactly what tasklib would make itself. For a schema of its own (`?schema=billing` in tasklib's URL) change
SCHEMA.
"""

from alembic import op

from tasklib.contrib.sqlalchemy import migration

revision = "tasklib_003"
down_revision = "tasklib_002"
branch_labels = None
depends_on = None

SCHEMA = "public"


def upgrade() -> None:
    for statement in migration(3, SCHEMA):
        op.execute(statement)


def downgrade() -> None:
    op.execute(f"DROP INDEX {SCHEMA}.ix_tasks_ended")
    op.execute("DELETE FROM {schema}.task_migrations WHERE version = 3".replace("{schema}", SCHEMA))
