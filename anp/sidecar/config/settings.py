"""The sections of the configuration as frozen dataclasses, with their defaults.

The string below each setting is all that is written about it: `anpd init` puts it into
the file that it writes, and `anpd config schema` into the schema for editors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from anp.errors import ConfigError
from anp.identity.address import is_loopback_host
from anp.sidecar.attachments.spec import AttachmentSpec
from anp.sidecar.config.a2a import A2aConfig
from anp.sidecar.config.entries import NeedEntry, PeerEntry
from anp.sidecar.config.groups import GroupEntry, GroupsConfig
from anp.sidecar.config.interaction import InteractionConfig
from anp.sidecar.config.otel import OtelConfig
from anp.sidecar.config.registry import RegistryConfig
from anp.sidecar.config.setting_types import (
    Bytes,
    Capabilities,
    Count,
    Effort,
    Headers,
    HttpUrl,
    KeepSeconds,
    Network,
    Port,
    Price,
    ProtocolUri,
    Seconds,
    Section,
    Seed,
    Share,
    StopSeconds,
    Temperature,
    Tokens,
    WebSocketUrl,
    example,
)
from anp.wire.meta_protocol import (
    CAPABILITIES,
    LEAST_MAX_MESSAGE,
    MAX_PAYLOAD,
    OTHERS_MAX_TEXT,
)
from cache.redis.place import DEFAULT_PREFIX, PlaceError, RedisPlace

# The settings of the listener for updates of callback agents.


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatesConfig(Section):
    """Updates of attached callback agents, which have a listener of their own."""

    host: str = "127.0.0.1"
    "Address of the interface; it opens with the first call of such an agent."

    port: Port = 0
    "TCP port; 0 lets the system choose."

    url: Annotated[HttpUrl | None, example("http://daemon.internal:8770")] = None
    "URL of its root as agents reach it, when it is not `http://host:port`."


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig(Section):
    """Our DID and its keys."""

    method: Literal["did:key", "did:all", "did:wba"] = "did:key"
    "DID method we show ourselves under; did:wba after `anpd identity create DOMAIN`."

    key_file: Annotated[Path | None, example("identity.key")] = None
    "The private key, P-256; default is `identity.key` in the home."

    sign_with: Literal["p256", "ed25519"] = "p256"
    "Key that signs the hellos of a did:wba; the SDK and did:key know P-256 only."


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenConfig(Section):
    """Addresses and ports at which peers and programs of this machine reach us."""

    host: str = "127.0.0.1"
    "Address or name of the interface; any but loopback also changes `policy.peers`."

    port: Port = 8765
    "TCP port; 0 lets the system choose."

    public_url: Annotated[WebSocketUrl | None, example("wss://agent.example/")] = None
    "URL that peers shall dial, when it is not `ws://host:port/`."

    tls_cert: Annotated[Path | None, example("agent.pem")] = None
    "Certificate chain (PEM); with it the port speaks https and wss."

    tls_key: Annotated[Path | None, example("agent.key")] = None
    "Private key (PEM) of the certificate."

    api_port: Annotated[Port | None, example(8764)] = None
    "Port of 127.0.0.1 for the local API besides its socket; 0 lets the system choose."

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach us."""
        return is_loopback_host(self.host.strip("[]"))

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("listen.tls_cert and listen.tls_key belong together")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig(Section):
    """Permission to use us."""

    peers: Annotated[Literal["any", "listed"] | None, example("any")] = None
    'Peers that may use us: any that proved its DID, or only the listed ones that you \
allowed; default is "any" on loopback, else "listed".'

    share_agreements: bool = False
    "Offer the hash of an agreement made with one peer to another."


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig(Section):
    """Fetching from URLs that peers name: DID documents, published protocols."""

    allow: tuple[Network, ...] = ()
    'Networks besides the public ones that may be fetched from, as in ["10.0.0.0/8"].'

    allow_http_loopback: bool = False
    "Plain http to loopback, where `allow` has it; for tests, otherwise https only."

    ca_file: Annotated[Path | None, example("authorities.pem")] = None
    "Certificates (PEM) trusted besides the system's, also for wss."


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationConfig(Section):
    """Agreeing on protocols."""

    decided_by: Literal["auto", "rules", "llm"] = "auto"
    "Rules or model; auto is rules first, then the model if there is one."

    timeout: Seconds = 120.0
    "Seconds for a whole negotiation."

    codegen_timeout: Seconds = 60.0
    "Seconds for writing and checking our code."

    message_timeout: Seconds = 60.0
    "Seconds to wait for the peer's next message."

    max_proposals: Annotated[int, Field(ge=1, le=10)] = 10  # ANP-23, ANP-Q24
    "Most proposals in one negotiation, both sides together."

    test_cases: bool = True  # ANP-48
    "Test a new protocol with the peer before its first use."

    approve: Literal["never", "first-use", "side-effects", "always"] = "never"
    "Cases in which you are asked before a protocol is agreed (docs/owner.md)."

    approval_wait: Annotated[float, Field(ge=0, le=20, allow_inf_nan=False)] = 20.0
    "Seconds, at most 20, that a peer waits for you before it is told to ask again."

    capabilities: Capabilities = CAPABILITIES  # ANP-79, ANP-81
    "Optional parts of the meta-protocol that peers are told we have."


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmConfig(Section):
    """The language model; no model is called while `model` is not set."""

    model: Annotated[str | None, example("gpt-5-mini")] = None
    "Name of the model."

    base_url: Annotated[HttpUrl | None, example("http://127.0.0.1:8080/v1")] = None
    "Any OpenAI-compatible endpoint; default is https://api.openai.com/v1."

    api_key_env: Annotated[str | None, example("OPENAI_API_KEY")] = None
    "Variable that holds the key; by default one is sent to OpenAI alone."

    api_key_file: Annotated[Path | None, example("model.key")] = None
    "File that holds the key, in place of the variable."

    timeout: Seconds = 60.0
    "Seconds for one question with all its repetitions."

    answer_form: Literal["json_schema", "json_object", "text"] = "json_schema"
    "Strongest form in which answers are asked for; what a server refuses is noticed."

    max_tokens_name: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    "The endpoint's name for the most tokens of an answer; auto finds out."

    thinking_tokens: Annotated[int, Field(ge=0, le=200_000)] = 0
    "Tokens allowed besides the answer, for models that think before they answer."

    reasoning_effort: Annotated[Effort | None, example("low")] = None
    "Sent to the endpoint if set."

    temperature: Annotated[Temperature | None, example(0.0)] = None
    "Sent to the endpoint if set."

    seed: Annotated[Seed | None, example(1)] = None
    "Sent to the endpoint if set."

    headers: Annotated[Headers, example({"X-Team": "agents"})] = field(
        default_factory=dict, repr=False
    )
    "More headers for the endpoint; their values are kept secret like the key."

    price_input: Annotated[Price | None, example(0.25)] = None
    "Price of a million tokens of prompts, in any currency, for `anpd spend`."

    price_output: Annotated[Price | None, example(2.0)] = None
    "Price of a million tokens of answers, in the same currency."


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetConfig(Section):
    """Limits of model calls and their tokens; a day is one of UTC."""

    negotiation_calls: Count = 8
    "Model calls in one negotiation."

    negotiation_tokens: Tokens = 200_000
    "Tokens in one negotiation."

    peer_calls: Count = 40
    "Model calls for one listed peer in a day."

    peer_tokens: Tokens = 400_000
    "Tokens for one listed peer in a day."

    unlisted_calls: Count = 20
    "Model calls for all unlisted peers together in a day; half for one address."

    unlisted_tokens: Tokens = 200_000
    "Tokens for all unlisted peers together in a day; half for one address."

    day_calls: Count = 200
    "Model calls for everything in a day."

    day_tokens: Tokens = 2_000_000
    "Tokens for everything in a day."

    owner_share: Share = 0.5
    "Part of the day's calls and tokens for our own calls; peers have the rest."


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusConfig(Section):
    """Protocols known by URI, used without negotiation; see docs/consensus.md."""

    use: bool = True
    "Look at the protocols that a peer publishes before negotiating with it."

    envelope: bool = True
    "Use the message envelope, for capabilities by name, in both directions."

    publish: Annotated[bool | None, example(True)] = None
    "Serve our list to anybody who asks; default is yes where any peer may use us."

    directory: Annotated[Path | None, example("consensus")] = None
    "Folder of the owner's protocols; default is `consensus` in the home."

    order: tuple[ProtocolUri, ...] = ()
    "URIs, best first, in the order in which they are offered; others come after."

    list_lifetime: Seconds = 300.0
    "Seconds for which a peer's list is kept."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig(Section):
    """Calls out."""

    timeout: Seconds = 30.0
    "Seconds for the call itself, from when the protocol is ready, if it is given none."

    max_timeout: Seconds = 3_600.0
    "Most seconds that a call may be given: ours to a peer, or that of a listed peer."

    max_timeout_unlisted: Seconds = 60.0
    "Most seconds that a call of a peer may take that the owner did not list."


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings(Section):
    """The sandbox that holds generated code."""

    level: Literal["full", "reduced"] = "full"
    """Least isolation for code of a model; code of rules also runs at "reduced". The
    kernel decides: "reduced" counts only beside `without_kernel`."""

    without_kernel: Literal["refuse", "as my own"] = "refuse"
    """Second setting for code of a model where the kernel does not isolate it: beside
    the level "reduced", "as my own" runs that code as if you had written it, with all
    that your user may do for whoever gets past the language layer."""

    plans: Literal["daemon", "worker"] = "daemon"
    "Place where code of rules runs: in the daemon as a plan, or as text in a worker."

    call_timeout: Seconds = 2.0
    "Seconds of its own time that generated code may take for one call."

    memory: Bytes = 256 * 1024 * 1024
    "Address space of a worker, in bytes."

    max_workers: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Workers at once: a quarter for one peer, half for all unlisted peers together."

    idle_timeout: Seconds = 120.0
    "Seconds without a call after which a worker ends; the next call starts another."


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheConfig(Section):
    """Agreements, on disk or on a server of several daemons (docs/fleets.md)."""

    path: Annotated[Path | None, example("store")] = None
    "Folder; default is `store` in the home."

    url: Annotated[str | None, example("redis://host:6379/0")] = field(
        default=None, repr=False
    )
    "Redis or Valkey in place of the folder: `redis://`, `rediss://` or `unix://`."

    prefix: str = DEFAULT_PREFIX
    "Beginning of our keys on that server; one for each identity."

    ca_file: Annotated[Path | None, example("ca.pem")] = None
    "Certificates (PEM) that the server's is checked with; default is the system's."

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
class ChannelsConfig(Section):
    """Channels to peers, and their short-term keys."""

    resumption: bool = False
    "Keep keys, encrypted; if both sides do, calls after a restart need no handshake."

    key_lifetime: Annotated[int, Field(ge=1, le=31_536_000)] = 864_000  # WIRE row 16
    "Seconds a key is offered for; it is renewed at 80 % of them, or earlier if \
`call.timeout` is more than what is left."

    binary: bool = True
    "Frames without base64 and JSON, with peers that have our extension for it."

    max_frame: Annotated[int, Field(ge=LEAST_MAX_MESSAGE, le=2**31)] = 16 * 1024 * 1024
    "Plaintext bytes of one frame, with peers that have our extension for it."

    idle_timeout: Seconds = 600.0
    "Seconds without a call after which a channel closes; the next call opens another."

    renew_messages: Annotated[int, Field(ge=1, le=2**20)] = 2**20
    "Messages in one direction after which a key is renewed."


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig(Section):
    """Limits of everything that others can make grow."""

    max_message: Bytes = OTHERS_MAX_TEXT  # WIRE row 34
    "Largest message from a peer, in bytes."

    max_payload: Bytes = MAX_PAYLOAD
    "Largest protocol data that we send in one frame to peers without our extensions."

    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 256
    "Connections that peers may open; listed peers, others and newcomers have shares."

    api_connections: Annotated[int, Field(ge=1, le=10_000)] = 256
    "Connections of programs on this machine, at each address of the local API."

    max_channels: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Channels on one connection; one that is idle makes room for another."

    max_calls: Annotated[int, Field(ge=1, le=10_000)] = 64
    "Calls that run in one attachment at a time; unlisted peers have a quarter."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig(Section):
    """Log lines of `anpd up`, on standard error."""

    format: Literal["auto", "text", "json"] = "auto"
    "Form of a line; auto is text on a terminal, else one JSON object on each line."

    level: Literal["debug", "info", "warning", "error"] = "info"
    "Least level that is written; `--debug` is stronger."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogConfig(Section):
    """The access log: a line for each call made or served; see docs/operation.md."""

    enabled: bool = True
    "Write it; without it the lists of calls show only those that run."

    keep: KeepSeconds = 7 * 86_400.0
    "Seconds for which a call is kept."

    max_size: Bytes = 100 * 1024 * 1024
    "Bytes of all its files; the oldest go first, half is for each direction."


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationConfig(Section):
    """Start and stop."""

    stop_timeout: StopSeconds = 20.0
    "Seconds that calls in flight may take to finish after SIGTERM."


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Section):
    """All settings of the owner, with defaults for the rest, in the file's order."""

    identity: IdentityConfig = field(default_factory=IdentityConfig)
    listen: ListenConfig = field(default_factory=ListenConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    fetch: FetchConfig = field(default_factory=FetchConfig)
    negotiation: NegotiationConfig = field(default_factory=NegotiationConfig)
    llm: LlmConfig = field(default_factory=LlmConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    consensus: ConsensusConfig = field(default_factory=ConsensusConfig)
    call: CallConfig = field(default_factory=CallConfig)
    interaction: InteractionConfig = field(default_factory=InteractionConfig)
    groups: GroupsConfig = field(default_factory=GroupsConfig)
    updates: UpdatesConfig = field(default_factory=UpdatesConfig)
    a2a: A2aConfig = field(default_factory=A2aConfig)
    registry: RegistryConfig = field(default_factory=RegistryConfig)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    cache: CacheConfig = field(default_factory=CacheConfig)
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    log: LogConfig = field(default_factory=LogConfig)
    access_log: AccessLogConfig = field(default_factory=AccessLogConfig)
    operation: OperationConfig = field(default_factory=OperationConfig)
    otel: OtelConfig = field(default_factory=OtelConfig)

    need: tuple[NeedEntry, ...] = ()
    "Named needs."

    peer: tuple[PeerEntry, ...] = ()
    "The owner's address book."

    group: tuple[GroupEntry, ...] = ()
    "Groups that this daemon makes when it starts."

    attach: tuple[AttachmentSpec, ...] = ()
    "Attachments of the configuration; those of `anpd attach` are files of the home."

    @property
    def peers_policy(self) -> Literal["any", "listed"]:
        """Peers that may use us; `any` on loopback only unless the owner says it."""
        if self.policy.peers is not None:
            return self.policy.peers
        return "any" if self.listen.is_loopback else "listed"

    @property
    def publishes(self) -> bool:
        """True if our list is served; it names what is exposed, to anybody who asks."""
        if self.consensus.publish is not None:
            return self.consensus.publish
        return self.peers_policy == "any"
