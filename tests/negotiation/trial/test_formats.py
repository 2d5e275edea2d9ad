"""Halves whose bytes are not JSON: acceptance, and messages against the document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.layout import read_layout
from negotiation.document.message_judge import MessageJudge
from negotiation.document.reader import read_document
from negotiation.document.shape import Document, ExampleKind, MessageKind
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import HalfSource
from negotiation.strict_json import Json
from negotiation.trial.acceptance import check_half
from negotiation.trial.trial import Findings, SamplesMade
from tests.clauses import clause
from tests.negotiation.formats import BINARY, BOTH, ROLES, TEXT, XML, Format, strict
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator


async def check(
    form: Format, role: str, source: str, document: Document | None = None
) -> Findings:
    capabilities = (form.capability.name,) if role == "provider" else ()
    return await check_half(
        HalfSource(source, "hand-written", capabilities),
        document or form.document,
        form.side(role),
        runner=InProcessHalf(source),
        validator=JsonschemaValidator(),
    )


@clause("ANP-70")
@BOTH
@ROLES
async def test_hand_written_halves_of_the_worked_formats_pass(
    form: Format, role: str
) -> None:
    found = await check(form, role, form.file(f"{role}.py"))
    assert found.problems == ()
    assert found.samples == SamplesMade.FULL


FAULTS = {
    "another layout, written and read alike": (
        *(BINARY, "requester", '">dBi"', '"<dBi"'),
        "read_message gives other values than the worked response",
    ),
    "other bytes with the same values": (
        *(XML, "requester", "</sku></productRequest>", "</sku>\\n</productRequest>"),
        "encode_request gives other bytes than the worked request although",
    ),
    "arguments lost": (
        *(XML, "requester", 'escaped(arguments["sku"])', '"P1"'),
        "encode_request gives the same for",
    ),
    "arguments mixed up": (
        *(BINARY, "requester", 'ord(arguments["unit"])', 'ord("K")'),
        "encode_request ignores /unit: other values of it change nothing",
    ),
    "another message id": (
        *(BINARY, "requester", "text_field(message_id, 1)", 'text_field("x", 1)'),
        "does not carry the message id",
    ),
    "an error as a result": (
        *(BINARY, "requester", 'if values["code"] != 200:', "if False:"),
        "decode_response fails for an error response",
    ),
    "no read_message": (
        *(XML, "requester", "def read_message(", "def read_messages("),
        "read_message fails for the worked request",
    ),
    "reads anything": (
        *(
            XML,
            "requester",
            "def read_message(kind, data):\n",
            READS_ANYTHING := (
                "def read_message(kind, data):\n"
                '    if kind == "request":\n'
                '        return {"messageId": "m-1", "sku": "P&1"}\n'
            ),
        ),
        "read_message takes no bytes for a good request",
    ),
    "reads cut messages": (
        *(XML, "requester", "def read_message(kind, data):\n", READS_ANYTHING),
        "reads the worked request although it is cut",
    ),
    "answers with other bytes": (
        *(XML, "provider", '".2f"', '".3f"'),
        "handle_request gives other bytes than the worked response",
    ),
    "answers with other values": (
        *(BINARY, "provider", 'reading["value"], ord', 'reading["value"] + 1, ord'),
        "handle_request gives another result than the worked one",
    ),
    "a provider's other message id": (
        *(BINARY, "provider", 'message_id = request["messageId"]', 'message_id = "x"'),
        "does not carry the message id",
    ),
    "hides failures": (
        *(
            BINARY,
            "provider",
            "return response(message_id, code, text_field(",
            (
                "return response(message_id, 200, struct.pack('>dBi', 0, 67, 0))\n"
                "        return response(message_id, code, text_field("
            ),
        ),
        "says good although the capability failed",
    ),
    "no answer to a failure": (
        *(
            BINARY,
            "provider",
            "except CapabilityError as error",
            "except KeyError as error",
        ),
        "handle_request fails after CapabilityError",
    ),
    "answers junk": (
        *(
            BINARY,
            "provider",
            "    request = read_request(data)\n",
            (
                "    try:\n"
                "        request = read_request(data)\n"
                "    except ValueError:\n"
                '        request = {"messageId": "x", "sensor": "roof", "unit": "C"}\n'
            ),
        ),
        "handle_request takes no bytes for a good request",
    ),
}


@clause("ANP-70")
@pytest.mark.parametrize(
    ("form", "role", "old", "new", "finding"), FAULTS.values(), ids=FAULTS.keys()
)
async def test_a_half_of_another_format_with_a_fault_is_found_out(
    form: Format, role: str, old: str, new: str, finding: str
) -> None:
    source = form.file(f"{role}.py")
    assert old in source
    found = await check(form, role, source.replace(old, new))
    assert any(finding in problem for problem in found.problems), found.problems


async def test_examples_that_do_not_fit_the_schemas_are_the_documents_fault() -> None:
    text = XML.file("document.md").replace('"price": 249.5', '"price": "249.5"')
    found = await check(XML, "provider", XML.file("provider.py"), read_document(text))
    assert len(found.problems) == 1
    assert "the worked response does not fit its schema" in found.problems[0]
    assert found.checks == 0


async def test_where_arguments_cannot_be_told_the_check_says_partial() -> None:
    document = read_document(XML.file("document.md").replace('"sku"', '"stock"'))
    source = XML.file("requester.py")
    source = source.replace('"sku": text_of(', '"stock": text_of(')
    found = await check(XML, "requester", source, document)
    assert found.problems == ()
    assert found.samples == SamplesMade.PARTIAL


async def test_where_the_result_cannot_be_told_the_check_says_partial() -> None:
    tool = replace(
        XML.capability, output_schema=strict(name=TEXT, cost={"type": "number"})
    )
    form = replace(XML, capability=tool)
    source = XML.file("provider.py")
    for old, new in (("title", "name"), ("price", "cost")):
        source = source.replace(f'product["{old}"]', f'product["{new}"]')
    source = source.replace('product["currency"]', '"EUR"')
    found = await check(form, "provider", source)
    assert found.samples == SamplesMade.PARTIAL, found
    assert found.problems == ()


# Messages against the document.


def judge_of(form: Format) -> MessageJudge:
    half = InProcessHalf(form.file("provider.py"))
    return MessageJudge(form.document, half, JsonschemaValidator())


@BOTH
async def test_bytes_are_judged_by_what_read_message_gives(form: Format) -> None:
    judge = judge_of(form)
    for example in form.document.examples:
        kind = example.kind.message
        assert await judge.values(kind, example.data) == example.values
        assert await judge.judge(kind, example.data) == []
        [finding] = await judge.judge(kind, example.data[:-1])
        assert finding.startswith("the message cannot be read")


async def test_a_good_response_needs_its_result_and_an_error_does_not() -> None:
    judge = judge_of(XML)
    good = b'<productResponse id="1" code="200"><message>OK</message></productResponse>'
    assert await judge.judge(MessageKind.RESPONSE, good) == [
        "it says good and has no result in 'product'"
    ]
    bad = good.replace(b"200", b"404")
    assert await judge.judge(MessageKind.RESPONSE, bad) == []


@pytest.mark.parametrize(
    "made", [[], None, {"a": b"x"}, {"a": {1, 2}}, {"a": "\ud800"}]
)
async def test_what_read_message_gives_has_to_be_a_json_object(made: Any) -> None:
    class Half:
        async def read_message(self, kind: str, data: bytes) -> Any:
            return made

    judge = MessageJudge(XML.document, Half(), JsonschemaValidator())
    with pytest.raises(HalfError, match="read_message"):
        await judge.values(MessageKind.REQUEST, b"x")
    assert len(await judge.judge(MessageKind.RESPONSE, b"x")) == 1


async def test_a_half_that_had_to_be_ended_says_nothing_about_the_bytes() -> None:
    class Half:
        async def read_message(self, kind: str, data: bytes) -> Any:
            raise HalfError("timeout", "over 1 s")

    judge = MessageJudge(XML.document, Half(), JsonschemaValidator())
    with pytest.raises(HalfError, match="timeout"):
        await judge.judge(MessageKind.RESPONSE, b"x")


@clause("ANP-70")
@BOTH
async def test_a_call_goes_through_both_halves_of_a_format(form: Format) -> None:
    requester = InProcessHalf(form.file("requester.py"))
    provider = InProcessHalf(form.file("provider.py"))
    [good] = form.document.examples_of(ExampleKind.RESPONSE)
    layout = read_layout(form.document.of_values)
    result = good.values[layout.response.places[0].path[0]]

    async def serve(name: str, arguments: Json) -> Json:
        assert (name, arguments) == (form.capability.name, form.arguments)
        return result

    async def fail(name: str, arguments: Json) -> Json:
        raise CapabilityFailed("404", "gone & lost")

    data = await requester.encode_request("id-1", form.arguments)
    answer = await requester.decode_response(await provider.handle_request(data, serve))
    assert answer == {"message_id": "id-1", "result": result}
    answer = await requester.decode_response(await provider.handle_request(data, fail))
    error = {"code": 404, "message": "gone & lost"}
    assert answer == {"message_id": "id-1", "error": error}
