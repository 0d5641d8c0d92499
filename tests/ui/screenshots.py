"""Pictures of every page for the docs: light, dark and on a phone, from a made-up shop's last two hours.

python -m tests.ui.screenshots docs/images
"""

import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from tasklib import Config
from tasklib.core.task import Claim
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest, ControlChange, WorkerHeartbeat
from tests.conformance.builders import completed, failed, new_task
from tests.server.serving import serving
from tests.ui.chromium import find_or_install
from tests.ui.site import TOKEN, Site

MINUTES = 120
TYPES = {"send_email": 26, "resize_image": 14, "charge_card": 9, "sync_inventory": 4, "build_report": 1}
"""How many of each are submitted in a minute, on average."""
RUN_MS = {"send_email": 80, "resize_image": 400, "charge_card": 900, "sync_inventory": 2_500, "build_report": 20_000}
WORKERS = {
    "web-1/4711-a3f9": ("web-1", tuple(TYPES)),
    "web-2/1903-77c0": ("web-2", tuple(TYPES)),
    "batch-1/88-e41b": ("batch-1", ("build_report", "sync_inventory")),
}
GONE = "web-3/2200-19ad"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/shop/tasks.py", line 88, in charge_card
    receipt = gateway.charge(order.total, card, idempotency_key=order.id)
  File "/srv/shop/gateway.py", line 41, in charge
    raise GatewayTimeout(f"no answer from {self.host} within {self.timeout} s")
shop.gateway.GatewayTimeout: no answer from pay.example.com within 10 s
"""

VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}


async def live(engine: Engine, rng: random.Random) -> str:
    """Two hours of the shop, by moving the clock; the id of a task with something to tell."""
    store = await engine.store()
    await gone(store)
    task = ""
    for minute in range(MINUTES):
        engine.advance(60)
        rush = 2.2 if 70 < minute < 85 else 1.0
        for name, usual in TYPES.items():
            number = max(0, round(rng.gauss(usual * rush, usual**0.5)))
            await store.insert([new_task(name, payload_of(name, rng), max_retries=2) for _ in range(number)])
        await store.sample_backlog()
        if minute == MINUTES - 1:
            task = await a_failure(store)
        await work(store, rng, trouble=0.02 if rush == 1.0 else 0.12, share=0.9 if rush == 1.0 else 0.6)
    await leave_some(store, rng)
    return task


def payload_of(name: str, rng: random.Random) -> dict[str, Any]:
    order = rng.randrange(10_000, 99_999)
    payloads: dict[str, dict[str, Any]] = {
        "send_email": {"to": f"customer{order}@example.com", "template": "receipt", "order": order},
        "resize_image": {"image": f"products/{order}.jpg", "sizes": [200, 800, 1600]},
        "charge_card": {"order": order, "amount": "49.90", "card": {"token": "tok_7Yx", "network": "visa"}},
        "sync_inventory": {"warehouse": rng.choice(["north", "south"]), "since": "2026-01-31T12:00:00Z"},
        "build_report": {"month": "2026-01", "format": "pdf"},
    }
    return payloads[name]


async def work(store: Store, rng: random.Random, *, trouble: float, share: float) -> None:
    for worker, (_, names) in WORKERS.items():
        request = ClaimRequest(worker_id=worker, names=names, slots=100, lease_seconds=600)
        claims = (await store.claim(request)).claims
        keep = round(len(claims) * share)
        await store.settle([settled(claim, rng, trouble) for claim in claims[:keep]])
        await store.settle([settled(claim, rng, 0.0) for claim in claims[keep:]])


def settled(claim: Claim, rng: random.Random, trouble: float) -> Any:
    run_ms = round(RUN_MS[claim.name] * rng.lognormvariate(0, 0.6))
    if rng.random() < trouble:
        return failed(claim, TRACEBACK, delay=30 * 4**claim.retry_count, run_ms=10_000)
    return completed(claim, {"ok": True}, run_ms=run_ms)


async def gone(store: Store) -> None:
    beat = WorkerHeartbeat(id=GONE, hostname="web-3", pid=2200, names=tuple(TYPES), concurrency=8, running=1)
    await store.heartbeat(beat)


async def leave_some(store: Store, rng: random.Random) -> None:
    """Something of each kind: what waits, what runs, and a type that nobody handles."""
    for name in TYPES:
        await store.insert([new_task(name, payload_of(name, rng)) for _ in range(rng.randrange(3, 12))])
    await store.insert([new_task("send_email", payload_of("send_email", rng), delay_seconds=3600) for _ in range(5)])
    await store.insert([new_task("print_label", {"order": 4711}) for _ in range(3)])
    for worker, (_, names) in WORKERS.items():
        await store.claim(ClaimRequest(worker_id=worker, names=names, slots=3, lease_seconds=600))
    await store.control(ControlChange(name="charge_card", operator_rate=10, concurrency=4))
    await store.control(ControlChange(name="resize_image", default_rate=50))


async def a_failure(store: Store) -> str:
    """Three attempts, all in vain."""
    made = new_task("refund", {"order": 4711, "amount": "49.90", "reference": 2**64 + 1}, max_retries=2)
    await store.insert([made])
    for attempt in range(3):
        request = ClaimRequest(worker_id="web-1/4711-a3f9", names=["refund"], slots=1)
        (claim,) = (await store.claim(request)).claims
        store.clock_offset += 5
        await store.settle([failed(claim, TRACEBACK, delay=0, final=attempt == 2, run_ms=10_000)])
    return str(made.id)


async def beat(store: Store) -> None:
    for worker, (host, names) in WORKERS.items():
        pid = int(worker.partition("/")[2].partition("-")[0])
        await store.heartbeat(WorkerHeartbeat(id=worker, hostname=host, pid=pid, names=names, concurrency=8, running=3))


async def take(browser: Browser, site: Site, folder: Path, task: str, ready: Callable[[], Awaitable[None]]) -> None:
    pages = {
        "tasks": "/tasks",
        "search": f"/tasks?q={'status:failed'}",
        "task": f"/tasks/{task}",
        "stats": "/stats",
        "workers": "/workers",
        "types": "/types",
        "schedules": "/schedules",
    }
    for view, options in VIEWS.items():
        context = await browser.new_context(**options, reduced_motion="reduce")
        page = await context.new_page()
        await site.sign_in(page)
        for name, path in pages.items():
            await ready()
            await page.goto(f"{site.url}{path}")
            await settle_down(page)
            await page.screenshot(path=folder / f"{name}-{view}.png")
            sys.stdout.write(f"{name}-{view}.png\n")
        await context.close()


async def settle_down(page: Page) -> None:
    await page.get_by_role("heading", level=1).wait_for()
    await page.wait_for_function("document.querySelectorAll('[aria-busy=true]').length === 0")
    await page.wait_for_timeout(700)  # charts draw themselves


async def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as scratch:
        url = f"sqlite:///{scratch}/shop.db"
        engine = Engine(Config(database_url=url), clock_offset=-60.0 * MINUTES - 20)
        task = await live(engine, rng)
        store = await engine.store()

        async def ready() -> None:
            store.clock_offset = 0.0
            await beat(store)

        async with async_playwright() as playwright:
            found = find_or_install(Path(playwright.chromium.executable_path))
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=found, args=arguments)
            env = {"TASKLIB_DATABASE_URL": url, "TASKLIB_TOKEN": TOKEN, "TASKLIB_ENVIRONMENT": "production"}
            with serving(Path(scratch), env=env) as server:
                site = Site(server.url, Path(scratch), env)
                await take(browser, site, folder, task, ready)
            await browser.close()
        await engine.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
