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

-- name: where_ids
t.id = ANY (:ids::uuid[])

-- name: where_names
t.name = ANY (:names::text[])

-- name: where_states
t.state = ANY (:states::text[])

-- name: where_tags
-- The first is for speed, the second says it: a pair is there as a whole, or not at all.
(t.tags @> :tags::jsonb AND NOT EXISTS (
    SELECT FROM jsonb_each(:tags::jsonb) AS wanted WHERE t.tags -> wanted.key IS DISTINCT FROM wanted.value
))

-- name: where_error_text
strpos(lower(t.error), lower(:error_text::text)) > 0
