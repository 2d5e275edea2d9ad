"""expose and hide: the capabilities that peers may call, one by one."""

from __future__ import annotations

from typing import Annotated

from click import Context

from anp.cli.client import client_of, segment
from anp.cli.completion import complete_capability
from anp.cli.grammar import Argument, Commands
from anp.cli.options import Json
from anp.cli.output import print_one

Names = Annotated[
    list[str],
    Argument(
        help="Capabilities, by their full or short names.",
        autocompletion=complete_capability,
    ),
]


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.command("expose")(expose)
    app.command("hide")(hide)


def expose(context: Context, names: Names, as_json: Json = False) -> None:
    """Let peers call capabilities of an attachment that runs."""
    _say(context, "expose", names, as_json=as_json)


def hide(context: Context, names: Names, as_json: Json = False) -> None:
    """Let peers call capabilities no longer, and end what they do with them."""
    _say(context, "hide", names, as_json=as_json)


def _say(context: Context, word: str, names: list[str], *, as_json: bool) -> None:
    client = client_of(context)
    path = "/v1/capabilities/{}/" + word
    found = [client.post(path.format(segment(name))) for name in names]
    told = []
    for one in found:
        line = f"{one['name']} is {'exposed' if one['exposed'] else 'hidden'}"
        if not one["exposed"] and one["exposed_to"]:
            # The owner's entry for a peer stands above that of the attachment.
            line += f", but not from {', '.join(one['exposed_to'])} ([[peer]] expose)"
        told.append(line)
    print_one({"capabilities": found}, told, as_json=as_json)
