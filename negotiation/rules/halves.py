"""Writes the half that carries out a fit, as readable source text.

The text consists of fixed lines and literals. Foreign data (names of properties,
constants, capabilities) enters only as the `repr` of a checked plain value (DESIGN.md,
Trust), so a property called `x"]; import os` is just a string. Only constructs that
RestrictedPython accepts without extension are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from negotiation.document.fields import Fixed, Mark, Slot
from negotiation.document.shape import Document, document_hash
from negotiation.errors import HalfError
from negotiation.mind import Demand, HalfSource, Side
from negotiation.need import Schema
from negotiation.rules.choice import Chain, NoChoice, choose
from negotiation.rules.fit import Fit, fit_provider, fit_requester
from negotiation.rules.judge_source import (
    PROBLEM,
    read_result,
    refused_lines,
    some_lines,
    unpromised,
    unpromised_result,
)
from negotiation.rules.literals import indented, literal, names_literal
from negotiation.rules.message_source import (
    id_lines,
    mark_check,
    message_lines,
    value_lines,
)
from negotiation.schema.plan import (
    KEEP,
    ByKind,
    Field,
    Fields,
    Items,
    Mismatch,
    Scale,
    Step,
)
from negotiation.schema.values import types_of

MAX_SOURCE: Final = 64 * 1024
"Largest half, in bytes; the limit of the sandbox."

KINDS: Final = {"object": "dict", "array": "list", "string": "str", "boolean": "bool"}

EXPECT: Final = """\
def expect(value, kind):
    if not isinstance(value, kind):
        raise ValueError("a value of the message has the wrong type")
    return value
"""
FIND: Final = """\
def find(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return ""
        value = value[name]
    return value
"""
SCALED: Final = """\
from decimal import Decimal


def scaled(value, times, plus, over):
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a value of the message is no number")
    made = Decimal(str(value)) * times + plus
    if over != 1:
        made = made / over
    return int(made) if made == int(made) else float(made)
"""
STATUS: Final = """\
def status_of(error):
    text = str(error.code)
    if len(text) == 3 and text.isdecimal() and text[0] in "45":
        return int(text)
    return 500
"""


def write_half(document: Document, side: Side) -> HalfSource:
    """Return our half for `document`, written from its schemas alone.

    Raises:
        HalfError: The document does not fit our side; the reason names the place.
    """
    if isinstance(side, Demand):
        fit = fit_requester(document, side)
        if isinstance(fit, Mismatch):
            raise HalfError("rejected", f"the document does not fit the task: {fit}")
        text = requester_source(fit, document_hash(document.text))
        return HalfSource(sized(text), "rules", notes=fit.notes, empty=fit.empty)
    chosen = choose(document, side.capabilities, side.hints)
    if isinstance(chosen, NoChoice):
        raise HalfError("rejected", chosen.reason)
    fit = fit_provider(document, chosen)
    if isinstance(fit, Mismatch):
        raise HalfError("rejected", f"the document does not fit {chosen.name}: {fit}")
    text = provider_source(fit, document_hash(document.text))
    names = chosen.names if isinstance(chosen, Chain) else (chosen.name,)
    return HalfSource(sized(text), "rules", names, notes=fit.notes, empty=fit.empty)


def requester_source(fit: Fit, protocol: str) -> str:
    """Return the requester half of `fit`; `protocol` is the hash, for the docstring."""
    source = _Source(f"Requester half of protocol {protocol}, written by rules.")
    source.block(EXPECT, FIND)
    if fit.response.judged is not None:
        source.block(PROBLEM)
    _encode_request(source, fit)
    _decode_response(source, fit)
    return source.text()


def provider_source(fit: Fit, protocol: str) -> str:
    """Return the provider half of `fit`; `protocol` is the hash, for the docstring."""
    source = _Source(f"Provider half of protocol {protocol}, written by rules.")
    source.block(EXPECT, STATUS)
    if fit.response.judged is not None:
        source.block(PROBLEM)
    _handle_request(source, fit)
    return source.text()


class Unplaced(Enum):
    """The fate of a value that the other side has no place for."""

    DROPPED = auto()
    "It is left out: part of a result that nobody asked for."

    RAISES = auto()
    "Our own caller's data cannot be sent, whatever their name."

    REFUSED = auto()
    "Nothing would take it, so its sender is told that it has no effect here."


class _Source:
    """Growing source text, with one function for each step that needs one."""

    def __init__(self, about: str) -> None:
        self._parts = [f'"""{about}"""\n\nimport json\n']
        self._functions = 0

    def block(self, *texts: str) -> None:
        self._parts += texts

    def text(self) -> str:
        return "\n\n".join(self._parts)

    def expression(
        self, step: Step, value: str, *, unplaced: Unplaced = Unplaced.DROPPED
    ) -> str:
        """Return the expression that applies `step` to the expression `value`."""
        if step == KEEP:
            return value
        if isinstance(step, Scale):
            if SCALED not in self._parts:
                self.block(SCALED)
            return f"scaled({value}, {step.times}, {step.plus}, {step.over})"
        return f"{self._function(step, unplaced)}({value})"

    def _function(self, step: Step, unplaced: Unplaced) -> str:
        """Write the function that applies `step` and return its name."""
        lines: list[str] = []
        match step:
            case Items(inner):
                item = self.expression(inner, "item", unplaced=unplaced)
                lines = ["expect(value, list)", f"return [{item} for item in value]"]
            case ByKind(of_object, of_array):
                for kind, one in (("dict", of_object), ("list", of_array)):
                    if one != KEEP:
                        changed = self.expression(one, "value", unplaced=unplaced)
                        lines += [f"if isinstance(value, {kind}):"]
                        lines += [f"    return {changed}"]
                lines += ["return value"]
            case Fields():
                lines = self._fields(step, unplaced)
        self._functions += 1
        name = f"convert_{self._functions}"
        self.block("\n".join([f"def {name}(value):", *indented(lines)]) + "\n")
        return name

    def _fields(self, step: Fields, unplaced: Unplaced) -> list[str]:
        known = tuple(field.source for field in step.fields)
        lines = ["expect(value, dict)"]
        if unplaced is Unplaced.RAISES and step.rest is None:
            lines += _refuse_others(known)
        if unplaced is Unplaced.REFUSED and step.rest is None:
            lines += refused_lines(known, "value")
        sure = [field for field in step.fields if field.required and not field.default]
        pairs = [
            *(f"{name!r}: {literal(value)}" for name, value in step.constants),
            *(f"{field.target!r}: {self._field(field, unplaced)}" for field in sure),
        ]
        lines += ["result = {", *indented([f"{pair}," for pair in pairs]), "}"]
        for field in step.fields:
            if field in sure:
                continue
            lines += [
                f"if {field.source!r} in value:",
                f"    result[{field.target!r}] = {self._field(field, unplaced)}",
            ]
            if field.default:
                default = literal(field.default[0])
                lines += ["else:", f"    result[{field.target!r}] = {default}"]
        if step.rest is not None:
            item = self.expression(step.rest, "value[name]", unplaced=unplaced)
            lines += [
                "for name in value:",
                f"    if name not in {names_literal(known)}:",
                f"        result[name] = {item}",
            ]
        some = some_lines() if step.gives_some else []
        return [*lines, *some, "return result"]

    def _field(self, field: Field, unplaced: Unplaced) -> str:
        return self.expression(
            field.step, f"value[{field.source!r}]", unplaced=unplaced
        )


def _encode_request(source: _Source, fit: Fit) -> None:
    request = fit.layout.request
    place, step = fit.request.place, fit.request.plan.step
    values = source.expression(step, "arguments", unplaced=Unplaced.RAISES)
    slots = {Slot.MESSAGE_ID: "message_id", Slot.ACTION: literal(fit.action)}
    lines = [f"values = {_expected(place.schema, values)}"]
    if not place.path and step == KEEP:
        lines += _refuse_these(request.taken, "values")
    lines += message_lines(request.fields, slots, place.path, "values")
    lines += ['return json.dumps(message).encode("utf-8")']
    source.block(_function("encode_request(message_id, arguments)", lines))


def _decode_response(source: _Source, fit: Fit) -> None:
    response = fit.layout.response
    place = fit.response.place
    lines = [
        'response = expect(json.loads(data.decode("utf-8")), dict)',
        *id_lines(fit.layout.message_id, "response"),
        *_update_read(fit),
    ]
    checks = [mark_check(mark) for mark in response.marks]
    if response.error is not None:
        checks.append(f"not response.get({response.error!r})")
    code = _error_code(response.marks, response.error)
    judged = fit.response.judged
    texts = [f"find(response, {names_literal(path)})" for path in response.texts]
    text = " or ".join([*texts, '"no reason given"'])
    lines += [
        f"good = {' and '.join(checks)}",
        "if not good:",
        f"    code = {code}",
        "    if not isinstance(code, (int, str)):",
        '        code = "error"',
        f"    text = str({text})",
        '    return {"message_id": message_id, "error": '
        '{"code": code, "message": text}}',
        *value_lines("response", fit.layout.response.taken, place.path, optional=False),
        f"expect(values, {kind})" if (kind := _kind(place.schema)) else "",
        *read_result(source.expression(fit.response.plan.step, "values"), judged),
        *unpromised_result(judged),
        'return {"message_id": message_id, "result": result}',
    ]
    source.block(_function("decode_response(data)", [line for line in lines if line]))


def _update_read(fit: Fit) -> list[str]:
    """Return the lines that read an update, which is no response yet."""
    update = fit.layout.update
    if update is None:
        return []
    path = update.place.path
    lines = value_lines("response", update.taken, path, optional=False)
    found = [*lines, 'return {"message_id": message_id, "update": values}']
    return [f"if {update.mark!r} in response:", *indented(found)]


def _update_write(source: _Source, fit: Fit) -> list[str]:
    """Return the lines of the function that writes an update."""
    if fit.update is None or fit.layout.update is None:
        return []
    slots = {Slot.MESSAGE_ID: "message_id", Slot.ACTION: literal(fit.action)}
    path = fit.update.place.path
    given = source.expression(fit.update.plan.step, "value")
    lines = [
        f"given = {given}",
        *message_lines(fit.layout.update.fields, slots, path, "given"),
        'return json.dumps(message).encode("utf-8")',
    ]
    return ["def write_update(value):", *indented(lines)]


def _handle_request(source: _Source, fit: Fit) -> None:
    assert fit.capability is not None
    request, response = fit.layout.request, fit.layout.response
    place = fit.request.place
    arguments = source.expression(
        fit.request.plan.step, "values", unplaced=Unplaced.REFUSED
    )
    result = source.expression(fit.response.plan.step, "output")
    slots = {
        Slot.MESSAGE_ID: "message_id",
        Slot.ACTION: literal(fit.action),
        Slot.TEXT: "str(error.message)",
        Slot.CODE: _status(response.codes),
        Slot.CODE_TEXT: "str(status_of(error))",
    }
    own = {
        mark.path: _word(response.words)
        for mark in response.marks
        if isinstance(mark.bad, Fixed) and mark.bad.value in response.words
    }
    bad = message_lines(response.bad, slots, own=own)
    good = message_lines(response.good, slots, fit.response.place.path, "result")
    where = ".".join(fit.response.place.path) or "response"
    lines = [
        'request = expect(json.loads(data.decode("utf-8")), dict)',
        *id_lines(fit.layout.message_id, "request"),
        *value_lines("request", request.taken, place.path, optional=place.optional),
        f"expect(values, {kind})" if (kind := _kind(place.schema)) else "",
        *_update_write(source, fit),
        "try:",
        f"    arguments = {arguments}",
        *indented(_calls(fit)),
        f"    result = {result}",
        *indented(unpromised(fit.response.judged, where)),
        "except CapabilityError as error:",
        *indented([*bad, 'return json.dumps(message).encode("utf-8")']),
        *good,
        'return json.dumps(message).encode("utf-8")',
    ]
    source.block(_function("handle_request(data)", [line for line in lines if line]))


def _calls(fit: Fit) -> list[str]:
    """Return the lines that make the calls and end with `output`."""
    assert fit.capability is not None
    if fit.chain is None:
        updates = ", write_update" if fit.update is not None else ""
        return [f"output = yield call({fit.capability.name!r}, arguments{updates})"]
    lines = []
    for number, step in enumerate(fit.chain.steps):
        given = (
            f"{{name: arguments[name] for name in {names_literal(step.given)} "
            "if name in arguments}"
        )
        lines.append(f"given = {given}")
        lines += [
            f"given[{name!r}] = output_{giver}[{name!r}]" for name, giver in step.linked
        ]
        lines.append(f"output_{number} = yield call({step.capability!r}, given)")
    return [*lines, f"output = output_{len(fit.chain.steps) - 1}"]


def _error_code(marks: Sequence[Mark], error: str | None) -> str:
    """Return the expression for an error's code, the most specific one."""
    path, default = error_code_place(marks, error)
    if not path:
        return f'"{default}"'
    found = f"find(response, {names_literal(path)})"
    return f'{found} or "{default}"' if default else found


def error_code_place(
    marks: Sequence[Mark], error: str | None
) -> tuple[tuple[str, ...], str]:
    """Return the place of an error's code, and the code where nothing stands there.

    Args:
        error: The property that is present only in a failure, if there is one.
    """
    for mark in marks:
        if mark.bad in (Slot.CODE, Slot.CODE_TEXT):
            return mark.path, ""
    for mark in marks:
        # The document lists words for its codes.
        if mark.path[-1] == "code" and isinstance(mark.bad, Fixed):
            return mark.path, "error"
    return (() if error is None else (error, "code")), "error"


def _status(codes: Sequence[int]) -> str:
    if not codes:
        return "status_of(error)"
    fallback = fallback_code(codes, 500)
    # A capability that gives one of the document's codes means that one.
    texts = names_literal(list(map(str, codes)))
    listed = ", ".join(map(repr, codes)) + ","
    return (
        f"int(str(error.code)) if str(error.code) in {texts} else "
        f"status_of(error) if status_of(error) in ({listed}) else {fallback!r}"
    )


def _word(words: Sequence[str]) -> str:
    """Return the expression for a listed word: what the capability says, if listed."""
    told = "str(error.code)"
    return f"{told} if {told} in {names_literal(words)} else {words[0]!r}"


def fallback_code(codes: Sequence[int], wanted: int) -> int:
    """Return the code that a document has for `wanted`."""
    if not codes or wanted in codes:
        return wanted
    return 500 if 500 in codes else codes[0]


def _refuse_others(known: Sequence[str]) -> list[str]:
    return [
        "for name in value:",
        f"    if name not in {names_literal(known)}:",
        '        raise ValueError("the protocol has no place for " + name)',
    ]


def _refuse_these(names: frozenset[str], values: str) -> list[str]:
    return [
        f"for name in {values}:",
        f"    if name in {names_literal(sorted(names))}:",
        '        raise ValueError("the protocol itself uses the name " + name)',
    ]


def _expected(schema: Schema, value: str) -> str:
    kind = _kind(schema)
    return f"expect({value}, {kind})" if kind else value


def _kind(schema: Schema) -> str | None:
    """Return the Python type of all values of `schema`, if they have one."""
    types = types_of(schema)
    return KINDS.get(next(iter(types))) if len(types) == 1 else None


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"def {head}:", *indented(lines)]) + "\n"


def sized(text: str) -> str:
    """Return the text of a half.

    Raises:
        HalfError: It is too large.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_SOURCE:
        raise HalfError(
            "rejected", f"the half has {size} bytes, at most {MAX_SOURCE} are taken"
        )
    return text
