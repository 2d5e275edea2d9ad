"""A malformed hello or negotiation message is answered at once (WIRE rows 25, 40).

Each line of a table is sent by a raw peer to a real daemon. What counts is that an
answer comes, that it is the one of WIRE.md, and that nobody waits for a time-out.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from anp.wire.proof import Identity
from tests.anp.wire.peers import sign_hello
from tests.clauses import clause
from tests.e2e.house import House, house_in
from tests.e2e.raw_peer import RawPeer

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 0.5
"Seconds in which an answer has to come; the shortest time-out is 10 s."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house_in(tmp_path_factory.mktemp("house")) as made:
        yield made


Hello = dict[str, Any]
Change = Callable[[Hello], object]


def put(path: str, value: Any) -> Change:
    """Return what sets a member, with dots for depth."""

    def change(hello: Hello) -> None:
        *inner, last = path.split(".")
        place: Any = hello
        for name in inner:
            place = place[int(name) if name.isdigit() else name]
        place[last] = value

    return change


def leave_out(name: str) -> Change:
    return lambda hello: hello.pop(name)


NEEDED = ["sourceDid", "destinationDid", "verificationMethod", "random", "keyShares"]
NEEDED += ["cipherSuites", "proof", "sessionId"]


UNSIGNED: dict[str, Change] = {
    **{f"no {name}": leave_out(name) for name in NEEDED},
    **{f"{name} is 7": put(name, 7) for name in NEEDED},
    **{f"{name} is null": put(name, None) for name in NEEDED},
    **{f"{name} is a list of lists": put(name, [[]]) for name in NEEDED},
    "bad signature": put("random", "0" * 64),
    "no signature": put("proof.proofValue", ""),
    "a signature that is no base64": put("proof.proofValue", "!" * 86),
    "a long signature": put("proof.proofValue", "A" * 20_000),
}
"Changes that break the signature, or of it: the answer is 403."

BAD_KEYS: dict[str, Change] = {
    "an unknown version": put("supportedVersions", ["9.9"]),
    "no versions": put("supportedVersions", []),
    "an unknown cipher suite": put("cipherSuites", ["TLS_NONE"]),
    "no cipher suites": put("cipherSuites", []),
    "an unknown group": put("keyShares.0.group", "x448"),
    "no key share": put("keyShares", []),
    "a key that is no hex": put("keyShares.0.keyExchange", "zz"),
    "a key off the curve": put("keyShares.0.keyExchange", "04" + "11" * 64),
}
"Changes before the hello is signed after which there is no common key: 4002."

SIGNED: dict[str, Change] = {
    "an empty key": put("keyShares.0.keyExchange", ""),
    "a life of 0": put("keyShares.0.expires", 0),
    "a life below 0": put("keyShares.0.expires", -5),
    "a life in words": put("keyShares.0.expires", "long"),
    "a long random": put("random", "a" * 250),
    "a random of 40,000": put("random", "a" * 40_000),
    "an empty random": put("random", ""),
    "an empty session id": put("sessionId", ""),
    "another's key id": put("verificationMethod.id", "did:key:zother#zother"),
    "an unknown key type": put("verificationMethod.type", "Unknown2020"),
    "a public key that is no hex": put("verificationMethod.publicKeyHex", "xyz"),
    "a meta protocol that is a text": put("metaProtocol", "1.0"),
    "a DID of 30,000": put("sourceDid", "did:key:z" + "a" * 30_000),
}
"Other changes before the hello is signed; each is refused with 403."

TAKEN: dict[str, Change] = {
    "no change": lambda hello: None,
    "a session id of 40,000": put("sessionId", "a" * 40_000),
    "a short message id": put("messageId", "1"),
    "no timestamp": leave_out("timestamp"),
    "a hash that is a number": put("metaProtocol", {"usedProtocolHash": 7}),
    "an unknown field": put("more", {"a": [1]}),
}
"Odd hellos that are taken (WIRE rows 1, 9, 13, 22)."

TIMES = {"an hour ago": -3600, "in an hour": 3600}

TEXTS: dict[str, str | bytes] = {
    "no JSON": "no JSON",
    "cut": '{"type": "sourceHello", "sourceDid": ',
    "a list": "[]",
    "a number": "7",
    "no type": "{}",
    "an unknown type": '{"type": "hello"}',
    "a type of another kind": '{"type": ["sourceHello"]}',
    "a key twice": '{"type": "sourceHello", "type": "sourceHello"}',
    "NaN": '{"type": "sourceHello", "random": NaN}',
    "a number too large": '{"type": "sourceHello", "random": 1e400}',
    "deep": '{"type": "sourceHello", "random": ' + "[" * 500 + "]" * 500 + "}",
    "a lone surrogate": r'{"type": "sourceHello", "random": "\ud800"}',
    "a byte order mark": '\ufeff{"type": "sourceHello"}',
    "text behind": '{"type": "sourceHello"} x',
    "bytes that are no UTF-8": b'{"type": "sourceHello", "random": "\xff"}',
}


async def answered(peer: RawPeer, text: str | bytes) -> dict[str, Any]:
    """Send a text and return the answer, which has to come at once."""
    start = time.monotonic()
    await peer.say(text)
    answer = await peer.hear()
    assert time.monotonic() - start < AT_ONCE
    return answer


def hello_of(peer: RawPeer) -> Hello:
    [text] = peer.initiator().messages_to_send()
    hello: Hello = json.loads(text)
    return hello


def signed(
    peer: RawPeer,
    change: Change,
    *,
    skew: float = 0.0,
    signer: Identity | None = None,
) -> str:
    """Return a hello that was changed and signed again."""
    hello = hello_of(peer)
    change(hello)
    del hello["proof"]
    now = datetime.now(UTC) + timedelta(seconds=skew)
    return json.dumps(sign_hello(hello, signer or peer.identity, created=now))


def refused(answer: dict[str, Any], code: int = 403) -> None:
    assert answer["type"] == "response", answer
    assert answer["code"] == code, answer
    assert answer["detail"], answer


@clause("WIRE row 25")
@pytest.mark.parametrize("name", UNSIGNED)
async def test_a_malformed_hello_is_refused(house: House, name: str) -> None:
    async with house.peer() as peer:
        hello = copy.deepcopy(hello_of(peer))
        UNSIGNED[name](hello)
        answer = await answered(peer, json.dumps(hello))
        refused(answer)
        assert answer["originalType"] == "sourceHello"
        assert answer["originalMessageId"] == hello["messageId"]


@clause("WIRE row 25")
@pytest.mark.parametrize("name", SIGNED)
async def test_a_hello_with_a_wrong_content_is_refused(house: House, name: str) -> None:
    async with house.peer() as peer:
        refused(await answered(peer, signed(peer, SIGNED[name])))


@clause("WIRE row 14", "WIRE row 25")
@pytest.mark.parametrize("name", BAD_KEYS)
async def test_a_hello_without_a_common_key_is_refused(house: House, name: str) -> None:
    async with house.peer() as peer:
        refused(await answered(peer, signed(peer, BAD_KEYS[name])), 4002)


@clause("WIRE row 1", "WIRE row 9", "WIRE row 13", "WIRE row 22")
@pytest.mark.parametrize("name", TAKEN)
async def test_an_odd_hello_is_taken(house: House, name: str) -> None:
    async with house.peer() as peer:
        answer = await answered(peer, signed(peer, TAKEN[name]))
        assert answer["type"] == "destinationHello", answer


@clause("WIRE row 12", "WIRE row 25")
@pytest.mark.parametrize("name", TIMES)
async def test_a_hello_of_another_time_is_refused(house: House, name: str) -> None:
    async with house.peer() as peer:
        skew = TIMES[name]
        refused(await answered(peer, signed(peer, lambda hello: None, skew=skew)))


@clause("WIRE row 25")
@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_that_is_no_message_is_answered(house: House, name: str) -> None:
    async with house.peer() as peer:
        refused(await answered(peer, TEXTS[name]))
        # The link can still be used.
        await peer.open()


PROPOSAL = (
    '{"action": "protocolNegotiation", "sequenceId": 0, "status": "negotiating", '
    '"candidateProtocols": "x"'
)

META: dict[str, bytes] = {
    "no JSON": b"no JSON",
    "cut": PROPOSAL.encode(),
    "a key twice": (PROPOSAL + ', "status": "negotiating"}').encode(),
    "NaN": (PROPOSAL + ', "more": NaN}').encode(),
    "Infinity": (PROPOSAL + ', "more": -Infinity}').encode(),
    "a number too large": (PROPOSAL + ', "more": 1e400}').encode(),
    "text behind": (PROPOSAL + "} x").encode(),
    "two objects": (PROPOSAL + "}" + PROPOSAL + "}").encode(),
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "deep": (PROPOSAL + ', "more": ' + "[" * 500 + "]" * 500 + "}").encode(),
    "a lone surrogate": (PROPOSAL + r', "more": "\udc00"}').encode(),
    "a byte order mark": b"\xef\xbb\xbf" + (PROPOSAL + "}").encode(),
    "no UTF-8": PROPOSAL.encode() + b', "more": "\xff"}',
    "UTF-16": (PROPOSAL + "}").encode("utf-16"),
    "a comment": (PROPOSAL + "} // more").encode(),
    "a comma at the end": (PROPOSAL + ",}").encode(),
    "a control character": (PROPOSAL + ', "more": "\x01"}').encode(),
    "no sequence": b'{"action": "protocolNegotiation", "status": "negotiating"}',
    "a sequence in words": PROPOSAL.replace("0", '"0"').encode() + b"}",
    "a status of its own": PROPOSAL.replace("negotiating", "timeout").encode() + b"}",
    "an empty candidate": PROPOSAL.replace('"x"', '""').encode() + b"}",
    "a candidate of another kind": PROPOSAL.replace('"x"', "[]").encode() + b"}",
}


@clause("ANP-18", "WIRE row 40")
@pytest.mark.parametrize("name", META)
async def test_a_malformed_negotiation_message_is_rejected(
    house: House, name: str
) -> None:
    async with house.peer() as peer:
        await peer.open()
        start = time.monotonic()
        await peer.send_meta(META[name])
        answer = await peer.hear_meta()
        assert time.monotonic() - start < AT_ONCE
        assert answer["action"] == "protocolNegotiation", answer
        assert answer["status"] == "rejected", answer
        assert answer["modificationSummary"]


@clause("WIRE row 6")
async def test_the_standard_key_id_of_did_key_is_taken(house: House) -> None:
    async with house.peer() as peer:
        did = peer.identity.did
        key_id = f"{did}#{did.removeprefix('did:key:')}"

        def rename(hello: Hello) -> None:
            hello["verificationMethod"]["id"] = key_id

        name = did.removeprefix("did:key:")
        signer = replace(peer.identity, key_name=name)
        hello = json.loads(signed(peer, rename, signer=signer))
        assert hello["verificationMethod"]["id"] == key_id
        answer = await answered(peer, json.dumps(hello))
        assert answer["type"] == "destinationHello", answer
