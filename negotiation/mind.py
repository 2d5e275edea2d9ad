"""Interfaces: a mind, which decides in a negotiation, and the checks of its halves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from negotiation.need import Capability, Need, Schema
from negotiation.strict_json import Json
from negotiation.transcript import Turn

HALF_FAILED: Final = "our half for this document failed"
"Reason for a peer; findings quote values, such as the data of a call."


@dataclass(frozen=True, slots=True)
class Demand:
    """The requester's side of a negotiation."""

    need: Need
    "The caller's need; its schemas limit what may be agreed."

    arguments: Json
    "The data of the call at hand; its shape replaces a missing input schema."

    hints: tuple[str, ...] = ()
    "The owner's hints, newest last; private to our mind (ANP-34)."


@dataclass(frozen=True, slots=True)
class Offer:
    """The provider's side of a negotiation."""

    capabilities: tuple[Capability, ...]
    "The capabilities that this peer may see and use; the mind knows no others."

    hints: tuple[str, ...] = ()
    "The owner's hints, newest last; private to our mind (ANP-34)."

    updates: bool = True
    "False for a peer that could not be told of updates before an answer."


Side = Demand | Offer
"The side that the mind works for."


@dataclass(frozen=True, slots=True)
class Accept:
    """The candidate is accepted as it is (ANP-33)."""

    told: str = ""
    "Words for the peer that go with it."

    empty: tuple[str, ...] = ()
    """Places that rules leave without a value, although the other side has unused ones
    of a fitting type; a model may know which of them is meant."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The candidate is refused; the mind proposes a complete other one (ANP-27)."""

    document: str
    "The full text of our candidate."

    summary: str
    "Changes from the peer's candidate, in words (ANP-30)."

    empty: tuple[str, ...] = ()
    "As in `Accept`, where rules could serve the candidate except for these places."


@dataclass(frozen=True, slots=True)
class Reject:
    """The negotiation ends, as no document can settle it (ANP-Q23)."""

    reason: str
    "Reason in words that name what is missing; the peer sees it unless `told` is set."

    told: str = ""
    "Words for the peer in place of a reason that may quote the data of the call."


Verdict = Accept | Counter | Reject
"A mind's answer to a candidate of the peer."


@dataclass(frozen=True, slots=True)
class HalfSource:
    """One half of a module as text."""

    text: str
    "Python source in the module contract."

    origin: str
    "Author: `rules`, `model`, `imported` or `hand-written`."

    capabilities: tuple[str, ...] = ()
    "Full names of the capabilities that a provider half may call."

    model: str = field(default="", compare=False)
    "Name of the model that wrote it; empty for other origins or when unknown."

    samples: str = field(default="none", compare=False)
    "`full`, `partial` or `none`: how much of the schemas its check could sample."

    notes: tuple[str, ...] = field(default=(), compare=False)
    "Doubts that the caller is told with each call, one sentence each."

    empty: tuple[str, ...] = field(default=(), compare=False)
    "JSON pointers of the places in the result that get no value, for the caller."


class Mind(Protocol):
    """Answers the questions of a negotiation; any method may raise `MindError`."""

    async def propose(self, demand: Demand) -> str:
        """Return the first candidate: need, what the caller can use, format (ANP-4)."""
        ...

    async def judge(
        self,
        candidate: str,
        side: Side,
        transcript: tuple[Turn, ...],
        *,
        findings: tuple[str, ...] = (),
    ) -> Verdict:
        """Judge the peer's candidate, the last turn of `transcript`.

        Args:
            findings: Faults of a half that was written for this same candidate after an
                `Accept`. The shell then treats another `Accept` as a rejection.
        """
        ...

    async def write_half(
        self, document: str, side: Side, *, findings: tuple[str, ...] = ()
    ) -> HalfSource:
        """Write our half for `document`.

        Args:
            findings: Faults of the half from the previous attempt, in words.

        Raises:
            HalfError: This mind cannot write a half for the document.
        """
        ...

    async def answer(self, question: str, side: Side) -> str:
        """Answer a question that the peer asked in words (ANP-64).

        Args:
            question: The peer's text, untrusted.
        """
        ...


class MessageParser(Protocol):
    """Reads messages whose bytes are not JSON."""

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        """Run `read_message` of either half, when the bytes are not JSON.

        Args:
            kind: `request` or `response` (`MessageKind`).
        """
        ...


OnStream = Callable[[str, Json, Callable[[Json], Awaitable[bytes]]], Awaitable[Json]]
"Answers a call; its last argument has the half write an update of a value."


class HalfRunner(MessageParser, Protocol):
    """A loaded half; every failure of it is a `HalfError`."""

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        """Run `encode_request` of a requester half."""
        ...

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        """Run `decode_response` of a requester half."""
        ...

    async def handle_request(
        self,
        data: bytes,
        on_call: Callable[[str, Json], Awaitable[Json]],
        on_stream: OnStream | None = None,
    ) -> bytes:
        """Run `handle_request` of a provider half.

        Args:
            on_call: Answers each capability call; if it raises `CapabilityFailed`, the
                half gets a `CapabilityError`.
            on_stream: The same for a call whose updates the half writes; without it
                `on_call` answers these, too.
        """
        ...


class Validator(Protocol):
    """Validates values against schemas under a deadline; no finding means valid."""

    async def check_schema(self, schema: Schema) -> list[str]:
        """Check a schema against its metaschema."""
        ...

    async def validate(self, schema: Schema, value: Json) -> list[str]:
        """Check a value against a schema."""
        ...

    async def validate_json(
        self, schema: Schema, data: bytes, values: Json = None
    ) -> list[str]:
        """Check bytes that should be JSON against a schema.

        Args:
            values: What they say, if somebody read them as strict JSON already.
        """
        ...

    def fits(self, schema: Schema, data: bytes, value: Json) -> bool:
        """Return True if JSON surely fits a schema; False says nothing.

        Args:
            value: The same as `data`, parsed.
        """
        ...
