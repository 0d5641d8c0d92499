-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it.
CREATE INDEX ix_tasks_ended ON {schema}.tasks (completed_at, id)
    WHERE completed_at IS NOT NULL AND state <> 'completed';
