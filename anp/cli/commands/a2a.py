"""a2a tokens: the callers of the A2A face."""

from __future__ import annotations

import re
import time
from typing import Annotated

from click import Context

from anp.cli.client import home_of
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json
from anp.cli.output import Column, Line, Settings, print_list, print_one, when
from anp.errors import CallError, ErrorKind, UnknownError

Gateway = Annotated[
    bool,
    Option("--gateway", help="Of local agents that use the gateway, not of callers."),
]
CallerName = Annotated[str, Argument(help="Name of the caller.")]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    group = Commands(help="Callers of the A2A face.")
    tokens = Commands(help="Tokens of callers.")
    tokens.command("add")(add)
    tokens.command("list")(listed)
    tokens.command("revoke")(revoke)
    group.add(tokens, "tokens")
    app.add(group, "a2a")


def add(
    context: Context,
    name: CallerName,
    expose: Annotated[
        list[str] | None,
        Option(help="Capability that this caller may use; default as for peers."),
    ] = None,
    gateway: Gateway = False,
    days: Annotated[
        float | None,
        Option(min=0.001, help="Days for which it counts; default for ever."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token for a caller; it is shown once, and only its hash is kept."""
    from anp.sidecar.a2a.door.callers import A2aCaller
    from anp.sidecar.a2a.door.tokens import token_book
    from anp.sidecar.api.guard import new_token
    from anp.sidecar.attachments.spec import NAME_PATTERN

    if re.fullmatch(NAME_PATTERN, name) is None:
        raise CallError(
            ErrorKind.USAGE,
            "the name of a caller has ASCII letters, digits, `_` and `-`",
        )
    if gateway and expose:
        raise CallError(
            ErrorKind.USAGE, "the gateway has peers; --expose is for callers"
        )
    settings: Settings = context.obj
    home, _ = home_of(settings)
    home.create()
    token = new_token()
    caller = A2aCaller(
        name=name,
        expose=tuple(expose) if expose else None,
        expires=None if days is None else time.time() + days * 86_400,
    )
    token_book(home, gateway=gateway).add(caller, token)
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


def listed(context: Context, gateway: Gateway = False, as_json: Json = False) -> None:
    """Show the callers that have a token."""
    from anp.sidecar.a2a.door.tokens import token_book

    settings: Settings = context.obj
    home, _ = home_of(settings)
    book = token_book(home, gateway=gateway)
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


def revoke(
    context: Context, name: CallerName, gateway: Gateway = False, as_json: Json = False
) -> None:
    """Make the token of a caller worthless, at once."""
    from anp.sidecar.a2a.door.tokens import token_book

    settings: Settings = context.obj
    home, _ = home_of(settings)
    if not token_book(home, gateway=gateway).revoke(name):
        raise UnknownError(f"there is no caller {name[:80]}")
    print_one({"name": name}, [f"{name} has no token any more"], as_json=as_json)
