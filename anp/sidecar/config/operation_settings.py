"""Sections of the configuration for whoever operates the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

__all__ = ["LogConfig", "OperationConfig", "OtelConfig"]

STRICT = ConfigDict(extra="forbid")
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What `anpd up` writes to its standard error."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    format: Literal["auto", "text", "json"] = "auto"
    "`auto` is text on a terminal, else one JSON object on each line."

    level: Literal["debug", "info", "warning", "error"] = "info"
    "The least that is written; `--debug` is stronger."


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationConfig:
    """Start and stop."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    stop_timeout: Seconds = 20.0
    "Seconds that calls in flight may take to finish after SIGTERM."


@dataclass(frozen=True, slots=True, kw_only=True)
class OtelConfig:
    """Traces with OpenTelemetry; needs the extra `anpd[otel]`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    enabled: bool = False
    "Whether spans are made and sent."

    endpoint: HttpUrl | None = None
    "Where OTLP over HTTP goes; None is what the `OTEL_*` variables say."

    service_name: Annotated[str, Field(min_length=1, max_length=200)] = "anpd"
    "`service.name` of the spans."

    sample: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    "Part of the traces that begin here and are kept; a caller's own word is stronger."
