"""Writes halves from plans: the frame in fixed lines, the values by links.

The text is a module in the contract of DESIGN.md. When the bytes are not JSON it also
contains a codec, `read_message` and `write_message`, which is the only part that a
model writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from negotiation.document.fields import Place, Slot
from negotiation.llm.links.call_lines import PlanLines, shapes_of
from negotiation.llm.links.frames import FieldUse
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.links.source import Source
from negotiation.llm.links.spots import without_null
from negotiation.llm.links.uses import example_texts
from negotiation.mind import HalfSource
from negotiation.need import Schema
from negotiation.rules.halves import sized
from negotiation.rules.judge_source import PROBLEM, read_result, unpromised_result
from negotiation.rules.literals import indented, literal, names_literal
from negotiation.rules.message_source import (
    id_lines,
    mark_check,
    message_lines,
    value_lines,
)
from negotiation.schema.values import types_of
from negotiation.strict_json import Json
from negotiation.trial.module_examples import examples_line
from negotiation.trial.module_shapes import shapes_line

ORIGIN: Final = "model"
"Origin of a half whose mapping a model gave."


def provider_half(plan: ProviderPlan, protocol: str) -> HalfSource:
    """Return the provider half of `plan`; `protocol` is the hash, for the docstring.

    Raises:
        HalfError: The half would be too large.
    """
    source = Source()
    frame, response = plan.frame, plan.frame.layout.response
    where = ".".join(frame.response_place.path) or "response"
    made = PlanLines(source, where).lines(plan)
    slots = {
        Slot.MESSAGE_ID: "message_id",
        Slot.ACTION: literal(plan.action),
        Slot.TEXT: "str(error.message)",
        Slot.CODE: "anp_status(error)",
        Slot.CODE_TEXT: "str(anp_status(error))",
    }
    own = {frame.code_path: _own_code(frame)} if frame.code_path else {}
    place = frame.response_place
    good = message_lines(response.good, slots, path=place.path, values="result")
    packing = [*good, *_packing(place)] if plan.codec else []
    lines = [
        f"request = anp_expect({_read('request', plan.codec)}, dict)",
        *id_lines(frame.request_id, "request", prefix="anp_"),
        *_values(frame, "request"),
        "try:",
        *indented(made),
        *indented(packing),
        "except CapabilityError as error:",
        *indented(
            [*message_lines(response.bad, slots, own=own), _sent("response", plan)]
        ),
        *([] if packing else [*good, _sent("response", plan)]),
    ]
    source.function("handle_request(data)", lines)
    names: dict[str, None] = {}
    examples: dict[str, str] = {}
    part: ProviderPlan | None = plan
    while part is not None:
        names |= dict.fromkeys(one.capability for one in part.calls)
        for node in (*(one.arguments for one in part.calls), part.result):
            examples |= _shown(example_texts(node), part.aliases)
        part = None if part.otherwise is None else part.otherwise.plan
    about = f"Provider half of protocol {protocol}"
    told = shapes_line(shapes_of(plan))
    return _half(source, plan.codec, about, tuple(names), examples, told)


def requester_half(plan: RequesterPlan, protocol: str) -> HalfSource:
    """Return the requester half of `plan`; `protocol` is the hash, for the docstring.

    Raises:
        HalfError: The half would be too large.
    """
    source = Source()
    _encode_request(source, plan)
    _decode_response(source, plan)
    about = f"Requester half of protocol {protocol}"
    examples = example_texts(plan.request) | example_texts(plan.result)
    return _half(source, plan.codec, about, (), examples)


def _encode_request(source: Source, plan: RequesterPlan) -> None:
    frame = plan.frame
    values = source.builder(plan.request, {"arguments": "arguments"})
    slots = {Slot.MESSAGE_ID: "message_id", Slot.ACTION: literal(plan.action)}
    shown = literal(plan.taken)
    lines = [
        f'unplaced = anp_unplaced(anp_expect(arguments, dict), {shown}, "")',
        "if unplaced:",
        '    raise ValueError("the protocol has no place for " + unplaced)',
        f"values = {values}",
        *message_lines(
            frame.layout.request.fields,
            slots,
            path=frame.request_place.path,
            values="values",
        ),
        f"return {_packed('request', frame.request_place, 'values')}"
        if plan.codec
        else _sent("request", plan),
    ]
    source.function("encode_request(message_id, arguments)", lines)


def _decode_response(source: Source, plan: RequesterPlan) -> None:
    frame, response = plan.frame, plan.frame.layout.response
    result = source.builder(plan.result, {"response": "values"})
    checks = [mark_check(mark, prefix="anp_") for mark in response.marks]
    if response.error is not None:
        checks.append(f"not response.get({response.error!r})")
    texts = [f"anp_find(response, {names_literal(path)})" for path in response.texts]
    lines = [
        f"response = anp_expect({_read('response', plan.codec)}, dict)",
        *id_lines(frame.response_id, "response", prefix="anp_"),
        f"good = {' and '.join(checks)}",
        "if not good:",
        f"    code = {_error_code(frame)}",
        '    if code == "" or not isinstance(code, (int, str)):',
        '        code = "error"',
        f"    text = str({' or '.join([*texts, literal('no reason given')])})",
        '    return {"message_id": message_id, "error": '
        '{"code": code, "message": text}}',
        *_values(frame, "response"),
        *read_result(result, plan.judged),
        *unpromised_result(plan.judged),
        'return {"message_id": message_id, "result": result}',
    ]
    source.function("decode_response(data)", lines)


def _values(frame: FieldUse, message: str) -> list[str]:
    """Return the lines that read the values of a message."""
    request = message == "request"
    place = frame.request_place if request else frame.response_place
    part = frame.layout.request if request else frame.layout.response
    optional = place.optional and request
    lines = value_lines(message, part.taken, place.path, optional=optional)
    if place.path and types_of(place.schema) == {"object"}:
        lines.append("anp_expect(values, dict)")
    return lines


def _error_code(frame: FieldUse) -> str:
    """Return the expression for an error's code, the most specific one."""
    response = frame.layout.response
    paths = [frame.code_path] if frame.code_path else []
    paths += [
        path
        for path, leaf in response.bad
        if leaf in (Slot.CODE, Slot.CODE_TEXT) and path not in paths
    ]
    if not paths:
        return literal("error")
    found = f"anp_find(response, {names_literal(paths[0])})"
    # A word such as "error" is not specific; 0 and "" are no codes.
    return f'{found} or "error"'


def _own_code(frame: FieldUse) -> str:
    codes: dict[str, Json] = dict(frame.codes)
    return f"anp_coded(error, {literal(codes)}, {literal(frame.default_code)})"


def _read(kind: str, codec: str) -> str:
    if codec:
        return f'read_message("{kind}", data)'
    return 'json.loads(data.decode("utf-8"))'


def _sent(kind: str, plan: ProviderPlan | RequesterPlan) -> str:
    if plan.codec:
        return f'return write_message("{kind}", message)'
    return 'return json.dumps(message).encode("utf-8")'


def _packing(place: Place) -> list[str]:
    """Return the lines that send a good response, or fail in the document's way."""
    return [
        "try:",
        f"    return {_packed('response', place, 'result')}",
        "except ValueError as problem:",
        '    raise CapabilityError("502", str(problem))',
    ]


def _packed(kind: str, place: Place, values: str) -> str:
    """Return the expression for the bytes of a message, which hold `values`."""
    path, shape = names_literal(place.path), literal(_shape(place.schema))
    return f'anp_packed("{kind}", message, {path}, {values}, {shape})'


def _shape(schema: Schema) -> Json:
    """Return the named values of a schema: objects, lists of one, and None."""
    inner = without_null(schema)
    if isinstance(inner, dict) and isinstance(inner.get("properties"), dict):
        return {name: _shape(one) for name, one in inner["properties"].items()}
    if isinstance(inner, dict) and isinstance(inner.get("items"), dict):
        return [_shape(inner["items"])]
    return None


def _shown(
    examples: Mapping[str, str], aliases: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return examples by the names of places that are in the outputs themselves."""
    found = dict(examples)
    for begins, name in aliases:
        for place in [one for one in found if one.startswith(begins)]:
            found[name + place[len(begins) :]] = found.pop(place)
    return found


def _half(
    source: Source,
    codec: str,
    about: str,
    capabilities: tuple[str, ...],
    examples: Mapping[str, str],
    shapes: str = "",
) -> HalfSource:
    line = examples_line(examples) if examples else ""
    judge = PROBLEM.strip() if source.calls("problem_of") else ""
    parts = (line, shapes, judge, codec.strip())
    before = "\n\n\n".join(part for part in parts if part)
    text = source.text(f"{about}, its mapping by a model.", before=before)
    return HalfSource(sized(text), ORIGIN, capabilities)
