"""Pictures for the docs: light, dark and on a phone, from a made-up shop's last two hours. And, to look at before a
change goes out, of every page, also 900 pixels wide.

    python -m tests.ui.screenshots docs/images
    python -m tests.ui.screenshots build/pages --every
    python -m tests.ui.screenshots build/pages --every phone narrow
"""

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from tasklib import Config
from tasklib.core.published import PublishedType
from tasklib.core.task import Claim
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import Store
from tasklib.stores.values import ClaimRequest, ControlChange, Filter, WorkerHeartbeat
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

REPORT = {
    "type": "object",
    "properties": {
        "month": {"type": "string", "description": "As 2026-01"},
        "format": {"enum": ["pdf", "html"], "default": "pdf"},
        "copies": {"type": "integer", "default": 1},
        "recipients": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["month"],
}

VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "device_scale_factor": 2},
}

ALL_VIEWS = VIEWS | {"narrow": {"viewport": {"width": 900, "height": 800}, "color_scheme": "light"}}


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
    letters = [payload_of("send_email", rng) for _ in range(6)]
    campaign = {"campaign": "spring"}
    await store.insert([new_task("send_email", each, delay_seconds=7200, tags=campaign) for each in letters])
    for worker, (_, names) in WORKERS.items():
        await store.claim(ClaimRequest(worker_id=worker, names=names, slots=3, lease_seconds=600))
    await store.insert([new_task("charge_card", payload_of("charge_card", rng), max_retries=4) for _ in range(4)])
    request = ClaimRequest(worker_id="web-2/1903-77c0", names=["charge_card"], slots=4, lease_seconds=600)
    for claim in (await store.claim(request)).claims:
        await store.settle([failed(claim, TRACEBACK, delay=1800, run_ms=10_000)])
    await store.publish([PublishedType("build_report", "{}", json.dumps(REPORT))])
    await store.control(ControlChange(name="charge_card", operator_rate=10, concurrency=4))
    await store.control(ControlChange(name="resize_image", default_rate=50))


async def a_failure(store: Store) -> str:
    """Three attempts, all in vain."""
    made = new_task("refund", {"order": 4711, "amount": "49.90", "reference": 2**64 + 1}, max_retries=2)
    await store.insert([made])
    for attempt in range(3):
        request = ClaimRequest(worker_id="web-1/4711-a3f9", names=["refund"], slots=1)
        (claim,) = (await store.claim(request)).claims
        store.clock_offset += 10
        await store.settle([failed(claim, TRACEBACK, delay=0, final=attempt == 2, run_ms=10_000)])
    return str(made.id)


PARTS = 8
PATIENCE_MS = 60_000


async def a_flow(site: Site, store: Store) -> str:
    """Half done: one of its parts has failed, and what needs that is cut off."""
    clean = [{"ref": f"clean {n}", "type": "clean_orders", "after": ["orders"]} for n in range(PARTS)]
    price = [{"ref": f"price {n}", "type": "price_items", "after": ["stock"]} for n in range(5 * PARTS)]
    tasks: list[dict[str, Any]] = [
        {"ref": "orders", "type": "fetch_orders"},
        {"ref": "stock", "type": "fetch_stock"},
        *clean,
        *price,
        {"ref": "merge", "type": "merge_orders", "after": [each["ref"] for each in clean]},
        {"ref": "index", "type": "build_index", "after": [each["ref"] for each in price]},
        {"ref": "report", "type": "send_report", "after": ["merge", "index"]},
        {"ref": "notify", "type": "notify", "after": ["merge", "index", "orders"], "on": "end"},
    ]
    body = {"name": "import 42", "tasks": [{"payload": {"import": 42}, **each} for each in tasks]}
    flow: str = site.api("POST", "/api/flows", body)["id"]
    for name, slots, done, errors in (
        ("fetch_orders", 1, 1, 0),
        ("fetch_stock", 1, 1, 0),
        ("clean_orders", PARTS - 1, 4, 1),
        ("price_items", 30, 26, 0),
    ):
        request = ClaimRequest(worker_id="web-1/4711-a3f9", names=[name], slots=slots, lease_seconds=600)
        claims = (await store.claim(request)).claims
        await store.settle([completed(claim, {"ok": True}, run_ms=120) for claim in claims[:done]])
        await store.settle([failed(claim, TRACEBACK, final=True) for claim in claims[done : done + errors]])
    return flow


async def operate(site: Site, task: str) -> None:
    """What operators did, and what is scheduled."""
    async with httpx.AsyncClient(base_url=site.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        schedules: dict[str, dict[str, Any]] = {
            "monthly-report": {"type": "build_report", "payload": {"month": "2026-01"}, "cron": "0 3 1 * *"},
            "inventory": {"type": "sync_inventory", "payload": {"warehouse": "north"}, "every": 900},
        }
        for name, schedule in schedules.items():
            (await client.put(f"/api/schedules/{name}", json=schedule)).raise_for_status()
        for path, body in (
            ("/api/tasks/pause", None),
            ("/api/tasks/resume", None),
            ("/api/tasks/bulk/cancel", {"filter": {"tags": {"campaign": "spring"}}}),
            (f"/api/tasks/{task}/copy", {}),
        ):
            (await client.post(path, json=body)).raise_for_status()


async def beat(store: Store) -> None:
    for worker, (host, names) in WORKERS.items():
        pid = int(worker.partition("/")[2].partition("-")[0])
        running = (await store.count(Filter(worker_id=worker), 100)).value
        told = WorkerHeartbeat(id=worker, hostname=host, pid=pid, names=names, concurrency=12, running=running)
        await store.heartbeat(told)


async def take(
    browser: Browser,
    site: Site,
    folder: Path,
    views: dict[str, Any],
    task: str,
    flow: str,
    ready: Callable[[], Awaitable[None]],
    every: bool,
) -> None:
    pages = {
        "tasks": "/tasks",
        "search": f"/tasks?q={'status:failed'}",
        "task": f"/tasks/{task}",
        "stats": "/stats",
        "workers": "/workers",
        "types": "/types",
        "schedules": "/schedules",
        "flows": "/flows",
        "flow": f"/flows/{flow}",
    }
    if every:
        pages |= of_each_state(site)
        pages |= {
            "type": "/types/send_email",
            "worker": f"/workers/{quote('web-1/4711-a3f9', safe='')}",
            "audit": "/audit",
            "new": "/new?type=build_report",
            "no-such-page": "/nowhere",
            "no-such-task": f"/tasks/{flow[:-4]}0000",
            "api": "/api/docs",
        }
    for view, options in views.items():
        context = await browser.new_context(**options, reduced_motion="reduce")
        page = await context.new_page()
        if every:
            await page.goto(site.url)
            await page.get_by_role("button").first.wait_for()
            await page.screenshot(path=folder / f"login-{view}.png")
        await site.sign_in(page)
        for name, path in pages.items():
            await ready()
            await page.goto(f"{site.url}{path}")
            await settle_down(page)
            await page.screenshot(path=folder / f"{name}-{view}.png", full_page=every)
            sys.stdout.write(f"{name}-{view}.png\n")
        if every:
            await take_dialogs(page, site, folder, view)
        await context.close()


def of_each_state(site: Site) -> dict[str, str]:
    """The page of a task of each."""
    searches = {
        "waits": "status=pending&type=build_index",
        "unhandled": "status=pending&type=print_label",
        "scheduled": "status=pending&type=send_email&sort=created",
        "processing": "status=processing&type=resize_image",
        "completed": "status=completed&type=charge_card",
        "retrying": "status=failed&finished=false",
        "cancelled": "status=cancelled",
    }
    found = {name: site.api("GET", f"/api/tasks?limit=1&{query}")["tasks"] for name, query in searches.items()}
    return {f"task-{name}": f"/tasks/{tasks[0]['id']}" for name, tasks in found.items()}


async def take_dialogs(page: Page, site: Site, folder: Path, view: str) -> None:
    """What opens above a page. Each is left by Escape, except the last: then all is paused."""
    openers: dict[str, tuple[str, list[Callable[[], Locator]]]] = {
        "columns": ("/tasks", [lambda: page.get_by_role("button", name="Columns")]),
        "saved": ("/tasks?q=status:failed", [lambda: page.get_by_role("button", name="Saved")]),
        "bulk": (
            "/tasks?q=status:failed",
            [
                lambda: page.get_by_role("button", name=re.compile(r"^All \d")),
                lambda: page.get_by_role("menuitem", name="Retry the failed…"),
            ],
        ),
        "limits": ("/types", [lambda: page.get_by_role("button", name="Limits of charge_card")]),
        "rate": ("/types", [lambda: page.get_by_role("button", name="Rate limit")]),
        "clean-up": ("/stats", [lambda: page.get_by_role("button", name="Clean up…")]),
        "retry": (
            "/tasks?q=type:refund+status:failed",
            [
                lambda: page.get_by_role("row").or_(page.locator("li[data-row]")).last,
                lambda: page.get_by_role("button", name="Retry"),
            ],
        ),
        "endpoint": ("/api/docs", [lambda: page.get_by_role("button", name=re.compile("Retry, cancel, delete"))]),
        "pause": ("/types", [lambda: page.get_by_role("button", name="Pause all")]),
    }
    for name, (path, steps) in openers.items():
        await page.goto(f"{site.url}{path}")
        await settle_down(page)
        for step in steps:
            await step().click()
        await page.wait_for_timeout(700)  # a dialog counts first
        await page.screenshot(path=folder / f"dialog-{name}-{view}.png", full_page=name == "endpoint")
    await page.get_by_role("dialog").get_by_role("button", name="Pause all").click()
    await page.goto(f"{site.url}/types")
    await settle_down(page)
    await page.screenshot(path=folder / f"paused-{view}.png")
    site.api("POST", "/api/tasks/resume")


async def take_empty(browser: Browser, site: Site, folder: Path, views: dict[str, Any]) -> None:
    """A queue in which nothing has happened."""
    for view, options in views.items():
        context = await browser.new_context(**options, reduced_motion="reduce")
        page = await context.new_page()
        await site.sign_in(page)
        for name in ("tasks", "stats", "workers", "types", "schedules", "flows", "audit", "new"):
            await page.goto(f"{site.url}/{name}")
            await settle_down(page)
            await page.screenshot(path=folder / f"empty-{name}-{view}.png", full_page=True)
        await context.close()


async def settle_down(page: Page) -> None:
    await page.get_by_role("heading", level=1).wait_for()
    await page.wait_for_function("document.querySelectorAll('[aria-busy=true]').length === 0")
    await expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0, timeout=PATIENCE_MS)
    await page.wait_for_timeout(700)  # charts draw themselves


async def main(folder: Path, every: bool, only: list[str]) -> None:
    views = {view: options for view, options in ALL_VIEWS.items() if view in (only or (ALL_VIEWS if every else VIEWS))}
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
                await ready()
                await operate(site, task)
                await take(browser, site, folder, views, task, await a_flow(site, store), ready, every)
            if every:
                fresh = {"TASKLIB_DATABASE_URL": f"sqlite:///{scratch}/fresh.db", "TASKLIB_TOKEN": TOKEN}
                (Path(scratch) / "fresh").mkdir()
                with serving(Path(scratch) / "fresh", env=fresh) as server:
                    await take_empty(browser, Site(server.url, Path(scratch), fresh), folder, views)
            await browser.close()
        await engine.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    names = ", ".join(ALL_VIEWS)
    parser.add_argument("--every", nargs="*", choices=ALL_VIEWS, metavar="VIEW", help=f"of every page; all of {names}")
    given = parser.parse_args()
    asyncio.run(main(given.folder, given.every is not None, given.every or []))
