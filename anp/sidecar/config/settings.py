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
from anp.sidecar.config.model_settings import STRICT, BudgetConfig, LlmConfig, Seconds
from anp.sidecar.config.operation_settings import LogConfig, OperationConfig, OtelConfig
from anp.wire.meta_protocol import CAPABILITIES, Capability
from anp.wire.sizes import LEAST_MAX_MESSAGE, MAX_PAYLOAD, OTHERS_MAX_TEXT
from cache.redis.place import DEFAULT_PREFIX, PlaceError, RedisPlace
from negotiation.consensus import RegistryError, check_uri

__all__ = [
    "BudgetConfig",
    "CacheConfig",
    "CallConfig",
    "ChannelsConfig",
    "Config",
    "ConsensusConfig",
    "FetchConfig",
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

Bytes = Annotated[int, Field(ge=1024, le=2**40)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


def _protocol_uri(uri: str) -> str:
    """Return the URI of a consensus protocol, if it can be one (ANP-91)."""
    try:
        return check_uri(uri)
    except RegistryError as exc:
        raise ValueError(str(exc)) from None


def _in_order(names: tuple[Capability, ...]) -> tuple[Capability, ...]:
    """Return each name once, in the order of the seed, whatever the owner wrote."""
    return tuple(name for name in CAPABILITIES if name in names)


Capabilities = Annotated[tuple[Capability, ...], AfterValidator(_in_order)]
ProtocolUri = Annotated[str, AfterValidator(_protocol_uri)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig:
    """Who we are."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    method: Literal["did:key", "did:all", "did:wba"] = "did:key"
    "DID method we show ourselves under; `did:wba` needs `anpd identity create` first."

    key_file: Path | None = None
    "The private key, P-256; default is `identity.key` in the home."

    sign_with: Literal["p256", "ed25519"] = "p256"
    "Which key of our `did:wba` signs hellos; the SDK and `did:key` know P-256 only."


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

    tls_cert: Path | None = None
    "Certificate chain (PEM); with it the port speaks https and wss."

    tls_key: Path | None = None
    "Private key (PEM) of the certificate."

    api_port: Port | None = None
    "Port of 127.0.0.1 for the local API besides its socket; 0 lets the system choose."

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach us."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("listen.tls_cert and listen.tls_key belong together")


def _network(text: str) -> str:
    """Return a network as it is written in one form."""
    return str(ipaddress.ip_network(text, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """What we fetch from URLs that peers name: DID documents, published protocols."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    allow: tuple[Annotated[str, AfterValidator(_network)], ...] = ()
    "Networks that are not public and may be fetched from, such as `10.0.0.0/8`."

    allow_http_loopback: bool = False
    "Plain http to loopback, where `allow` has it; for tests."

    ca_file: Path | None = None
    "Certificates (PEM) trusted besides the system's, also for wss."


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

    share_agreements: bool = False
    "Whether the hash of an agreement made with one peer is offered to another."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusConfig:
    """Protocols known by URI (ANP-90 to ANP-95); see docs/consensus.md."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    use: bool = True
    "Whether calls look at what a peer publishes before they negotiate."

    envelope: bool = True
    "Whether the message envelope is spoken, in calls out and in."

    publish: bool | None = None
    "Whether our list is served; None is yes where any peer may use us."

    directory: Path | None = None
    "Folder of the owner's protocols; default is `consensus` in the home."

    order: tuple[ProtocolUri, ...] = ()
    "URIs, best first, in which they are offered; others come after."

    list_lifetime: Seconds = 300.0
    "Seconds for which a peer's list is kept."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig:
    """Calls out."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    timeout: Seconds = 30.0
    "Seconds for the call itself, once the protocol is ready."


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig:
    """Agreements, on disk or on a server of several daemons (docs/fleets.md)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    path: Path | None = None
    "Folder; default is `store` in the home."

    url: str | None = field(default=None, repr=False)
    "Redis or Valkey in place of the folder: `redis://`, `rediss://` or `unix://`."

    prefix: str = DEFAULT_PREFIX
    "What our keys there begin with; one for each identity."

    ca_file: Path | None = None
    "Certificates (PEM) that the server's is checked with; None is the system's."

    @property
    def shown_url(self) -> str | None:
        """The URL without user and password."""
        return None if self.url is None else RedisPlace.parse(self.url).shown

    def __post_init__(self) -> None:
        if self.url is not None:
            try:
                RedisPlace.parse(self.url, prefix=self.prefix)
            except PlaceError as exc:
                raise ConfigError(str(exc)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsConfig:
    """Short-term keys (DESIGN.md, "Links and channels")."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    resumption: bool = False
    "Whether keys outlive their links, encrypted on disk, so that calls go on at once."

    key_lifetime: Annotated[int, Field(ge=1, le=31_536_000)] = 864_000
    "Seconds a key is offered for; the shorter offer counts (WIRE row 16)."

    max_frame: Annotated[int, Field(ge=LEAST_MAX_MESSAGE, le=2**31)] = 16 * 1024 * 1024
    "Plaintext bytes of one frame, with peers that have our extension for it."

    renew_messages: Annotated[int, Field(ge=1, le=2**20)] = 2**20
    "Messages in one direction after which a key is renewed."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """What others can make grow."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    max_message: Bytes = OTHERS_MAX_TEXT
    "Largest message from a peer, in bytes (WIRE row 34)."

    max_payload: Bytes = MAX_PAYLOAD
    "Largest protocol data we send in one frame to peers without our extensions."

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

    protocol: ProtocolUri | None = None
    "URI of the consensus protocol to offer for it."


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

    fetch: FetchConfig = field(default_factory=FetchConfig)
    "What may be fetched for peers."

    consensus: ConsensusConfig = field(default_factory=ConsensusConfig)
    "Protocols known by URI."

    call: CallConfig = field(default_factory=CallConfig)
    "Calls out."

    cache: CacheConfig = field(default_factory=CacheConfig)
    "Agreements on disk."

    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    "Short-term keys."

    limits: LimitsConfig = field(default_factory=LimitsConfig)
    "What others can make grow."

    log: LogConfig = field(default_factory=LogConfig)
    "What is logged, and how."

    operation: OperationConfig = field(default_factory=OperationConfig)
    "Start and stop."

    otel: OtelConfig = field(default_factory=OtelConfig)
    "Traces."

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

    @property
    def publishes(self) -> bool:
        """Whether our list is served; it names what is exposed, to anybody who asks."""
        if self.consensus.publish is not None:
            return self.consensus.publish
        return self.peers_policy == "any"
