"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

from anp.cli.completion import (
    complete_capability,
    complete_negotiation,
    complete_peer,
    complete_protocol,
)
from anp.cli.grammar import Argument, Option

Json = Annotated[bool, Option("--json", help="Print JSON.")]
Data = Annotated[
    str, Option("--data", "-d", help="JSON, @FILE, or - for standard input.")
]
Hash = Annotated[
    str,
    Argument(
        metavar="HASH",
        help="Hash of the protocol, or its first characters.",
        autocompletion=complete_protocol,
    ),
]
Capability = Annotated[
    str,
    Argument(
        metavar="NAME",
        help="Its full name, or the short one.",
        autocompletion=complete_capability,
    ),
]
Host = Annotated[str | None, Option(help="Address to listen on.")]
Id = Annotated[
    str,
    Argument(
        metavar="ID",
        help="Id of the negotiation, or its first characters.",
        autocompletion=complete_negotiation,
    ),
]
Note = Annotated[str, Option(help="Reason; the peer reads it if you reject.")]
PeerWord = Annotated[
    str,
    Argument(metavar="PEER", help="Name, DID or URL.", autocompletion=complete_peer),
]
Port = Annotated[int | None, Option(help="Port to listen on; 0 takes a free one.")]
