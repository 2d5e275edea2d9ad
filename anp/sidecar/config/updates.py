"""The settings of the listener for updates of callback agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from anp.sidecar.config.setting_types import HttpUrl, Port, Section, example


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatesConfig(Section):
    """Updates of attached callback agents, which have a listener of their own."""

    host: str = "127.0.0.1"
    "Address of the interface; it opens with the first call of such an agent."

    port: Port = 0
    "TCP port; 0 lets the system choose."

    url: Annotated[HttpUrl | None, example("http://daemon.internal:8770")] = None
    "URL of its root as agents reach it, when it is not `http://host:port`."
