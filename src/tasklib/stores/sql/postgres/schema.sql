-- The schema's own state.

-- name: own_tables
SELECT c.relname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = {schema_name} AND c.relname IN ('tasks', 'task_migrations')

-- name: has_schema
SELECT FROM pg_catalog.pg_namespace WHERE nspname = {schema_name}

-- name: create_schema
CREATE SCHEMA {schema}

-- name: migration_lock
SELECT pg_advisory_xact_lock(hashtext('tasklib.migrate'), hashtext({schema_name}))
