"""flow list, show, cancel, retry; submit --after, list --flow, and what show says of what a task waits for."""

import asyncio
from uuid import UUID, uuid4

import pytest

from tasklib import Config
from tasklib.core.flows import On
from tasklib.engine import flows
from tasklib.engine.engine import Engine
from tasklib.engine.flows import Part
from tasklib.engine.submission import Call
from tests.cli.queue import Queue, registry
from tests.cli.running import Cli


def part(ref: str, kind: str, *after: str, on: On | None = None, **kwargs: object) -> Part:
    return Part(ref, Call(kind, kwargs, task_type=registry.get(kind)), after, on)


@pytest.fixture
def flow(cli: Cli, sqlite_url: str) -> dict[str, UUID]:
    """A diamond whose middle breaks: its ids by reference, the flow's own under ''."""
    parts = [
        part("a", "greet", name="a"),
        part("b", "break_down", "a", text="password=hunter2"),
        *(part(f"c{n}", "greet", "a", name=f"c{n}") for n in range(3)),
        part("d", "log_in", "b", "c0", "c1", "c2", user="d"),
        part("e", "greet", "d", on="end", name="e"),
    ]

    async def make() -> dict[str, UUID]:
        engine = Engine(Config(database_url=sqlite_url))
        batch = await flows.put_together(engine, parts, name="import 42 token=hunter2")
        await engine.insert(batch.tasks)
        await engine.close()
        return {**batch.ids, "": batch.tasks[0].id}

    return asyncio.run(make())


def test_a_flow_from_its_making_to_its_retry(cli: Cli, queue: Queue, flow: dict[str, UUID]):
    flow_id = str(flow[""])
    [listed] = cli("flow", "list", "--json").data["flows"]
    assert (listed["id"], listed["status"], listed["total"]) == (flow_id, "running", 7)
    assert (listed["counts"], listed["name"]) == ({"pending": 1, "waiting": 6}, "import 42 token=***")
    waiting = cli("show", str(flow["d"])).out
    assert "Waits for 4 of 4" in waiting
    assert f"{flow['b']}  break_down  pending" in waiting
    assert "scheduled" not in waiting
    assert "4 of 4 wait for this one" in cli("show", str(flow["a"])).out
    assert cli("show", str(flow["a"]), "--json").data["feeds"]["total"] == 4
    assert "waits for 4 tasks" in cli("list", "--flow", flow_id).out
    refused = cli("run", str(flow["d"]))
    assert (refused.code, "waits for 4 tasks" in refused.err) == (1, True)

    queue.drain()
    shown = cli("flow", "show", flow_id).out
    assert shown.splitlines() == [
        "import 42 token=***  failed  5 completed, 1 failed, 1 cancelled",
        f"└── greet  completed  {flow['a']}",
        f"    ├── break_down  failed  {flow['b']}",
        f"    │   └── log_in  cancelled  {flow['d']}  after break_down, greet",
        f"    │       └── greet  completed  {flow['e']}",
        "    └── greet x 3  3 completed",
    ]
    drawn = cli("flow", "show", flow_id, "--json").data["graph"]["nodes"]
    assert [(node["name"], node["layer"], node["total"]) for node in drawn] == [
        ("greet", 0, 1),
        ("break_down", 1, 1),
        ("greet", 1, 3),
        ("log_in", 2, 1),
        ("greet", 3, 1),
    ]
    asked = cli("flow", "retry", flow_id)
    assert (asked.code, "retry 1 task that failed" in asked.err) == (2, True)
    assert cli("flow", "retry", flow_id, "--yes").out == "1 task was queued again.\n"
    assert cli("list", "--flow", flow_id, "--state", "pending", "--json").data["tasks"].__len__() == 2
    assert cli("flow", "cancel", flow_id, "--yes", "--json").data["found"] == 2
    assert cli("flow", "list").out.splitlines()[1].split()[1:3] == ["cancelled", "7"]
    trail = queue.audit()
    assert [entry.action for entry in trail] == ["bulk-cancel", "bulk-retry"]
    assert flow_id in trail[0].detail


def test_a_long_chain_is_no_wider_than_a_screen_can_be(cli: Cli, sqlite_url: str):
    parts = [part("0", "greet", name="a"), *(part(f"{n}", "greet", f"{n - 1}", name="a") for n in range(1, 300))]

    async def make() -> UUID:
        engine = Engine(Config(database_url=sqlite_url))
        batch = await flows.put_together(engine, parts)
        await engine.insert(batch.tasks)
        await engine.close()
        return batch.tasks[0].id

    lines = cli("flow", "show", str(asyncio.run(make()))).out.splitlines()
    assert len(lines) == 301
    assert max(map(len, lines)) < 200
    on_the_left = [place for place, line in enumerate(lines) if "goes on after" in line]
    assert on_the_left == list(range(21, 301, 20))
    for place in on_the_left:
        assert lines[place].endswith(f"goes on after {lines[place - 1].split()[-1]}")


def test_a_task_that_waits_is_submitted(cli: Cli, queue: Queue):
    first = cli("submit", "greet", "name=a").out.strip()
    second = cli("submit", "greet", "name=b", "--after", first, "--on", "end").out.strip()
    found = queue.get(second)
    assert found is not None
    assert (found.waits, found.after) == (1, {"on": "end", "parents": [first]})
    for words, told in (
        (["--after", str(uuid4())], "after"),
        (["--after", "x"], "after takes handles or ids of tasks, got 'x'"),
        (["--after", first, "--on", "never"], "on must be 'success' or 'end'"),
        (["--on", "end"], "give after"),
    ):
        refused = cli("submit", "greet", "name=c", *words)
        assert (refused.code, told in refused.err) == (2, True), refused
    assert len(cli("list", "--json").data["tasks"]) == 2
    gone = cli("flow", "show", str(uuid4()))
    assert (gone.code, "no flow with id" in gone.err) == (1, True)
    assert cli("flow", "list").err == "There are no flows.\n"
