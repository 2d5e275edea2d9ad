"""The gate between real daemons: every way in, under every setting (docs/owner.md)."""

from __future__ import annotations

import asyncio
import json
import random
import string
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.agreement.rulings import Decision
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult, Mode
from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from anp.sidecar.offer.gate import POLICY_AGE
from anp.sidecar.offer.ways import WayIn
from anp.wire.frames import ProtocolType
from cache.records.peers import PeerState
from cache.records.records import AgreementRole
from negotiation.consensus.registry import CodeKind, ConsensusProtocol
from negotiation.natural import render_natural_request
from negotiation.need import Need
from tests.e2e.daemons import Anpd
from tests.e2e.test_full_disk import protocol_desk
from tests.gate import SETTINGS, cell
from tests.waiting import until

SOURCE: Final = """
runs = []


def look(number: int) -> dict[str, int]:
    runs.append("look")
    return {"twice": number * 2}


def buy(amount: int) -> dict[str, int]:
    runs.append("buy")
    return {"bought": amount}


def count(step: int) -> dict[str, int]:
    return {"looks": runs.count("look"), "buys": runs.count("buy")}


def chat(text: str) -> str:
    runs.append("look")
    return "You said something."
"""

URI: Final = "https://protocols.example/{}/1.0"

WAYS: Final = (WayIn.AGREEMENT, WayIn.URI, WayIn.ENVELOPE, WayIn.NATURAL_LANGUAGE)
"Ways that a peer can choose; tests and repairs come with an agreement."


class Shop:
    """A provider of `shop.look` and `shop.buy`, and daemons that call it."""

    def __init__(self, provider: Daemon, callers: list[Daemon]) -> None:
        self.provider = provider
        self.callers = callers
        self.desk = provider.agreer.desk

    async def call(self, way: WayIn, name: str, caller: int = 0) -> CallResult:
        """Call a capability by a way."""
        provider = self.provider
        protocol = {WayIn.ENVELOPE: ENVELOPE_URI, WayIn.URI: URI.format(name)}.get(way)
        request = CallRequest(
            peer=f"{provider.url}#{provider.did}",
            need=Need(f"shop.{name}"),
            arguments={"number" if name == "look" else "amount": 4},
            protocol=protocol,
        )
        if way is WayIn.NATURAL_LANGUAGE:
            request = request._replace(mode=Mode.NATURAL_LANGUAGE)
        return await self.callers[caller].caller.call(request)

    async def wants(self, need: Need | str, **arguments: int) -> CallResult:
        """Have the first caller ask for something, without a word about the way."""
        provider = self.provider
        request = CallRequest(
            peer=f"{provider.url}#{provider.did}",
            need=Need(need) if isinstance(need, str) else need,
            arguments=arguments or {"amount": 4},
        )
        return await self.callers[0].caller.call(request)

    async def runs(self) -> dict[str, int]:
        """Return how often each capability really ran; the owner asks."""
        provider = self.provider
        output: dict[str, int] = await provider.capability_calls.run(
            "shop.count",
            {"step": 1},
            way=WayIn.OWNER,
            peer=provider.did,
            peer_did=provider.did,
            max_payload=9999,
        )
        return output

    async def asked(self, wanted: str) -> None:
        """Accept the one question in the owner's queue."""
        [question] = await self.desk.negotiations(open_only=True)
        assert wanted in {question.outcome, (question.pending or {}).get("capability")}
        await self.desk.decide(question.id, Decision("accept"))

    def expose(self, caller: int, *names: str) -> None:
        """Set the `expose` of one caller, as a reload does."""
        did = self.callers[caller].did
        self.provider.exposure.set_peers([PeerEntry(name="p", did=did, expose=names)])

    async def refused(self, way: WayIn, name: str, caller: int = 0) -> str:
        """Call what nobody may call; return the reason."""
        try:
            result = await self.call(way, name, caller)
        except CallError as exc:
            error = exc
        else:
            assert way is WayIn.NATURAL_LANGUAGE, (name, caller, result)
            return str(result.output["text"])
        assert not error.may_have_run, error.detail
        return error.detail

    async def publish(self, name: str, caller: int) -> None:
        """Publish what one caller agreed on, and tell the second of it."""
        document = next(
            one
            for each in self.callers[caller].store.all_agreements()
            if (one := self.provider.store.document(each.hash)) is not None
            and f"shop.{name}" in one.text
        )
        uri = URI.format(name)
        desk = self.provider.consensus
        await desk.publish(document.hash, uri, version="1.0", summary="")
        protocol = ConsensusProtocol(
            uri, "1.0", document.text, CodeKind.GENERATED, "", published=True
        )
        self.callers[-1].consensus.registry.add(protocol)


@asynccontextmanager
async def shop_in(
    folder: Path,
    *,
    approve: str = "never",
    callers: int = 2,
    expose: tuple[str, ...] = ("*",),
    talks: bool = False,
    looks_up: bool = False,
) -> AsyncIterator[Shop]:
    """Run the provider, whose owner is asked as `approve` says, and its callers.

    Args:
        looks_up: Callers use what the provider publishes, as they do by default.
    """
    module = "made_" + "".join(random.choices(string.ascii_lowercase, k=8))
    (folder / f"{module}.py").write_text(SOURCE)
    homes = [Home(folder / f"home{number}") for number in range(callers + 1)]
    daemons = []
    async with AsyncExitStack() as stack:
        for number, home in enumerate(homes):
            home.create()
            flags: dict[str, Any] = {"listen.port": 0, "consensus.use": looks_up}
            if number == 0:
                flags |= {
                    "negotiation.approve": approve,
                    "negotiation.approval_wait": 0,
                }
                spec = AttachmentSpec(
                    kind="python",
                    name="shop",
                    target=module,
                    cwd=folder,
                    expose=expose,
                    read_only=("look", "count"),
                    conversational=("chat",) if talks else (),
                )
                save_attachment(home.attachments, spec)
            config = load_config(
                home, home_given=True, flags=flags, environ={}, cwd=folder
            )
            daemons.append(Daemon(home, config))
            await stack.enter_async_context(daemons[-1].running())
        yield Shop(daemons[0], daemons[1:])


async def pending(call: Awaitable[CallResult]) -> CallError:
    """Return the error of a call that the peer's owner has to approve."""
    with pytest.raises(CallError) as caught:
        await call
    assert caught.value.kind is ErrorKind.APPROVAL_PENDING, caught.value.detail
    assert not caught.value.may_have_run
    assert caught.value.retry_after
    return caught.value


@pytest.mark.parametrize("approve", SETTINGS)
async def test_each_way_asks_the_owner_as_the_table_says(
    tmp_path: Path, approve: str
) -> None:
    async with shop_in(tmp_path, approve=approve) as shop:
        ran = {"look": 0, "buy": 0}
        for name in ran:
            for way in WAYS:
                expected = cell(way, approve, read_only=name == "look")
                # The text of an agreement of one caller is published for the other.
                caller = 1 if way is WayIn.URI else 0
                if way is WayIn.URI:
                    await shop.publish(name, 0)
                if expected != "runs":
                    await pending(shop.call(way, name, caller))
                    assert await shop.runs() == {
                        "looks": ran["look"],
                        "buys": ran["buy"],
                    }
                    of_protocol = expected == "asks: protocol"
                    await shop.asked(
                        "approval-pending" if of_protocol else f"shop.{name}"
                    )
                result = await shop.call(way, name, caller)
                ran[name] += 1
                if way is WayIn.NATURAL_LANGUAGE:
                    assert result.output["text"].startswith("# Output")
                else:
                    value = {"look": {"twice": 8}, "buy": {"bought": 4}}[name]
                    assert result.output == value
                if expected == "asks: each call":
                    await pending(shop.call(way, name, caller))
                    await shop.desk.decide(
                        (await shop.desk.negotiations(open_only=True))[0].id,
                        Decision("reject"),
                    )
                else:
                    await shop.call(way, name, caller)
                    ran[name] += 1
                counted = await shop.runs()
                assert counted == {"looks": ran["look"], "buys": ran["buy"]}, way


async def test_a_page_of_another_site_cannot_connect(tmp_path: Path) -> None:
    """The daemon lets everybody of this machine in, and such a page runs there."""
    async with shop_in(tmp_path, callers=0) as shop:
        url = shop.provider.url
        ours = Origin(url.replace("ws://", "http://").rstrip("/"))
        async with connect(url, origin=ours, proxy=None):
            pass
        with pytest.raises(InvalidStatus) as caught:
            await connect(url, origin=Origin("https://evil.example"), proxy=None)
        assert caught.value.response.status_code == 403


async def test_a_stricter_setting_reaches_agreements_that_nobody_was_asked_about(
    tmp_path: Path,
) -> None:
    async with shop_in(tmp_path, callers=1) as shop:
        for name in ("look", "buy"):
            await shop.call(WayIn.AGREEMENT, name)
    async with shop_in(tmp_path, approve="side-effects", callers=1) as shop:
        await shop.call(WayIn.AGREEMENT, "look")
        await pending(shop.call(WayIn.AGREEMENT, "buy"))
        assert (await shop.runs())["buys"] == 0
        await shop.asked("approval-pending")
        await shop.call(WayIn.AGREEMENT, "buy")
    async with shop_in(tmp_path, approve="side-effects", callers=1) as shop:
        # The agreement is one that the owner approved.
        await shop.call(WayIn.AGREEMENT, "buy")
        assert (await shop.runs())["buys"] == 1


async def test_a_need_that_only_speaks_of_a_side_effect_waits_for_the_owner(
    tmp_path: Path,
) -> None:
    async with shop_in(tmp_path, looks_up=True, callers=1) as shop:
        for words in ("please do shop.buy now", "buy it"):
            await pending(shop.wants(words))
            assert (await shop.runs())["buys"] == 0
            await shop.asked("approval-pending")
        # Each need was confirmed, and nothing else was.
        for words in ("please do shop.buy now", "buy it", "shop.buy", "buy"):
            assert (await shop.wants(words)).output == {"bought": 4}
        await pending(shop.wants("please do shop.buy again"))
        assert (await shop.runs())["buys"] == 4
    async with shop_in(tmp_path, callers=1) as shop:
        # The owner's word outlives the daemon, and holds for other texts of this need.
        wanted = {"type": "object", "title": "What was bought"}
        need = Need("buy it", output_schema=wanted)
        assert (await shop.wants(need)).output == {"bought": 4}
        assert (await shop.runs())["buys"] == 1


@pytest.mark.parametrize("whom", ["the peer", "all"])
@pytest.mark.parametrize("looks_up", [True, False])
async def test_a_revocation_closes_the_capability_on_every_way(
    tmp_path: Path, *, looks_up: bool, whom: str
) -> None:
    async with shop_in(tmp_path, looks_up=looks_up, callers=1) as shop:
        digest = (await shop.call(WayIn.AGREEMENT, "look")).protocol
        assert digest is not None
        await shop.call(WayIn.AGREEMENT, "buy")
        peer = shop.callers[0].did if whom == "the peer" else None
        revoked = await protocol_desk(shop.provider).revoke(digest, peer_did=peer)
        assert [(one.capability, one.peer) for one in revoked.closed] == [
            ("shop.look", peer)
        ]
        still = {one.capability for one in revoked.open}
        assert still == {"shop.buy", "shop.chat", "shop.count"}
        ran = await shop.runs()
        text = {"type": "object", "title": "Another one"}
        for need in (
            Need("shop.look"),
            Need("look"),
            Need("please look at 4"),
            Need("shop.look", output_schema=text),
        ):
            await pending(shop.wants(need, number=4))
        await pending(shop.call(WayIn.NATURAL_LANGUAGE, "look"))
        await pending(shop.call(WayIn.ENVELOPE, "look"))
        assert await shop.runs() == ran
        # What else the peer uses goes on.
        await shop.call(WayIn.AGREEMENT, "buy")
        # Accepting one of the entries opens the capability again, on every way.
        questions = await shop.desk.negotiations(open_only=True)
        await shop.desk.decide(questions[0].id, Decision("accept"))
        for way in (WayIn.AGREEMENT, WayIn.NATURAL_LANGUAGE, WayIn.ENVELOPE):
            await shop.call(way, "look")
        left = shop.provider.store.withdrawals()
        assert [one.is_open for one in left] == ([] if peer else [False, True])


async def test_a_revocation_of_our_own_use_holds_on_every_way(tmp_path: Path) -> None:
    async with shop_in(tmp_path, looks_up=True, callers=1) as shop:
        [caller] = shop.callers
        digest = (await shop.call(WayIn.AGREEMENT, "look")).protocol
        assert digest is not None
        revoked = await protocol_desk(caller).revoke(digest)
        assert [(one.capability, one.role) for one in revoked.closed] == [
            ("shop.look", AgreementRole.REQUESTER)
        ]
        ran = await shop.runs()
        for need in ("shop.look", "look", "please look at 4"):
            error = await pending(shop.wants(need, number=4))
            assert "you withdrew shop.look" in error.detail
        for way in (WayIn.NATURAL_LANGUAGE, WayIn.ENVELOPE):
            await pending(shop.call(way, "look"))
        assert await shop.runs() == ran
        desk = caller.agreer.desk
        [question] = await desk.negotiations(open_only=True)
        await desk.decide(question.id, Decision("reject"))
        with pytest.raises(CallError, match="you refused calls of"):
            await shop.wants("shop.look", number=4)
        # The owner's other command ends it, too, and so the text is used again.
        approved = await protocol_desk(caller).approve(digest)
        assert [one.capability for one in approved.reopened] == ["shop.look"]
        assert (await shop.wants("shop.look", number=4)).protocol == digest


async def test_a_revocation_of_the_text_alone_leaves_the_capability(
    tmp_path: Path,
) -> None:
    async with shop_in(tmp_path, callers=1) as shop:
        digest = (await shop.call(WayIn.AGREEMENT, "look")).protocol
        assert digest is not None
        desk = protocol_desk(shop.provider)
        revoked = await desk.revoke(digest, text_only=True)
        assert revoked.closed == ()
        assert [one.capability for one in revoked.open] == ["shop.look"]
        again = await shop.wants("please look at 4", number=4)
        assert again.protocol != digest
        await shop.call(WayIn.ENVELOPE, "look")


async def test_a_caller_that_chooses_by_the_list_asks_about_a_text(
    tmp_path: Path,
) -> None:
    async with shop_in(tmp_path, approve="side-effects", looks_up=True) as shop:
        assert (await shop.call(WayIn.AGREEMENT, "look")).source == "published"
        await pending(shop.call(WayIn.AGREEMENT, "buy"))
        [negotiation] = await shop.desk.negotiations(open_only=True)
        assert "document" in (negotiation.pending or {})
        await shop.asked("approval-pending")
        assert (await shop.call(WayIn.AGREEMENT, "buy")).source == "negotiated"


async def test_words_to_a_conversation_ask_too(tmp_path: Path) -> None:
    async with shop_in(tmp_path, approve="side-effects", talks=True) as shop:
        error = await pending(shop.call(WayIn.NATURAL_LANGUAGE, "look"))
        assert "shop.chat" in error.detail
        assert await shop.runs() == {"looks": 0, "buys": 0}
        await shop.asked("shop.chat")
        result = await shop.call(WayIn.NATURAL_LANGUAGE, "look")
        assert result.output == {"text": "# Output\nYou said something.\n"}


async def test_words_beside_a_protocol_and_tests_pass_the_gate_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with shop_in(tmp_path, approve="side-effects", callers=1) as shop:
        await shop.call(WayIn.AGREEMENT, "look")
        [caller], provider = shop.callers, shop.provider
        [agreement] = caller.store.all_agreements()
        bound = caller.binder.requesters.live(agreement, provider.did)
        assert bound is not None
        text = render_natural_request("shop.buy", {"amount": 4}).encode()
        await bound.channel.send(ProtocolType.NATURAL_LANGUAGE, text)
        await until(lambda: "waits for approval" in caplog.text)
        await shop.asked("shop.buy")
        assert await shop.runs() == {"looks": 1, "buys": 0}
        # A test request for what is not exposed to this peer any more.
        hidden = [PeerEntry(name="p", did=caller.did, expose=())]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(provider.exposure, "changed", lambda: None)
            provider.exposure.set_peers(hidden)
        request = json.dumps({"messageId": "m", "input": {"number": 4}}).encode()
        await bound.channel.send(ProtocolType.VERIFICATION, request)
        await until(lambda: "403: shop.look is not exposed" in caplog.text)
        assert await shop.runs() == {"looks": 1, "buys": 0}


@pytest.mark.parametrize("way", WAYS)
async def test_a_peer_calls_what_its_own_expose_says(
    tmp_path: Path, way: WayIn
) -> None:
    async with shop_in(tmp_path, expose=("look", "count")) as shop:
        if way is WayIn.URI:
            shop.expose(0, "*")
            for name in ("look", "buy"):
                await shop.call(WayIn.AGREEMENT, name)
                await shop.publish(name, 0)
        before = await shop.runs()
        # Widened for the second caller, and narrowed, too.
        shop.expose(1, "shop.buy")
        await shop.call(way, "buy", 1)
        await shop.refused(way, "look", 1)
        await shop.refused(way, "buy", 0)
        after = await shop.runs()
        assert after == {**before, "buys": before["buys"] + 1}
        # Hidden while the channel is open.
        shop.expose(1)
        await shop.refused(way, "buy", 1)
        shop.expose(1, "*")
        await shop.call(way, "look", 1)
        assert await shop.runs() == {**after, "looks": after["looks"] + 1}


@pytest.mark.parametrize("way", WAYS)
async def test_a_blocked_peer_runs_nothing_after_a_second(
    tmp_path: Path, way: WayIn
) -> None:
    async with shop_in(tmp_path, callers=1) as shop:
        if way is WayIn.URI:
            await shop.call(WayIn.AGREEMENT, "buy")
            await shop.publish("buy", 0)
        await shop.call(way, "buy")
        did = shop.callers[0].did
        await shop.provider.policy.remember(did, shown_did=did, state=PeerState.BLOCKED)
        await asyncio.sleep(POLICY_AGE)
        before = await shop.runs()
        for _ in range(3):
            await shop.refused(way, "buy")
        assert await shop.runs() == before


async def test_the_list_for_everybody_shows_what_everybody_may_call(
    tmp_path: Path,
) -> None:
    async with shop_in(tmp_path, callers=1, expose=("look",)) as shop:
        shop.expose(0, "shop.buy")
        await shop.provider.consensus.settle()
        pages = shop.provider.consensus.pages()
        text = b"".join(page[1] for page in pages.values())
        assert b"shop.look" in text
        assert b"shop.buy" not in text
        peer = f"{shop.provider.url}#{shop.provider.did}"
        answer = await shop.callers[0].caller.ask(peer, "What can you do?")
        assert "buy" in answer
        assert "look" not in answer


def test_the_commands_of_the_queue_answer_such_a_question(tmp_path: Path) -> None:
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    (tmp_path / "shop.py").write_text(SOURCE)
    try:
        provider.home.mkdir()
        (provider.home / "anpd.toml").write_text(
            '[negotiation]\napprove = "side-effects"\n'
        )
        provider.start()
        caller.start()
        provider.ok(
            *("attach", "python", "shop", "--expose", "*", "--name", "shop"),
            cwd=tmp_path,
        )
        words = ("--mode", "natural-language", "-d", '{"amount": 4}')
        call = ("call", provider.address, "shop.buy", *words, "--json")
        refused = caller.run(*call)
        assert refused.code == 7, refused.stdout
        assert "has to approve" in refused.stderr
        [waits] = provider.ok("approvals", "list", "--json").json()["negotiations"]
        assert waits["about"] == "shop.buy"
        shown = provider.ok("approvals", "show", waits["id"]).stdout
        assert "calls of shop.buy, which may have side effects" in shown
        assert f"decide {waits['id']} accept" in shown
        assert provider.run("negotiations", "show", waits["id"], "--text").code == 2
        accepted = provider.ok("approvals", "accept", waits["id"]).stdout
        assert "accept calls of shop.buy by did:key:" in accepted
        assert "shop.buy" in provider.ok("negotiations", "decisions").stdout
        answer = caller.ok(*call).json()
        assert "bought: 4" in answer["output"]["text"]
        assert provider.ok("approvals", "list", "--json").json()["negotiations"] == []
        # A reload narrows what this peer may call.
        peer = caller.address.partition("#")[2]
        config = provider.home / "anpd.toml"
        config.write_text(
            config.read_text()
            + f'[[peer]]\nname = "caller"\ndid = "{peer}"\nexpose = ["look"]\n'
        )
        provider.ok("reload")
        refused = caller.run(*call)
        assert refused.code == 10
        assert "cannot serve" in refused.stderr
    finally:
        caller.stop()
        provider.stop()
