-- Tokens of the REST API, and who did what.

-- name: add_token
INSERT INTO {schema}.task_tokens (id, label, role, digest, created_at)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5::interval)
ON CONFLICT (id) DO NOTHING;

-- name: tokens
SELECT id, label, role, digest, created_at, revoked_at FROM {schema}.task_tokens ORDER BY created_at, id;

-- name: revoke_token
UPDATE {schema}.task_tokens SET revoked_at = clock_timestamp() + $2::interval WHERE id = $1 AND revoked_at IS NULL
RETURNING id;

-- name: note
INSERT INTO {schema}.task_audit (at, actor, action, task_id, name, detail)
SELECT clock_timestamp() + $6::interval, actor, action, task_id, name, detail
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::jsonb[]) AS e (actor, action, task_id, name, detail);

-- name: noted
SELECT at, actor, action, task_id, name, detail FROM {schema}.task_audit ORDER BY number DESC LIMIT $1;

-- name: noted_of_task
SELECT at, actor, action, task_id, name, detail FROM {schema}.task_audit
WHERE task_id = $2 ORDER BY number DESC LIMIT $1;
