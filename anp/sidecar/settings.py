"""The sections of the configuration as frozen dataclasses, with their defaults."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from anp.errors import ConfigError
from anp.sidecar.attachments.spec import NAME_PATTERN, AttachmentSpec
from anp.wire.meta_protocol import CAPABILITIES, Capability

__all__ = [
    "BudgetConfig",
    "CacheConfig",
    "CallConfig",
    "Config",
    "IdentityConfig",
    "LimitsConfig",
    "ListenConfig",
    "LlmConfig",
    "NegotiationConfig",
    "PeerEntry",
    "PolicyConfig",
    "SandboxSettings",
    "TaskEntry",
]

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Bytes = Annotated[int, Field(ge=1024, le=2**40)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Tokens = Annotated[int, Field(ge=0, le=10**12)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
HeaderValue = Annotated[str, Field(pattern=r"^[!-~]([ -~]{0,4094}[!-~])?$")]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
STRICT = ConfigDict(extra="forbid")


def _in_order(names: tuple[Capability, ...]) -> tuple[Capability, ...]:
    """Return each name once, in the order of the seed, whatever the owner wrote."""
    return tuple(name for name in CAPABILITIES if name in names)


Capabilities = Annotated[tuple[Capability, ...], AfterValidator(_in_order)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig:
    """Who we are."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    method: Literal["did:key", "did:all"] = "did:key"
    "DID method we show ourselves under; the key fits both."

    key_file: Path | None = None
    "The private key; default is `identity.key` in the home."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenConfig:
    """Where peers reach us."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    host: str = "127.0.0.1"
    "Address or name of the interface."

    port: Port = 8765
    "TCP port; 0 lets the system choose."

    public_url: Annotated[str, Field(pattern=r"^wss?://[^/\s#]+[^\s#]*$")] | None = None
    "What peers shall dial when it is not `ws://host:port/`."

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach us."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmConfig:
    """The language model; used only when `model` is set (DESIGN.md, "Negotiation")."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    model: str | None = None
    "Name of the model; None means that no model is ever called."

    base_url: HttpUrl | None = None
    "Any OpenAI-compatible endpoint; None is OpenAI's own, at api.openai.com."

    api_key_env: str | None = None
    "Environment variable that holds the key; None is `OPENAI_API_KEY` for OpenAI only."

    api_key_file: Path | None = None
    "File that holds the key, in place of the variable."

    timeout: Seconds = 60.0
    "Seconds for one question with all its repetitions."

    answer_form: Literal["json_schema", "json_object", "text"] = "json_schema"
    "Strongest form in which answers are asked for; what a server refuses is noticed."

    max_tokens_name: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    "What the endpoint calls the most tokens of an answer; `auto` finds out."

    thinking_tokens: Annotated[int, Field(ge=0, le=200_000)] = 0
    "Tokens allowed besides the answer, for models that think before they answer."

    reasoning_effort: Annotated[str, Field(pattern=r"^[a-z]{1,16}$")] | None = None
    "Sent to the endpoint if set."

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    "Sent to the endpoint if set."

    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    "Sent to the endpoint if set."

    headers: Mapping[HeaderName, HeaderValue] = field(default_factory=dict, repr=False)
    "More headers for the endpoint; their values are kept secret like the key."

    price_input: Price | None = None
    "What a million tokens of prompts cost, in any currency."

    price_output: Price | None = None
    "What a million tokens of answers cost, in the same."


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationConfig:
    """How protocols are agreed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    mind: Literal["auto", "rules", "llm"] = "auto"
    "Who decides: `auto` tries rules first, then the model if there is one."

    timeout: Seconds = 120.0
    "Seconds for a whole negotiation."

    codegen_timeout: Seconds = 60.0
    "Seconds for writing and checking a half."

    message_timeout: Seconds = 60.0
    "Seconds to wait for the peer's next message."

    max_rounds: Annotated[int, Field(ge=1, le=10)] = 10
    "`negotiating` messages in all (ANP-23, ANP-Q24)."

    capabilities: Capabilities = CAPABILITIES
    "Optional parts of the meta-protocol that peers are told we have (ANP-79, ANP-81)."

    test_cases: bool = True
    "Whether a new protocol is tested with the peer before its first use (ANP-48)."

    approve: Literal["never", "first-use", "side-effects", "always"] = "never"
    "When the owner is asked before a protocol is agreed (docs/owner.md)."

    approval_wait: Annotated[float, Field(ge=0, le=20, allow_inf_nan=False)] = 20.0
    "Seconds a peer is kept waiting for the owner, before it is told to ask again."


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig:
    """What may be spent on models (DESIGN.md, "Trust"); a day is one of UTC."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    negotiation_calls: Count = 8
    "Model calls in one negotiation."

    negotiation_tokens: Tokens = 200_000
    "Tokens in one negotiation."

    peer_calls: Count = 40
    "Model calls for one listed peer in a day."

    peer_tokens: Tokens = 400_000
    "Tokens for one listed peer in a day."

    unlisted_calls: Count = 20
    "Model calls for all unlisted peers together in a day."

    unlisted_tokens: Tokens = 200_000
    "Tokens for all unlisted peers together in a day."

    day_calls: Count = 200
    "Model calls for everything in a day."

    day_tokens: Tokens = 2_000_000
    "Tokens for everything in a day."

    owner_share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    "Part of the day's calls and tokens for our own calls; peers have the rest."


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """What holds generated code (SANDBOX.md)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    level: Literal["full", "reduced"] = "full"
    "Least isolation at which code of a model may run; rules run at `reduced` too."

    call_timeout: Seconds = 2.0
    "Seconds of its own time that a half may take for one call."

    memory: Bytes = 256 * 1024 * 1024
    "Address space of a worker, in bytes."

    max_workers: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Workers at once."


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """Who may use us."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peers: Literal["any", "listed"] | None = None
    "`any` DID that proved its key, or only listed ones; see `Config.peers_policy`."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig:
    """Calls out."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    timeout: Seconds = 30.0
    "Seconds for the call itself, once the protocol is ready."


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """Agreements on disk."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    path: Path | None = None
    "Folder; default is `store` in the home."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """What others can make grow."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    max_message: Bytes = 1024 * 1024
    "Largest message from a peer, in bytes (WIRE row 34)."

    max_payload: Bytes = 768 * 1024
    "Largest protocol data we send in one frame, in bytes."

    max_links: Annotated[int, Field(ge=1, le=100_000)] = 256
    "Links that peers may open."

    max_channels: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Channels on one link."

    max_calls: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Calls that run in one attachment at a time."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A `[[task]]`: a name for something our agent wants from others."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    "What `anpd call` and the API may say in place of the task."

    requirement: Annotated[str, Field(min_length=1, max_length=10_000)]
    "The need, in words."

    input_schema: Mapping[str, Any] | None = None
    "JSON Schema of the arguments, if the caller is firm about them."

    output_schema: Mapping[str, Any] | None = None
    "JSON Schema of the result."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerEntry:
    """A `[[peer]]` of the address book; `did` or `url` is needed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    "What the owner calls it."

    did: Annotated[str, Field(pattern=r"^did:[a-z0-9]+:\S+$")] | None = None
    "Its DID."

    url: Annotated[str, Field(pattern=r"^wss?://\S+$")] | None = None
    "Its address."

    keep_link: bool = False
    "Keep a link open, so that the peer can call us without an address of ours."

    policy: Literal["allow", "block"] = "allow"
    "Whether a peer that is listed here may use us."

    def __post_init__(self) -> None:
        if self.did is None and self.url is None:
            raise ConfigError(
                f"peer {self.name}: write did, url or both, as `anpd up` of that "
                "peer prints them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything the owner set, with defaults for the rest."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    identity: IdentityConfig = field(default_factory=IdentityConfig)
    "Who we are."

    listen: ListenConfig = field(default_factory=ListenConfig)
    "Where peers reach us."

    llm: LlmConfig = field(default_factory=LlmConfig)
    "The language model."

    negotiation: NegotiationConfig = field(default_factory=NegotiationConfig)
    "How protocols are agreed."

    budget: BudgetConfig = field(default_factory=BudgetConfig)
    "What may be spent on models."

    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    "What holds generated code."

    policy: PolicyConfig = field(default_factory=PolicyConfig)
    "Who may use us."

    call: CallConfig = field(default_factory=CallConfig)
    "Calls out."

    cache: CacheConfig = field(default_factory=CacheConfig)
    "Agreements on disk."

    limits: LimitsConfig = field(default_factory=LimitsConfig)
    "What others can make grow."

    task: tuple[TaskEntry, ...] = ()
    "Named tasks."

    peer: tuple[PeerEntry, ...] = ()
    "The owner's address book."

    attach: tuple[AttachmentSpec, ...] = ()
    "Attachments of the configuration; those of `anpd attach` are files of the home."

    @property
    def peers_policy(self) -> Literal["any", "listed"]:
        """Who may use us; without a word of the owner, `any` on loopback only."""
        if self.policy.peers is not None:
            return self.policy.peers
        return "any" if self.listen.is_loopback else "listed"
