"""A question to a language model, and the interface of models."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from negotiation.errors import MisuseError
from negotiation.need import Schema
from negotiation.strict_json import Json

__all__ = ["Model", "Question"]

STEP: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
SCHEMA_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to a model, whose answer is JSON that fits a schema.

    The same need gives the same bytes in two runs: a question contains no DID, address,
    time or random value (LLM.md, "Trying it").
    """

    step: str
    "The purpose, as a fixed word of ours (`a-z0-9_`); the ledger shows it."

    system: str = field(repr=False)
    "The instructions for the model; text of ours alone."

    user: str = field(repr=False)
    "The text about the case; text of others is fenced in it as data."

    schema: Schema = field(repr=False)
    "JSON Schema (2020-12) of the answer; an object schema, as servers require it."

    schema_name: str
    "The schema's name on the wire: 1 to 64 letters, digits, `_` and `-`."

    max_tokens: int
    "Largest number of tokens of the answer; doubled once if the answer was cut off."

    def __post_init__(self) -> None:
        if STEP.fullmatch(self.step) is None:
            raise MisuseError(f"not a valid name of a step: {self.step!r}")
        if SCHEMA_NAME.fullmatch(self.schema_name) is None:
            raise MisuseError(f"not a valid name of a schema: {self.schema_name!r}")
        if self.max_tokens < 1:
            raise MisuseError(f"max_tokens must be >= 1, got {self.max_tokens}")


class Model(Protocol):
    """Answers questions; each answer fits the schema of its question."""

    async def ask(self, question: Question) -> Json:
        """Return the answer to `question`, validated against its schema.

        Raises:
            MindError: There is no such answer: no budget, no network or no valid reply.
                The text is for the owner and never contains a key.
        """
        ...
