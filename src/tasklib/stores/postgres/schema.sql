-- The schema's own state.

-- name: has_tables
-- Whether task_migrations is there, and whether tasks is.
SELECT
    EXISTS (
        SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'task_migrations'
    ),
    EXISTS (
        SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relname = 'tasks'
    );

-- name: schema_version
SELECT max(version) FROM {schema}.task_migrations;

-- name: has_schema
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1);

-- name: create_schema
CREATE SCHEMA {schema};

-- name: migration_lock
SELECT pg_advisory_xact_lock(hashtext('tasklib.migrate'), hashtext({schema_name}));

-- name: record_migration
INSERT INTO {schema}.task_migrations (version, name) VALUES ($1, $2);
