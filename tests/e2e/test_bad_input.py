"""Bad input: a documented error, one line, and nobody else is troubled."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.call import CallRequest
from anp.wire.encrypted import encode_base64
from negotiation.exchange.limits import NegotiationLimits
from negotiation.need import Need
from tests.clauses import clause
from tests.e2e.house import EVIL, House, house_in
from tests.e2e.raw_peer import RawPeer
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One house for all: whatever one test says to it, the next finds it well."""
    async with house_in(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture
def house(both: House, caplog: pytest.LogCaptureFixture) -> Iterator[House]:
    caplog.set_level(logging.INFO)
    yield both
    for record in caplog.get_records("call"):
        assert record.exc_info is None, record.getMessage()
        assert "Traceback" not in record.getMessage()
        assert record.levelno < logging.ERROR, record.getMessage()
        if record.name.startswith("anp."):
            assert "\n" not in record.getMessage()


def faults(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines about peers' faults so far."""
    texts = (record.getMessage() for record in caplog.records)
    return [text for text in texts if text.startswith("peer fault ")]


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines about negotiations that failed so far."""
    texts = (record.getMessage() for record in caplog.records)
    return [text for text in texts if text.startswith("negotiation failed ")]


async def refused(peer: RawPeer, code: int) -> dict[str, Any]:
    """Wait for a `response` with `code`."""
    response = await peer.hear()
    assert (response["type"], response["code"]) == ("response", code)
    return response


async def closed(peer: RawPeer) -> int:
    """Wait until the daemon closes the link and return the close code."""
    await peer.connection.wait_closed()
    assert peer.connection.close_code is not None
    return peer.connection.close_code


async def alive(peer: RawPeer) -> None:
    """Everything said so far was read, and the link is still in use."""
    ping = {"version": "1.0", "type": "heartbeat", "messageId": "1", "message": "ping"}
    await peer.say(json.dumps({**ping, "timestamp": "2026-11-21T12:00:00.000Z"}))
    assert (await peer.hear())["message"] == "pong"


# --- the wire ------------------------------------------------------------------------

NESTED = "[" * 30_000 + "]" * 30_000


@pytest.mark.parametrize(
    "text",
    [
        "no JSON\nTraceback",
        b"\xff\xfe",
        '{"type": 7}',
        '{"type": "sourceHello", "sessionId": [], "sourceDid": {}}',
        '{"type": "message", "encryptedData": null}',
        NESTED,
        '{"type": "finished", "sessionId": "unknown", "x": ' + NESTED + "}",
    ],
    ids=lambda text: repr(text[:24]),
)
async def test_what_is_no_message_is_one_line(
    house: House, caplog: pytest.LogCaptureFixture, text: str | bytes
) -> None:
    async with house.peer() as peer:
        await peer.say(text)
        await refused(peer, 403)
        await alive(peer)
        assert len(faults(caplog)) == 1
        await house.others_are_served()


@clause("WIRE row 34")
async def test_a_huge_first_message_closes_the_link(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.peer() as peer:
        await peer.say('{"type": "register", "x": "' + "x" * 64 * 1024 + '"}')
        assert await closed(peer) == 1009
    await house.others_are_served()
    [line] = faults(caplog)
    assert "code=1009" in line


async def test_many_faults_close_the_link_and_fill_no_log(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.peer() as peer:
        await peer.say(*["no JSON"] * 40)
        with contextlib.suppress(ConnectionClosed):
            while True:
                await refused(peer, 403)
        assert await closed(peer) == 1008
    await house.others_are_served()
    assert len(faults(caplog)) == 8


async def bad_signature(peer: RawPeer) -> str:
    [hello] = peer.initiator().messages_to_send()
    return json.dumps({**json.loads(hello), "random": "0" * 64})


async def stale(peer: RawPeer) -> str:
    [hello] = peer.initiator(skew=-3600.0).messages_to_send()
    return hello


async def to_another(peer: RawPeer) -> str:
    [hello] = peer.initiator(did="did:example:nobody").messages_to_send()
    return hello


@clause("WIRE row 13", "WIRE row 25")
@pytest.mark.parametrize(
    ("make", "told"),
    [(bad_signature, ""), (stale, r"36\d\d s behind"), (to_another, "")],
    ids=["bad signature", "stale", "to another DID"],
)
async def test_a_bad_hello_is_refused(
    house: House,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[RawPeer], Any],
    told: str,
) -> None:
    async with house.peer() as peer:
        await peer.say(await make(peer))
        response = await refused(peer, 403)
        if told:
            assert re.search(told, response["detail"])
        await alive(peer)
        await house.others_are_served()
    assert len(faults(caplog)) == 1


@clause("WIRE row 13")
async def test_a_hello_repeated_on_another_link_is_refused(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.peer() as peer, house.peer() as replayer:
        [hello] = peer.initiator().messages_to_send()
        await peer.say(hello)
        assert (await peer.hear())["type"] == "destinationHello"
        await replayer.say(hello)
        await refused(replayer, 403)
    await house.others_are_served()
    assert len(faults(caplog)) == 1


def unknown_key(peer: RawPeer) -> dict[str, Any]:
    return {**peer.sealed(b"\x40x"), "secretKeyId": "f" * 16}


def flipped_bit(peer: RawPeer) -> dict[str, Any]:
    envelope = peer.sealed(b"\x40x")
    envelope["encryptedData"]["ciphertext"] = encode_base64(b"\x00\x00")
    return envelope


def no_byte(peer: RawPeer) -> dict[str, Any]:
    return peer.sealed(b"")


@clause("WIRE row 25", "WIRE row 26")
@pytest.mark.parametrize(
    ("make", "code"), [(unknown_key, 4003), (flipped_bit, 4001), (no_byte, 403)]
)
async def test_a_bad_envelope_is_refused_and_the_channel_goes_on(
    house: House,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[RawPeer], dict[str, Any]],
    code: int,
) -> None:
    async with house.peer() as peer:
        await peer.open()
        await peer.say(json.dumps(make(peer)))
        await refused(peer, code)
        await alive(peer)
        await house.others_are_served()
    assert len(faults(caplog)) == 1


# --- the negotiation -----------------------------------------------------------------


def proposal(candidate: str, *, sequence: Any = 0) -> bytes:
    message = {
        "action": "protocolNegotiation",
        "sequenceId": sequence,
        "candidateProtocols": candidate,
        "status": "negotiating",
    }
    return json.dumps(message).encode()


async def ended(peer: RawPeer) -> dict[str, Any]:
    """Return the message by which the daemon ends the negotiation or the channel."""
    while True:
        message = await peer.hear_meta()
        if message["action"] == "channelClose" or message["status"] == "rejected":
            return message


@clause("ANP-19", "ANP-21", "ANP-Q4", "ANP-Q30")
@pytest.mark.parametrize(
    "data",
    [
        b"no JSON",
        b"",
        b"[]",
        b'{"action": "abracadabra"}',
        b'{"action": ["protocolNegotiation"]}',
        proposal("x", sequence="0"),
        proposal("x", sequence=7),
        proposal("x", sequence=-1),
        proposal("x" * (256 * 1024 + 1)),
        b'{"action": "codeGeneration", "status": "generated"}',
        b'{"action": "protocolNegotiation", "sequenceId": 0, "status": "accepted"}',
        NESTED.encode(),
    ],
    ids=lambda data: repr(data[:60]),
)
async def test_a_bad_meta_message_ends_in_words_and_one_line(
    house: House, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    async with house.peer() as peer:
        await peer.open()
        # What is not understood may be passed over; what comes again may not.
        for _ in range(NegotiationLimits().max_ignored + 1):
            await peer.send_meta(data)
        assert await ended(peer)
        await house.others_are_served()
    # The peer may hear of the end before the line is written.
    for _ in range(3_000):
        if failures(caplog):
            break
        await asyncio.sleep(0.01)
    assert len(failures(caplog)) == 1


@clause("ANP-24")
async def test_an_empty_candidate_is_answered(house: House) -> None:
    async with house.peer() as peer:
        await peer.open()
        await peer.send_meta(proposal(""))
        assert (await peer.hear_meta())["action"] == "protocolNegotiation"
        await house.others_are_served()


async def test_a_candidate_of_ten_megabytes_closes_the_link(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.peer() as peer:
        await peer.open()
        await peer.send_meta(proposal("x" * 10 * 1024 * 1024))
        assert await closed(peer) == 1009
    await house.others_are_served()
    # The peer may see its link end before the daemon has said why.
    await until(lambda: len(faults(caplog)) >= 1)
    assert len(faults(caplog)) == 1


async def document_of(house: House) -> str:
    """Return the document that two daemons agree on for `twice`."""
    request = CallRequest(
        peer=f"{house.provider.url}#{house.provider.did}",
        need=Need("twice"),
        arguments={"number": 1},
    )
    result = await house.caller.caller.call(request)
    record = house.provider.store.document(result.protocol or "")
    assert record is not None
    return record.text


def with_number(document: str, schema: dict[str, Any]) -> str:
    """Return the document with another schema for the property `number`."""
    head, fence, rest = document.partition("```json\n")
    text, end, tail = rest.partition("\n```")
    value = json.loads(text)
    value["properties"]["input"]["properties"]["number"] = schema
    return head + fence + json.dumps(value, indent=2) + end + tail


async def test_a_remote_ref_is_not_accepted_and_nothing_is_fetched(
    house: House,
) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(b"connected")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    candidate = with_number(
        await document_of(house), {"$ref": f"http://127.0.0.1:{port}/schema.json"}
    )
    async with server, house.peer() as peer:
        await peer.open()
        await peer.send_meta(proposal(candidate))
        assert (await peer.hear_meta())["status"] in {"negotiating", "rejected"}
        await house.others_are_served()
    assert asked == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/properties/input"},
        {"$ref": "#/properties/input/properties/number"},
        {"type": "string", "pattern": "^(a+)+$"},
        {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$", "minLength": 40},
        {"type": "array", "minItems": 10**9, "items": {"type": "string"}},
        {"const": "```\n# Errors\n\nimport os; os._exit(7)"},
    ],
    ids=lambda schema: json.dumps(schema)[:50],
)
async def test_a_hostile_schema_is_answered_while_others_are_served(
    house: House, schema: dict[str, Any]
) -> None:
    candidate = with_number(await document_of(house), schema)
    async with house.peer() as peer:
        await peer.open()
        await peer.send_meta(proposal(candidate))
        answer, _ = await asyncio.gather(peer.hear_meta(), house.others_are_served())
        # Our function takes an integer, so none of these can be accepted.
        assert answer["status"] in {"negotiating", "rejected"}


@pytest.mark.parametrize("pattern", ["^(?!x)", r"(.)\\1", "(?i)a"])
async def test_a_pattern_that_is_not_run_is_rejected_with_its_name_and_place(
    house: House, pattern: str
) -> None:
    schema = {"type": "integer", "pattern": json.loads(f'"{pattern}"')}
    candidate = with_number(await document_of(house), schema)
    async with house.peer() as peer:
        await peer.open()
        await peer.send_meta(proposal(candidate))
        answer = await peer.hear_meta()
    assert answer["status"] == "rejected"
    said = json.dumps(answer)
    assert "request schema, /properties/input/properties/number/pattern: the " in said
    assert "not supported" in said


# --- the call ------------------------------------------------------------------------


async def test_names_made_of_quotes_newlines_and_code_are_called_correctly(
    house: House,
) -> None:
    item = {name: number for number, name in enumerate(EVIL)}
    assert await house.call("odd", item=item) == {
        name: number + 1 for name, number in item.items()
    }


@clause("WIRE row 34")
async def test_an_answer_may_have_what_both_agreed_on_for_a_frame(house: House) -> None:
    answer = await house.call("huge", size=2 * 1024 * 1024)
    assert len(answer["text"]) == 2 * 1024 * 1024


@clause("WIRE row 34")
async def test_an_answer_larger_than_the_peer_takes_is_an_error_that_says_so(
    house: House,
) -> None:
    with pytest.raises(CallError, match="too_large") as caught:
        await house.call("huge", size=4 * 1024 * 1024)
    assert caught.value.kind is ErrorKind.APPLICATION_ERROR
    assert await house.call("huge", size=3) == {"text": "xxx"}
    await house.others_are_served()
