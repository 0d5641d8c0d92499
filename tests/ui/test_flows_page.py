"""Flows: why a task waits, the drawing of what waits for what, and the retry of what failed in it."""

import re
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.ui.conftest import Axe
from tests.ui.console import Console
from tests.ui.looks import in_both_themes, one_engine
from tests.ui.opening import fan
from tests.ui.site import Site
from tests.ui.test_task_page import HOSTILE, SHOWN, badge, card, timeline
from tests.ui.test_tasks_page import search, shows

Flow = tuple[str, dict[str, str]]


def start_flow(site: Site, name: str, *tasks: dict[str, Any]) -> Flow:
    """Its id, and those of its tasks by their references."""
    made = site.api("POST", "/api/flows", {"name": name, "tasks": [{"payload": {}, **each} for each in tasks]})
    return made["id"], made["tasks"]


def an_import(site: Site, folder: Path) -> Flow:
    """`load` fails until somebody has fixed it, `gate` runs until it may end, `report` waits for it."""
    here = {"folder": str(folder)}
    parts = [{"ref": f"part {n}", "type": "echo", "payload": {"value": n}, "after": ["load"]} for n in range(8)]
    return start_flow(
        site,
        "import 42",
        {"ref": "fetch", "type": "echo", "payload": {"value": "fetched"}},
        {"ref": "gate", "type": "slow", "payload": here},
        {"ref": "load", "type": "fixable", "payload": here, "after": ["fetch"]},
        *parts,
        {"ref": "merge", "type": "merge.parts", "after": [each["ref"] for each in parts]},
        {"ref": "report", "type": "report", "after": ["fetch", "gate"]},
    )


def node(page: Page, kind: str) -> Locator:
    """In the drawing."""
    return page.locator("[data-node]").filter(has=page.locator("text", has_text=re.compile(f"^{re.escape(kind)}$")))


def step(page: Page, kind: str) -> Locator:
    """In the table."""
    return page.locator("[data-step]").filter(has=page.get_by_role("link", name=kind, exact=True))


async def part_seen(page: Page) -> str:
    seen = await page.get_by_role("group", name="from left to right").get_attribute("viewBox")
    assert seen is not None
    return seen


async def test_a_person_finds_why_a_task_waits_and_retries_the_flow(site: Site, page: Page, tmp_path: Path):
    flow, tasks = an_import(site, tmp_path)
    site.wait(tasks["load"], "failed")
    site.wait(tasks["merge"], "cancelled")
    site.wait(tasks["gate"], "processing")
    await site.sign_in(page, site.token("operator"))
    await search(page, f"flow:{flow} status:pending")
    await shows(page, tasks["report"])
    await page.locator(f'main a[href$="/tasks/{tasks["report"]}"]').first.click()

    await expect(badge(page)).to_have_text("Pending · waits for 1")
    why = card(page, "Why is it waiting?")
    await expect(why.locator("[data-cause=tasks]")).to_contain_text("It waits for 1 of 2 tasks")
    await expect(why.get_by_role("list", name="Still to end").get_by_role("link")).to_have_text(re.compile("^slow "))
    await expect(card(page, "Flow")).to_contain_text("Waits for 1 of 2")
    await expect(timeline(page).first).to_contain_text("Waits for other tasks")
    await why.get_by_role("link", name="slow").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("slow")
    await expect(card(page, "Flow")).to_contain_text("1 waits for this")
    await expect(card(page, "Flow").get_by_role("link", name="report")).to_be_visible()

    await card(page, "Flow").get_by_role("link", name="See the flow").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("import 42")
    await expect(badge(page)).to_have_text("Running")
    await expect(node(page, "fixable")).to_have_attribute("data-state", "failed")
    await expect(node(page, "echo")).to_have_count(2)  # the eight are one
    await expect(node(page, "echo").nth(1)).to_have_accessible_name("echo 8 tasks cancelled")
    await expect(node(page, "merge.parts")).to_have_attribute("data-state", "cancelled")
    await expect(node(page, "report")).to_have_attribute("data-state", "waiting")

    (tmp_path / "fixed").touch()
    await page.get_by_role("button", name="Retry the flow…").click()
    dialog = page.get_by_role("dialog", name="Retry what failed in this flow?")
    await expect(dialog).to_contain_text("This concerns 1 task.")
    await dialog.get_by_role("button", name="Retry 1 task").click()
    await expect(page.get_by_text("Retried 1 task.")).to_be_visible()
    await expect(node(page, "fixable")).to_have_attribute("data-state", "completed")  # by itself
    await expect(node(page, "echo").nth(1)).to_have_accessible_name("echo 8 tasks completed")
    await expect(node(page, "merge.parts")).to_have_attribute("data-state", "pending")  # which no worker handles
    (tmp_path / "go").touch()
    await expect(step(page, "slow")).to_have_attribute("data-state", "completed")

    await page.get_by_role("button", name="Cancel the flow…").click()
    dialog = page.get_by_role("dialog", name="Cancel what is left of this flow?")
    await expect(dialog).to_contain_text("This concerns 2 tasks.")
    await dialog.get_by_role("button", name="Cancel 2 tasks").click()
    await expect(badge(page)).to_have_text("Cancelled")
    for action in ("bulk-cancel", "bulk-retry"):
        (entry,) = site.api("GET", f"/api/audit?folded=true&action={action}")["entries"]
        assert entry["detail"]["filter"] == {"flow": flow}
    await page.get_by_role("link", name="All flows").click()
    item = page.locator(f'[data-flow="{flow}"]')
    await expect(item).to_contain_text("11 completed, 2 cancelled")
    await item.get_by_role("link", name="2 cancelled").click()
    await shows(page, tasks["report"], tasks["merge"])


@one_engine
async def test_the_drawing_by_keyboard_and_pointer_the_table_on_a_phone(
    site: Site, page: Page, axe: Axe, tmp_path: Path
):
    flow, tasks = an_import(site, tmp_path)
    site.wait(tasks["load"], "failed")
    await site.sign_in(page, path=f"/flows/{flow}")
    await expect(node(page, "fixable")).to_have_attribute("data-state", "failed")
    await page.get_by_role("button", name="All of it").focus()
    await page.keyboard.press("Tab")
    await expect(node(page, "fixable")).to_be_focused()  # what matters most
    await page.keyboard.press("ArrowLeft")
    await expect(node(page, "echo").first).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await expect(node(page, "echo").first).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("[data-node]:focus")).to_have_count(1)
    await node(page, "fixable").focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{site.url}/tasks/{tasks['load']}")
    await page.go_back()
    await node(page, "fixable").focus()
    whole = await part_seen(page)
    await page.keyboard.press("+")
    assert await part_seen(page) != whole
    await page.keyboard.press("0")
    assert await part_seen(page) == whole
    await page.keyboard.press("Tab")
    await expect(page.locator("[data-node]:focus")).to_have_count(0)  # one stop, not one for each node

    place = await node(page, "slow").bounding_box()
    assert place is not None
    await page.mouse.move(place["x"] + 20, place["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(place["x"] + 60, place["y"] + 40, steps=4)
    await page.mouse.up()
    assert await part_seen(page) != whole
    await expect(page).to_have_url(f"{site.url}/flows/{flow}")  # a drag is no click
    await in_both_themes(page, axe)

    for width in (900, 390):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await expect(page.locator("[data-node]")).to_have_count(0)  # the table alone
    await expect(step(page, "merge.parts")).to_contain_text("after echo")
    await axe(page)
    await step(page, "fixable").get_by_role("link", name="fixable").click()
    await expect(card(page, "Error")).to_contain_text("it is not fixed yet")
    await expect(card(page, "Flow")).to_contain_text("8 tasks depend on it")
    await axe(page)
    await page.goto(f"{site.url}/tasks/{tasks['merge']}")
    await expect(card(page, "Cut off")).to_contain_text("DependencyFailed")
    await card(page, "Flow").get_by_role("link", name="another task").click()
    await expect(page.get_by_role("heading", level=1)).not_to_have_text("merge.parts")


@one_engine
async def test_hostile_names_are_shown_and_readers_have_no_buttons(site: Site, page: Page, axe: Axe, console: Console):
    console.expect("404")
    await site.sign_in(page, site.token("read-only"), path="/flows")
    await expect(page.get_by_text("There are no flows yet")).to_be_visible()
    many = [{"ref": f"{n}", "type": HOSTILE, "after": ["first"]} for n in range(3)]
    flow, _ = start_flow(site, HOSTILE, {"ref": "first", "type": "nobody handles it"}, *many)
    await page.get_by_role("link", name=SHOWN).click()  # it shows by itself
    await expect(page.get_by_role("heading", level=1)).to_have_text(SHOWN)
    await expect(page.locator("[data-node]").nth(1)).to_have_accessible_name(f"{SHOWN[:20]}… 3 tasks waiting, {SHOWN}")
    await expect(page.get_by_role("button", name="the flow…")).to_have_count(0)
    assert await page.locator("main img, main script").count() == 0
    assert await page.evaluate("window.hit") is None
    assert "\u202e" not in await page.locator("body").inner_text() + await page.title()
    await axe(page)
    await step(page, SHOWN).get_by_role("link", name="3 waiting").click()
    await expect(page.locator("[data-row]")).to_have_count(3)

    await page.goto(f"{site.url}/flows/{flow[:-1]}{'0' if flow[-1] != '0' else '1'}")
    await expect(page.get_by_text("There is no flow with this ID")).to_be_visible()


@one_engine
async def test_ten_thousand_tasks_are_folded_and_can_be_listed(site: Site, page: Page):
    """`python -m tests.ui.opening` measures how long that takes."""
    flow, _ = start_flow(site, "large", *fan(10_000))
    await site.sign_in(page, path=f"/flows/{flow}")
    await expect(page.locator("[data-node]")).to_have_count(3)
    await expect(node(page, "part")).to_have_accessible_name(re.compile("9,998 tasks"))
    await step(page, "part").get_by_role("link", name="9,998 waiting").click()
    await expect(page.locator("[data-row]").first).to_contain_text("part")
