"""spend: model calls, tokens and cost by day, peer and step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from click import Context

from anp.cli.client import client_of
from anp.cli.grammar import Commands, Option
from anp.cli.options import Json
from anp.cli.output import Column, print_one, table
from anp.interaction.elements import party_name


def register(app: Commands) -> None:
    """Add the command of this file."""
    app.command("spend")(spend)


def spend(
    context: Context,
    days: Annotated[int, Option(help="Number of days up to today.")] = 7,
    as_json: Json = False,
) -> None:
    """Show model calls, tokens and cost by day (UTC), peer and step."""
    found = client_of(context).get("/v1/spend", days=str(days))
    print_one(found, _told(found), as_json=as_json)


def _told(found: dict[str, Any]) -> Iterator[str]:
    """Give the tables and what is left of today's budgets."""
    total, priced = found["total"], found["priced"]
    if not total["calls"]:
        yield f"no model calls since {found['since']}"
        return
    counted = {"CALLS": "calls", "INPUT": "input_tokens", "OUTPUT": "output_tokens"}
    if priced:
        counted["COST"] = "cost"
    for name in ("day", "peer", "step"):
        first: dict[str, Column] = {name.upper(): name}
        if name == "peer":
            first = {"PEER": lambda one: party_name(one["peer"])}
        yield from table(found[f"{name}s"], {**first, **counted})
        yield ""
    yield f"today, until {found['until']}:"
    for account in found["accounts"]:
        name = party_name(account["account"])
        yield (
            f"  {name}: {account['calls']} of {account['calls_limit']} "
            f"calls, {_tokens(account)} of {account['tokens_limit']} tokens"
        )
    missing = total["calls"] - found["ledger_calls"]
    if missing > 0:
        yield f"{missing} calls are still running or no longer in the ledger"
    if not priced:
        yield "for money: set llm.price_input and llm.price_output"


def _tokens(account: dict[str, Any]) -> int:
    names = ("input_tokens", "output_tokens", "held_tokens")
    return sum(int(account[name]) for name in names)
