"""Counts what rules make of the same services in other people's words (SGD-X).

`python -m tests.negotiation.sgdx [FILE]` reads a file in the form of the development
half of SGD-X; without FILE it is the one beside the project, if there is one. Each
intent of a service is a need in the words of the base schema; a capability of the same
service in the words of a paraphrase should serve it. The order of the slots tells which
of them mean the same, so the slots and intents of a paraphrase are shuffled first.
Nothing may be wrong, and no call may end well without a value that was sent or given
back.

A last line has callers that know the capability's name and arguments and want the
result under names of their own, so that only the result can be lost. Its value in a
wrong place is one of a property whose name on both sides is the same.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from negotiation.errors import HalfError
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need, Schema
from negotiation.rules.rules import RulesMind
from negotiation.schema.mapping import compare
from negotiation.schema.plan import Fields, Mismatch
from negotiation.schema.terms import Drop
from tests.negotiation.llm.scripted import Rejected, Tool, meet

DATA: Final = Path(__file__).parents[2].parent / "shared/data/sgdx/sgdx_dev.json"
VARIANTS: Final = ("v1", "v2", "v3", "v4", "v5")
OUTCOMES: Final = ("served", "refused", "wrong", "dropped", "dropped and told")

Row = Mapping[str, Any]
"A service: its base schema and five paraphrases."


@dataclass(frozen=True, slots=True)
class Pair:
    """One intent of a service, in the words of its base and of one paraphrase."""

    base: Mapping[str, Any]
    variant: Mapping[str, Any]
    number: int
    "Index of the intent in both."

    @property
    def gold(self) -> dict[str, str]:
        """The paraphrase's name of each slot of the base."""
        names = (
            [one["name"] for one in side["slots"]] for side in (self.base, self.variant)
        )
        return dict(zip(*names, strict=True))


def pairs_of(rows: Sequence[Row]) -> Iterator[Pair]:
    """Yield each intent with each of its paraphrases."""
    for row in rows:
        for name in VARIANTS:
            for number in range(len(row["base"]["intents"])):
                yield Pair(row["base"], row[name], number)


@dataclass(frozen=True, slots=True)
class Way:
    """How the needs of one line of the table are made."""

    required: bool
    "True to keep `required` as it is in the set; False to leave it out."

    named: bool
    "True if the caller knows the name of the capability."

    result_only: bool = False
    "True if the caller knows the names of the arguments, too."

    def __str__(self) -> str:
        known = "named" if self.named else "in words"
        known += " with its arguments" if self.result_only else ""
        return f"required {_kept(required=self.required)}, capability {known}"


def _kept(*, required: bool) -> str:
    return "as in the set" if required else "left out"


WAYS: Final = (
    Way(required=True, named=True),
    Way(required=True, named=False),
    Way(required=False, named=True),
    Way(required=False, named=False),
    Way(required=False, named=True, result_only=True),
)


async def count(pair: Pair, way: Way) -> str:
    """Return what comes of a call: one of `OUTCOMES`."""
    base, variant, gold = pair.base, pair.variant, pair.gold
    wanted, meant = base["intents"][pair.number], variant["intents"][pair.number]
    offered = [
        _capability(variant, one, required=way.required) for one in variant["intents"]
    ]
    random.Random(meant["name"]).shuffle(offered)
    own = _capability(base, wanted, required=way.required)
    requirement = meant["name"] if way.named else f"{own.name}: {own.description}"
    values = {one["name"]: _value(one) for one in base["slots"]}
    given = {name: values[name] for name in _arguments(wanted)}
    right = {gold[name]: value for name, value in given.items()}
    takes: Schema | None = own.input_schema
    if way.result_only:
        given, takes = right, None
    offer = Offer(tuple(offered))
    back = {gold[name]: values[name] for name in wanted["result_slots"]}
    tools: dict[str, Tool] = {one.name: lambda _: {} for one in offered}
    tools[meant["name"]] = lambda _: back
    demand = Demand(Need(requirement, takes, own.output_schema), given)
    try:
        contact = await meet(RulesMind(), RulesMind(), demand, offer)
        answer = await contact.call(given, tools, offer)
    except Rejected:
        return "refused"
    except HalfError:
        # The protocol has no place for an argument, so nothing was sent.
        return "refused"
    expected = {name: values[name] for name in wanted["result_slots"]}
    if answer.keys() == {"code", "message"}:
        return "wrong" if contact.called else "refused"
    ((name, taken),) = contact.called
    if (
        name != meant["name"]
        or not taken.items() <= right.items()
        or not answer.items() <= expected.items()
    ):
        return "wrong"
    missing = expected.keys() - answer.keys()
    if taken == right and not missing:
        return "served"
    told = {one.rpartition("/")[2] for one in contact.halves[0].empty}
    return "dropped and told" if taken == right and missing <= told else "dropped"


def _capability(
    side: Mapping[str, Any], intent: Mapping[str, Any], *, required: bool
) -> Capability:
    slots = {one["name"]: one for one in side["slots"]}
    needed = intent["required_slots"] if required else ()
    results = intent["result_slots"]
    return Capability(
        intent["name"],
        intent["description"],
        _object([slots[one] for one in _arguments(intent)], needed),
        _object([slots[one] for one in results], results if required else ()),
        read_only=not intent["is_transactional"],
    )


def _arguments(intent: Mapping[str, Any]) -> list[str]:
    return [*intent["required_slots"], *intent["optional_slots"]]


def _object(slots: Sequence[Mapping[str, Any]], required: Sequence[str]) -> Any:
    shuffled = sorted(slots, key=lambda one: random.Random(one["name"]).random())
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            one["name"]: {**_type(one), "description": one["description"]}
            for one in shuffled
        },
    }
    return {**schema, "required": list(required)} if required else schema


def _type(slot: Mapping[str, Any]) -> dict[str, Any]:
    listed = slot["possible_values"] if slot["is_categorical"] else []
    if listed and {one.lower() for one in listed} <= {"true", "false"}:
        return {"type": "boolean"}
    if listed and all(one.isdecimal() for one in listed):
        return {"type": "integer", "enum": [int(one) for one in listed]}
    return {"type": "string", **({"enum": listed} if listed else {})}


def _value(slot: Mapping[str, Any]) -> Any:
    kind = _type(slot)
    if kind["type"] == "boolean":
        return True
    return kind["enum"][0] if "enum" in kind else f"the {slot['name']}"


async def table(rows: Sequence[Row]) -> dict[Way, Counter[str]]:
    """Return the outcomes of all pairs by the way of their needs."""
    return {
        way: Counter([await count(pair, way) for pair in pairs_of(rows)])
        for way in WAYS
    }


def fits(rows: Sequence[Row], *, required: bool) -> Counter[str]:
    """Return how often rules call a result a fit: for all of it, a part, or nothing."""
    found: Counter[str] = Counter()
    for pair in pairs_of(rows):
        gives, wanted = (
            _capability(side, side["intents"][pair.number], required=required)
            for side in (pair.variant, pair.base)
        )
        plan = compare(gives.output_schema, wanted.output_schema, drop=Drop.ALL)
        if isinstance(plan, Mismatch):
            found["no fit"] += 1
        elif isinstance(plan.step, Fields) and not plan.step.fields:
            found["a fit in which all is lost"] += 1
        else:
            found["a fit in part"] += 1
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the outcomes; return 1 if a value came to a wrong place or was lost."""
    path = Path(arguments[0]) if arguments else DATA
    if not path.exists():
        print(f"there is no {path.name}; give the path of such a file")
        return 2
    rows = json.loads(path.read_text(encoding="utf-8"))
    hollow = 0
    for required in (True, False):
        seen = fits(rows, required=required)
        hollow += seen["a fit in which all is lost"]
        told = ", ".join(f"{what} {number}" for what, number in seen.items())
        print(f"results, required {_kept(required=required)}: {told}")
    found = asyncio.run(table(rows))
    for way, counted in found.items():
        print(f"{way}: {', '.join(f'{name} {counted[name]}' for name in OUTCOMES)}")
    return int(hollow or any(map(is_bad, found.items())))


def is_bad(line: tuple[Way, Counter[str]]) -> bool:
    """Return whether a value of a line came to a wrong place or was lost unsaid."""
    way, counted = line
    if way.result_only:
        return bool(counted["dropped"])
    return bool(counted["wrong"] + counted["dropped"] + counted["dropped and told"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
