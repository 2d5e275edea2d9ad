"""The key under which a mind stores its results for one side of a negotiation."""

from __future__ import annotations

import hashlib

from negotiation.mind import Demand, Side
from negotiation.need import infer_schema, need_key, schema_hash
from negotiation.strict_json import Json, canonical_json

__all__ = ["side_key"]


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
