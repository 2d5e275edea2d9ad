"""Records of spending: an account's day, and calls in the ledger of models. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from cache.records.records import Record

__all__ = ["ModelCallRecord", "SpendRecord"]

# Parts of keys, so without the separator and anything invisible; see
# `cache.records.records`.
_Day = Annotated[str, Field(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z")]
_Account = Annotated[
    str, Field(pattern=r"\A(owner|unlisted|did:[!-.0-~]+)\z", max_length=1024)
]
_Did = Annotated[str, Field(pattern=r"\Adid:[!-.0-~]+\z", max_length=1024)]
_Id = Annotated[str, Field(pattern=r"\A[A-Za-z0-9_-]+\z", max_length=64)]
_Word = Annotated[str, Field(pattern=r"\A[a-z0-9_]+\z", max_length=32)]
_Seconds = Annotated[float, Field(ge=0, lt=1e11)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Money = Annotated[float, Field(ge=0, lt=1e12)]


@dataclass(frozen=True)
class SpendRecord(Record):
    """The use of models by one account on one day (DESIGN.md, Trust)."""

    kind: ClassVar[str] = "spend"

    day: _Day
    "The day in UTC, `2026-01-31`."

    account: _Account
    "`owner`, `unlisted`, or the canonical DID of a listed peer."

    calls: _Count
    "Model calls, those still running included."

    input_tokens: _Count
    "Tokens of prompts."

    output_tokens: _Count
    "Tokens of answers."

    held_tokens: _Count = 0
    "Tokens reserved for calls that have no recorded end."

    cost: _Money = 0.0
    "Cost in money, by the prices set at the time."


@dataclass(frozen=True)
class ModelCallRecord(Record):
    """One model call in the ledger, without any text of it."""

    kind: ClassVar[str] = "model_call"

    id: _Id
    "A random id of our own."

    day: _Day
    "The day in UTC whose account it counts for."

    at: _Seconds
    "When it began, in seconds since 1970."

    account: _Account
    "The account that paid: `owner`, `unlisted`, or a listed peer's canonical DID."

    peer: _Did | None
    "Canonical DID of the peer in the negotiation."

    negotiation_id: _Id | None
    "The negotiation it was made for."

    step: _Word
    "The step of the negotiation that asked."

    model: Annotated[str, Field(max_length=200)]
    "The model that was asked."

    outcome: _Word
    "Result of the call: `ok`, `unfit`, `cut`, `http_429`…"

    input_tokens: _Count
    "Tokens of the prompt."

    output_tokens: _Count
    "Tokens of the answer."

    estimated: bool
    "True when the server gave no token counts, so that the reserved ones count."

    ms: Annotated[float, Field(ge=0, lt=1e9)]
    "Duration in milliseconds."

    cost: _Money = 0.0
    "Cost in money, by the prices set at the time."
