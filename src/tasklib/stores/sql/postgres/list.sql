-- What of lists is PostgreSQL's own: see ../sql/lists.sql.

-- name: list_finished
SELECT f.id
FROM unnest(:kind_names::text[], :kind_states::text[]) AS k (name, state)
CROSS JOIN LATERAL (
    SELECT t.id FROM {schema}.tasks AS t
    WHERE t.completed_at IS NOT NULL AND t.name = k.name AND t.state = k.state
        AND t.id BETWEEN :low AND :high AND {where}
    {order} LIMIT :top
) AS f

-- name: count_finished
SELECT count(*) FROM (
    SELECT 1
    FROM unnest(:kind_names::text[], :kind_states::text[]) AS k (name, state)
    CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.tasks AS t
        WHERE t.completed_at IS NOT NULL AND t.name = k.name AND t.state = k.state AND t.id BETWEEN :low AND :high
        LIMIT :top
    ) AS f
    LIMIT :top
) AS finished

-- name: where_tags
-- `:tags` are pairs of a key and the values that it may have. A value is there as a whole, or not at all.
NOT EXISTS (
    SELECT FROM jsonb_array_elements(:tags::jsonb) AS wanted
    WHERE NOT EXISTS (
        SELECT FROM jsonb_array_elements(wanted.value -> 1) AS choice
        WHERE t.tags -> (wanted.value ->> 0) = choice.value
    )
)

-- name: where_error_text
strpos(lower(t.error), lower(:error_text::text)) > 0

-- name: where_short_ids
right(t.id::text, 12) = ANY (:short_ids::text[])

-- name: where_payload
-- `:payload` are pairs of a path and the values that may be there. What is large lies elsewhere, and is not fetched.
CASE WHEN pg_column_size(t.kwargs) > :payload_bytes THEN false ELSE NOT EXISTS (
    SELECT FROM jsonb_array_elements(:payload::jsonb) AS wanted
    WHERE NOT EXISTS (
        SELECT FROM jsonb_array_elements(wanted.value -> 1) AS choice
        WHERE t.kwargs #> ARRAY(SELECT jsonb_array_elements_text(wanted.value -> 0)) = choice.value
    )
) AND octet_length(t.kwargs::text) <= :payload_bytes END

-- name: where_words
-- The whole row as one text tells which are worth a closer look: what `words.is_found` says, in SQL. Hints are ASCII, for
-- which "C" is enough, and quicker.
CASE WHEN lower(concat_ws(
    E'\n', t.name, t.id, t.idempotency_key, t.error, t.tags,
    CASE WHEN pg_column_size(t.kwargs) <= :payload_bytes THEN t.kwargs END
) COLLATE "C") LIKE ALL (:words_like::text[]) THEN NOT EXISTS (
    SELECT FROM (SELECT lower(word) AS word FROM unnest(:words::text[]) AS given (word)) AS w
    WHERE NOT CASE
        WHEN strpos(lower(t.name), w.word) > 0 OR right(t.id::text, 12) = w.word
            OR strpos(lower(t.idempotency_key), w.word) > 0 OR strpos(lower(t.error), w.word) > 0 THEN true
        WHEN :secret_names::text IS NULL THEN false
        ELSE EXISTS (
            WITH RECURSIVE part (value) AS (
                SELECT jsonb_build_array(t.tags, CASE
                    WHEN pg_column_size(t.kwargs) > :payload_bytes THEN NULL
                    WHEN octet_length(t.kwargs::text) <= :payload_bytes THEN t.kwargs
                END)
                UNION ALL
                SELECT inner_part.value FROM part CROSS JOIN LATERAL (
                    SELECT item.value
                    FROM jsonb_array_elements(CASE jsonb_typeof(part.value) WHEN 'array' THEN part.value END) AS item
                    UNION ALL
                    SELECT pair.value
                    FROM jsonb_each(CASE jsonb_typeof(part.value) WHEN 'object' THEN part.value END) AS pair
                    WHERE '_' || lower(regexp_replace(regexp_replace(
                        pair.key,
                        '([a-z])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])|([A-Za-z])(?=[0-9])|([0-9])(?=[A-Za-z])',
                        '\1\2\3\4_', 'g'
                    ), '[^A-Za-z0-9]+', '_', 'g')) || '_' !~ :secret_names
                ) AS inner_part
            )
            SELECT FROM part
            WHERE jsonb_typeof(value) IN ('string', 'number') AND CASE
                WHEN value #>> '{}' ~ '[:=]|Bearer ' THEN lower(value #>> '{}') = w.word
                ELSE strpos(lower(value #>> '{}'), w.word) > 0
            END
        )
    END
) ELSE false END

-- name: run_time
CASE t.state WHEN 'running' THEN extract(epoch FROM {now} - t.started_at) * 1000 ELSE t.run_ms END
