"""The results of a mind, kept so that nothing is asked twice, and their keys."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from negotiation.document.shape import document_hash
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.mind import Demand, Offer, Reject, Side
from negotiation.need import infer_schema, need_key, schema_hash
from negotiation.strict_json import Json, canonical_json


def side_key(side: Side) -> str:
    """Return 64 hex characters over a side's need or offer, hints included.

    Without an input schema the shape of the data at hand counts too, since another
    shape is another question.
    """
    parts: list[Json]
    if isinstance(side, Demand):
        given = side.need.input_schema is None
        parts = [
            "need",
            need_key(side.need),
            infer_schema(side.arguments) if given else None,
        ]
    else:
        parts = ["offer"]
        parts += [
            [one.name, one.description, one.read_only, schema_hash(one)]
            for one in sorted(side.capabilities, key=lambda one: one.name)
        ]
    return hashlib.sha256(canonical_json([*parts, list(side.hints)])).hexdigest()


T = TypeVar("T")

MAX_KEPT: Final = 64
"Largest number of results of one kind; the one unused for longest is dropped."

Plan = ProviderPlan | RequesterPlan
"The plan of our half for a document."


@dataclass(slots=True)
class Planned:
    """The results for one document and one side."""

    plan: Plan

    text: str = ""
    "The half that was written last, to distinguish a repair from a repetition."

    failed: bool = False
    "True after a half of this plan failed its checks."


class Recent(Generic[T]):
    """A mapping of limited size that drops the entry unused for longest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """Return the value under `key`, or None."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, value: T) -> None:
        """Store `value`."""
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


class Memory:
    """The results of one mind, by document and by a side's need or offer."""

    def __init__(self) -> None:
        self.plans: Recent[Planned] = Recent()
        "Results of judging or writing; see `key`."
        self.answers: Recent[Mapping[str, Any]] = Recent()
        "Answers about a document, by its hash, to show the model their faults."
        self.refused: Recent[Reject] = Recent()
        "Documents that no capability serves."
        self.proposed: Recent[str] = Recent()
        "Our first documents, by side."
        self.advised: Recent[Offer] = Recent()
        "The parts of offers that the owner's hints leave, by requirement and offer."
        self.formats: Recent[str] = Recent()
        "Formats of bytes that needs insist on, by side; none for JSON."
        self.codecs: Recent[str] = Recent()
        "Codecs of documents that we proposed, by their hash."

    @staticmethod
    def key(document: str, side: Side) -> str:
        """Return the key of a document for a side."""
        return f"{document_hash(document)} {side_key(side)}"
