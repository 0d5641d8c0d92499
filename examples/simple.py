"""Submit tasks and look at them. `python examples/worker.py` in another terminal runs them.

Both use TASKLIB_DATABASE_URL, or else the file tasklib.db in the directory they are started in.
"""

import asyncio

from tasks import count_words, process_data, send_email

import tasklib


async def main() -> None:
    tasklib.init(tasklib.Config())

    # As soon as a worker is free.
    task_id = await tasklib.submit_task(send_email, to="user@example.com", subject="Welcome!")

    # In ten seconds, ahead of others that are due then, and only once however often this runs.
    await tasklib.submit_task(
        process_data,
        file_path="report.csv",
        delay_seconds=10,
        priority=5,
        tags={"batch": "daily"},
        idempotency_key="report-2025-10-25",
    )

    # The same with arguments that the editor checks; the handle's result has the function's own type.
    handle = await count_words.submit_async("all in one table")

    # A wrong call is refused here, where it is made.
    try:
        await tasklib.submit_task(send_email, to=123)
    except tasklib.TaskValidationError as error:
        print(f"refused: {error}")

    for task in tasklib.list_tasks(limit=10):
        print(task.id, task.name, task.state, task.kwargs)

    print(f"submitted {task_id} and {handle.id}; now start a worker: python examples/worker.py")


if __name__ == "__main__":
    asyncio.run(main())
