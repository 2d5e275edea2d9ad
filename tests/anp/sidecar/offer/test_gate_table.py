"""The gate's table, walked: all ways, settings, exposures and policies (DESIGN, Trust).

A way that is built later fails here until its rows stand in the table.
"""

from __future__ import annotations

import ast
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

import anp
from anp.errors import CallError
from anp.identity.dids import agent_of, did_all, did_key
from anp.identity.keys import PrivateKey
from anp.sidecar.agreement.queue import OwnerDesk
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.attachments import AttachmentError, AttachmentSpec
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.settings import CallConfig
from anp.sidecar.offer import gate as gate_module
from anp.sidecar.offer.call_times import CallTimes
from anp.sidecar.offer.capability_calls import CapabilityCalls
from anp.sidecar.offer.exposure import EVERYBODY, Exposure
from anp.sidecar.offer.gate import ApprovalPending, Gate
from anp.sidecar.offer.ways import WAYS, Approval, WayIn
from anp.sidecar.peers.policy import PeerPolicy, PeerRules
from cache.errors import StoreUnavailable
from cache.records.negotiations import NegotiationRecord
from cache.records.peers import PeerState
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    DocumentRecord,
    HalfRecord,
    WithdrawnRecord,
    hash_text,
)
from cache.store import Store, open_store
from negotiation.errors import CapabilityFailed
from negotiation.need import Capability, schema_hash
from negotiation.rules.rules import own_terms
from tests.anp.sidecar.consensus.written.channels import Fake
from tests.gate import SETTINGS, cell, table
from tests.negotiation.inprocess import JsonschemaValidator

ROOT: Final = Path(anp.__file__).parents[1]

EXPOSURES: Final = {
    "exposed": (("*",), None),
    "hidden": ((), None),
    "narrowed": (("*",), ("shop.other",)),
    "widened": ((), ("look", "shop.buy")),
}
"The attachment's `expose`, and that of the peer, for `shop.look` and `shop.buy`."

POLICIES: Final = {
    "anybody": ("any", None),
    "listed": ("listed", PeerState.ALLOWED),
    "not listed": ("listed", None),
    "blocked": ("any", PeerState.BLOCKED),
}
"`policy.peers`, and the owner's decision about the peer."

BY_PROTOCOL: Final = [w for w in WayIn if WAYS[w].approval is Approval.PROTOCOL]

TOOLS: Final = [
    Capability("shop.look", "Look.", input_schema={}, output_schema={}, read_only=True),
    Capability("shop.buy", "Buy.", input_schema={}, output_schema={}),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Open a store of our own."""
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


@dataclass
class Shop:
    """A gate, and behind it an attachment that counts its calls."""

    gate: Gate
    calls: CapabilityCalls
    desk: OwnerDesk
    policy: PeerPolicy
    fake: Fake
    did: str
    "The peer, in its canonical form."

    store: Store

    async def ran(
        self, way: WayIn, name: str, *, words: str | None = None
    ) -> str | CapabilityFailed:
        """Call a capability by a way; return what became of it.

        Args:
            words: The words that chose it, where the peer did not name it.
        """
        before = len(self.fake.calls)
        came: str | CapabilityFailed = "runs"
        try:
            await self.calls.run(
                name,
                {},
                way=way,
                peer=self.did,
                peer_did=self.did,
                max_payload=9999,
                words=words,
            )
        except CapabilityFailed as exc:
            came = exc
        if isinstance(came, CapabilityFailed):
            assert len(self.fake.calls) == before, "it ran, and was refused afterwards"
            assert not came.ran
        else:
            assert len(self.fake.calls) == before + 1
        return came


def shop(
    store: Store,
    approve: str,
    *,
    exposure: str = "exposed",
    policy: str = "anybody",
    output: dict[str, Any] | None = None,
) -> Shop:
    """Return a shop for a new peer."""
    public = PrivateKey.generate().public_bytes
    of_all, of_peer = EXPOSURES[exposure]
    # The owner may know the peer under its other DID.
    entry = PeerEntry(name="peer", did=did_all(public, "host:1"), expose=of_peer)
    exposed = Exposure([entry])
    spec = AttachmentSpec(kind="python", name="shop", target="x:y", expose=of_all)

    async def run(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return output or {}

    fake = Fake(run, TOOLS)
    exposed.put(spec, fake)
    default, state = POLICIES[policy]
    did = did_key(public)
    if state is not None:
        store.see_peer(did, shown_did=did, now=time.time(), state=state)
    peers = PeerPolicy(store, PeerRules(default))
    desk = OwnerDesk(store, approve=approve, approval_wait=0, is_listed=peers.is_listed)
    gate = Gate(
        exposed,
        policy=peers,
        store=store,
        approve=approve,
        words=desk.words_on_capabilities,
        quarantined=lambda half, peer: None,
    )
    calls = CapabilityCalls(
        gate, JsonschemaValidator(), times=CallTimes(CallConfig()), timeout=5.0
    )
    return Shop(gate, calls, desk, peers, fake, did, store)


def name_of(*, read_only: bool) -> str:
    return "shop.look" if read_only else "shop.buy"


async def test_an_output_with_a_number_that_json_does_not_have_is_refused(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    one = shop(store, "never", output={"price": float("nan")})
    with pytest.raises(CapabilityFailed, match="outside its schema") as caught:
        await one.calls.run(
            "shop.look",
            {},
            way=WayIn.AGREEMENT,
            peer=one.did,
            peer_did=one.did,
            max_payload=9999,
        )
    assert caught.value.code == "502"
    assert "NaN and Infinity are not JSON" in caplog.text


@pytest.mark.parametrize("approve", SETTINGS)
@pytest.mark.parametrize("way", WayIn)
async def test_each_way_does_what_the_table_says(
    store: Store, way: WayIn, approve: str
) -> None:
    for (exposure, policy), read_only in itertools.product(
        itertools.product(EXPOSURES, POLICIES), (True, False)
    ):
        one = shop(store, approve, exposure=exposure, policy=policy)
        name = name_of(read_only=read_only)
        expected = cell(way, approve, read_only=read_only)
        if way is WayIn.OWNER:
            # The owner is no peer; a capability that no peer may call is not tried.
            may_use = exposure != "hidden"
        else:
            may_use = exposure in {"exposed", "widened"} and policy in {
                "anybody",
                "listed",
            }
        came = await one.ran(way, name)
        case = (way, approve, exposure, policy, name, came)
        if not may_use or expected == "refused":
            assert isinstance(came, CapabilityFailed), case
            assert not isinstance(came, ApprovalPending), case
            assert await one.desk.negotiations(open_only=True) == [], case
        elif expected in {"asks: capability", "asks: each call"}:
            assert isinstance(came, ApprovalPending), case
            [question] = await one.desk.negotiations(open_only=True)
            await one.desk.decide(question.id, Decision("accept"))
            assert await one.ran(way, name) == "runs", case
            again = await one.ran(way, name)
            if expected == "asks: capability":
                assert again == "runs", case
            else:
                assert isinstance(again, ApprovalPending), case
                [next_question] = await one.desk.negotiations(open_only=True)
                await one.desk.decide(next_question.id, Decision("reject", note="no"))
            assert await one.desk.negotiations(open_only=True) == [], case
        else:
            # Under a protocol the owner is asked before the channel is bound: below.
            assert came == "runs", case


@pytest.mark.parametrize("approve", SETTINGS)
@pytest.mark.parametrize(
    "way", [w for w in WayIn if WAYS[w].approval is Approval.PROTOCOL]
)
async def test_a_half_serves_a_peer_only_as_the_table_says(
    store: Store, way: WayIn, approve: str
) -> None:
    for exposure, (number, tool) in itertools.product(EXPOSURES, enumerate(TOOLS)):
        one = shop(store, approve, exposure=exposure)
        half = kept_half(store, f"# Requirement\n{tool.name}\n{exposure}{number}", tool)
        problem = await one.gate.half_problem(half, one.did)
        everybody = await one.gate.half_problem(half, EVERYBODY)
        shown = one.gate.problem(way, one.did, half.capabilities)
        if exposure in {"hidden", "narrowed"}:
            assert problem is not None
            assert "not exposed" in problem
            assert shown == problem
            # A peer with less than the others has changed nothing for them.
            assert (everybody is None) == (
                exposure == "narrowed"
                and cell(WayIn.AGREEMENT, approve, read_only=tool.read_only) == "runs"
            )
            continue
        assert shown is None
        expected = cell(WayIn.AGREEMENT, approve, read_only=tool.read_only)
        assert (problem is None) == (expected == "runs"), (problem, expected)
        if problem is not None:
            assert "the owner has to approve" in problem
        if exposure == "widened":
            assert everybody is not None
            assert "not exposed" in everybody


def kept_half(store: Store, text: str, *tools: Capability) -> HalfRecord:
    """Store a half that calls tools for a text that begins with a need.

    It was agreed with another peer.
    """
    head, requirement, *rest = text.split("\n")
    document = DocumentRecord.of("\n".join([head, requirement, "# Notes", *rest]))
    half = HalfRecord.from_json(
        {
            "hash": document.hash,
            "role": "provider",
            "revision": 0,
            "source": "",
            "origin": "rules",
            "capabilities": {tool.name: schema_hash(tool) for tool in tools},
            "created": time.time(),
        }
    )
    other = did_key(PrivateKey.generate().public_bytes)
    agreement = AgreementRecord.from_json(
        {"hash": document.hash, "role": "provider", "revision": 0, "own_did": other}
        | {"peer_did": other, "need_key": None, "need": None, "samples": "full"}
        | {"tests": {}, "created": time.time(), "negotiation_id": None}
    )
    store.save_agreement(document, half, agreement)
    return half


@pytest.mark.parametrize("approve", SETTINGS)
@pytest.mark.parametrize("way", WayIn)
async def test_words_without_the_name_run_no_side_effect_on_any_way(
    store: Store, way: WayIn, approve: str
) -> None:
    one, words = shop(store, approve), "fetch me some apples"
    came = await one.ran(way, "shop.buy", words=words)
    expected = cell(way, approve, read_only=False, named=False)
    if expected in {"runs", "refused"}:
        assert (came == "runs") == (expected == "runs"), came
        assert (way is WayIn.OWNER) == (expected == "runs")
        return
    assert isinstance(came, ApprovalPending)
    [question] = await one.desk.negotiations(open_only=True)
    await one.desk.decide(question.id, Decision("accept"))
    assert await one.ran(way, "shop.buy", words=words) == "runs"
    if approve == "never":
        # The owner confirmed this need, whatever way it comes by, and no other one.
        assert await one.ran(WayIn.ENVELOPE, "shop.buy", words=words) == "runs"
    other = await one.ran(way, "shop.buy", words="fetch me some pears")
    assert isinstance(other, ApprovalPending)


@pytest.mark.parametrize("way", WayIn)
async def test_words_may_choose_what_only_reads_on_every_way(
    store: Store, way: WayIn
) -> None:
    one = shop(store, "never")
    assert await one.ran(way, "shop.look", words="show me the apples") == "runs"


def withdraw(one: Shop, peer: str | None, *names: str) -> None:
    """Withdraw capabilities of the shop, as `protocols revoke` does."""
    role = AgreementRole.PROVIDER
    one.store.withdraw(
        WithdrawnRecord(role, peer, name, time.time(), ("a" * 64,)) for name in names
    )
    one.gate.look_again()


@pytest.mark.parametrize("for_all", [True, False])
@pytest.mark.parametrize("approve", SETTINGS)
@pytest.mark.parametrize("way", WayIn)
async def test_what_is_withdrawn_waits_for_the_owner_on_every_way(
    store: Store, way: WayIn, approve: str, *, for_all: bool
) -> None:
    one = shop(store, approve)
    if approve == "never" and way is not WayIn.OWNER:
        assert await one.ran(way, "shop.look") == "runs"
    withdraw(one, None if for_all else one.did, "shop.look")
    came = await one.ran(way, "shop.look")
    if cell(way, approve, read_only=True, withdrawn=True) == "runs":
        assert way is WayIn.OWNER
        assert came == "runs"
        return
    assert isinstance(came, ApprovalPending)
    [question] = await one.desk.negotiations(open_only=True)
    assert (question.pending or {})["withdrawn"] == ["shop.look"]
    await one.desk.decide(question.id, Decision("accept"))
    one.gate.look_again()
    assert await one.ran(way, "shop.look") == "runs"
    # It is open again for this peer alone.
    one.did = did_key(PrivateKey.generate().public_bytes)
    left = store.withdrawn(AgreementRole.PROVIDER, one.did, ["shop.look"])
    assert left == (["shop.look"] if for_all else [])


async def test_a_word_from_before_a_withdrawal_does_not_count(store: Store) -> None:
    one = shop(store, "first-use")
    assert isinstance(await one.ran(WayIn.ENVELOPE, "shop.look"), ApprovalPending)
    [question] = await one.desk.negotiations(open_only=True)
    await one.desk.decide(question.id, Decision("accept"))
    assert await one.ran(WayIn.ENVELOPE, "shop.look") == "runs"
    withdraw(one, one.did, "shop.look")
    assert isinstance(await one.ran(WayIn.ENVELOPE, "shop.look"), ApprovalPending)
    # The question is a new one, although the last is not a minute old.
    [question] = await one.desk.negotiations(open_only=True)
    await one.desk.decide(question.id, Decision("reject", note="no more"))
    came = await one.ran(WayIn.ENVELOPE, "shop.look")
    assert isinstance(came, CapabilityFailed)
    assert (came.code, came.message) == ("403", "no more")


async def test_no_half_serves_what_is_withdrawn(store: Store) -> None:
    look, buy = TOOLS
    one = shop(store, "never")
    half = kept_half(store, "# Requirement\nlook, then buy", look, buy)
    assert await one.gate.half_problem(half, one.did) is None
    withdraw(one, one.did, "shop.buy")
    assert "withdrew" in str(await one.gate.half_problem(half, one.did))
    assert await one.gate.half_problem(half, EVERYBODY) is None
    withdraw(one, None, "shop.look")
    assert "withdrew" in str(await one.gate.half_problem(half, EVERYBODY))


async def test_a_half_with_an_unnamed_side_effect_serves_nobody_unasked(
    store: Store,
) -> None:
    look, buy = TOOLS
    one = shop(store, "never")
    for requirement, tools, serves in (
        ("shop.buy", [buy], True),
        ("buy", [buy], True),
        ("buy some apples", [buy], False),
        ("look at the apples", [look, buy], False),
        ("look at the apples, then buy", [look, buy], True),
        ("look, but do not buy", [look, buy], False),
        ("look at the apples", [look], True),
    ):
        half = kept_half(store, f"# Requirement\n{requirement}", *tools)
        problem = await one.gate.half_problem(half, one.did)
        assert (problem is None) == serves, (requirement, problem)


async def test_strangers_have_sixteen_places_for_what_they_do_not_name(
    store: Store,
) -> None:
    one = shop(store, "never")
    way, first = WayIn.NATURAL_LANGUAGE, one.did
    for number in range(20):
        came = await one.ran(way, "shop.buy", words="some apples")
        assert isinstance(came, ApprovalPending) == (number < 16), number
        # Its place is for one need alone.
        other = await one.ran(way, "shop.buy", words="some pears")
        assert isinstance(other, CapabilityFailed)
        assert other.code == "403"
        one.did = did_key(PrivateKey.generate().public_bytes)
    waiting = await one.desk.negotiations(open_only=True)
    assert len(waiting) == 16
    # A listed peer needs no place, and a decision gives one back.
    store.see_peer(one.did, shown_did=one.did, now=0.0, state=PeerState.ALLOWED)
    came = await one.ran(way, "shop.buy", words="apples")
    assert isinstance(came, ApprovalPending)
    [question] = [each for each in waiting if each.peer_did == first]
    await one.desk.decide(question.id, Decision("accept"))
    one.did = did_key(PrivateKey.generate().public_bytes)
    came = await one.ran(way, "shop.buy", words="apples")
    assert isinstance(came, ApprovalPending)


@pytest.mark.parametrize(
    ("verdicts", "is_approved"),
    [
        ([], False),
        ([("mind", "accept")], False),
        ([("owner", "accept")], True),
        ([("owner", "propose"), ("mind", "accept")], True),
        ([("owner", "accept"), ("owner", "reject")], False),
        (None, True),
    ],
)
@pytest.mark.parametrize("approve", ["side-effects", "always", "first-use"])
async def test_an_agreement_counts_if_the_owner_approved_it(
    store: Store,
    approve: str,
    verdicts: list[tuple[str, str]] | None,
    *,
    is_approved: bool,
) -> None:
    """One that was made under `never` went on after the setting became stricter."""
    one = shop(store, approve)
    text = "# Requirement\nshop.buy\n"
    now = time.time()
    common = {"hash": hash_text(text), "role": "provider", "revision": 0}
    calls = {TOOLS[1].name: schema_hash(TOOLS[1])}
    half = HalfRecord.from_json(
        {**common, "source": "", "origin": "rules", "capabilities": calls}
        | {"created": now}
    )
    # None: the owner imported it, so there was no negotiation.
    negotiation = None if verdicts is None else "n1"
    if verdicts is not None:
        record = NegotiationRecord.from_json(
            {"id": "n1", "peer_did": one.did, "role": "provider", "need": None}
            | {"turns": [], "outcome": "agreed", "reason": "", "started": now}
            | {"hash": common["hash"], "ended": now}
            | {
                "verdicts": [
                    {"by": by, "verdict": said, "hash": common["hash"]}
                    for by, said in verdicts
                ]
            }
        )
        store.save_negotiation(record)
    agreement = AgreementRecord.from_json(
        {**common, "own_did": one.did, "peer_did": one.did, "need_key": None}
        | {"need": None, "samples": "full", "tests": {}, "created": now}
        | {"negotiation_id": negotiation}
    )
    store.save_agreement(DocumentRecord.of(text), half, agreement)
    problem = await one.gate.half_problem(half, one.did)
    # What was agreed before is no first use.
    assert (problem is None) == (is_approved or approve == "first-use")


def test_every_way_has_a_row() -> None:
    assert set(WAYS) == set(WayIn)
    assert len(table().splitlines()) == 2 + 4 * len(WayIn)


def test_the_owners_page_has_the_table() -> None:
    """`python -m tests.gate` prints it."""
    assert table() in (ROOT / "docs/owner.md").read_text()


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield ast.unparse(node.func), node


def test_no_call_of_a_capability_goes_round_the_gate() -> None:
    """Each call names its way, and attachments are called in one place alone."""
    named: set[str] = set()
    direct: set[str] = set()
    for path in sorted((ROOT / "anp").rglob("*.py")):
        tree = ast.parse(path.read_text())
        place = str(path.relative_to(ROOT))
        for function, call in _calls(tree):
            if function.endswith("attachment.call"):
                direct.add(place)
            if not function.endswith(
                ("capabilities.call", "capabilities.run", "capability_calls.run")
            ):
                continue
            assert "way" in {one.arg for one in call.keywords}, (place, function)
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "WayIn"
            ) and not place.startswith("anp/sidecar/offer/"):
                named.add(node.attr)
    assert direct == {"anp/sidecar/offer/capability_calls.py"}
    assert named == {way.name for way in WayIn}, "a way that nothing comes by, or a new"


# The owner's words about a capability for one peer.


async def test_a_question_stands_once_in_the_queue(store: Store) -> None:
    one = shop(store, "first-use")
    for _ in range(3):
        assert isinstance(
            await one.ran(WayIn.NATURAL_LANGUAGE, "shop.buy"), ApprovalPending
        )
    assert len(await one.desk.negotiations()) == 1
    # By another way it is another question, and for another capability too.
    await one.ran(WayIn.ENVELOPE, "shop.buy")
    await one.ran(WayIn.ENVELOPE, "shop.look")
    assert len(await one.desk.negotiations(open_only=True)) == 3


async def test_a_refusal_is_kept_and_told(store: Store) -> None:
    one = shop(store, "side-effects")
    await one.ran(WayIn.ENVELOPE, "shop.buy")
    [question] = await one.desk.negotiations(open_only=True)
    word = await one.desk.decide(question.id, Decision("reject", note="not for you"))
    assert word is not None
    assert word.capability == "shop.buy"
    came = await one.ran(WayIn.ENVELOPE, "shop.buy")
    assert isinstance(came, CapabilityFailed)
    assert came.message == "not for you"
    assert await one.desk.negotiations(open_only=True) == []
    assert await one.ran(WayIn.ENVELOPE, "shop.look") == "runs"


async def test_a_word_counts_for_seven_days(store: Store) -> None:
    one = shop(store, "first-use")
    await one.ran(WayIn.ENVELOPE, "shop.look")
    [question] = await one.desk.negotiations(open_only=True)
    word = await one.desk.decide(question.id, Decision("accept"))
    assert word is not None
    assert 6.99 * 86_400 < word.expires - time.time() <= 7 * 86_400
    assert await one.ran(WayIn.ENVELOPE, "shop.look") == "runs"
    lapsed = replace(word, expires=time.time() - 1)
    store.save_standing(lapsed, now=time.time() - 10)
    assert isinstance(await one.ran(WayIn.ENVELOPE, "shop.look"), ApprovalPending)


async def test_a_word_is_not_used_up_by_a_call_that_did_not_run(store: Store) -> None:
    one = shop(store, "always")
    await one.ran(WayIn.ENVELOPE, "shop.look")
    [question] = await one.desk.negotiations(open_only=True)
    await one.desk.decide(question.id, Decision("accept"))

    async def away(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        one.fake.calls.pop()
        raise AttachmentError("it is away", may_have_run=False)

    working, one.fake.run = one.fake.run, away
    came = await one.ran(WayIn.ENVELOPE, "shop.look")
    assert isinstance(came, CapabilityFailed)
    assert came.code == "503"
    one.fake.run = working
    assert await one.ran(WayIn.ENVELOPE, "shop.look") == "runs"
    assert isinstance(await one.ran(WayIn.ENVELOPE, "shop.look"), ApprovalPending)


async def test_such_a_question_takes_no_text_and_no_hint(store: Store) -> None:
    one = shop(store, "always")
    await one.ran(WayIn.ENVELOPE, "shop.look")
    [question] = await one.desk.negotiations(open_only=True)
    with pytest.raises(CallError, match="accept or reject"):
        await one.desk.decide(question.id, Decision("edit", own_terms(TOOLS[0])))
    with pytest.raises(CallError, match="question about a capability"):
        await one.desk.hint(question.id, "look here")


async def test_strangers_fill_the_queue_with_few_questions(store: Store) -> None:
    one = shop(store, "first-use")
    for _ in range(40):
        one.did = did_key(PrivateKey.generate().public_bytes)
        assert isinstance(await one.ran(WayIn.ENVELOPE, "shop.look"), ApprovalPending)
    found: list[NegotiationRecord] = await one.desk.negotiations()
    assert len(found) == 32
    # A listed peer is heard nevertheless.
    store.see_peer(one.did, shown_did=one.did, now=0.0, state=PeerState.ALLOWED)
    one.did = did_key(PrivateKey.generate().public_bytes)
    store.see_peer(one.did, shown_did=one.did, now=0.0, state=PeerState.ALLOWED)
    await one.ran(WayIn.ENVELOPE, "shop.look")
    assert one.did in {each.peer_did for each in await one.desk.negotiations()}


async def test_a_changed_policy_counts_within_a_second(store: Store) -> None:
    one = shop(store, "never")
    assert await one.ran(WayIn.AGREEMENT, "shop.look") == "runs"
    store.see_peer(one.did, shown_did=one.did, now=0.0, state=PeerState.BLOCKED)
    began = time.monotonic()
    while await one.ran(WayIn.AGREEMENT, "shop.look") == "runs":
        assert time.monotonic() - began < 1.5


def test_a_blocked_peer_has_a_problem_at_once(store: Store) -> None:
    one = shop(store, "never")
    wanted = {tool.name: schema_hash(tool) for tool in TOOLS}
    assert one.gate.problem(WayIn.ENVELOPE, one.did, wanted) is None
    for name in (one.did, agent_of(one.did)):
        one.policy.rules = PeerRules("any", blocked=frozenset({name}))
        assert "blocked" in str(one.gate.problem(WayIn.ENVELOPE, one.did, wanted))


def test_the_owner_sees_who_may_call_what(store: Store) -> None:
    one = shop(store, "never", exposure="widened")
    exposure = one.gate.exposure
    assert [exposed for _, exposed in exposure.all()] == [False, False]
    assert exposure.exposed_to("shop.look") == ("peer",)
    assert exposure.exposed_to("shop.other") == ()
    assert len(exposure.offered_to_some()) == 2


def test_expose_of_a_peer_needs_its_did() -> None:
    with pytest.raises(Exception, match="expose needs the did"):
        PeerEntry(name="shop", url="ws://127.0.0.1:9/", expose=("*",))


def test_every_entry_of_one_peer_has_to_allow_a_capability(store: Store) -> None:
    one = shop(store, "never")
    other = [
        PeerEntry(name="a", did=one.did, expose=("look",)),
        PeerEntry(name="b", did=one.did, expose=("shop.look", "buy")),
    ]
    told: list[int] = []
    one.gate.exposure.watch(lambda: told.append(1))
    one.gate.exposure.set_peers(other)
    assert [each.name for each in one.gate.exposure.offered(one.did)] == ["shop.look"]
    assert len(one.gate.exposure.offered(EVERYBODY)) == 2
    one.gate.exposure.set_peers(other)
    assert told == [1]


async def test_a_store_that_is_away_harms_no_peer_that_is_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = shop(store, "never"), shop(store, "never")
    assert await one.ran(WayIn.AGREEMENT, "shop.look") == "runs"

    def away(*dids: str) -> list[Any]:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(gate_module, "POLICY_AGE", 0.0)
    monkeypatch.setattr(store, "peers_known_as", away)
    assert await one.ran(WayIn.AGREEMENT, "shop.look") == "runs"
    came = await other.ran(WayIn.AGREEMENT, "shop.look")
    assert isinstance(came, CapabilityFailed)
    assert came.code == "503"


async def test_a_slow_store_holds_no_known_peer_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = shop(store, "never")
    assert await one.ran(WayIn.AGREEMENT, "shop.look") == "runs"
    released = threading.Event()

    def hangs(*dids: str) -> list[Any]:
        released.wait(30)
        return []

    monkeypatch.setattr(gate_module, "POLICY_AGE", 0.0)
    monkeypatch.setattr(gate_module, "POLICY_WAIT", 0.05)
    monkeypatch.setattr(store, "peers_known_as", hangs)
    began = time.monotonic()
    assert await one.ran(WayIn.AGREEMENT, "shop.look") == "runs"
    assert time.monotonic() - began < 2.0
    released.set()
