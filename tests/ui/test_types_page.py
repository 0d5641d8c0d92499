"""The page Types and the controls: pause, rate limit and concurrency, of one type and of all."""

import re
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from tasklib import Config
from tasklib.engine.engine import Engine
from tasklib.stores.values import ControlChange
from tests.ui.conftest import Axe
from tests.ui.console import Console
from tests.ui.looks import in_both_themes, on_postgres, one_engine
from tests.ui.site import Site
from tests.waiting import eventually

ODD = 'billing/monthly "close" <b>\u202e'


def row(page: Page, name: str) -> Locator:
    return page.locator("[data-type]").filter(has_text=name)


def figure(shown: Locator, name: str) -> Locator:
    return shown.locator(f"[data-figure={name}]")


def controls(site: Site, name: str) -> dict[str, Any]:
    found: dict[str, Any] = site.api("GET", "/api/controls")["types"].get(name, {})
    return found


async def test_figures_and_the_warning_that_nobody_works_on_it(site: Site, page: Page):
    for _ in range(2):
        site.wait(site.submit("echo"), "completed")
    site.wait(site.submit("flaky"), "failed")
    site.wait(site.submit("broken"), "failed")
    for _ in range(3):
        site.submit(ODD)
    await site.sign_in(page, path="/types")
    types = {each["type"]: each for each in site.api("GET", "/api/types")["types"]}
    assert types[ODD]["counts"]["pending"] == 3
    await expect(page.locator("[data-type]")).to_have_count(len(types))
    echo, odd = row(page, "echo"), row(page, "billing/monthly")
    await expect(figure(echo, "completed")).to_have_text("2")
    await expect(figure(echo, "workers")).to_have_text("1")
    await expect(figure(row(page, "flaky"), "waiting")).to_have_text("1")
    await expect(figure(row(page, "flaky"), "failed")).to_have_text("0")
    await expect(figure(row(page, "broken"), "failed")).to_have_text("1")
    await expect(figure(odd, "pending")).to_have_text("3")
    await expect(figure(odd, "oldest")).to_have_text(re.compile(r"\d+(\.\d)? s"))
    await expect(odd).to_contain_text("No live worker")
    await expect(page.get_by_text("1 type with waiting tasks and no live worker")).to_be_visible()
    await expect(page.get_by_text("No live worker", exact=True)).to_have_count(1)
    assert await page.locator("main b").count() == 0
    await expect(odd).to_contain_text("\\u202e")

    await page.get_by_role("button", name="Pending").click()
    await expect(page.get_by_role("columnheader", name="Pending")).to_have_attribute("aria-sort", "descending")
    await expect(page.locator("[data-type]").first).to_contain_text("billing/monthly")

    # Its name holds all that an address and a search could stumble over.
    await odd.get_by_role("switch").click()
    await expect(odd.get_by_text("Paused")).to_be_visible()
    assert controls(site, ODD)["paused"] is True
    await figure(odd, "pending").get_by_role("link").click()
    await expect(page.get_by_role("row").filter(has_text="billing/monthly")).to_have_count(3)


@one_engine
async def test_the_whole_row_under_the_pointer_is_raised(site: Site, page: Page):
    site.submit("echo", {"value": 1})
    await site.sign_in(page, path="/types")
    row = page.locator("tr[data-type=echo]")
    shade = "row => [row, row.cells[0]].map(each => getComputedStyle(each).backgroundColor)"
    resting = await row.evaluate(shade)
    await row.hover()
    whole, first = await row.evaluate(shade)
    assert whole == first != resting[1]


@on_postgres
async def test_a_type_that_is_paused_waits_and_goes_on(site: Site, page: Page):
    await site.sign_in(page, path="/types")
    pause = page.get_by_role("switch", name="Pause echo")
    await expect(pause).to_have_attribute("aria-checked", "false")
    await pause.click()
    await expect(page.get_by_text("echo is paused: no worker starts one.")).to_be_visible()
    await expect(pause).to_have_attribute("aria-checked", "true")
    assert controls(site, "echo")["paused"] is True
    waits = site.submit("echo")
    site.wait(site.submit("broken"), "failed")  # by the same worker, which would have taken the older one first
    assert site.api("GET", f"/api/tasks/{waits}")["status"] == "pending"
    await expect(figure(row(page, "echo"), "pending")).to_have_text("1")
    await pause.click()
    await expect(page.get_by_text("echo is started again.")).to_be_visible()
    site.wait(waits, "completed")
    await expect(figure(row(page, "echo"), "pending")).to_have_text("0")


@one_engine
async def test_limits_are_set_and_given_back_to_the_code(site: Site, page: Page):
    engine = Engine(Config(database_url=site.database_url))
    await engine.control(ControlChange(name="echo", default_rate=7))
    await engine.close()
    await site.sign_in(page, path="/types")
    limits = figure(row(page, "echo"), "limits")
    await expect(limits).to_have_text("7/s by the code")

    await page.get_by_role("button", name="Limits of echo").click()
    dialog = page.get_by_role("dialog", name="Limits of echo")
    await expect(dialog.get_by_label("As the code says: 7 a second")).to_be_checked()
    save = dialog.get_by_role("button", name="Save")
    await dialog.get_by_label("Starts a second").fill("fast")
    await expect(dialog.get_by_text("Give a number above 0; 0.5 is one in two seconds.").first).to_be_visible()
    await expect(save).to_have_attribute("aria-disabled", "true")
    await dialog.get_by_label("Starts a second").fill("2.5")
    await dialog.get_by_label("Running at once").fill("0")
    await expect(dialog.get_by_text("Give a whole number of 1 or more").first).to_be_visible()
    await dialog.get_by_label("Running at once").fill("3")
    await save.click()
    await expect(page.get_by_text("Limits of echo saved.")).to_be_visible()
    await expect(limits).to_have_text("2.5/s by the operator3 at once")
    held = controls(site, "echo")
    assert (held["rateLimit"], held["operatorRateLimit"], held["concurrency"]) == (2.5, 2.5, 3)

    await page.get_by_role("button", name="Limits of echo").click()
    await expect(dialog.get_by_label("No limit, whatever the code says")).to_have_count(0)
    await dialog.get_by_label("As the code says: 7 a second").check()
    await dialog.get_by_label("Running at once").fill("")
    await save.click()
    await expect(limits).to_have_text("7/s by the code")
    held = controls(site, "echo")
    assert (held["rateLimit"], held["operatorRateLimit"], held["concurrency"]) == (7, None, None)


@on_postgres
async def test_the_fleet_is_paused_and_limited_from_every_page(site: Site, page: Page):
    await site.sign_in(page, path="/workers")
    await page.get_by_role("button", name="Pause all").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause all").click()
    await expect(page.get_by_text("All task types are paused: no worker starts a task.")).to_be_visible()
    waits = site.submit("echo")
    for name in ("Stats", "Types", "Tasks"):
        await page.get_by_role("link", name=name, exact=True).click()
        await expect(page.get_by_role("button", name="Resume all")).to_be_visible()
    assert site.api("GET", f"/api/tasks/{waits}")["status"] == "pending"
    await page.get_by_role("button", name="Resume all").click()
    await expect(page.get_by_text("Workers start tasks again.")).to_be_visible()
    site.wait(waits, "completed")

    await page.get_by_role("button", name="Rate limit: none").click()
    dialog = page.get_by_role("dialog", name="Rate limit for all types")
    await dialog.get_by_label("Starts a second").fill("40")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("All types together start at most 40 tasks a second.")).to_be_visible()
    assert site.api("GET", "/api/controls")["rateLimit"] == 40
    await page.get_by_role("button", name="Rate limit: 40/s").click()
    await dialog.get_by_label("As the code says: no limit").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Rate limit: none")).to_be_visible()
    held = site.api("GET", "/api/controls")
    assert (held["rateLimit"], held["operatorRateLimit"]) == (None, None)


@one_engine
async def test_who_may_only_look_sees_the_state_and_no_buttons(site: Site, page: Page):
    site.api("PUT", "/api/types/echo", {"paused": True, "concurrency": 4})
    site.api("POST", "/api/tasks/rate-limit", {"tasksPerSecond": 40})
    site.api("POST", "/api/tasks/pause")
    await site.sign_in(page, site.token("read-only"), path="/types")
    await expect(row(page, "echo").get_by_text("Paused")).to_be_visible()
    await expect(figure(row(page, "echo"), "limits")).to_have_text("4 at once")
    await expect(page.locator("[data-rate-limit]")).to_have_text("40/s")
    await expect(page.get_by_text("All task types are paused: no worker starts a task.")).to_be_visible()
    changing = re.compile("^Pause|^Resume|^Limits|^Rate limit")
    await expect(page.locator("main").get_by_role("switch")).to_have_count(0)
    await expect(page.get_by_role("button", name=changing)).to_have_count(0)


@on_postgres
async def test_a_change_made_elsewhere_shows_by_itself(site: Site, page: Page):
    await site.sign_in(page, path="/types")
    await expect(page.get_by_role("switch", name="Pause echo")).to_have_attribute("aria-checked", "false")
    await expect(page.locator("[data-live=live]")).to_be_visible()
    site.api("PUT", "/api/types/echo", {"paused": True})
    await expect(page.get_by_role("switch", name="Pause echo")).to_have_attribute("aria-checked", "true")
    site.submit("echo")
    eventually(lambda: site.api("GET", "/api/tasks/stats")["pending"] == 1)
    await expect(figure(row(page, "echo"), "pending")).to_have_text("1")


@one_engine
async def test_a_failure_is_shown_once_where_it_was_asked_for(site: Site, page: Page, console: Console):
    console.expect("409")

    async def refuse(route: Route) -> None:
        problem = {"title": "Conflict", "status": 409, "code": "conflict", "detail": "somebody else was faster"}
        await route.fulfill(status=409, content_type="application/problem+json", json=problem)

    await page.route("**/api/types/echo", refuse)
    await site.sign_in(page, path="/types")
    said = page.get_by_text("somebody else was faster")
    await page.get_by_role("button", name="Limits of echo").click()
    dialog = page.get_by_role("dialog", name="Limits of echo")
    await dialog.get_by_label("Running at once").fill("3")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_text("somebody else was faster")).to_be_visible()
    await expect(said).to_have_count(1)
    await dialog.get_by_role("button", name="Keep as it is").click()
    await expect(said).to_have_count(0)
    await page.get_by_role("switch", name="Pause echo").click()
    await expect(said).to_have_count(1)


@one_engine
async def test_types_and_limits_are_accessible(site: Site, page: Page, axe: Axe):
    site.submit(ODD)
    site.api("PUT", "/api/types/echo", {"paused": True, "rateLimit": 5})
    site.api("POST", "/api/tasks/pause")
    await site.sign_in(page, path="/types")
    await expect(row(page, "echo")).to_be_visible()
    await in_both_themes(page, axe)
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(page.get_by_role("list", name="Task types")).to_be_visible()
    await expect(page.get_by_role("switch", name="Pause echo")).to_have_text("Pause")
    await in_both_themes(page, axe)
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await page.get_by_role("button", name="Limits of echo").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await in_both_themes(page, axe)
