"""Tasks that wait for tasks: a small import as a flow. Run it: `python examples/flows.py`.

It runs a worker until the flow is over, and ends. A page that cannot be read does not stop the report about it.
"""

import asyncio
import logging
import sys

import tasklib
from tasklib import Fail, current_task, flow, task


@task
def find_pages(site: str) -> list[str]:
    return [f"{site}/{name}" for name in ("about", "prices", "gone", "contact")]


@task
async def read_page(pages: list[str], number: int) -> int:
    if pages[number].endswith("gone"):
        raise Fail(f"{pages[number]} answered 404")
    return len(pages[number])


@task
def longest(home: list[str], lengths: list[int]) -> str:
    return f"the longest address of {len(home)} has {max(lengths)} characters"


@task
def report() -> None:
    for parent in current_task().parents():
        outcome = parent.value if parent.state == "completed" else (parent.error or "").splitlines()[-1]
        print(f"{parent.name}: {parent.state}, {outcome}", flush=True)


async def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
    tasklib.init(tasklib.Config())
    async with flow("example.com") as f:
        pages = await find_pages.submit_async("https://example.com")
        lengths = [await read_page.submit_async(pages.output, number) for number in range(4)]
        found = [lengths[number] for number in (0, 1, 3)]
        answer = await longest.submit_async(pages.output, [each.output for each in found])
        await report.options(after=[*lengths, answer], on="end").submit_async()
    worker = asyncio.create_task(tasklib.TaskWorker(concurrency=4, burst=True).run())
    done = await f.wait_async(timeout=60)
    await worker
    print(f"flow {f.id} has {done.status}: {dict(done.counts)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
