-- Tokens of the REST API, and who did what.

-- name: add_token
INSERT INTO task_tokens (id, label, role, digest, created_at)
VALUES (:id, :label, :role, :digest, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset))

-- name: tokens
SELECT json_group_array(json_array(id, label, role, digest, created_at, revoked_at))
FROM (SELECT * FROM task_tokens ORDER BY created_at, id)

-- name: revoke_token
UPDATE task_tokens SET revoked_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset) WHERE id = :id AND revoked_at IS NULL

-- name: note
INSERT INTO task_audit (at, actor, action, task_id, name, detail)
VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :offset), :actor, :action, :task_id, :name, :detail)

-- name: noted
SELECT json_group_array(json_array(at, actor, action, task_id, name, detail))
FROM (SELECT * FROM task_audit ORDER BY number DESC LIMIT :limit)

-- name: noted_of_task
SELECT json_group_array(json_array(at, actor, action, task_id, name, detail))
FROM (SELECT * FROM task_audit WHERE task_id = :task_id ORDER BY number DESC LIMIT :limit)
