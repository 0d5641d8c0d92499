"""flow list, show, cancel, retry: tasks that wait for tasks, as one thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

import typer
from rich.text import Text
from rich.tree import Tree

from tasklib.cli.arguments import Yes, task_id
from tasklib.cli.command import command
from tasklib.cli.help import PlainGroup
from tasklib.cli.operate import act_on_matching
from tasklib.cli.output import STATE_STYLES, Column
from tasklib.cli.session import Session
from tasklib.cli.text import clean
from tasklib.cli.times import absolute
from tasklib.core.flow_graph import FlowNode
from tasklib.core.flows import FlowSummary
from tasklib.engine import flows
from tasklib.engine.bulk import Action
from tasklib.engine.engine import Engine
from tasklib.engine.flows import FlowGraph
from tasklib.stores.values import Filter

_PANEL = "Tasks"
_ID = "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10"
_DEEPEST = 20
"""Levels that a tree goes to the right, before it goes on at the left: a chain may be thousands long."""
_STYLES = {**STATE_STYLES, "retrying": "yellow", "waiting": "dim"}
_COLUMNS = (
    Column("ID", whole=True),
    Column("STATUS", whole=True),
    Column("TASKS", right=True),
    Column("CREATED", optional=True),
    Column("NAME"),
    Column("OF THEM"),
)

FlowId = Annotated[
    UUID,
    typer.Argument(
        parser=task_id, metavar="ID", help="The flow's id, which is that of its first task.", show_default=False
    ),
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        name="flow", cls=PlainGroup, help="Look after flows: tasks that wait for tasks.", no_args_is_help=True
    )
    command(group, "list", panel=_PANEL, example="tasklib flow list --limit 20")(list_flows)
    command(group, "show", panel=_PANEL, example=f"tasklib flow show {_ID}")(show)
    command(group, "cancel", panel=_PANEL, example=f"tasklib flow cancel {_ID}")(cancel)
    command(group, "retry", panel=_PANEL, example=f"tasklib flow retry {_ID}")(retry)
    app.add_typer(group)


def list_flows(
    session: Session,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, metavar="N", help="At most so many.")] = 50,
    cursor: Annotated[
        UUID | None, typer.Option(parser=task_id, metavar="ID", help="Go on behind this flow, as the last list said.")
    ] = None,
) -> None:
    """List flows, newest first, with how many of their tasks are in which state."""

    async def look(engine: Engine) -> list[FlowSummary]:
        return await (await engine.store()).flows(limit + 1, cursor)

    found = session.run(look)
    page = found[:limit]
    behind = page[-1].id if len(found) > limit else None
    if session.out.as_json:
        session.out.data({"flows": [_data(each) for each in page], "next_cursor": behind})
    elif page:
        session.out.table(_COLUMNS, [_row(each) for each in page])
        if behind is not None:
            session.out.hint(f"There are more:  add --cursor {behind}")
    else:
        session.out.note("There are no flows.")


def show(session: Session, flow_id: FlowId) -> None:
    """Show one flow as a tree: what waits for what, and how it stands.

    Tasks of one type that wait for the same are one line. What waits for several is shown below the last of them.
    """

    async def look(engine: Engine) -> tuple[FlowSummary, FlowGraph]:
        return await flows.summary(engine, flow_id), await flows.graph(engine, flow_id)

    summary, graph = session.run(look)
    if session.out.as_json:
        nodes = [{**node._asdict(), "counts": dict(node.counts)} for node in graph.nodes]
        session.out.data({**_data(summary), "graph": {"nodes": nodes, "truncated": graph.truncated}})
        return
    heading = Text.assemble((clean(summary.name or str(summary.id)), "bold"), "  ", _state(summary.status), "  ")
    session.out.show(_tree(heading.append_text(_counts(summary.counts)), graph.nodes))
    if graph.truncated:
        session.out.note(f"Of its {summary.total:,} tasks the first {flows.GRAPH_LIMIT:,} are shown.")
    session.out.hint(f"See its tasks:  tasklib list --flow {summary.id}")


def cancel(session: Session, flow_id: FlowId, yes: Yes = False) -> None:
    """Cancel what is left of a flow; what runs is asked to stop. Asks first, or needs --yes."""
    _act(session, Action.CANCEL, flow_id, yes=yes)


def retry(session: Session, flow_id: FlowId, yes: Yes = False) -> None:
    """Run again what failed in a flow; what was cancelled because of it waits again. Asks first, or needs --yes."""
    _act(session, Action.RETRY, flow_id, yes=yes)


def _act(session: Session, action: Action, flow_id: UUID, *, yes: bool) -> None:
    session.run(lambda engine: flows.summary(engine, flow_id))  # raises where there is none
    act_on_matching(session, action, Filter(flow_id=flow_id), yes=yes)


def _data(summary: FlowSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "name": summary.name,
        "created_at": summary.created_at,
        "status": summary.status,
        "counts": dict(summary.counts),
        "total": summary.total,
    }


def _row(summary: FlowSummary) -> list[str | Text]:
    created = absolute(summary.created_at)
    counts = _counts(summary.counts)
    return [str(summary.id), _state(summary.status), f"{summary.total:,}", created, summary.name or "", counts]


def _tree(heading: Text, nodes: list[FlowNode]) -> Tree:
    """A node stands below the parent that is furthest from the beginning; its other parents are named beside it."""
    by_key = {node.key: node for node in nodes}
    below: dict[str | None, list[FlowNode]] = defaultdict(list)
    for node in nodes:
        last = max(node.parents, key=lambda key: by_key[key].layer, default=None)
        below[last].append(node)
    root = Tree(heading, guide_style="dim")
    left = [(root, 1, node, "") for node in reversed(below[None])]
    while left:  # no recursion: a chain may be thousands long
        tree, level, node, above = left.pop()
        line = _line(node, by_key)
        if level > _DEEPEST:
            tree, level = root, 1
            line.append(f"  goes on after {above}", style="dim")
        branch = tree.add(line)
        left += [(branch, level + 1, each, node.key) for each in reversed(below[node.key])]
    return root


def _line(node: FlowNode, by_key: Mapping[str, FlowNode]) -> Text:
    text = Text(clean(node.name))
    if node.total > 1:
        text.append(f" x {node.total:,}")
    text.append("  ").append_text(_state(next(iter(node.counts))) if node.total == 1 else _counts(node.counts))
    if node.total == 1:
        text.append(f"  {node.key}", style="dim")
    if len(node.parents) > 1:
        names = ", ".join(sorted({by_key[key].name for key in node.parents}))
        text.append(f"  after {clean(names)}", style="dim")
    return text


def _state(state: str) -> Text:
    return Text(clean(state), style=_STYLES.get(state, "reverse"))


def _counts(counts: Mapping[str, int]) -> Text:
    known = [name for name in _STYLES if counts.get(name)]
    others = [name for name, number in counts.items() if number and name not in _STYLES]
    return Text(", ").join(
        Text(f"{counts[name]:,} {clean(name)}", style=_STYLES.get(name, "")) for name in known + others
    )
