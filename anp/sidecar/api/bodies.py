"""The bodies of requests to the local API, as frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from anp.sidecar.agreement.rulings import MAX_NOTE
from anp.sidecar.api.table import STRICT
from anp.sidecar.library.prune_rules import DEFAULT_AGE
from cache.records.protocols import MAX_REASON

__all__ = [
    "AboutPeerBody",
    "AskBody",
    "CallBody",
    "CancelBody",
    "CapabilityTestBody",
    "DecisionBody",
    "EmptyBody",
    "HintBody",
    "NoteBody",
    "PeerBody",
    "PruneBody",
    "PublishBody",
    "RevokeBody",
    "TaskBody",
    "UnpublishBody",
]

MAX_AGE = 100 * 366 * 86_400.0
"Longest age, in seconds."

Peer = Annotated[str, Field(min_length=1, max_length=2048)]
Uri = Annotated[str, Field(min_length=1, max_length=2048)]
Text = Annotated[str, Field(min_length=1, max_length=65_536)]
Key = Annotated[str, Field(min_length=1, max_length=200)]
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBody:
    """Nothing is said; `{}` has to be sent, so that no foreign page can."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBody:
    """A task with schemas (DESIGN.md, Tasks and schemas)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    requirement: Text
    "What is wanted."

    input_schema: Schema | None = None
    "JSON Schema of the input."

    output_schema: Schema | None = None
    "JSON Schema of the output."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBody:
    """A call of a peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: Peer
    "Name, DID, URL or `URL#DID`."

    task: Text | TaskBody
    "A text, the name of a `[[task]]`, or an object."

    input: dict[str, Any] = field(default_factory=dict)
    "The data."

    mode: Literal["auto", "protocol", "natural-language"] = "auto"
    "Through a protocol or in words."

    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    "Seconds for negotiation and call together."

    idempotency_key: Key | None = None
    "A repeated request with this key gets the first result (SIDECAR.md, Operation)."

    trust_first_use: bool = False
    "A first use over an unencrypted connection to another machine is allowed."

    protocol: Uri | None = None
    "URI of a consensus protocol to offer first."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerBody:
    """Whom something is said about."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: Peer
    "Name, DID, URL or `URL#DID`."


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPeerBody:
    """A protocol with everybody, or with one peer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: Peer | None = None
    "For this peer alone; null is for all."


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeBody:
    """A protocol is taken back."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: Peer | None = None
    "For this peer alone; null is for all."

    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    "Why, for the owner; never sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityTestBody:
    """The owner tries a capability."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    input: dict[str, Any] = field(default_factory=dict)
    "Its arguments."


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneBody:
    """What is to be dropped."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    older_than: Annotated[float, Field(ge=0, le=MAX_AGE)] = DEFAULT_AGE
    "Seconds since it was used or made."

    dry_run: bool = False
    "Only say what would go."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBody:
    """A question about a peer's protocols, in words (ANP-64)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: Peer
    "Name, DID, URL or `URL#DID`."

    question: Text
    "The question."


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelBody:
    """The end of a negotiation."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    reason: Annotated[str, Field(max_length=MAX_NOTE)] = ""
    "Why, for the record."


@dataclass(frozen=True, slots=True, kw_only=True)
class HintBody:
    """Words for our mind."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    text: Annotated[str, Field(min_length=1, max_length=MAX_NOTE)]
    "The words."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteBody:
    """The owner's word without more."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    note: Annotated[str, Field(max_length=MAX_NOTE)] = ""
    "Why; a rejection passes it on to the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionBody:
    """The owner's word about a document (ANP-34)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    verdict: Literal["accept", "reject", "edit"]
    "The word."

    document: str | None = None
    "The edited text; needed with `edit`, refused without."

    note: Annotated[str, Field(max_length=MAX_NOTE)] = ""
    "Why; a rejection passes it on to the peer."


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishBody:
    """An agreed protocol is put under a URI (ANP-95)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    protocol: Annotated[str, Field(min_length=1, max_length=64)]
    "Its hash, or the beginning of it."

    uri: Uri
    "A URI of the owner's, of this version alone."

    version: Annotated[str, Field(max_length=64)] = "1.0"
    "For people."

    summary: Annotated[str, Field(max_length=1024)] = ""
    "One line for people."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpublishBody:
    """A URI is taken back."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    uri: Uri
    "The URI."
