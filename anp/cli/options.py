"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Data",
    "Hash",
    "Host",
    "Id",
    "Json",
    "Note",
    "Port",
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Data = Annotated[
    str, typer.Option("--data", "-d", help="JSON, @FILE, or - for standard input.")
]
Hash = Annotated[
    str,
    typer.Argument(
        metavar="HASH", help="Hash of the protocol, or its first characters."
    ),
]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the negotiation, or its first characters."
    ),
]
Note = Annotated[str, typer.Option(help="Reason; the peer reads it if you reject.")]
Port = Annotated[
    int | None, typer.Option(help="Port to listen on; 0 takes a free one.")
]
