"""The parts that settings are made of: their types, and the base of every table."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from anp.sidecar.attachments.spec import NAME_PATTERN
from anp.wire.meta_protocol import CAPABILITIES, Capability
from negotiation.consensus.registry import RegistryError, check_uri


def _protocol_uri(uri: str) -> str:
    """Return the URI of a consensus protocol, if it can be one (ANP-91)."""
    try:
        return check_uri(uri)
    except RegistryError as exc:
        raise ValueError(str(exc)) from None


def _in_order(names: tuple[Capability, ...]) -> tuple[Capability, ...]:
    """Return each name once, in the order of the seed, whatever the owner wrote."""
    return tuple(name for name in CAPABILITIES if name in names)


def _network(text: str) -> str:
    """Return a network as it is written in one form."""
    return str(ipaddress.ip_network(text, strict=True))


Bytes = Annotated[int, Field(ge=1024, le=2**40)]
Capabilities = Annotated[tuple[Capability, ...], AfterValidator(_in_order)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Effort = Annotated[str, Field(pattern=r"^[a-z]{1,16}$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
HeaderValue = Annotated[str, Field(pattern=r"^[!-~]([ -~]{0,4094}[!-~])?$")]
Endpoint = Annotated[
    str, Field(pattern=r"^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$")
]
Headers = Mapping[HeaderName, HeaderValue]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]
KeepSeconds = Annotated[float, Field(ge=60, le=366 * 86_400, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Network = Annotated[str, AfterValidator(_network)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
ProtocolUri = Annotated[str, AfterValidator(_protocol_uri)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
StopSeconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=0, le=10**12)]
WebSocketUrl = Annotated[str, Field(pattern=r"^wss?://[^/\s#]+[^\s#]*$")]


def example(value: object) -> Any:
    """Return a mark for a setting without a default; the default file shows `value`."""
    return Field(examples=[value])


class Section:
    """One table of the configuration; a key that it does not have is an error."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
