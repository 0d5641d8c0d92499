"""The page Stats: figures, charts, the latest failures, the clean-up."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tests.cli.running import background
from tests.conformance.builders import apply, claim, completed, submit_several
from tests.ui.conftest import Axe
from tests.ui.looks import in_both_themes, on_postgres, one_engine
from tests.ui.site import JOBS, Site
from tests.waiting import eventually, eventually_async

HOSTILE = "<img src=x onerror=window.hit=1>\u202e / all"
STATUSES = ("pending", "processing", "completed", "failed", "cancelled")


def fill(site: Site) -> None:
    """Three completed, one failed, one that waits for its retry, one that nobody handles."""
    for value in range(3):
        site.wait(site.submit("echo", {"value": value}), "completed")
    site.wait(site.submit("broken"), "failed")
    site.wait(site.submit("flaky"), "failed")
    site.submit(HOSTILE)


def bar(page: Page, name: str) -> Locator:
    return page.get_by_role("list", name="Tasks by type").get_by_role("link").filter(has_text=name)


async def column(page: Page, name: str) -> list[str]:
    table = page.get_by_role("region", name="Over time, as a table")
    at = (await table.get_by_role("columnheader").all_inner_texts()).index(name)
    return await table.locator(f"tbody td:nth-child({at + 1})").all_inner_texts()


async def test_figures_are_those_of_the_api_and_lead_to_the_tasks(site: Site, page: Page):
    fill(site)
    await site.sign_in(page, path="/stats")
    stats = site.api("GET", "/api/tasks/stats")
    assert [stats[status] for status in STATUSES] == [1, 0, 3, 2, 0]
    for status in STATUSES:
        await expect(page.locator(f"[data-count={status}]")).to_have_text(str(stats[status]))
    await expect(page.get_by_text("1 to retry")).to_be_visible()
    await expect(bar(page, "echo")).to_contain_text("3: 3 completed")
    await expect(bar(page, "<img")).to_contain_text("1: 1 pending")
    assert await page.evaluate("window.hit") is None

    statuses = page.get_by_role("group", name="Statuses that the bars show")
    await statuses.get_by_role("button", name="Completed").click()
    await expect(bar(page, "echo")).to_have_count(0)
    await expect(bar(page, "broken")).to_be_visible()
    await statuses.get_by_role("button", name="Completed").click()

    await page.get_by_role("list", name="Tasks by status").get_by_role("link", name="Failed").click()
    await expect(page).to_have_url(f"{site.url}/tasks?q=status%3Afailed")
    await page.go_back()
    await bar(page, "<img").click()
    await expect(page.get_by_role("row").filter(has_text="Pending")).to_have_count(1)
    assert await page.evaluate("window.hit") is None


@one_engine
async def test_charts_are_loaded_here_only_and_can_be_read_as_a_table(site: Site, page: Page):
    fill(site)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    await site.sign_in(page)
    await expect(page.get_by_role("row")).not_to_have_count(0)
    assert [url for url in loaded if "/assets/app/" in url]
    assert not [url for url in loaded if "/charts-" in url]

    await page.get_by_role("link", name="Stats").click()
    chart = page.get_by_role("application", name=re.compile("Throughput"))
    await expect(chart).to_be_visible()
    assert [url for url in loaded if "/charts-" in url]
    for name in ("Throughput", "Depth", "Backlog age", "Time waited", "Run time", "Failure rate"):
        await expect(page.get_by_role("figure", name=name)).to_be_visible()
    await expect(page.get_by_role("figure", name="Throughput")).to_contain_text("3 completed, 1 retried, 1 failed")
    await expect(page.get_by_role("figure", name="Failure rate")).to_contain_text("25% of tasks failed for good")
    await chart.focus()
    for _ in range(60):
        await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("figure", name="Throughput").get_by_text("so far")).to_be_visible()

    await page.get_by_text("Table", exact=True).click()
    await expect(page).to_have_url(f"{site.url}/stats?view=table")
    points = site.api("GET", "/api/series")["points"]
    for name in ("Completed", "Retried", "Failed"):
        shown = await column(page, name)
        assert sum(map(int, shown)) == sum(point[name.lower()] for point in points) > 0
    assert "\N{EN DASH}" in await column(page, "p95"), "steps without a sample are gaps"

    await page.get_by_text("24 h", exact=True).click()
    await expect(page).to_have_url(re.compile("range=24h"))
    await page.get_by_label("Task type").select_option("echo")
    await expect(page).to_have_url(re.compile("type=echo"))
    await expect(page.locator("[aria-busy=false]").get_by_role("table")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Task type")).to_have_value("echo")
    await expect(page.get_by_role("radio", name="24 h")).to_be_checked()
    await expect(page.get_by_role("table")).to_be_visible()
    assert sum(map(int, await column(page, "Completed"))) == 3
    assert sum(map(int, await column(page, "Failed"))) == 0
    await page.get_by_text("Charts", exact=True).click()
    await expect(page.get_by_role("figure", name="Throughput")).to_contain_text("3 completed, 0 retried, 0 failed")


async def test_now_against_yesterday(site: Site, page: Page):
    """The same hour a day before is laid over, in the charts and in the table; the view is in the address."""
    engine = Engine(Config(database_url=site.database_url), clock_offset=-86_400.0 - 600)
    store = await engine.store()
    for number in (7, 3):
        for _ in range(2):
            await store.sample_backlog()
            await submit_several(store, number, "mail")
            await apply(store, *(completed(each) for each in await claim(store, number, names=["mail"])))
            engine.advance(60)
        await store.sample_backlog()
        engine.advance(86_400 - 120)
    await engine.close()

    await site.sign_in(page, path="/stats?type=mail")
    throughput = page.get_by_role("figure", name="Throughput")
    await expect(throughput).to_contain_text("6 completed")
    await expect(throughput).to_contain_text("6 arrived")
    await page.get_by_label("Compared with").select_option("day")
    await expect(page).to_have_url(re.compile("compare=day"))
    before = throughput.get_by_role("button", name="Completed, the day before")
    await expect(before).to_have_attribute("aria-pressed", "true")
    lines = throughput.locator(".recharts-line-curve")
    await expect(lines).to_have_count(3)  # what arrived, and both of yesterday
    await before.click()
    await expect(before).to_have_attribute("aria-pressed", "false")
    await expect(lines).to_have_count(2)
    await page.get_by_label("Log scale").check()
    await expect(page).to_have_url(re.compile("scale=log"))
    await expect(throughput.locator(".recharts-bar-rectangle")).to_have_count(0)

    await page.get_by_text("Table", exact=True).click()
    await page.reload()
    await expect(page.get_by_label("Compared with")).to_have_value("day")
    await expect(page.get_by_role("columnheader", name="Completed, the day before")).to_be_visible()
    assert sum(figures(await column(page, "Completed"))) == sum(figures(await column(page, "Arrived"))) == 6

    async def all_of_the_day_before() -> bool:
        return sum(figures(await column(page, "Completed, the day before"))) == 14

    await eventually_async(all_of_the_day_before)  # it comes by a request of its own
    assert sum(figures(await column(page, "Arrived, the day before"))) == 14

    # Yesterday itself, as a time of one's own.
    await page.get_by_label("Compared with").select_option("")
    await page.get_by_text("From … to …").click()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    start, end = yesterday - timedelta(minutes=30), yesterday + timedelta(minutes=30)
    await page.goto(f"{site.url}/stats?type=mail&view=table&from={start:%Y-%m-%dT%H:%M}Z&to={end:%Y-%m-%dT%H:%M}Z")
    await expect(page.get_by_label("From", exact=True)).to_be_visible()
    await expect(page.locator("[aria-busy=false]").get_by_role("table")).to_be_visible()
    assert sum(figures(await column(page, "Completed"))) == 14


@on_postgres
async def test_see_a_deploy(site: Site, page: Page):
    """A worker of a new version is marked in the charts when it starts, and stays so when it has gone."""
    command = ["worker", str(JOBS), "--app-version", "2026.11.4"]
    folder = site.folder / "new"
    folder.mkdir()
    await site.sign_in(page, path="/stats")
    with background(command, folder, env={**site.env, "TASKLIB_TOKEN": ""}) as worker:
        eventually(lambda: versions(site) == ["2026.11.4"], timeout=30)
        site.wait(site.submit("echo"), "completed")
        await page.reload()
        deploys = page.get_by_role("list", name="Deploys in this time")
        await expect(deploys).to_contain_text("Version 2026.11.4 first started")
        chart = page.get_by_role("application", name=re.compile("Throughput"))
        await expect(chart).to_contain_text("2026.11.4")
        await expect(chart.locator(".recharts-reference-line")).to_have_count(1)
        await page.goto(f"{site.url}/types/echo")
        await expect(page.get_by_role("list", name="Workers that run it")).to_contain_text("version 2026.11.4")
        worker.terminate()
        assert worker.wait(30) == 0
    await page.goto(f"{site.url}/stats")
    await expect(page.get_by_role("list", name="Deploys in this time")).to_contain_text("2026.11.4")


def versions(site: Site) -> list[str]:
    return [each["version"] for each in site.api("GET", "/api/series")["versions"]]


def figures(texts: list[str]) -> list[int]:
    return [int(text.replace(",", "")) for text in texts if text != "\N{EN DASH}"]


@one_engine
async def test_the_latest_failures_can_be_retried_by_whoever_may(site: Site, page: Page):
    task = site.submit("fixable", {"folder": str(site.folder)})
    site.wait(task, "failed")
    await site.sign_in(page, site.token("read-only"), path="/stats")
    await expect(page.get_by_text("ValueError: it is not fixed yet")).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("Retry|Clean up|Delete"))).to_have_count(0)
    await site.sign_in(page, path="/stats")
    failure = page.get_by_role("list", name="Latest failures").get_by_role("listitem")
    await expect(failure).to_contain_text("ValueError: it is not fixed yet")
    await expect(failure.get_by_role("link", name="fixable")).to_have_attribute("href", f"/tasks/{task}")
    (site.folder / "fixed").touch()
    await failure.get_by_role("button", name="Retry").click()
    await expect(page.get_by_text("fixable will be tried again.")).to_be_visible()
    await expect(page.get_by_text("No failed tasks")).to_be_visible()
    site.wait(task, "completed")


@one_engine
async def test_the_latest_failures_are_those_that_ended_last(site: Site, page: Page):
    """Whenever they were created. What failed lately can be searched for by the same time."""
    early = site.submit("fixable", {"folder": str(site.folder)})
    site.wait(early, "failed")
    late = site.submit("broken", {"text": "the printer is on fire"})
    site.wait(late, "failed")
    site.api("POST", f"/api/tasks/{early}/retry")
    eventually(lambda: latest_failures(site) == [early, late], timeout=30)
    await site.sign_in(page, path="/stats")
    failures = page.get_by_role("list", name="Latest failures").get_by_role("listitem")
    await expect(failures).to_have_count(2)
    for place, task in enumerate((early, late)):
        await expect(failures.nth(place).get_by_role("link").first).to_have_attribute("href", f"/tasks/{task}")

    site.wait(site.submit("echo", {"value": 1}), "completed")
    await page.goto(f"{site.url}/tasks?q=failed:1h")
    await expect(page.locator("[data-row]")).to_have_count(2)
    await expect(page.get_by_role("checkbox", name="failed")).to_be_checked()
    await page.goto(f"{site.url}/tasks?q=ended:1h")
    await expect(page.locator("[data-row]")).to_have_count(3)


def latest_failures(site: Site) -> list[str]:
    return [task["id"] for task in site.api("GET", "/api/tasks?status=failed&sort=ended")["tasks"]]


@on_postgres
async def test_a_clean_up_is_counted_and_confirmed_first(site: Site, page: Page):
    fill(site)
    await site.sign_in(page, path="/stats")
    await page.get_by_role("button", name="Clean up").click()
    dialog = page.get_by_role("dialog", name="Clean up finished tasks")
    delete = dialog.get_by_role("button", name="Delete")
    await expect(dialog.get_by_text("No task matches.")).to_be_visible()
    await expect(delete).to_have_attribute("aria-disabled", "true")
    await dialog.get_by_label("Finished longer ago than").fill("-1")
    await expect(dialog.get_by_text("Give an age: a number of 0 or more.").first).to_be_visible()
    await dialog.get_by_label("Finished longer ago than").fill("0")
    await expect(dialog.get_by_text("3 tasks will be deleted.")).to_be_visible()
    await dialog.get_by_label("Failed").check()
    await expect(dialog.get_by_text("4 tasks will be deleted.")).to_be_visible()
    assert site.api("GET", "/api/tasks/stats")["completed"] == 3, "counting deletes nothing"

    # The server is slow: it has done one after its time, and asks to be called again.
    asked: list[str] = []

    async def slowly(route: Route) -> None:
        if route.request.method != "DELETE" or "dryRun=true" in route.request.url or asked:
            return await route.continue_()
        asked.append(route.request.url)
        done: dict[str, Any] = {"deleted": 0, "matched": 0, "more": True, "dryRun": False}
        return await route.fulfill(json=done)

    await page.route("**/api/tasks?*", slowly)
    await dialog.get_by_role("button", name="Delete 4 tasks").click()
    await expect(page.get_by_text("4 tasks deleted.")).to_be_visible()
    await expect(dialog).to_have_count(0)
    assert asked
    stats = site.api("GET", "/api/tasks/stats")
    assert [stats[status] for status in STATUSES] == [1, 0, 0, 1, 0], "what waits is kept"
    await expect(page.locator("[data-count=completed]")).to_have_text("0")


@one_engine
async def test_charts_table_and_clean_up_are_accessible(site: Site, page: Page, axe: Axe):
    fill(site)
    await site.sign_in(page, path="/stats")
    await expect(page.get_by_role("application", name=re.compile("Run time"))).to_be_visible()
    await in_both_themes(page, axe)
    await page.get_by_text("Table", exact=True).click()
    await expect(page.get_by_role("table")).to_be_visible()
    await in_both_themes(page, axe)
    await page.get_by_role("button", name="Clean up").click()
    await expect(page.get_by_text("No task matches.")).to_be_visible()
    await in_both_themes(page, axe)
