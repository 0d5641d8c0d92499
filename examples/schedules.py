"""Recurring work: declared with the task, or set by a call. Run it as a worker: `python examples/schedules.py`.

Ctrl-C ends it; what is scheduled stays in the queue. Start it twice: each time is fired once.
"""

import asyncio
import logging

import tasklib
from tasklib import cron, current_task, every, task


@task(schedule=every(seconds=5))
def heartbeat() -> None:
    print(f"heartbeat for {current_task().slot}", flush=True)


@task(schedule=cron("30 3 * * 1-5", timezone="Europe/Berlin", missed="latest"))
def nightly() -> None:
    print("cleaning up")


@task
def report(customer: int) -> None:
    print(f"a report for customer {customer}")


async def main() -> None:
    logging.basicConfig(level=logging.INFO)
    tasklib.init(tasklib.Config())

    # One for each customer, with its own time zone. A run that takes longer than a week is not started beside itself.
    for customer, zone in ((42, "America/New_York"), (43, "Asia/Tokyo")):
        monday = cron("0 8 * * 1", timezone=zone, overlap="skip")
        handle = await report.schedule_async(f"report-{customer}", monday)(customer)
        print(f"{handle.name} is due at {(await handle.next_async())[0]}", flush=True)

    await tasklib.TaskWorker(concurrency=4).run()


if __name__ == "__main__":
    asyncio.run(main())
