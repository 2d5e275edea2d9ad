"""Records to test with."""

from __future__ import annotations

from dataclasses import replace

from cache.records.groups import (
    GroupLeaseRecord,
    GroupPageRecord,
    GroupRecord,
    GroupRowRecord,
)
from cache.records.logs import (
    LogEventRecord,
    LogItemRecord,
    LogLeaseRecord,
    LogMarkRecord,
    LogNameRecord,
    LogRecord,
)
from cache.records.negotiations import (
    AnswerRecord,
    ModelCallRecord,
    NegotiationRecord,
    SpendRecord,
    StandingRecord,
)
from cache.records.peers import (
    AddressRecord,
    AliasRecord,
    DidKeysRecord,
    KeyRecord,
    NameRecord,
    PeerRecord,
    PeerState,
    PinRecord,
    RulingRecord,
)
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    CallRecord,
    ConfirmedRecord,
    DocumentRecord,
    HalfRecord,
    RevocationRecord,
    UsageRecord,
    WithdrawnRecord,
)
from cache.records.subscriptions import FiringRecord, SubscriptionRecord

OWN, PEER, OTHER = "did:key:zOwn", "did:key:zPeer", "did:wba:a.example:shop"
TASK_KEY = "1" * 64
DOCUMENT = DocumentRecord.of("# 需求\n\nGet a product.\n")

HALF = HalfRecord(
    hash=DOCUMENT.hash,
    role=AgreementRole.REQUESTER,
    revision=0,
    source="def encode_request(message_id, arguments): ...\n",
    origin="rules",
    capabilities={},
    created=1000.0,
)
PROVIDER_HALF = replace(
    HALF,
    role=AgreementRole.PROVIDER,
    source="def handle_request(data): ...\n",
    capabilities={"catalogue.lookup": "a" * 64},
)
AGREEMENT = AgreementRecord(
    own_did=OWN,
    peer_did=PEER,
    role=AgreementRole.REQUESTER,
    need_key=TASK_KEY,
    hash=DOCUMENT.hash,
    revision=0,
    need={"requirement": "get a product", "input_schema": {"type": "object"}},
    samples="full",
    tests={"findings": []},
    negotiation_id="n1",
    created=1000.0,
)
PROVIDER_AGREEMENT = replace(
    AGREEMENT, role=AgreementRole.PROVIDER, need_key=None, need=None
)
NEGOTIATION = NegotiationRecord(
    id="n1",
    peer_did=PEER,
    role=AgreementRole.REQUESTER,
    need=AGREEMENT.need,
    turns=({"from": "own", "status": "negotiating"}, {"from": "peer"}),
    outcome="agreed",
    reason="",
    hash=DOCUMENT.hash,
    started=900.0,
    ended=1000.0,
)
KNOWN_PEER = PeerRecord(
    did=PEER,
    state=PeerState.UNKNOWN,
    names=(),
    urls=("ws://127.0.0.1:8765/",),
    first_seen=900.0,
    last_seen=1000.0,
)
ALIAS = AliasRecord("did:all:1Alias", PEER)
PIN = PinRecord("ws://127.0.0.1:8765/", PEER, 900.0, "did:all:1Agent")
ADDRESS = AddressRecord(PIN.agent, PIN.url, PIN.created)
STANDING = StandingRecord(
    id="w1",
    peer_did=PEER,
    role=AgreementRole.PROVIDER,
    verdict="edit",
    subject=TASK_KEY,
    created=1000.0,
    expires=2000.0,
    hash=DOCUMENT.hash,
    document=DOCUMENT.text,
    note="as we said on the phone",
    negotiation_id="n1",
)
SPEND = SpendRecord(
    day="2026-03-01",
    account="owner",
    calls=2,
    input_tokens=1200,
    output_tokens=300,
    cost=0.25,
)
ANSWER = AnswerRecord(
    question="a" * 64,
    answer={"serves": False, "missing": "an oven"},
    at=1_772_323_200.0,
    expires=1_772_409_600.0,
)
MODEL_CALL = ModelCallRecord(
    id="c1",
    day="2026-03-01",
    at=1_772_323_200.0,
    account="owner",
    peer=PEER,
    negotiation_id="n1",
    step="propose",
    model="m",
    outcome="ok",
    input_tokens=600,
    output_tokens=150,
    estimated=False,
    ms=812.5,
)
DID_KEYS = DidKeysRecord(
    did=OTHER,
    trusted=("zDnaeA",),
    seen=1000.0,
    waiting=("zDnaeB", "z6MkC"),
    changed=1500.5,
)
NAME = NameRecord("shop", 1000.0, did=PEER, url="ws://127.0.0.1:8765/")
KEY = KeyRecord(
    id="0123456789abcdef",
    role=AgreementRole.PROVIDER,
    peer_did=PEER,
    binding=DOCUMENT.hash,
    created=1000.0,
    expires=87_400.25,
    sealed="c2VhbGVk",
    reserved=2048,
    mark=1023,
)
REVOCATION = RevocationRecord(
    hash="e" * 64,
    peer_did=PEER,
    at=1000.0,
    reason="它泄漏数据",
    kept={"half/x": AgreementState.STALE},
)
WITHDRAWN = WithdrawnRecord(
    role=AgreementRole.PROVIDER,
    peer_did=None,
    capability="shop.获取商品信息",
    at=1000.0,
    hashes=("e" * 64,),
)
CONFIRMED = ConfirmedRecord(PEER, "d" * 64, WITHDRAWN.capability, 1000.0)
USAGE = UsageRecord(
    hash=DOCUMENT.hash, agreement=3, served=2, first_used=1000.0, last_used=2000.0
)
CALL = CallRecord(
    id="f" * 64,
    request="d" * 64,
    created=1000.0,
    repeatable=False,
    sealed="c2VhbGVk",
)
LOG = LogRecord(
    id="0a",
    created=1000.0,
    updated=1001.0,
    first=1,
    last=2,
    size=10,
    open=True,
    busy=False,
    sealed="c2VhbGVk",
    names=("b" * 64,),
)
LOG_RECORDS = (
    LOG,
    LogEventRecord("0a", 1, 1000.0, "c2VhbGVk"),
    LogItemRecord("0a", "0b", 1000.0, True, "c2VhbGVk", ("c" * 64,)),
    GroupRecord("0d", 1000.0, True, "aGVhZA=="),
    GroupPageRecord("0d", 3, 2, 1000.0, "cGFnZQ=="),
    GroupRowRecord("0d", "0e", "cm93"),
    GroupLeaseRecord("0d", "0c", 1000.0),
    LogLeaseRecord("0b", "0a", "0c", 1000.0),
    LogMarkRecord("open", "0b", "0a"),
    LogNameRecord("b" * 64, "0a"),
)
SUBSCRIPTION = SubscriptionRecord(
    "0d", 1, 1000.0, True, PEER, (1,), "0e", 1030.0, "c2VhbGVk"
)
FIRING = FiringRecord(SUBSCRIPTION.id, 1, "c2VhbGVk")
RECORDS = (
    *(DOCUMENT, HALF, AGREEMENT, NEGOTIATION, STANDING),
    *(PROVIDER_HALF, PROVIDER_AGREEMENT),
    *(KNOWN_PEER, ALIAS, PIN, ADDRESS, DID_KEYS, NAME, RulingRecord(900.0)),
    *(SPEND, MODEL_CALL, ANSWER, KEY, REVOCATION, USAGE, CALL),
    *(WITHDRAWN, CONFIRMED),
    *LOG_RECORDS,
    *(SUBSCRIPTION, FIRING),
)


def trio(
    number: int,
) -> tuple[DocumentRecord, HalfRecord, AgreementRecord]:
    """Return a requester's agreement on a document of its own."""
    document = DocumentRecord.of(f"document {number}\n" + "x" * 5000)
    return (
        document,
        replace(HALF, hash=document.hash, source=f"# {number}\n" + "y" * 5000),
        replace(
            AGREEMENT,
            hash=document.hash,
            need_key=f"{number:064x}",
            created=1000.0 + number,
        ),
    )
