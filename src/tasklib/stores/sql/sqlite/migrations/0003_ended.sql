-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it. With the state, so that the index alone says how far a list looks.
CREATE INDEX ix_tasks_ended ON tasks (completed_at, id, state) WHERE completed_at IS NOT NULL AND state <> 'completed';
