"""The entries that the owner may write several times: `[[need]]` and `[[peer]]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from anp.errors import CallError, ConfigError, PeerError
from anp.identity.address import known_did, normalise_url
from anp.sidecar.config.setting_types import (
    Name,
    ProtocolUri,
    Seconds,
    Section,
    example,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedEntry(Section):
    """A `[[need]]`: a name for something our agent wants from others."""

    name: Name
    "Name that `anpd call` and the API may use in place of the need."

    requirement: Annotated[str, Field(min_length=1, max_length=10_000)]
    "The need in words."

    input_schema: Mapping[str, Any] | None = None
    "JSON Schema of the arguments, if the caller is firm about them."

    output_schema: Mapping[str, Any] | None = None
    "JSON Schema of the result."

    protocol: ProtocolUri | None = None
    "URI of the published or built-in protocol to offer for it."


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerEntry(Section):
    """A `[[peer]]` of the address book; `did` or `url` is needed."""

    name: Name
    "The owner's name for it."

    did: Annotated[str, Field(pattern=r"^did:[a-z0-9]+:\S+$")] | None = None
    "Its DID."

    url: Annotated[str, Field(pattern=r"^wss?://\S+$")] | None = None
    "Its address."

    keep_connection: bool = False
    "Keep a connection open, so that the peer can call us without an address of ours."

    policy: Literal["allow", "block"] = "allow"
    "Permission of this peer to use us."

    expose: Annotated[tuple[str, ...] | None, example(["*"])] = None
    "Capabilities that this peer may call, in place of those that all peers may call."

    max_timeout: Annotated[Seconds | None, example(600.0)] = None
    "Most seconds of a call to or from this peer, in place of `call.max_timeout`."

    def __post_init__(self) -> None:
        if self.expose is not None and self.did is None:
            # A URL does not prove who calls us.
            raise ConfigError(f"peer {self.name}: expose needs the did of the peer")
        if self.did is None and self.url is None:
            raise ConfigError(
                f"peer {self.name}: write did, url or both, as `anpd up` of that "
                "peer prints them"
            )
        if self.did is None and self.policy == "block":
            raise ConfigError(
                f"peer {self.name}: a peer is blocked by its DID; write did"
            )
        if self.url is not None:
            try:
                object.__setattr__(self, "url", normalise_url(self.url))
            except CallError as exc:
                raise ConfigError(f"peer {self.name}: url: {exc.detail}") from None
        if self.did is not None:
            try:
                # Another spelling than the one that is proved would meet nobody.
                object.__setattr__(self, "did", known_did(self.did))
            except PeerError as exc:
                raise ConfigError(f"peer {self.name}: did: {exc.detail}") from None
