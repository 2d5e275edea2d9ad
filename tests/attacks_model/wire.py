"""Records all that daemons of this process send, before it is encrypted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from anp.channel.core.events import LinkOutput
from anp.wire.envelopes import EnvelopeWriter


@dataclass
class Wire:
    """The plaintexts since the last `take`."""

    sent: list[tuple[str, bytes]] = field(default_factory=list)
    "The sender's DID, empty for what is not encrypted, and the bytes."

    carried: list[tuple[str, str]] = field(default_factory=list)
    "The sender's DID and the message id of each sealed message."

    def take(self) -> list[tuple[str, bytes]]:
        """Return what was sent, and forget it."""
        sent, self.sent, self.carried = self.sent, [], []
        return sent


@contextmanager
def wire_tapped() -> Iterator[Wire]:
    """Record every frame before it is sealed, and every message without a seal."""
    wire = Wire()
    say, write = LinkOutput.say, EnvelopeWriter.write

    def sealed(writer: EnvelopeWriter, plaintext: bytes, **more: Any) -> str | bytes:
        wire.sent.append((writer.source_did, plaintext))
        wire.carried.append((writer.source_did, more["message_id"]))
        return write(writer, plaintext, **more)

    def said(output: LinkOutput, messages: Iterable[str | bytes]) -> None:
        known = list(messages)
        wire.sent += [
            ("", one.encode())
            for one in known
            if isinstance(one, str) and '"encryptedData"' not in one
        ]
        say(output, known)

    with (
        patch.object(EnvelopeWriter, "write", sealed),
        patch.object(LinkOutput, "say", said),
    ):
        yield wire
