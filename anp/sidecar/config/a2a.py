"""The owner's settings of the A2A face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from anp.errors import ConfigError
from anp.identity.address import is_loopback_host
from anp.sidecar.config.setting_types import (
    Bytes,
    Count,
    Endpoint,
    HttpUrl,
    Section,
    example,
)

Scope = Annotated[str, Field(pattern=r"^[!#-\[\]-~]{1,200}$")]
"A scope of OAuth 2; a quote would break out of the header that names it."


@dataclass(frozen=True, slots=True, kw_only=True)
class A2aConfig(Section):
    """The A2A face, over which callers of A2A reach what is attached."""

    listen: Annotated[Endpoint | None, example("127.0.0.1:8770")] = None
    "Address and port of the face; without it there is none; port 0 is any free one."

    gateway: Annotated[Endpoint | None, example("127.0.0.1:8771")] = None
    """Address and port, on loopback, of the gateway for local agents that speak A2A
    only; without it there is none; port 0 is any free one."""

    public_url: Annotated[str | None, example("https://agent.example/a2a")] = None
    "URL in the card, when callers reach the face by another than its own."

    name: str = "anpd"
    "Name in the card."

    description: str = "An agent behind anpd."
    "Description in the card."

    provider: Annotated[str | None, example("Shop Ltd")] = None
    "Name of the organisation in the card; `provider_url` belongs to it."

    provider_url: Annotated[HttpUrl | None, example("https://shop.example")] = None
    "URL of that organisation."

    documentation_url: Annotated[
        HttpUrl | None, example("https://shop.example/docs")
    ] = None
    "URL in the card where people read about this agent."

    icon_url: Annotated[HttpUrl | None, example("https://shop.example/icon.png")] = None
    "URL of a picture in the card."

    open: bool = False
    "Let everybody in without a token; on loopback only."

    max_body: Bytes = 16 * 1024 * 1024
    "Largest request, in bytes."

    max_requests: Count = 500
    "Requests of one caller in a second; more get 429. 0 is no limit."

    issuer: Annotated[str | None, example("https://login.example")] = None
    "Exact `iss` of signed tokens (JWT) that count besides our own tokens."

    audience: Annotated[str | None, example("https://agent.example/a2a")] = None
    "The `aud` that such a token needs; with `issuer` it has to be set."

    keys: Annotated[str | None, example("https://login.example/jwks.json")] = None
    "https URL or file with the issuer's public keys (JWKS), as `fetch` allows it."

    caller_claim: Annotated[str, Field(min_length=1, max_length=100)] = "sub"
    "The claim of such a token that names the caller."

    leeway: Annotated[float, Field(ge=0, le=300, allow_inf_nan=False)] = 30.0
    "Seconds by which the issuer's clock may differ from ours."

    scopes: Annotated[
        Mapping[Scope, tuple[str, ...]], example({"shop-read": ["get_product"]})
    ] = field(default_factory=dict)
    "Scope → capabilities that it opens; without any, every token opens what peers see."

    token_url: Annotated[HttpUrl | None, example("https://login.example/token")] = None
    "Where clients get such a token by OAuth 2; stands in the card."

    authorization_url: Annotated[HttpUrl | None, example("https://login.example/")] = (
        None
    )
    "Where people allow it by OAuth 2; stands in the card, besides `token_url`."

    openid_url: Annotated[HttpUrl | None, example("https://login.example/openid")] = (
        None
    )
    "The issuer's OpenID configuration; stands in the card."

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, or None."""
        return _address(self.listen)

    @property
    def gateway_address(self) -> tuple[str, int] | None:
        """Host and port of the gateway, or None."""
        return _address(self.gateway)

    def __post_init__(self) -> None:
        gateway = self.gateway_address
        if gateway and not is_loopback_host(gateway[0]):
            raise ConfigError(
                "a2a.gateway is for agents on this machine, so it has to be on loopback"
            )
        if self.open and self.address and not is_loopback_host(self.address[0]):
            raise ConfigError(
                "a2a.open lets everybody in, so a2a.listen has to be on loopback"
            )
        if self.issuer is not None and not (self.audience and self.keys):
            raise ConfigError("a2a.issuer needs a2a.audience and a2a.keys as well")
        issued = (self.scopes, self.token_url, self.authorization_url, self.openid_url)
        if self.issuer is None and any(issued):
            raise ConfigError("a2a.issuer is missing, of which the card would tell")
        if self.authorization_url and not self.token_url:
            raise ConfigError("a2a.authorization_url needs a2a.token_url as well")
        if (self.provider is None) is not (self.provider_url is None):
            raise ConfigError("a2a.provider and a2a.provider_url belong together")


def _address(endpoint: str | None) -> tuple[str, int] | None:
    if endpoint is None:
        return None
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)
