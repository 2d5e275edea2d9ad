"""What a mind found out, kept so that nothing is asked twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from negotiation.document.shape import document_hash
from negotiation.llm.keys import side_key
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.mind import Reject, Side

__all__ = ["Memory", "Plan", "Planned", "Recent"]

T = TypeVar("T")

MAX_KEPT: Final = 64
"Most answers of one kind that are kept; the one not used for longest goes first."

Plan = ProviderPlan | RequesterPlan
"How our half for a document works."


@dataclass(slots=True)
class Planned:
    """What is known about one document for one side."""

    plan: Plan
    "How our half works."

    text: str = ""
    "The half that was written last, to tell a repair from a repetition."

    failed: bool = False
    "True once a half of this plan did not pass its checks."


class Recent(Generic[T]):
    """A map that forgets what was not used for longest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """Return what is kept under `key`, or None."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, value: T) -> None:
        """Keep `value`."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


class Memory:
    """The answers of one mind, by document and by what a side wants or offers."""

    def __init__(self) -> None:
        self.plans: Recent[Planned] = Recent()
        "What judging or writing found; see `key`."
        self.answers: Recent[Mapping[str, Any]] = Recent()
        "Answers about a document, by its hash, to show what was wrong with them."
        self.refused: Recent[Reject] = Recent()
        "Documents that nothing serves."
        self.proposed: Recent[str] = Recent()
        "Our first documents, by side."
        self.codecs: Recent[str] = Recent()
        "Codecs of documents that we proposed, by their hash."

    @staticmethod
    def key(document: str, side: Side) -> str:
        """Return the key of a document for a side."""
        return f"{document_hash(document)} {side_key(side)}"
