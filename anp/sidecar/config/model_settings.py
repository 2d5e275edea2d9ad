"""The owner's `[llm]` and `[budget]`: the sections that are about models and money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

__all__ = ["STRICT", "BudgetConfig", "Count", "LlmConfig", "Seconds"]

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
STRICT = ConfigDict(extra="forbid")
Tokens = Annotated[int, Field(ge=0, le=10**12)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
HttpUrl = Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+(/[^\s?#]*)?$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")]
HeaderValue = Annotated[str, Field(pattern=r"^[!-~]([ -~]{0,4094}[!-~])?$")]


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
