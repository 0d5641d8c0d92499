-- tasklib's schema, third step: what failed or was cancelled, by when it ended. To be applied after 002_add_task_types.sql.
-- The same as what `tasklib migrate` does, in one transaction; the Alembic form is 003_add_ended_index.py.
--
--     psql --set ON_ERROR_STOP=1 --single-transaction --file 003_add_ended_index.sql "$DATABASE_URL"
--
-- For a schema of its own (?schema=billing in tasklib's URL):  sed 's/public\./billing./g' 003_add_ended_index.sql
--
-- To undo it:
--     DROP INDEX public.ix_tasks_ended;
--     DELETE FROM public.task_migrations WHERE version = 3;

-- What failed for good or was cancelled, by when it ended: "what failed in the last hour". Completed tasks are not in it, so
-- that only failures pay for it.
CREATE INDEX ix_tasks_ended ON public.tasks (completed_at, id)
    WHERE completed_at IS NOT NULL AND state <> 'completed';

INSERT INTO public.task_migrations (version, name) VALUES (3, '0003_ended');
