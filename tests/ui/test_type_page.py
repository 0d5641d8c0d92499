"""The page of one type, and the way to it: how long it takes, what failed, who runs it."""

import re

from playwright.async_api import Page, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.conformance.builders import apply, claim_one, completed, submit
from tests.ui.conftest import Axe
from tests.ui.looks import in_both_themes, on_postgres, one_engine
from tests.ui.site import Site

ODD = 'billing/monthly "close" <b>\u202e?#%'


async def ran(site: Site, times: dict[str, int], *, waited: int = 0) -> None:
    """One task of each type, which took so many milliseconds, in the minute that is over."""
    engine = Engine(Config(database_url=site.database_url), clock_offset=-60.0)
    store = await engine.store()
    for name, run_ms in times.items():
        await submit(store, name)
        store.clock_offset += waited
        await apply(store, completed(await claim_one(store, name), run_ms=run_ms))
        store.clock_offset -= waited
    await engine.close()


async def test_the_slowest_type_in_one_click(site: Site, page: Page):
    await ran(site, {"send_mail": 40, "build_report": 21_000, "resize": 900})
    await site.sign_in(page, path="/types")
    await page.get_by_role("button", name="Run p95").click()
    slowest = page.locator("[data-type]").first
    await expect(slowest).to_contain_text("build_report")
    await expect(slowest.locator("[data-figure=runP95]")).to_have_text(re.compile(r"^\d+ s$"))
    await page.get_by_role("button", name="Waited p95").click()
    await expect(page.get_by_role("columnheader", name="Waited p95")).to_have_attribute("aria-sort", "descending")

    # And from there to what it did.
    await page.get_by_role("link", name="build_report").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("build_report")
    run_time = page.get_by_role("list", name="Run time, by length").get_by_role("listitem")
    await expect(run_time).to_have_count(1)
    await expect(run_time).to_contain_text("up to 30 s")
    await expect(page.get_by_role("list", name="Time waited, by length")).to_be_visible()
    slow = page.get_by_role("list", name="Slowest tasks").get_by_role("listitem")
    await expect(slow).to_contain_text("21 s")
    await slow.get_by_role("link").click()
    await expect(page).to_have_url(re.compile("/tasks/[0-9a-f-]{36}$"))


@on_postgres
async def test_failures_are_grouped_and_retried_together(site: Site, page: Page):
    """Both fail at one place, whatever they say; others of the type stay as they are."""
    tasks = [site.submit("fixable", {"folder": str(site.folder)}) for _ in range(2)]
    other = site.submit("fixable", {"folder": "/" + "x" * 300})  # too long for a name: another exception
    for task in (*tasks, other):
        site.wait(task, "failed")
    await site.sign_in(page, site.token("read-only"), path="/types/fixable")
    groups = page.get_by_role("list", name="Failures by error").get_by_role("listitem")
    await expect(groups).to_have_count(2)
    await expect(page.get_by_role("button", name="Retry these")).to_have_count(0)

    await site.sign_in(page, path="/types/fixable")
    first = groups.first
    await expect(first).to_contain_text("ValueError")
    await expect(first).to_contain_text("jobs.py in fixable")
    await expect(first).to_have_attribute("data-failures", "2")
    (site.folder / "fixed").touch()
    await first.get_by_role("button", name="Retry these").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("This concerns 2 tasks.")
    await dialog.get_by_role("button", name="Retry 2 tasks").click()
    await expect(page.get_by_text("Retried 2 tasks.")).to_be_visible()
    for task in tasks:
        site.wait(task, "completed")
    assert site.api("GET", f"/api/tasks/{other}")["status"] == "failed"
    await expect(groups).to_have_count(1)
    await expect(page.get_by_role("list", name="What operators did").get_by_role("listitem")).to_have_text(
        [re.compile("TASKLIB_TOKEN.*retried 2 tasks", re.DOTALL)]
    )


@one_engine
async def test_who_runs_it_and_what_holds_it_back(site: Site, page: Page, axe: Axe):
    site.submit(ODD)
    site.wait(site.submit("broken"), "failed")
    site.api("PUT", "/api/types/broken", {"paused": True, "concurrency": 3})
    await site.sign_in(page, path="/types/broken")
    await expect(page.get_by_text("3 at once")).to_be_visible()
    await expect(page.get_by_role("list", name="What operators did")).to_contain_text("changed the type")
    await expect(page.get_by_role("list", name="Workers that run it").get_by_role("listitem")).to_have_count(1)
    await page.get_by_role("switch", name="Pause broken").click()
    await expect(page.get_by_text("Not paused.")).to_be_visible()
    await in_both_themes(page, axe)
    for width in (900, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await in_both_themes(page, axe)

    # Its name holds all that an address could stumble over.
    await page.goto(f"{site.url}/types")
    await page.get_by_role("link", name="billing/monthly").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("billing/monthly")
    await expect(page.get_by_text("No live worker", exact=True)).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("list", name="Latest tasks").get_by_role("listitem")).to_have_count(1)


@one_engine
async def test_the_slowest_type_on_a_phone(site: Site, page: Page, axe: Axe):
    """There are no columns to click on there."""
    await ran(site, {"send_mail": 40, "build_report": 21_000, "resize": 900})
    await page.set_viewport_size({"width": 390, "height": 844})
    await site.sign_in(page, path="/types")
    await page.get_by_label("Order").select_option("Run p95, highest first")
    await expect(page.locator("[data-type]").first).to_contain_text("build_report")
    await in_both_themes(page, axe)
    await page.set_viewport_size({"width": 1280, "height": 800})
    await expect(page.get_by_role("columnheader", name="Run p95")).to_have_attribute("aria-sort", "descending")
    await expect(page.get_by_label("Order")).to_have_count(0)
