"""The settings of traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from anp.sidecar.config.setting_types import HttpUrl, Section, Share, example


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig(Section):
    """Traces with OpenTelemetry; needs the extra `anpd[otel]`."""

    enabled: bool = False
    "Make spans and send them."

    endpoint: Annotated[HttpUrl | None, example("http://127.0.0.1:4318")] = None
    "URL that takes OTLP over HTTP; without it the `OTEL_*` variables count."

    service_name: Annotated[str, Field(min_length=1, max_length=200)] = "anpd"
    "`service.name` of the spans."

    sample: Share = 1.0
    "Part of the traces that begin here and are kept; a caller's choice is stronger."
