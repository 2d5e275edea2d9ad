"""Agreed protocols as a channel uses them, with halves in real workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from anp.sidecar.halves.protocol import Answer, DoesNotFit, Protocol
from anp.sidecar.halves.workshop import LoadedHalf
from negotiation.document.reader import read_document
from negotiation.document.shape import Document, document_hash
from negotiation.errors import CapabilityFailed, HalfError, JsonError
from negotiation.mind import Demand, HalfSource, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import propose, write_from_text
from negotiation.trial.acceptance import check_half
from negotiation.trial.trial import SamplesMade
from sandbox.pool.config import SandboxConfig
from sandbox.pool.pool import Sandbox
from tests.clauses import clause
from tests.negotiation.formats import BINARY, BOTH, ROLES, XML, Format
from tests.negotiation.inprocess import JsonschemaValidator

OUTPUT = {
    "product-xml": {"title": "A", "price": 2.0, "currency": "USD"},
    "sensor-binary": {"value": 1.5, "unit": "F", "raw": -1},
}


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    started = Sandbox(SandboxConfig(warm_workers=0))
    await started.start()
    try:
        yield started
    finally:
        await started.close()


async def loaded(sandbox: Sandbox, source: str, key: str) -> LoadedHalf:
    module = await sandbox.load(
        key, source, origin="hand-written", protocol=key, peer="did:key:zTest"
    )
    return LoadedHalf(module, deadline=5.0)


async def protocol_of(
    sandbox: Sandbox, document: Document, source: str, key: str
) -> Protocol:
    half = await loaded(sandbox, source, key)
    digest = document_hash(document.text)
    return Protocol(digest, document, half, JsonschemaValidator())


async def format_pair(sandbox: Sandbox, form: Format) -> tuple[Protocol, Protocol]:
    requester, provider = [
        await protocol_of(sandbox, form.document, form.file(f"{role}.py"), role)
        for role in ("requester", "provider")
    ]
    return requester, provider


@clause("ANP-70")
@BOTH
@ROLES
async def test_hand_written_halves_pass_in_the_sandbox(
    sandbox: Sandbox, form: Format, role: str
) -> None:
    capabilities = (form.capability.name,) if role == "provider" else ()
    source = form.file(f"{role}.py")
    found = await check_half(
        HalfSource(source, "hand-written", capabilities),
        form.document,
        form.side(role),
        runner=await loaded(sandbox, source, role),
        validator=JsonschemaValidator(),
    )
    assert found.problems == ()
    assert found.samples == SamplesMade.FULL


@clause("ANP-70")
@BOTH
async def test_a_call_in_another_format_is_encoded_handled_and_decoded(
    sandbox: Sandbox, form: Format
) -> None:
    requester, provider = await format_pair(sandbox, form)
    calls: list[Any] = []

    async def serve(name: str, arguments: Any) -> Any:
        calls.append((name, arguments))
        return OUTPUT[form.folder]

    data = await requester.encode("id-1", form.arguments)
    answer = await provider.handle(data, None, serve)
    decoded = await requester.decode(answer)
    assert isinstance(decoded, Answer)
    assert (decoded.message_id, decoded.result) == ("id-1", OUTPUT[form.folder])
    assert decoded.error is None
    assert calls == [(form.capability.name, form.arguments)]
    assert requester.has_message_ids
    for one in (requester, provider):
        assert await one.judge("request", data) == []
        assert await one.judge("response", answer) == []
        assert await one.judge("response", answer[:-1]) != []
        assert one.reader is not None
        assert await one.reader("response", answer) == await one.values(
            "response", answer
        )

    async def fail(name: str, arguments: Any) -> Any:
        raise CapabilityFailed("404", "gone")

    decoded = await requester.decode(await provider.handle(data, None, fail))
    assert isinstance(decoded, Answer)
    assert (decoded.result, decoded.error) == (None, (404, "gone"))


@BOTH
async def test_a_request_that_cannot_be_read_never_reaches_a_capability(
    sandbox: Sandbox, form: Format
) -> None:
    _, provider = await format_pair(sandbox, form)

    async def serve(name: str, arguments: Any) -> Any:
        raise AssertionError("called")

    for data in (b"", b"\xff", b'{"sku": "x"}', b"SR\x01", b"<productRequest/>"):
        with pytest.raises(DoesNotFit, match="request: the message cannot be read"):
            await provider.handle(data, None, serve)


async def test_a_half_without_read_message_is_told_so(sandbox: Sandbox) -> None:
    source = XML.file("requester.py").replace("def read_message", "def other")
    protocol = await protocol_of(sandbox, XML.document, source, "other")
    with pytest.raises(DoesNotFit, match="read_message"):
        await protocol.encode("1", XML.arguments)


async def test_an_answer_of_ours_is_judged_only_when_asked(sandbox: Sandbox) -> None:
    wrong = BINARY.file("provider.py").replace(
        "return response(message_id, 200, packed)", 'return b"wrong"'
    )
    protocol = await protocol_of(sandbox, BINARY.document, wrong, "wrong")
    [request, *_] = BINARY.document.examples

    async def serve(name: str, arguments: Any) -> Any:
        return OUTPUT["sensor-binary"]

    with pytest.raises(DoesNotFit, match="response: the message cannot be read"):
        await protocol.handle(request.data, None, serve)
    made = await protocol.handle(request.data, None, serve, judge_answer=False)
    assert made == b"wrong"
    with pytest.raises(DoesNotFit, match="request: "):
        await protocol.handle(b"junk", None, serve, judge_answer=False)


async def test_json_is_judged_by_the_document_as_before(sandbox: Sandbox) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    tool = Capability("x.y", "", schema, schema)
    demand = Demand(Need("x.y", schema, schema), {"n": 1})
    text = propose(demand)
    document = read_document(text)
    requester = await protocol_of(
        sandbox, document, write_from_text(text, demand).text, "json-requester"
    )
    provider = await protocol_of(
        sandbox, document, write_from_text(text, Offer((tool,))).text, "json-provider"
    )

    async def serve(name: str, arguments: Any) -> Any:
        return {"n": arguments["n"] + 1}

    data = await requester.encode("1", {"n": 1})
    answer = await provider.handle(data, None, serve)
    decoded = await requester.decode(answer)
    assert isinstance(decoded, Answer)
    assert decoded.result == {"n": 2}
    assert requester.reader is None
    assert await requester.values("response", answer) == {
        "messageId": "1",
        "status": {"code": 200, "message": "OK"},
        "output": {"n": 2},
    }
    good = b'{"messageId": "1", "status": {"code": 200, "message": ""}'
    assert await requester.judge("response", good + b', "output": {"n": 2}}') == []
    assert await requester.judge("response", good + b"}") != []
    assert await requester.judge("response", good + b', "output": {"m": 2}}') != []
    bad = good.replace(b"200", b"404") + b"}"
    assert await requester.judge("response", bad) == []
    assert (await requester.judge("response", b"x"))[0].startswith("not JSON")
    assert await requester.judge("request", b"x") != []
    with pytest.raises(JsonError):
        await requester.values("response", b"x")
    with pytest.raises(HalfError):
        await requester.decode(b"x")
