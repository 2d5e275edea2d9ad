"""The supported ways to make one value from others.

A model names the way and its few parameters. This module proves from the schemas that
it works for every value, as `mapping` does for values that only change names.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from math import lcm
from typing import Any, Final

from negotiation.errors import JsonError
from negotiation.llm.links.pure_source import impurity
from negotiation.llm.links.spots import Spot, bare_kind, nullable, without_null
from negotiation.need import Schema
from negotiation.python_source import expression_tree
from negotiation.schema.keywords import cut
from negotiation.schema.mapping import compare
from negotiation.schema.plan import (
    KEEP,
    SAME_SIZE,
    Mismatch,
    Scale,
    Step,
    values_of,
    words,
)
from negotiation.schema.terms import Drop, MappingProof
from negotiation.schema.units import NUMBERS, scale_between, unit_of, ways_between
from negotiation.schema.values import contradiction, types_of
from negotiation.strict_json import Json, parse_json

MAX_ARGUMENT: Final = 1_000
"Longest parameter of a conversion, in characters."

MAX_PAIRS: Final = 64
"Largest number of pairs in a table of values."

MAX_EXPRESSION: Final = 800
"Longest Python expression, in characters."

NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?(?:/[1-9][0-9]{0,11})?")
DATE_FORMAT: Final = re.compile(r"(?:%[YmdHMSfzjbBypI]|[ T/.,:_-]|[年月日时分秒])+")
EXAMPLE_MOMENT: Final = datetime(2031, 5, 17, 12, 30, tzinfo=UTC)
EXAMPLE_DATES: Final = {"date": "2031-05-17", "date-time": "2031-05-17T12:30:00Z"}
DATE_WORDS: Final = ("date", "date-time", "unix-seconds", "unix-milliseconds")


class How(StrEnum):
    """The way in which a value is made."""

    COPY = "copy"
    CONSTANT = "constant"
    SCALE = "scale"
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    VALUES = "values"
    JOIN = "join"
    SPLIT = "split"
    FIRST = "first"
    LIST = "list"
    COUNT = "count"
    PYTHON = "python"


MESSAGES: Final = frozenset({"request", "response", "arguments"})
"Roots that are no output of a capability."


class LinkError(ValueError):
    """A link cannot be used; the text gives the reason, which a peer may see."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A value made from others, proved to work for all values of their schemas."""

    how: How
    sources: tuple[Spot, ...] = ()

    values: tuple[Json, ...] = ()
    "Its parameters as checked plain values."

    step: Step = KEEP
    "The change inside a copied object or list."

    unsure: tuple[Spot, ...] = ()
    "Sources that may be absent, or null where null is not usable."

    texts: tuple[tuple[Spot, str], ...] = ()
    "Sources whose schema allows any text, each with an example that can be read."

    open: bool = False
    "True when the source promises too little, so that the result has to be judged."


def convert(
    how: How,
    sources: tuple[Spot, ...],
    args: Sequence[str],
    target: Schema,
    *,
    drop: Drop,
    proof: MappingProof,
    judged: bool = False,
    place: tuple[str, ...] = (),
) -> Conversion:
    """Return the conversion of `sources` to a value of `target`.

    A number of which both sides state the unit is converted exactly, whatever factor
    the parameters say.

    Args:
        judged: True if the value is judged at run time, so that a copy may promise
            less than `target` wants.
        place: Path of the target, whose last name may state a unit.

    Raises:
        LinkError: No conversion is possible, or not in this way.
    """
    if any(len(one) > MAX_ARGUMENT for one in args):
        raise LinkError(f"{how}: a parameter is too long")
    exact = _scale_of_units(how, sources, args, target, place)
    if exact is not None:
        how, args = (How.COPY if exact == SAME_SIZE else How.SCALE), ()
    link = _Link(how, sources, args, target, proof, exact)
    if how is How.COPY:
        _count(link, 0)
        return _copied(sources[0], target, drop, proof, judged)
    made = _MAKERS[how](link)
    found = compare(made.gives, target, proof=proof)
    if isinstance(found, Mismatch):
        raise LinkError(f"{how}: {found}")
    unsure = tuple(
        one
        for one in sources
        if (not one.sure and not one.default) or nullable(one.schema)
    )
    return Conversion(how, sources, made.values, unsure=unsure, texts=made.texts)


@dataclass(frozen=True, slots=True)
class _Link:
    how: How
    sources: tuple[Spot, ...]
    args: Sequence[str]
    target: Schema
    proof: MappingProof

    exact: Scale | None = None
    "The conversion of units that both sides state."

    @property
    def source(self) -> Spot:
        return self.sources[0]


def gives_nothing(sources: Sequence[Spot]) -> bool:
    """Return whether a value that is not in `sources` is one that nobody gave.

    What a capability gave too little of is an answer without a value; what the peer's
    message has too little of is the peer's fault.
    """
    return any(one.root not in MESSAGES for one in sources)


@dataclass(frozen=True, slots=True)
class _Made:
    values: tuple[Json, ...]
    gives: Schema
    texts: tuple[tuple[Spot, str], ...] = ()


def _copied(
    source: Spot, target: Schema, drop: Drop, proof: MappingProof, judged: bool
) -> Conversion:
    plan = compare(source.schema, target, drop=drop, proof=proof)
    null = False
    if isinstance(plan, Mismatch) and nullable(source.schema):
        inner = compare(without_null(source.schema), target, drop=drop, proof=proof)
        plan, null = (plan, False) if isinstance(inner, Mismatch) else (inner, True)
    opened = False
    if isinstance(plan, Mismatch) and judged:
        given = without_null(source.schema)
        open_ = compare(given, target, drop=drop, proof=MappingProof.OPEN)
        if not isinstance(open_, Mismatch):
            plan, null, opened = open_, nullable(source.schema), True
    if isinstance(plan, Mismatch):
        raise LinkError(f"{source.name} cannot be copied: {plan}")
    sure = (source.sure or source.default) and not null
    unsure = () if sure else (source,)
    return Conversion(How.COPY, (source,), step=plan.step, unsure=unsure, open=opened)


def _count(link: _Link, wanted: int) -> None:
    if len(link.sources) != 1:
        raise LinkError(f"{link.how} takes one source, got {len(link.sources)}")
    if len(link.args) != wanted:
        raise LinkError(f"{link.how} takes {wanted} parameters, got {len(link.args)}")


def _kind(source: Spot, *kinds: str) -> str:
    """Return the only type of a source, which must be one of `kinds`."""
    inner = without_null(source.schema)
    types = types_of(inner)
    if types == {"integer", "number"}:
        return "number"
    kind = bare_kind(inner)
    if kind not in kinds:
        raise LinkError(f"{source.name} is {words(inner)}, not {' or '.join(kinds)}")
    return kind


def _constant(link: _Link) -> _Made:
    if link.sources or len(link.args) != 1:
        raise LinkError("constant takes no source and one parameter")
    tried: list[Json] = []
    with contextlib.suppress(JsonError):
        tried.append(parse_json(link.args[0], max_size=4 * MAX_ARGUMENT))
    # A text need not be written as JSON, and 3 may stand for the text "3".
    tried.append(link.args[0])
    for value in tried:
        if contradiction(link.target, value) is None:
            return _Made((value,), _only(value))
    raise LinkError(
        f"the constant {cut(link.args[0])} is no value of {words(link.target)}"
    )


def _only(value: Json) -> Schema:
    """Return the schema of one value, as far as schemas are compared."""
    if not isinstance(value, list) or not value:
        return {"const": value}
    size = len(value)
    items = {"enum": value}
    return {"type": "array", "items": items, "minItems": size, "maxItems": size}


def _scale_of_units(
    how: How,
    sources: tuple[Spot, ...],
    args: Sequence[str],
    target: Schema,
    place: tuple[str, ...],
) -> Scale | None:
    """Return the conversion of the units that both sides of a number state, or None.

    Of a word with several sizes, the factor in the parameters says which is meant.

    Raises:
        LinkError: The units have different dimensions, or one has several sizes.
    """
    if how not in (How.COPY, How.SCALE) or len(sources) != 1:
        return None
    given, wanted = without_null(sources[0].schema), without_null(target)
    if not (types_of(given) <= NUMBERS and types_of(wanted) <= NUMBERS):
        return None
    units = unit_of(sources[0].path, given), unit_of(place, wanted)
    if units[0] is None or units[1] is None:
        return None
    scale = scale_between(units[0], units[1])
    if isinstance(scale, Scale):
        return scale
    if how is How.SCALE and args and NUMBER.fullmatch(args[0]):
        factor = _fraction(args[0])
        for way in ways_between(units[0], units[1]):
            if abs(factor - Fraction(way.times, way.over)) <= abs(factor) / 200:
                return way
    raise LinkError(f"{sources[0].name} is in {units[0].said}: {scale}")


def _scale(link: _Link) -> _Made:
    _count(link, 2 if link.exact is None else 0)
    kind = _kind(link.source, "number", "integer")
    if not all(NUMBER.fullmatch(one) for one in link.args):
        raise LinkError(f"scale takes two numbers, got {cut(list(link.args))}")
    if link.exact is None:
        factor, offset = (_fraction(one) for one in link.args)
    else:
        times, plus, over = link.exact.times, link.exact.plus, link.exact.over
        factor, offset = Fraction(times, over), Fraction(plus, over)
    whole = "number" not in types_of(without_null(link.target))
    if factor == 0:
        raise LinkError("scale by 0 loses the value")
    # round(value * a / c + b / c) with integers a, b, c: one division, one rounding.
    over = lcm(factor.denominator, offset.denominator)
    times, plus = int(factor * over), int(offset * over)
    gives: dict[str, Any] = {"type": "integer" if whole else "number"}
    exact = kind == "integer" and over == 1
    if exact:
        gives = {"type": "integer"}
    inner = without_null(link.source.schema)
    bounds = inner if isinstance(inner, dict) else {}
    for names, low in (
        (("minimum", "exclusiveMinimum"), True),
        (("maximum", "exclusiveMaximum"), False),
    ):
        for name in names:
            if name in bounds:
                limit = _limit(bounds[name], factor, offset)
                keyword = "minimum" if low == (factor > 0) else "maximum"
                gives[keyword] = round(limit) if whole else round(limit, 9)
    return _Made((times, plus, over, whole or exact), gives)


def _limit(bound: float, factor: Fraction, offset: Fraction) -> float:
    try:
        return float(Fraction(str(bound)) * factor + offset)
    except OverflowError:
        raise LinkError(f"scale: the limit {cut(bound)} is too large") from None


def _fraction(text: str) -> Fraction:
    above, _, below = text.partition("/")
    return Fraction(above) / Fraction(below or "1")


def _text(link: _Link) -> _Made:
    _count(link, 0)
    _kind(link.source, "number", "integer", "boolean", "string")
    inner = without_null(link.source.schema)
    listed = values_of(inner)
    # In the form that the half writes: see `anp_text` in `helpers`.
    texts = [
        ("true" if one else "false") if isinstance(one, bool) else str(one)
        for one in listed
    ]
    if bare_kind(inner) == "boolean":
        texts = ["true", "false"]
    return _Made((), {"enum": texts} if texts else {"type": "string", "minLength": 1})


def _number(link: _Link) -> _Made:
    _count(link, 0)
    _kind(link.source, "string")
    whole = "number" not in types_of(without_null(link.target))
    _readable(link.source, "a number", link.proof)
    return _Made((whole,), {"type": "integer" if whole else "number"})


def _date(link: _Link) -> _Made:
    _count(link, 2)
    before, after = link.args
    for form in link.args:
        if form not in DATE_WORDS and not DATE_FORMAT.fullmatch(form):
            raise LinkError(f"date: {cut(form)} is no form of a date")
    texts: tuple[tuple[Spot, str], ...] = ()
    if before.startswith("unix"):
        _kind(link.source, "integer", "number")
    else:
        _kind(link.source, "string")
        texts = _texts(link.source, EXAMPLE_DATES.get(before) or _written_as(before))
        inner = without_null(link.source.schema)
        stated = inner.get("format") if isinstance(inner, dict) else None
        if stated in DATE_WORDS[:2] and stated != before:
            raise LinkError(f"{link.source.name} has the form {stated}, not {before}")
    gives: Schema = {"type": "string", "minLength": 1}
    if after.startswith("unix"):
        gives = {"type": "integer"}
    elif after in DATE_WORDS:
        gives = {"type": "string", "format": after, "minLength": 1}
    return _Made((before, after), gives, texts)


def _written_as(form: str) -> str:
    return EXAMPLE_MOMENT.strftime(form)


def _readable(source: Spot, what: str, proof: MappingProof) -> None:
    """Refuse a text unless its schema shows that it can be read as `what`."""
    if proof is MappingProof.FULL and _texts(source, ""):
        raise LinkError(
            f"{source.name} may be any text, which need not be {what}: its schema "
            "says neither format nor pattern; if it always is one, read it by python "
            "and give an example"
        )


def _texts(source: Spot, example: str) -> tuple[tuple[Spot, str], ...]:
    """Return an example for a text whose schema does not define its form."""
    inner = without_null(source.schema)
    told = {"format", "pattern", "enum", "const", "examples"}
    if isinstance(inner, dict) and not told & inner.keys():
        return ((source, example),)
    return ()


def _values(link: _Link) -> _Made:
    if (
        len(link.sources) != 1
        or len(link.args) < 2
        or len(link.args) > 2 * MAX_PAIRS + 1
    ):
        raise LinkError("values takes one source and pairs of values")
    source, others = link.source.schema, len(link.args) % 2
    inner = without_null(source)
    listed = values_of(inner)
    if not listed and types_of(inner) == {"boolean"}:
        listed = [True, False]
    wanted = without_null(link.target)
    outcomes = values_of(wanted)
    pairs: list[Json] = []
    for given, becomes in zip(link.args[0::2], link.args[1::2], strict=False):
        pairs.append([_meant(given, listed, inner), _meant(becomes, outcomes, wanted)])
    default = [_meant(link.args[-1], outcomes, wanted)] if others else []
    known = [pair[0] for pair in pairs if isinstance(pair, list)]
    missing = [one for one in listed if one not in known]
    if not default and (missing or (not listed and link.proof is MappingProof.FULL)):
        what = cut(missing) if missing else "values that are not listed"
        raise LinkError(f"values: nothing is said for {what} of {link.source.name}")
    gives = [pair[1] for pair in pairs if isinstance(pair, list)] + default
    return _Made((pairs, default), {"enum": gives})


def _meant(text: str, listed: Sequence[Json], schema: Schema) -> Json:
    """Return the value that a parameter represents."""
    for value in listed:
        if text == value or text == _written(value):
            return value
    if listed:
        raise LinkError(f"values: {cut(text)} is not one of {cut(list(listed))}")
    if "string" in types_of(schema):
        return text
    try:
        return parse_json(text, max_size=4 * MAX_ARGUMENT)
    except JsonError:
        raise LinkError(f"values: {cut(text)} is no value of {words(schema)}") from None


def _written(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _join(link: _Link) -> _Made:
    if not 2 <= len(link.sources) <= 8 or len(link.args) != 1:
        raise LinkError("join takes two to eight sources and one parameter")
    for source in link.sources:
        _kind(source, "string", "integer")
    return _Made((link.args[0],), {"type": "string", "minLength": len(link.args[0])})


def _split(link: _Link) -> _Made:
    _count(link, 2)
    _kind(link.source, "string")
    separator, place = link.args
    if not separator or not re.fullmatch(r"-?[0-9]{1,2}", place):
        raise LinkError("split takes a separator and the number of a part")
    if int(place) not in (0, -1):
        # Only the first and the last part exist in every text.
        _readable(link.source, f"a text of parts with {cut(separator)}", link.proof)
    return _Made((separator, int(place)), {"type": "string"})


def _first(link: _Link) -> _Made:
    _count(link, 0)
    _kind(link.source, "array")
    inner = without_null(link.source.schema)
    assert isinstance(inner, dict)
    sure = inner.get("minItems") or gives_nothing(link.sources)
    if not sure and link.proof is MappingProof.FULL:
        raise LinkError(f"{link.source.name} may be empty, so it need not have a first")
    return _Made((), inner.get("items", True))


def _list(link: _Link) -> _Made:
    _count(link, 0)
    items = without_null(link.source.schema)
    return _Made((), {"type": "array", "items": items, "minItems": 1, "maxItems": 1})


def _items(link: _Link) -> _Made:
    _count(link, 0)
    _kind(link.source, "array")
    return _Made((), {"type": "integer", "minimum": 0})


def _python(link: _Link) -> _Made:
    if not 1 <= len(link.sources) <= 3 or len(link.args) not in (
        1,
        1 + len(link.sources),
    ):
        raise LinkError(
            "python takes one to three sources, and one expression with an example of "
            "each source or without"
        )
    text, *examples = link.args
    text = text.strip()
    if len(text) > MAX_EXPRESSION:
        raise LinkError(
            f"python: the expression has {len(text)} characters, at most "
            f"{MAX_EXPRESSION} are taken"
        )
    if problem := _no_expression(text) or impurity(text):
        raise LinkError(f"python takes one expression in one line: {problem}")
    texts = [
        one
        for source, example in zip(link.sources, examples, strict=False)
        if bare_kind(without_null(source.schema)) == "string"
        and contradiction(source.schema, example) is None
        for one in _texts(source, example)
    ]
    # The result is not proved; samples of the half are checked against the schema.
    return _Made((text,), link.target, tuple(texts))


def _no_expression(text: str) -> str:
    """Return the reason why `text` is not one expression; empty when it is."""
    if len(text.splitlines()) != 1:
        return "there is a line break in it"
    try:
        expression_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        return str(exc)[:100] or "it cannot be read"
    return ""


_MAKERS: Final[dict[How, Callable[[_Link], _Made]]] = {
    How.CONSTANT: _constant,
    How.SCALE: _scale,
    How.TEXT: _text,
    How.NUMBER: _number,
    How.DATE: _date,
    How.VALUES: _values,
    How.JOIN: _join,
    How.SPLIT: _split,
    How.FIRST: _first,
    How.LIST: _list,
    How.COUNT: _items,
    How.PYTHON: _python,
}
