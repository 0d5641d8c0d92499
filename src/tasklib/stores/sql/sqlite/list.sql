-- What of lists is SQLite's own: see ../sql/lists.sql.

-- name: list_finished
SELECT found.value AS id FROM json_each(:kind_names) AS k CROSS JOIN json_each((
    SELECT json_group_array(id) FROM (
        SELECT t.id FROM tasks AS t INDEXED BY ix_tasks_finished
        WHERE t.completed_at IS NOT NULL AND t.name = k.value AND t.state = :kind_states ->> k.key
            AND t.id BETWEEN :low AND :high AND {where}
        {order} LIMIT :top
    )
)) AS found

-- name: count_finished
SELECT count(*) FROM (
    SELECT 1 FROM json_each(:kind_names) AS k CROSS JOIN tasks AS t INDEXED BY ix_tasks_finished
    WHERE t.completed_at IS NOT NULL AND t.name = k.value AND t.state = :kind_states ->> k.key
        AND t.id BETWEEN :low AND :high
    LIMIT :top
)

-- name: where_tags
-- `:tags` are pairs of a key and the values that it may have.
NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS wanted
    WHERE NOT EXISTS (
        SELECT 1 FROM json_each(t.tags) AS tag CROSS JOIN json_each(wanted.value, '$[1]') AS choice
        WHERE tag.key = wanted.value ->> 0 AND CASE
            WHEN tag.type IN ('integer', 'real')
                THEN choice.type IN ('integer', 'real') AND tag.value = choice.value
            WHEN tag.type <> choice.type THEN 0
            WHEN tag.type IN ('object', 'array') THEN same_json(tag.value, choice.value)
            ELSE tag.value IS choice.value
        END
    )
)

-- name: where_error_text
-- SQLite itself folds the case of ASCII letters only.
CASE WHEN length(:error_text) = length(CAST(:error_text AS blob))
    THEN instr(lower(t.error), lower(:error_text)) > 0
    ELSE t.error IS NOT NULL AND contains_letters(t.error, :error_text)
END

-- name: where_short_ids
substr(t.id, -12) IN (SELECT value FROM json_each(:short_ids))

-- name: where_payload
-- `:payload` are pairs of a path and the values that may be there. The length of a text is known without reading it.
(octet_length(t.kwargs) <= :payload_bytes
    AND instr(t.kwargs, :payload_key_hint) > 0 AND instr(t.kwargs, :payload_value_hint) > 0
    AND holds_values(t.kwargs, :payload))

-- name: where_words
-- The whole row as one text tells which are worth a closer look.
NOT EXISTS (
    SELECT 1 FROM json_each(:words) AS w
    WHERE NOT (
        instr(lower(
            t.name || char(10) || t.id || char(10) || coalesce(t.idempotency_key, '') || char(10) || coalesce(t.error, '')
            || char(10) || t.tags || iif(octet_length(t.kwargs) <= :payload_bytes, char(10) || t.kwargs, '')
        ), :words_hint ->> w.key) > 0
        AND holds_word(
            w.value, t.id, t.name, t.idempotency_key, t.error, t.tags,
            iif(octet_length(t.kwargs) <= :payload_bytes, t.kwargs, 'null'), :secret_keys
        )
    )
)

-- name: run_time
CASE t.state WHEN 'running' THEN (julianday({now}) - julianday(t.started_at)) * 86400000 ELSE t.run_ms END
