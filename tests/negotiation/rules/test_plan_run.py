"""A plan does what its source does in a worker, byte for byte, or leaves it alone.

The sources run in the worker's own code, guards and frames included, in this process.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import Document
from negotiation.errors import DocumentError, HalfError, SchemaError
from negotiation.mind import Demand, Offer, Side
from negotiation.need import Capability, Need
from negotiation.rules.halves import write_half
from negotiation.rules.plan_run import (
    MAX_STEPS,
    NotPlanned,
    ProviderRun,
    RequesterRun,
    plan_of,
    read_message,
)
from negotiation.rules.rules import published_document
from negotiation.schema.intake import prepared
from negotiation.schema.samples import make_samples
from negotiation.strict_json import parse_json
from sandbox.frames import pack, unpack
from sandbox.worker.worker import _Worker
from tests.negotiation.formats import strict
from tests.negotiation.rules.test_halves import (
    ADD,
    FOREIGN,
    LAPTOP,
    PRODUCT,
    SEED,
    foreign_document,
)
from tests.negotiation.rules.test_real_tools import ALL
from tests.negotiation.schema.schema_strategies import (
    HOSTILE_NAMES,
    NAMES,
    object_values,
    objects,
    renamed,
    schemas,
    varied,
)

SLOW = settings(
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
    max_examples=10,
)
NUMBER = strict(number={"type": "integer"})
ODD: list[Any] = [
    None,
    5,
    [],
    {},
    {"more": 1},
    {"messageId": "x", "status": {}},
    {"number": 2, "more": {"deep": [1, "ä", None, 2.50, 1e30, True]}},
]
CODES = [0, 200, 400, 404, 409, 499, 500, 503, 600, 4_000, 10**30]
"Codes of capabilities that fail."

RAW = [
    b"",
    b"[]",
    b"{}",
    b'"text"',
    b"\xff",
    b'{"messageId": 5}',
    b'{"messageId": "m", "input": {"number": 12345678901234567.89}}',
    b'{"messageId": "m", "input": {"number": 1}, "input": {"number": 2}}',
    b'{"messageId": "m", "status": {"code": 500, "message": "no"}}',
    b'{"messageId": "m", "status": {"code": true, "message": ""}}',
    b'{"messageId": "m", "status": {"code": null, "message": null}}',
    b'{"messageId": "m", "status": {"code": 0, "message": {"why": 1}}}',
    b'{"messageId": "m", "status": {"code": "", "message": 5}}',
    b'{"messageId": "m", "status": {"code": 4.5, "message": "half"}}',
    b'{"messageId": "m", "status": {"code": [], "message": "none"}}',
    b'{"messageId": "m", "status": {"message": "no code"}}',
    b'{"messageId": "m", "error": {"code": 7, "message": "seven"}}',
    b'{"messageId": "m", "error": "words"}',
    b'{"messageId": "m", "status": {"code": 200, "message": "OK"}, "output": 5}',
]


class InWorker:
    """A source in the code of a worker; every value crosses in frames."""

    def __init__(self, source: str) -> None:
        self._worker = _Worker()
        self._number = 0
        assert "failed" not in self._ask(op="load", source=source)

    def _ask(self, **request: Any) -> dict[str, Any]:
        self._number += 1
        asked = unpack(pack({"id": self._number, **request})[4:])
        found: dict[str, Any] = unpack(pack(self._worker.answer(asked))[4:])
        return found

    def call(self, function: str, *args: Any) -> Any:
        return self._ask(op="call", function=function, args=list(args))["value"]

    def begin(self, data: bytes) -> dict[str, Any]:
        return self._ask(op="start", function="handle_request", args=[data])

    def answer(self, begun: dict[str, Any], output: Any) -> Any:
        found = self._ask(op="resume", run=begun["id"], value=output)
        return found["value"]

    def fail(self, begun: dict[str, Any], code: int, words: str) -> Any:
        found = self._ask(op="throw", run=begun["id"], code=code, message=words)
        return found["value"]


def same(one: Any, other: Any) -> bool:
    """Compare with the kinds of numbers and the order of names."""
    return repr(one) == repr(other)


def parsed(data: bytes) -> Any:
    """Parse a message as the judge of messages would."""
    return parse_json(data, max_size=len(data))


def compared_requester(
    plan: RequesterRun, source: InWorker, data: list[Any], raw: list[bytes]
) -> int:
    """Compare both halves; return how often the plan did it."""
    done = 0
    for arguments in data:
        try:
            written, said = plan.encode_request("m1", arguments)
        except NotPlanned:
            continue
        assert written == source.call("encode_request", "m1", arguments)
        assert same(said, read_message(written))
        done += 1
    for one in raw:
        try:
            read = plan.decode_response(read_message(one))
        except NotPlanned:
            continue
        assert same(read, source.call("decode_response", one))
        done += 1
    return done


def compared_provider(
    plan: ProviderRun, source: InWorker, raw: list[bytes], outputs: list[Any]
) -> list[bytes]:
    """Compare both halves; return the answers that the plan wrote."""
    answers = []
    for one in raw:
        try:
            started = plan.begin(read_message(one))
        except NotPlanned:
            continue
        for output in outputs:
            begun = source.begin(one)
            assert begun["wanted"] == started.capability
            assert same(begun["params"], started.arguments)
            try:
                written = plan.answer(started, output)
            except NotPlanned:
                continue
            assert written == source.answer(begun, output)
            answers.append(written)
        for code in CODES:
            failed = plan.fail(started, code, "it \u20ac broke")
            assert failed == source.fail(source.begin(one), code, "it \u20ac broke")
            answers.append(failed)
    return answers


def both_ways(
    document: Document,
    demand: Demand,
    offer: Offer,
    given: list[Any],
    outputs: list[Any],
) -> int:
    """Compare both roles on good and odd data; return how often the plans did it."""
    made: list[tuple[Any, InWorker] | None] = []
    for side in (demand, offer):
        one: Side = side
        source = write_half(document, one).text
        plan = plan_of(document, [one], source)
        made.append(None if plan is None else (plan, InWorker(source)))
    requester, provider = made
    requests, answers, done = [*RAW], [*RAW], 0
    if requester is not None:
        for arguments in given:
            try:
                requests.append(requester[0].encode_request("m", arguments).data)
            except NotPlanned:
                continue
    if provider is not None:
        written = compared_provider(*provider, requests, [*outputs, *ODD])
        answers += written
        done += len(written)
    if requester is not None:
        objects_only = [one for one in [*given, *ODD] if isinstance(one, dict)]
        done += compared_requester(*requester, objects_only, answers)
    return done


def samples(schema: Any) -> list[Any]:
    return [one.value for one in make_samples(prepared(schema)).values]


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_the_published_documents_of_real_tools(tool: Capability) -> None:
    try:
        document = read_document(published_document(tool))
        given = [one for one in samples(tool.input_schema) if isinstance(one, dict)]
        outputs = samples(tool.output_schema)
    except (DocumentError, SchemaError):
        pytest.skip("rules publish no document of it")
    need = Need(tool.name, tool.input_schema, tool.output_schema)
    demand = Demand(need, given[0] if given else {})
    assert both_ways(document, demand, Offer((tool,)), given, outputs) > 0
    # Its half is found again for a need without schemas, as later calls have it.
    source = write_half(document, demand).text
    bare = Demand(Need(tool.name), {"other": 1})
    assert plan_of(document, [bare], source) is not None


@SLOW
@given(st.data())
def test_documents_of_any_schemas(data: st.DataObject) -> None:
    names = [*NAMES, *HOSTILE_NAMES]
    source: Any = data.draw(objects(schemas(names), names))
    gives: Any = data.draw(objects(schemas(names), names))
    takes = data.draw(st.sampled_from([source, renamed(source)]))
    tool = Capability("t.run", "", takes, data.draw(st.just(gives) | varied(gives)))
    document = read_document(render_document("t.run", source, gives))
    given: Any = data.draw(object_values(source))
    output: Any = data.draw(object_values(gives))
    demand = Demand(Need("t.run", source, data.draw(varied(gives))), given)
    try:
        both_ways(document, demand, Offer((tool,)), [given], [output])
    except HalfError:
        assume(False)


def test_a_document_of_others_in_its_own_terms() -> None:
    need = Need("product info", PRODUCT.input_schema)
    demand = Demand(need, {"product_id": "P12345"})
    given = [demand.arguments]
    assert both_ways(SEED, demand, Offer((PRODUCT,)), given, [LAPTOP]) > 0


@pytest.mark.parametrize("name", FOREIGN)
def test_documents_of_others_with_errors_of_their_own(name: str) -> None:
    request, response, good, bad = FOREIGN[name]
    document = foreign_document(request, response)
    demand, given = Demand(Need("add"), {"a": 1}), [{"a": 1}]
    answers = [json.dumps(one).encode() for one in (good, bad)]
    assert both_ways(document, demand, Offer((ADD,)), given, [{"sum": 3}]) > 0
    source = write_half(document, demand).text
    plan = plan_of(document, [demand], source)
    assert isinstance(plan, RequesterRun)
    assert compared_requester(plan, InWorker(source), [], answers) == len(answers)


@pytest.mark.parametrize("codes", [["ok", "404", "error"], [200, 404, 500]])
def test_errors_have_the_codes_that_a_document_lists(codes: list[Any]) -> None:
    status = strict(code={"enum": codes}, message={"type": "string"})
    text = {"type": "string"}
    document = foreign_document(
        {"messageId": text, "input": "INPUT"},
        {"messageId": text, "status": status, "output": "OUTPUT"},
    )
    offer = Offer((ADD,))
    source = write_half(document, offer).text
    plan = plan_of(document, [offer], source)
    assert isinstance(plan, ProviderRun)
    request = b'{"messageId": "m", "input": {"A": 1}}'
    assert len(compared_provider(plan, InWorker(source), [request], [])) == len(CODES)
    assert (
        codes[1]
        == json.loads(plan.fail(plan.begin(read_message(request)), 404, ""))["status"][
            "code"
        ]
    )


@pytest.mark.parametrize("change", ["\n", "import os\n"])
def test_code_that_is_not_ours_letter_for_letter_has_no_plan(change: str) -> None:
    demand = Demand(Need("double", NUMBER, NUMBER), {"number": 2})
    document = read_document(render_document("double", NUMBER, NUMBER))
    source = write_half(document, demand).text
    assert plan_of(document, [demand], source) is not None
    assert plan_of(document, [demand], source + change) is None
    assert plan_of(document, [], source) is None
    other = Demand(Need("double", strict(number={"type": "string"})), {"number": "2"})
    assert plan_of(document, [other], source) is None


def test_what_could_take_long_is_left_to_the_worker() -> None:
    tool = Capability("t.run", "", {"type": "object"}, {"type": "object"})
    document = read_document(published_document(tool))
    side = Offer((tool,))
    plan = plan_of(document, [side], write_half(document, side).text)
    assert isinstance(plan, ProviderRun)
    started = plan.begin({"messageId": "m", "input": {}})
    for output in ({"a": [0] * MAX_STEPS}, {"\ud800": 1}, {"a": 1 << 2_049}, {1: 1}):
        with pytest.raises(NotPlanned):
            plan.answer(started, output)
    deep = json.loads("[" * 90 + "]" * 90)
    with pytest.raises(NotPlanned):
        plan.answer(started, {"a": deep})
