"""spend: what models cost, by day, account, peer and step."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("spend")(spend)


def spend(
    context: typer.Context,
    days: Annotated[int, typer.Option(help="Days, today being the last.")] = 7,
    as_json: Json = False,
) -> None:
    """Say what was spent on models; a day is one of UTC."""
    found = Client(home_of(context.obj)[0]).get("/v1/spend", days=str(days))
    if as_json:
        print_json(found)
        return
    total, priced = found["total"], found["priced"]
    if not total["calls"]:
        print(f"no model calls since {found['since']}")
        return
    for name, title in (("day", "DAY"), ("peer", "PEER"), ("step", "STEP")):
        _print(title, name, found[f"{name}s"], priced=priced)
        print()
    print(f"today, until {found['until']}:")
    for account in found["accounts"]:
        used = _tokens(account)
        print(
            f"  {account['account']}: {account['calls']} of {account['calls_limit']} "
            f"calls, {used} of {account['tokens_limit']} tokens"
        )
    missing = total["calls"] - found["ledger_calls"]
    if missing > 0:
        print(f"{missing} calls are under way or no longer in the ledger")
    if not priced:
        print("for money: set llm.price_input and llm.price_output")


def _print(title: str, name: str, rows: list[dict[str, Any]], *, priced: bool) -> None:
    head = [title, "CALLS", "INPUT", "OUTPUT"]
    names = [name, "calls", "input_tokens", "output_tokens"]
    if priced:
        head.append("COST")
        names.append("cost")
    table(head, ([row[column] for column in names] for row in rows))


def _tokens(account: dict[str, Any]) -> int:
    names = ("input_tokens", "output_tokens", "held_tokens")
    return sum(int(account[name]) for name in names)
