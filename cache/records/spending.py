"""What the store keeps of money: a day's account, and a ledger of model calls. Pure."""

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
    """What one account used on one day (DESIGN.md, Trust)."""

    kind: ClassVar[str] = "spend"

    day: _Day
    "The day in UTC, `2026-01-31`."

    account: _Account
    "`owner`, `unlisted`, or the canonical DID of a listed peer."

    calls: _Count
    "Model calls, those under way included."

    input_tokens: _Count
    "Tokens of prompts."

    output_tokens: _Count
    "Tokens of answers."

    held_tokens: _Count = 0
    "Tokens reserved for calls whose end is not recorded."

    cost: _Money = 0.0
    "Money, by the prices set at the time."


@dataclass(frozen=True)
class ModelCallRecord(Record):
    """One model call in the ledger; holds nothing that was said."""

    kind: ClassVar[str] = "model_call"

    id: _Id
    "Ours, random."

    day: _Day
    "The day it counts for."

    at: _Seconds
    "When it began, in seconds since 1970."

    account: _Account
    "Who paid."

    peer: _Did | None
    "With whom the negotiation is, in its canonical form."

    negotiation_id: _Id | None
    "The negotiation it was made for."

    step: _Word
    "What it was for."

    model: Annotated[str, Field(max_length=200)]
    "The model that was asked."

    outcome: _Word
    "What came of it: `ok`, `unfit`, `cut`, `http_429`…"

    input_tokens: _Count
    "Tokens of the prompt."

    output_tokens: _Count
    "Tokens of the answer."

    estimated: bool
    "Whether the server named no tokens, so that all that was reserved counts."

    ms: Annotated[float, Field(ge=0, lt=1e9)]
    "Milliseconds it took."

    cost: _Money = 0.0
    "Money, by the prices set at the time."
