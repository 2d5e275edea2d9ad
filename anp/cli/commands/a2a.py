"""a2a tokens: the callers of the A2A face."""

from __future__ import annotations

import re
import time
from typing import Annotated

import typer

from anp.cli.client import home_of
from anp.cli.options import Json
from anp.cli.output import Column, Line, Settings, print_list, print_one, when
from anp.errors import CallError, ErrorKind, UnknownError

__all__ = ["register"]

CallerName = Annotated[str, typer.Argument(help="Name of the caller.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    group = typer.Typer(help="Callers of the A2A face.", no_args_is_help=True)
    tokens = typer.Typer(help="Tokens of callers.", no_args_is_help=True)
    tokens.command("add")(add)
    tokens.command("list")(listed)
    tokens.command("revoke")(revoke)
    group.add_typer(tokens, name="tokens")
    app.add_typer(group, name="a2a")


def add(
    context: typer.Context,
    name: CallerName,
    expose: Annotated[
        list[str] | None,
        typer.Option(help="Capability that this caller may use; default as for peers."),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(min=0.001, help="Days for which it counts; default for ever."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token for a caller; it is shown once, and only its hash is kept."""
    from anp.sidecar.a2a.callers import A2aCaller
    from anp.sidecar.a2a.tokens import token_book
    from anp.sidecar.api.guard import new_token
    from anp.sidecar.attachments.spec import NAME_PATTERN

    if re.fullmatch(NAME_PATTERN, name) is None:
        raise CallError(
            ErrorKind.USAGE, "the name of a caller has letters, digits, `_` and `-`"
        )
    settings: Settings = context.obj
    home, _ = home_of(settings)
    token = new_token()
    caller = A2aCaller(
        name=name,
        expose=tuple(expose) if expose else None,
        expires=None if days is None else time.time() + days * 86_400,
    )
    token_book(home).add(caller, token)
    told = {
        "name": name,
        "token": token,
        "expose": caller.expose,
        "expires": caller.expires,
    }
    lines: list[Line] = [("token", token)]
    if caller.expires is not None:
        lines.append(("expires", when(caller.expires)))
    print_one(told, lines, as_json=as_json)


def listed(context: typer.Context, as_json: Json = False) -> None:
    """Show the callers that have a token."""
    from anp.sidecar.a2a.tokens import token_book

    settings: Settings = context.obj
    home, _ = home_of(settings)
    book = token_book(home)
    used = book.uses()
    found = [
        {
            "name": one.name,
            "expose": one.expose and list(one.expose),
            "expires": one.expires,
            "last_used": used.get(one.name),
        }
        for one in book.callers()
    ]
    columns: dict[str, Column] = {
        "NAME": "name",
        "MAY CALL": lambda one: ", ".join(one["expose"] or ["what every peer may"]),
        "EXPIRES": lambda one: _time(one["expires"], "never"),
        "LAST USED": lambda one: _time(one["last_used"], "never"),
    }
    print_list({"callers": found}, found, columns, as_json=as_json)


def _time(at: float | None, nothing: str) -> str:
    return nothing if at is None else when(at)


def revoke(context: typer.Context, name: CallerName, as_json: Json = False) -> None:
    """Make the token of a caller worthless, at once."""
    from anp.sidecar.a2a.tokens import token_book

    settings: Settings = context.obj
    home, _ = home_of(settings)
    if not token_book(home).revoke(name):
        raise UnknownError(f"there is no caller {name[:80]}")
    print_one({"name": name}, [f"{name} has no token any more"], as_json=as_json)
