"""approvals: what waits for the owner's word."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of, segment
from anp.cli.output import print_json, table, visible, when

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Beginning of its id.")]
Note = Annotated[str, typer.Option(help="Why; a rejection passes it on to the peer.")]
approvals_app = typer.Typer(no_args_is_help=True, help="What waits for your word.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(approvals_app, name="approvals")


@approvals_app.command("list")
def list_approvals(context: typer.Context, as_json: Json = False) -> None:
    """List the negotiations that wait for you."""
    found = Client(home_of(context.obj)[0]).get("/v1/approvals")
    if as_json:
        print_json(found)
        return
    table(
        ("ID", "SINCE", "ROLE", "OUTCOME", "PEER", "REASON"),
        (
            (
                one["id"],
                when(one["started"]),
                one["role"],
                one["outcome"],
                one["peer"],
                one["reason"],
            )
            for one in found["negotiations"]
        ),
    )


@approvals_app.command("show")
def show_approval(context: typer.Context, approval: Id, as_json: Json = False) -> None:
    """Show what is to be approved, with the whole negotiation."""
    from anp.cli.agreements.negotiations import show_negotiation

    show_negotiation(context, approval, document=False, model=False, as_json=as_json)


@approvals_app.command("accept")
def accept_approval(
    context: typer.Context, approval: Id, note: Note = "", as_json: Json = False
) -> None:
    """Accept the document that waits."""
    _decide(context, approval, "accept", note, as_json)


@approvals_app.command("reject")
def reject_approval(
    context: typer.Context, approval: Id, note: Note = "", as_json: Json = False
) -> None:
    """Reject the document that waits."""
    _decide(context, approval, "reject", note, as_json)


def _decide(
    context: typer.Context, approval: str, word: str, note: str, as_json: bool
) -> None:
    path = f"/v1/approvals/{segment(approval)}/{word}"
    done: dict[str, Any] = Client(home_of(context.obj)[0]).post(path, {"note": note})
    if as_json:
        print_json(done)
        return
    kept = done["decision"]
    if kept is None:
        print(f"done: {word}; the negotiation goes on")
        return
    print(
        f"kept: {word} counts once, for {visible(kept['peer_did'])}, "
        f"until {when(kept['expires'])}"
    )
