"""The page of the HTTP API: what the server says of itself, found and opened by name."""

from playwright.async_api import Page, expect

from tests.ui.conftest import Axe
from tests.ui.looks import in_both_themes, one_engine
from tests.ui.site import Site

NO_WIDER = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@one_engine
async def test_an_operation_is_found_opened_and_its_address_kept(site: Site, page: Page, axe: Axe):
    await page.goto(f"{site.url}/api/docs")
    await expect(page).to_have_url(f"{site.url}/login?next=api%2Fdocs")  # behind the login
    await site.sign_in(page, path="/tasks")
    await page.get_by_role("button", name="Session and theme").click()
    await page.get_by_role("menuitem", name="HTTP API").click()
    await expect(page.get_by_role("heading", name="HTTP API", level=1)).to_be_visible()
    paths = site.api("GET", "/openapi.json")["paths"]
    operations = sum(len(each) for each in paths.values())
    await expect(page.locator("main h3")).to_have_count(operations)
    await expect(page.get_by_text(f"{operations} operations.")).to_be_visible()

    await page.locator("main").focus()
    await page.keyboard.press("/")
    await page.keyboard.type("idempotencykey post")
    await expect(page.get_by_text(f"of {operations} operations")).to_be_visible()
    await page.get_by_role("button", name="POST /api/tasks Create a task.", exact=True).click()
    panel = page.locator("#submit_task")
    await expect(panel.get_by_text("Body: ")).to_be_visible()
    await expect(panel.locator("pre")).to_contain_text(f"curl -s '{site.url}/api/tasks'")
    await panel.get_by_role("button", name="Options", exact=True).click()
    await expect(panel.get_by_text("idempotencyKey", exact=True).first).to_be_visible()
    await expect(page).to_have_url(f"{site.url}/api/docs?q=idempotencykey+post&operation=submit_task")
    await page.reload()
    await expect(panel.get_by_text("Body: ")).to_be_visible()
    await in_both_themes(page, axe)
    await page.set_viewport_size({"width": 390, "height": 800})
    assert await page.evaluate(NO_WIDER), "nothing sticks out on a phone"
    await page.get_by_role("searchbox").fill("no such words")
    await expect(page.get_by_text("Nothing in the API has these words")).to_be_visible()
