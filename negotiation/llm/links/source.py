"""Writes the conversion of a value by links as the lines of a function.

Foreign names and constants enter only as the `repr` of checked plain values, as in
`halves`. The one exception is a Python expression of a model: it is placed in a
function of its own, and is checked and run in the sandbox only. Fixed functions, of
which each half contains those it uses, need only constructs that RestrictedPython
accepts without extension. Their names begin with `anp_`, so that a codec written by a
model does not redefine one by chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from negotiation.llm.links.conversions import Conversion, How
from negotiation.llm.links.spots import ITEMS, Spot
from negotiation.llm.links.trees import Each, Leaf, Made, Node, Tree
from negotiation.rules.literals import indented, literal, names_literal
from negotiation.schema.plan import KEEP, ByKind, Fields, Items, Step
from negotiation.trial.module_shapes import MAX_MADE
from negotiation.trial.worked import BEYOND

__all__ = ["HELPERS", "IMPORTS", "Source", "helpers_for"]

MAX_ITEMS: Final = 5_000
"Largest number of items that all pages of a list have together."

HELPERS: Final[dict[str, str]] = {
    "anp_expect": """\
def anp_expect(value, kind):
    if not isinstance(value, kind):
        raise ValueError("a value of the message has the wrong type")
    return value
""",
    "anp_at": """\
def anp_at(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise ValueError("the value has no " + name)
        value = value[name]
    return value
""",
    "anp_given": """\
def anp_given(value, names, default):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return default
        value = value[name]
    return value
""",
    "anp_has": """\
def anp_has(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return value is not None
""",
    "anp_find": """\
def anp_find(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return ""
        value = value[name]
    return value
""",
    "anp_finite": """\
def anp_finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a value of the message is no number")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("a number of the message is not finite")
    return value
""",
    "anp_scaled": """\
def anp_scaled(value, times, plus, over, whole):
    value = anp_finite(value) * times + plus
    if over == 1 and isinstance(value, int):
        return value
    value = value / over
    if whole:
        return int(round(value))
    return anp_finite(round(value, 9))
""",
    "anp_text": """\
def anp_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(anp_finite(value))
""",
    "anp_number": """\
def anp_number(value, whole):
    number = anp_finite(float(anp_expect(value, str).strip()))
    if whole or (number == int(number) and "." not in value and "e" not in value):
        if number != int(number):
            raise ValueError("a text of the message is no whole number")
        return int(number)
    return number
""",
    "anp_moment": """\
def anp_moment(value, form):
    if form == "unix-seconds":
        return datetime.fromtimestamp(anp_finite(value), timezone.utc)
    if form == "unix-milliseconds":
        return datetime.fromtimestamp(anp_finite(value) / 1000, timezone.utc)
    if form in ("date", "date-time"):
        moment = datetime.fromisoformat(anp_expect(value, str))
    else:
        moment = datetime.strptime(anp_expect(value, str), form)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment
""",
    "anp_date": """\
def anp_date(value, before, after):
    moment = anp_moment(value, before)
    if after == "unix-seconds":
        return int(moment.timestamp())
    if after == "unix-milliseconds":
        return int(moment.timestamp() * 1000)
    if after == "date":
        return moment.date().isoformat()
    if after == "date-time":
        return moment.isoformat().replace("+00:00", "Z")
    return moment.strftime(after)
""",
    "anp_mapped": """\
def anp_mapped(value, pairs, default):
    for pair in pairs:
        if isinstance(pair[0], bool) == isinstance(value, bool) and pair[0] == value:
            return pair[1]
    if not default:
        raise ValueError("a value of the message is not one of those that are known")
    return default[0]
""",
    "anp_part": """\
def anp_part(value, separator, place):
    parts = anp_expect(value, str).split(separator)
    if place >= len(parts) or -place > len(parts):
        raise ValueError("a text of the message has fewer parts")
    return parts[place]
""",
    "anp_first": """\
def anp_first(value):
    if not anp_expect(value, list):
        raise ValueError("a list of the message is empty")
    return value[0]
""",
    "anp_holds": """\
def anp_holds(read, meant, shape):
    if isinstance(shape, dict) and isinstance(meant, dict):
        for name in shape:
            if not isinstance(read, dict):
                return False
            if not anp_holds(read.get(name), meant.get(name), shape[name]):
                return False
        return True
    if isinstance(shape, list) and isinstance(meant, list):
        if not isinstance(read, list) or len(read) != len(meant):
            return False
        for number, one in enumerate(meant):
            if not anp_holds(read[number], one, shape[0]):
                return False
        return True
    if isinstance(meant, float) and isinstance(read, (int, float)):
        return abs(read - meant) <= 0.5
    return read == meant
""",
    "anp_packed": f"""\
def anp_packed(kind, message, names, values, shape):
    try:
        data = write_message(kind, message)
        read = read_message(kind, data)
    except Exception as problem:
        raise ValueError("{BEYOND}: " + str(problem)[:200])
    if not anp_holds(anp_find(read, names), values, shape):
        raise ValueError("{BEYOND}: they come back changed")
    return data
""",
    "anp_status": """\
def anp_status(error):
    text = str(error.code)
    if len(text) == 3 and text.isdecimal() and text[0] in "45":
        return int(text)
    return 500
""",
    "anp_coded": """\
def anp_coded(error, codes, default):
    text = str(error.code)
    if text in codes:
        return codes[text]
    return codes.get(str(anp_status(error)), default)
""",
    "anp_passing": """\
def anp_passing(error):
    if str(error.code) == "approval-pending":
        return False
    return anp_status(error) in (429, 500, 502, 503, 504)
""",
    "anp_room": f"""\
def anp_room(made, more):
    if made + more > {MAX_MADE}:
        raise CapabilityError("413", "it would take more than {MAX_MADE} calls")
    return made + more
""",
    "anp_full": f"""\
def anp_full(items):
    if len(items) > {MAX_ITEMS}:
        raise CapabilityError("413", "the pages have more than {MAX_ITEMS} items")
    return items
""",
    "anp_put": """\
def anp_put(value, names, items):
    if not names:
        return items
    return {**value, names[0]: anp_put(value.get(names[0], {}), names[1:], items)}
""",
    "anp_is": """\
def anp_is(value, names, wanted):
    found = anp_given(value, names, None)
    if wanted is None:
        return found is None or found == "" or found == []
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted
""",
    "anp_joined": """\
def anp_joined(value, names, key, other, other_names, other_key):
    partners = {}
    for item in anp_expect(anp_given(other, other_names, []), list):
        own = json.dumps(anp_given(item, other_key, None))
        if own != "null" and partners.get(own, item) != item:
            raise CapabilityError("502", "two items have the key " + own[:100])
        partners[own] = item
    pairs = []
    for item in anp_expect(anp_given(value, names, []), list):
        own = json.dumps(anp_given(item, key, None))
        pair = {"left": item}
        if own != "null" and own in partners:
            pair["right"] = partners[own]
        pairs.append(pair)
    return pairs
""",
}
"The functions by name, each after those that it uses."

IMPORTS: Final[dict[str, str]] = {
    "json": "import json",
    "datetime": "from datetime import datetime",
    "timedelta": "from datetime import timedelta",
    "timezone": "from datetime import timezone",
    "Decimal": "from decimal import Decimal",
    "base64": "import base64",
    "fromstring": "from xml.etree.ElementTree import fromstring",
    "html": "import html",
    "math": "import math",
    "re": "import re",
    "struct": "import struct",
}
"The import line for each name that a half may use."

_NAME: Final = re.compile(r"\banp_[a-z]+\b")


def helpers_for(text: str) -> list[str]:
    """Return the functions that `text` uses, and those that they use."""
    wanted: set[str] = set()
    found = set(_NAME.findall(text)) & HELPERS.keys()
    while found - wanted:
        wanted |= found
        found = {
            name
            for one in wanted
            for name in _NAME.findall(HELPERS[one])
            if name in HELPERS
        }
    return [HELPERS[name] for name in HELPERS if name in wanted]


LETTERS: Final = ("a", "b", "c")


class Source:
    """The growing text of one half."""

    def __init__(self) -> None:
        self._functions: list[str] = []
        self._count = 0

    def function(self, head: str, lines: Sequence[str]) -> None:
        """Add a function."""
        body = "\n".join(indented(lines))
        self._functions.append(f"def {head}:\n{body}\n")

    def builder(
        self,
        node: Node,
        roots: Mapping[str, str],
        items: Mapping[tuple[str, ...], str] | None = None,
    ) -> str:
        """Add the function that makes a value, and return a call of it.

        Args:
            roots: The variable of each root, by the root's name.
            items: The variable of an item, by root and path of its list's items.
        """
        inside = items or {}
        variables = list(dict.fromkeys([*roots.values(), *inside.values()]))
        known: dict[tuple[str, ...], str] = {
            (root,): name for root, name in roots.items()
        }
        known |= inside
        lines: list[str] = []
        if node.needs and not isinstance(node, Tree):
            given = " and ".join(_given(spot, known) for spot in node.needs)
            lines += [f"if not ({given}):", "    return None"]
        value = self._node(node, known, lines)
        name = self._name("make")
        self.function(f"{name}({', '.join(variables)})", [*lines, f"return {value}"])
        return f"{name}({', '.join(variables)})"

    def calls(self, name: str) -> bool:
        """Return whether a function so far calls one of this name."""
        return any(f"{name}(" in one for one in self._functions)

    def text(self, about: str, *, before: str = "") -> str:
        """Return the whole text.

        Args:
            about: The docstring, in plain words.
            before: Foreign text that precedes ours: a codec.
        """
        own = "\n\n".join(self._functions)
        helpers = helpers_for(own)
        every = "\n\n".join([*helpers, own])
        imports = [
            line for name, line in IMPORTS.items() if re.search(rf"\b{name}\b", every)
        ]
        parts = [f'"""{about}"""', "\n".join(imports), before.strip()]
        head = "\n\n".join(part for part in parts if part)
        return f"{head}\n\n\n{every}"

    def _node(
        self, node: Node, variables: dict[tuple[str, ...], str], lines: list[str]
    ) -> str:
        """Add to `lines` the steps that make a value; return the expression for it."""
        match node:
            case Leaf(conversion):
                return self._value(conversion, variables)
            case Tree(fields):
                name = self._name("object")
                lines.append(f"{name} = {{}}")
                for one in fields:
                    self._field(name, one, variables, lines)
                return name
            case Each():
                return self._each(node, variables, lines)

    def _field(
        self,
        owner: str,
        made: Made,
        variables: dict[tuple[str, ...], str],
        lines: list[str],
    ) -> None:
        inner: list[str] = []
        value = self._node(made.node, variables, inner)
        inner.append(f"{owner}[{made.name!r}] = {value}")
        needs = [_given(spot, variables) for spot in made.node.needs]
        if not needs:
            lines += inner
            return
        lines += [f"if {' and '.join(needs)}:", *indented(inner)]
        if made.default:
            default = literal(made.default[0])
            lines += ["else:", f"    {owner}[{made.name!r}] = {default}"]

    def _each(
        self, node: Each, variables: dict[tuple[str, ...], str], lines: list[str]
    ) -> str:
        every, item = self._name("items"), self._name("item")
        walked = Spot(node.items.root, node.items.path[:-1], True, True)
        inner: list[str] = []
        known = {**variables, (node.items.root, *node.items.path): item}
        value = self._node(node.node, known, inner)
        if node.open and not isinstance(node.node, Tree):
            given = " and ".join(_given(spot, known) for spot in node.node.needs)
            value = f"{value} if {given} else None"
        lines += [
            f"{every} = []",
            f"for {item} in anp_expect({_read(walked, variables)}, list):",
            *indented([*inner, f"{every}.append({value})"]),
        ]
        return every

    def _value(self, made: Conversion, variables: Mapping[tuple[str, ...], str]) -> str:
        read = [_read(source, variables) for source in made.sources]
        values = [literal(value) for value in made.values]
        match made.how:
            case How.COPY:
                return self._copied(made.step, read[0])
            case How.CONSTANT:
                return values[0]
            case How.JOIN:
                texts = ", ".join(f"anp_text({one})" for one in read)
                return f"{values[0]}.join([{texts}])"
            case How.LIST:
                return f"[{read[0]}]"
            case How.COUNT:
                return f"len(anp_expect({read[0]}, list))"
            case How.PYTHON:
                name = self._name("compute")
                letters = ", ".join(LETTERS[: len(read)])
                self.function(f"{name}({letters})", [f"return {made.values[0]}"])
                return f"{name}({', '.join(read)})"
            case How.SCALE:
                return f"anp_scaled({', '.join([*read, *values])})"
            case How.TEXT:
                return f"anp_text({read[0]})"
            case How.NUMBER:
                return f"anp_number({', '.join([*read, *values])})"
            case How.DATE:
                return f"anp_date({', '.join([*read, *values])})"
            case How.VALUES:
                return f"anp_mapped({', '.join([*read, *values])})"
            case How.SPLIT:
                return f"anp_part({', '.join([*read, *values])})"
            case How.FIRST:
                return f"anp_first({read[0]})"

    def _copied(self, step: Step, value: str) -> str:
        """Return the expression that carries out `step`, as rules write it."""
        if step == KEEP:
            return value
        lines: list[str]
        match step:
            case Items(inner):
                item = self._copied(inner, "item")
                lines = [f"return [{item} for item in anp_expect(value, list)]"]
            case ByKind(of_object, of_array):
                lines = [
                    "if isinstance(value, dict):",
                    f"    return {self._copied(of_object, 'value')}",
                    "if isinstance(value, list):",
                    f"    return {self._copied(of_array, 'value')}",
                    "return value",
                ]
            case Fields():
                lines = self._copied_fields(step)
            case _:
                return value
        name = self._name("convert")
        self.function(f"{name}(value)", lines)
        return f"{name}({value})"

    def _copied_fields(self, step: Fields) -> list[str]:
        lines = ["anp_expect(value, dict)", "result = {}"]
        for name, constant in step.constants:
            lines.append(f"result[{name!r}] = {literal(constant)}")
        for one in step.fields:
            read = f"value[{one.source!r}]"
            made = f"result[{one.target!r}] = {self._copied(one.step, read)}"
            if one.required and not one.default:
                lines.append(made)
                continue
            lines += [f"if {one.source!r} in value:", f"    {made}"]
            if one.default:
                default = literal(one.default[0])
                lines += ["else:", f"    result[{one.target!r}] = {default}"]
        if step.rest is not None:
            known = names_literal([one.source for one in step.fields])
            item = self._copied(step.rest, "value[name]")
            lines += [
                "for name in value:",
                f"    if name not in {known}:",
                f"        result[name] = {item}",
            ]
        return [*lines, "return result"]

    def _name(self, what: str) -> str:
        self._count += 1
        return f"anp_{what}_{self._count}"


def _read(spot: Spot, variables: Mapping[tuple[str, ...], str]) -> str:
    """Return the expression that reads a place."""
    variable, rest = _nearest(spot, variables)
    if rest and spot.default:
        default = literal(spot.default[0])
        return f"anp_given({variable}, {names_literal(rest)}, {default})"
    return f"anp_at({variable}, {names_literal(rest)})" if rest else variable


def _given(spot: Spot, variables: Mapping[tuple[str, ...], str]) -> str:
    """Return the expression that is true when a place has a value."""
    variable, rest = _nearest(spot, variables)
    return f"anp_has({variable}, {names_literal(rest)})"


def _nearest(
    spot: Spot, variables: Mapping[tuple[str, ...], str]
) -> tuple[str, tuple[str, ...]]:
    """Return the variable nearest to a place, and the names from there to the place."""
    stars = [index for index, step in enumerate(spot.path) if step == ITEMS]
    end = stars[-1] + 1 if stars else 0
    return variables[(spot.root, *spot.path[:end])], spot.path[end:]
