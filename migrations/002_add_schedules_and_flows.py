"""Adds what schedules, flows and unique tasks need, and what workers tell of their task types. Copy this file into your
own `versions` folder, beside the first one; set `down_revision` to your last revision if there are others after that.

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

TABLES = ("task_steps", "task_keys", "task_schedules", "task_types", "task_alerts")
COLUMNS = {
    "task_workers": ("queues", "version", "drain_requested_at", "drain_requested_by"),
    "task_controls": ("paused_by", "paused_at"),
    "task_audit": ("bulk_id", "done"),
    "tasks": (
        *("waits", "after", "feeds", "flow_id", "key", "unique_key", "unique_until", "progress", "expires_at"),
        *("last_worker_id", "run_ms", "copy_of"),
    ),
}


def upgrade() -> None:
    for statement in migration(2, SCHEMA):
        op.execute(statement)


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table, schema=SCHEMA)
    for table, columns in COLUMNS.items():
        for column in columns:
            op.drop_column(table, column, schema=SCHEMA)
    for index in ("ix_tasks_ended", "ix_tasks_retrying"):
        op.execute(f"DROP INDEX {SCHEMA}.{index}")
    for statement in migration(1, SCHEMA):
        if "INDEX ix_tasks_failed " in statement or "INDEX ix_tasks_odd " in statement:
            op.execute(statement)
    op.execute("DELETE FROM {schema}.task_migrations WHERE version = 2".replace("{schema}", SCHEMA))
