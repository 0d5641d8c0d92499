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
