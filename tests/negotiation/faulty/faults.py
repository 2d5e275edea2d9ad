"""Halves with one fault each, made from a right one by a layer around its functions.

The layer changes one value on the way: an argument of a capability call, a part of a
capability's output, an argument of the caller's, a part of the result, or an error's
code. That is what a half does which ignores a field, swaps two, loses a unit, counts
pages from elsewhere, gives a constant or says another code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from negotiation.need import Schema
from negotiation.schema.intake import prepared
from negotiation.schema.samples import SampleKind, make_samples
from negotiation.schema.units import unit_of
from negotiation.schema.values import json_type
from negotiation.schema.variants import Path, leaves, schema_at
from negotiation.strict_json import Json
from tests.negotiation.cases.table import Pair

HELP = """

def spoiled(value, path, change):
    if not path:
        return change(value)
    if isinstance(value, dict) and path[0] in value:
        made = {name: value[name] for name in value}
        made[path[0]] = spoiled(value[path[0]], path[1:], change)
        return made
    if isinstance(value, list) and path[0] == "*":
        return [spoiled(one, path[1:], change) for one in value]
    return value


def held(value, path):
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value
"""
PROVIDER = """

right_request = handle_request


def handle_request(data):
    steps = right_request(data)
    answer = None
    failure = None
    while True:
        try:
            if failure is None:
                wanted = steps.send(answer)
            else:
                wanted = steps.throw(failure)
        except StopIteration as end:
            return end.value
        failure = None
        try:
            answer = outputs(wanted[0], (yield call(wanted[0], inputs(wanted[1]))))
        except CapabilityError as error:
            failure = codes(error)
"""
REQUESTER = """

right_encode = encode_request
right_decode = decode_response


def encode_request(message_id, arguments):
    return right_encode(message_id, inputs(arguments))


def decode_response(data):
    answer = right_decode(data)
    if "error" in answer:
        return codes(answer)
    return {"message_id": answer["message_id"], "result": outputs("", answer["result"])}
"""
SAME = {
    "inputs": "def inputs(value):\n    return value\n",
    "outputs": "def outputs(name, value):\n    return value\n",
    "codes": "def codes(value):\n    return value\n",
}
WRONG_CODE = {
    "provider": "def codes(error):\n    return CapabilityError('500', error.message)\n",
    "requester": (
        "def codes(answer):\n"
        "    error = {'code': 299, 'message': answer['error']['message']}\n"
        "    return {'message_id': answer['message_id'], 'error': error}\n"
    ),
}


@dataclass(frozen=True)
class Faulty:
    """A half with one fault."""

    kind: str
    role: str
    about: str
    source: str


def faulty(pair: Pair) -> Iterator[Faulty]:
    """Yield the halves of a pair with one fault each."""
    need, capability = pair.demand.need, pair.capability
    yield from _of(
        pair.provider,
        "provider",
        capability.input_schema,
        capability.output_schema,
    )
    given, wanted = need.input_schema, need.output_schema
    yield from _of(
        pair.requester, "requester", given or {}, True if wanted is None else wanted
    )


def _of(source: str, role: str, takes: Schema, gives: Schema) -> Iterator[Faulty]:
    layer = PROVIDER if role == "provider" else REQUESTER
    for where, schema in (("inputs", takes), ("outputs", gives)):
        for kind, about, body in _changes(prepared(schema), where):
            head = "def inputs(value):" if where == "inputs" else SAME[where][:26]
            changed = {**SAME, where: f"{head}\n{body}"}
            text = source + HELP + "\n\n".join(["", *changed.values()]) + layer
            yield Faulty(kind, role, f"{where} {about}", text)
    changed = {**SAME, "codes": WRONG_CODE[role]}
    text = source + HELP + "\n\n".join(["", *changed.values()]) + layer
    yield Faulty("wrong code", role, "codes", text)


def _changes(schema: Schema, where: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, place and body of each change of one value."""
    made = [one for one in make_samples(schema).values if one.kind is SampleKind.FULL]
    base = made[0].value if made else {}
    places: dict[Path, tuple[Schema, Json]] = {}
    for path, leaf in leaves(base).items():
        star = tuple("*" if step.isdecimal() else step for step in path)
        places.setdefault(star, (schema_at(schema, base, path), leaf))
    for path, (inner, leaf) in places.items():
        fixed = isinstance(inner, dict) and "const" in inner
        # A schema that names nothing has no place in which a half could be wrong.
        if not path or leaf is None or fixed or path[0] in ("any", "extra1"):
            continue
        about = "/".join(path)
        kind = "ignores a field" if where == "inputs" else "constant output"
        yield kind, about, _body(path, repr(leaf))
        if where == "inputs" and "*" not in path:
            yield kind, f"{about} left out", _without(path)
        if json_type(leaf) in {"integer", "number"}:
            if unit_of(path, inner) is not None:
                yield "loses a unit", about, _body(path, "one * 1.609344")
                yield "loses a unit", f"{about} back", _body(path, "one * 0.45359237")
            if json_type(leaf) == "integer" and "page" in path[-1]:
                yield "off by one page", about, _body(path, "one + 1")
                yield "off by one page", f"{about} back", _body(path, "one - 1")
    for one, other in combinations(places, 2):
        alike = json_type(places[one][1]) == json_type(places[other][1])
        listed = [isinstance(places[at][0], dict) for at in (one, other)]
        plain = all(listed) and places[one][0] == places[other][0]
        if alike and plain and one[:-1] == other[:-1] and "*" not in one:
            yield (
                "swaps two fields",
                f"{'/'.join(one)} {'/'.join(other)}",
                _swap(one, other),
            )


def _body(path: Path, expression: str) -> str:
    change = f"lambda one: {expression}"
    return f"    return spoiled(value, {path!r}, {change})\n"


def _without(path: Path) -> str:
    inner = f"held(value, {path[:-1]!r})"
    less = f"{{name: one[name] for name in one if name != {path[-1]!r}}}"
    return (
        f"    if not isinstance({inner}, dict):\n"
        "        return value\n"
        f"    return spoiled(value, {path[:-1]!r}, lambda one: {less})\n"
    )


def _swap(one: Path, other: Path) -> str:
    return (
        f"    first, second = held(value, {one!r}), held(value, {other!r})\n"
        "    if first is None or second is None:\n"
        "        return value\n"
        f"    value = spoiled(value, {one!r}, lambda old: second)\n"
        f"    return spoiled(value, {other!r}, lambda old: first)\n"
    )
