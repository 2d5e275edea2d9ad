"""The owner's settings of the A2A face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from anp.errors import ConfigError
from anp.identity.address import is_loopback_host
from anp.sidecar.config.setting_types import Bytes, Endpoint, Section, example

__all__ = ["A2aConfig"]


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

    open: bool = False
    "Let everybody in without a token; on loopback only."

    max_body: Bytes = 16 * 1024 * 1024
    "Largest request, in bytes."

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


def _address(endpoint: str | None) -> tuple[str, int] | None:
    if endpoint is None:
        return None
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), int(port)
