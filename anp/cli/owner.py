"""capabilities and identity: what the owner looks into."""

from __future__ import annotations

from typing import Annotated

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, table
from anp.errors import CallError, ErrorKind

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
capabilities_app = typer.Typer(no_args_is_help=True, help="What peers can be offered.")
identity_app = typer.Typer(no_args_is_help=True, help="Who we are.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(capabilities_app, name="capabilities")
    app.add_typer(identity_app, name="identity")


@capabilities_app.command("list")
def list_capabilities(context: typer.Context, as_json: Json = False) -> None:
    """List every attached capability."""
    found = Client(home_of(context.obj)[0]).get("/v1/capabilities")
    if as_json:
        print_json(found)
        return
    table(
        ("CAPABILITY", "EXPOSED", "READ-ONLY", "DESCRIPTION"),
        (
            (
                c["name"],
                "yes" if c["exposed"] else "no",
                "yes" if c["read_only"] else "no",
                c["description"],
            )
            for c in found["capabilities"]
        ),
    )


@capabilities_app.command("show")
def show_capability(context: typer.Context, name: str, as_json: Json = False) -> None:
    """Show one capability with its schemas."""
    found = Client(home_of(context.obj)[0]).get("/v1/capabilities")["capabilities"]
    for capability in found:
        if name in (capability["name"], capability["name"].partition(".")[2]):
            print_json(capability)
            return
    raise CallError(ErrorKind.USAGE, f"no capability is called {name}")


@identity_app.command("show")
def show_identity(context: typer.Context, as_json: Json = False) -> None:
    """Show our DIDs."""
    from anp.identity.dids import Identities, did_all
    from anp.identity.keys import PrivateKey

    home, _ = home_of(context.obj)
    if not home.key_file.exists():
        raise CallError(
            ErrorKind.CONFIGURATION,
            f"{home.path} has no identity; run: anpd --home {home.path} init",
        )
    from anp.cli.daemon import load_settings

    config = load_settings(context.obj, {})
    key = PrivateKey.load(config.identity.key_file or home.key_file)
    primary = Identities.of_method(key, config.identity.method).primary.did
    twin = did_all(key.public_bytes)
    known = {
        "did": primary,
        "did_key": Identities.of_method(key, "did:key").primary.did,
        "did_all": twin,
        "public_key": key.public_bytes.hex(),
        "key_file": str(home.key_file),
    }
    if as_json:
        print_json(known)
        return
    for name, value in known.items():
        print(f"{name:<11} {value}")
