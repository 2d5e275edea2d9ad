"""What a language model is asked, and who answers."""

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

    The same task gives the same bytes in two runs: no DID, address, clock or random
    value stands in it (LLM.md, "Trying it").
    """

    step: str
    "What it is for: a fixed word of ours, `a-z0-9_`; the ledger shows it."

    system: str = field(repr=False)
    "What the model is to do; text of ours alone."

    user: str = field(repr=False)
    "The case at hand; text of others stands in it fenced as data."

    schema: Schema = field(repr=False)
    "JSON Schema (2020-12) of the answer; an object schema, for servers ask for that."

    schema_name: str
    "Its name on the wire: 1 to 64 letters, digits, `_` and `-`."

    max_tokens: int
    "Most tokens of the answer; a cut answer is asked for once more with twice as many."

    def __post_init__(self) -> None:
        if STEP.fullmatch(self.step) is None:
            raise MisuseError(f"no name of a step: {self.step!r}")
        if SCHEMA_NAME.fullmatch(self.schema_name) is None:
            raise MisuseError(f"no name of a schema: {self.schema_name!r}")
        if self.max_tokens < 1:
            raise MisuseError(f"max_tokens must be >= 1, got {self.max_tokens}")


class Model(Protocol):
    """Answers questions; what it returns fits the schema of its question."""

    async def ask(self, question: Question) -> Json:
        """Return the answer to `question`, validated against its schema.

        Raises:
            MindError: No such answer came of it: no budget, no network, no sense.
                The text is for the owner and never holds a key.
        """
        ...
