"""The entry of one call in the access log, in the lists of calls and in `anpd tap`.

Arguments and answers are never part of it. Names, DIDs and reasons may be the words of
a peer, so they are cut and hold no character that a terminal or an editor would act on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, Final, Literal

from pydantic import TypeAdapter, ValidationError

from negotiation.strict_json import write_plain

Direction = Literal["made", "served"]
"`made`: our agent called a peer. `served`: a peer called our agent."

RUNNING: Final = "running"
"Outcome of a call that has not ended."

MAX_TEXT: Final = 200
"Longest text of an entry, in characters; more is cut."

MAX_DID: Final = 1_024
"Longest DID, in characters; no stored one is longer."


# Not frozen: that would take four times as long to make, and each call makes one.
@dataclass(slots=True, kw_only=True)
class CallEntry:
    """One call, made or served; a refused one too."""

    id: str
    "Id of the call, our own on each side."

    direction: Direction
    "`made` by our agent, or `served` for a peer."

    at: float
    "Time when it began, in seconds since 1970."

    ms: float
    "Milliseconds until it ended; until now if it runs."

    outcome: str
    "`ok`, `running`, `waiting`, `unanswered`, or the name of an exit code."

    reason: str = ""
    "Reason in words if it did not go well; never the words of an answer."

    peer: str | None = None
    "DID of the peer in its canonical form; null if it was not reached."

    asked: str = ""
    "The peer as our agent named it; empty for a served call."

    need: str = ""
    "The need of our agent; empty for a served call, as a provider never learns it."

    capability: str | None = None
    "Full name of the capability that ran or was asked for; null where nobody said it."

    protocol: str | None = None
    "Hash of the protocol text that it went through; null without one."

    uri: str | None = None
    "URI of the consensus protocol, if it went through one."

    source: str = "none"
    """`agreement`, `published`, `consensus`, `negotiated`, `natural_language`, or
    `none` if it did not come so far."""

    negotiation_id: str | None = None
    "The negotiation that the protocol came from."

    llm_calls: int = 0
    "Model calls for this call on our side."

    cost: float = 0.0
    "Price of those at our owner's prices; 0 where none are set."

    peer_llm_calls: int | None = None
    "Model calls on the peer's side; null unless the peer told it."

    peer_cost: float | None = None
    "Price of those as the peer told it; null unless it did."

    by_owner: bool = False
    "True if the owner made it, so that no agent sees it."

    count: int = 1
    "Number of calls that it stands for; more than 1 where many like it failed."

    @property
    def ended(self) -> float:
        """Time when it ended, in seconds since 1970."""
        return self.at + self.ms / 1000

    def cleaned(self) -> CallEntry:
        """Return it with every text cut and on one line."""
        for value in _values_of(self):
            if type(value) is not str:
                continue
            if len(value) > MAX_TEXT or not value.isprintable():
                break
        else:
            # Nearly all, since most of their texts are our own.
            return self
        texts: dict[str, Any] = {
            name: clean(value, MAX_DID if name == "peer" else MAX_TEXT)
            for name, value in self.to_json().items()
            if isinstance(value, str)
        }
        return replace(self, **texts)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        # By hand: each call has two entries, and `asdict` copies every value.
        return dict(zip(_NAMES, _values_of(self), strict=True))

    def line(self) -> bytes:
        """Return its line in the access log, with the line's end."""
        numbers = self.at, self.ms, self.cost, self.peer_cost or 0.0
        plain = write_plain(self, numbers)
        if plain is None or not plain.isascii() or b"\x7f" in plain:
            # The slow way, with escapes for what is not ASCII.
            plain = _ENCODER.encode(self.to_json()).encode("ascii")
        return plain + b"\n"


_NAMES: Final = tuple(one.name for one in fields(CallEntry))

_values_of: Final = attrgetter(*_NAMES)


@cache
def _reader() -> TypeAdapter[CallEntry]:
    """Return what reads lines; made at its first use, which is slow."""
    return TypeAdapter(CallEntry)


# Made once: `json.dumps` with options makes a new one for each call.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


def clean(text: str, most: int = MAX_TEXT) -> str:
    """Return a text of others, cut, with characters that do not print as `<hex>`."""
    if len(text) <= most and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else f"<{ord(c):x}>" for c in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def read_entry(line: bytes) -> CallEntry | None:
    """Return the entry of a line, or None if the line is damaged."""
    try:
        return _reader().validate_json(line, strict=True)
    except ValidationError:
        return None
