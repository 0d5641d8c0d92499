"""token create, token list, token revoke: the keys to the HTTP API."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from tasklib.cli.command import command
from tasklib.cli.exits import Exit
from tasklib.cli.help import PlainGroup
from tasklib.cli.output import Column
from tasklib.cli.session import Session, actor
from tasklib.cli.times import absolute
from tasklib.core.errors import MissingExtra
from tasklib.core.options import check_name
from tasklib.engine.engine import Engine
from tasklib.stores.protocol import AccessStore
from tasklib.stores.values import AuditEntry, Token

_PANEL = "Operations"


class RoleName(StrEnum):
    """The server's roles by name, so that the help text needs no server."""

    READ_ONLY = "read-only"
    OPERATOR = "operator"
    WORKER = "worker"
    ADMIN = "admin"


def register(app: typer.Typer) -> None:
    group = typer.Typer(
        name="token",
        cls=PlainGroup,
        help="Make, list and revoke the tokens that open the HTTP API.",
        no_args_is_help=True,
    )
    command(group, "create", panel=_PANEL, example="tasklib token create --role operator --label ann")(create)
    command(group, "list", panel=_PANEL, example="tasklib token list")(list_tokens)
    command(group, "revoke", panel=_PANEL, example="tasklib token revoke 5f2a91c3")(revoke)
    app.add_typer(group)


def create(
    session: Session,
    role: Annotated[
        RoleName,
        typer.Option(
            "--role",
            "-r",
            metavar="ROLE",
            help="read-only looks; operator also retries, cancels, deletes, pauses and limits; worker also submits; "
            "admin does all.",
            show_default=False,
        ),
    ],
    label: Annotated[
        str,
        typer.Option("--label", "-l", metavar="TEXT", help="Whose it is: the audit trail says so.", show_default=False),
    ],
) -> None:
    """Make a token. It is printed once; only its hash is kept."""
    try:
        from tasklib.server.tokens import Role, new_token
    except ImportError:
        raise MissingExtra("server", "fastapi", "tasklib token") from None
    text, token = new_token(Role(role.value), label)

    async def work(engine: Engine) -> None:
        store: AccessStore = await engine.store()
        await store.add_token(token, audit=[_entry("token-create", token.id, token.label, token.role)])

    session.run(work, creates=True)
    if session.out.as_json:
        session.out.data({"id": token.id, "label": token.label, "role": token.role, "token": text})
    else:
        session.out.line(text)
        session.out.note(f"Token {token.id} ({token.role}, {token.label}). It is not shown again.")


def list_tokens(session: Session) -> None:
    """List the tokens, without the tokens themselves."""

    async def work(engine: Engine) -> list[Token]:
        return await (await engine.store()).tokens()

    found = session.run(work)
    if session.out.as_json:
        session.out.data(
            [
                {
                    "id": token.id,
                    "label": token.label,
                    "role": token.role,
                    "created_at": token.created_at,
                    "revoked_at": token.revoked_at,
                }
                for token in found
            ]
        )
        return
    columns = [
        Column("ID", whole=True),
        Column("ROLE", whole=True),
        Column("CREATED"),
        Column("REVOKED"),
        Column("LABEL"),
    ]
    session.out.table(
        columns,
        [
            [
                token.id,
                token.role,
                absolute(token.created_at) if token.created_at else "",
                absolute(token.revoked_at) if token.revoked_at else "",
                token.label,
            ]
            for token in found
        ],
    )


def revoke(
    session: Session,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `tasklib token list` prints it.")],
) -> None:
    """Revoke a token. Servers refuse it, and sessions begun with it, within seconds."""

    check_name(token_id, "id")

    async def work(engine: Engine) -> bool:
        store: AccessStore = await engine.store()
        return await store.revoke_token(token_id, audit=[_entry("token-revoke", token_id)])

    if not session.run(work):
        session.out.error(
            f"there is no token {token_id!r:.60}, or it was revoked before", "token_not_found", Exit.FAILED
        )
        raise typer.Exit(Exit.FAILED)
    if session.out.as_json:
        session.out.data({"id": token_id, "revoked": True})
    else:
        session.out.line(f"{token_id}  revoked")


def _entry(action: str, token_id: str, label: str | None = None, role: str | None = None) -> AuditEntry:
    detail = {"token_id": token_id, "label": label, "role": role}
    known = {name: value for name, value in detail.items() if value is not None}
    return AuditEntry(actor=actor(), action=action, detail=json.dumps(known))
