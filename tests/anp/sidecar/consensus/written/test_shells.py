"""The shells of written protocols, over channels in memory and over real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.links import LinkTarget
from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import (
    ENVELOPE_URI,
    EnvelopeAction,
    EnvelopeCode,
    EnvelopeErrorCode,
    EnvelopeStatus,
    MessageType,
    envelope_document,
)
from anp.protocols.envelope.provider import EnvelopeProvider as EnvelopeProvider
from anp.sidecar.attachments import ToolError
from anp.sidecar.bound.work import CallTerms, ServedCall, WorkDesk
from anp.sidecar.consensus.written import (
    InputRefused,
    NotServed,
    WrittenParts,
    WrittenProvider,
    WrittenRequester,
)
from anp.sidecar.halves.protocol import Answer
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.telemetry.call_entry import CallEntry
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import CAPABILITIES, EXTENSION_WORK
from negotiation.consensus.written import (
    PeerAnnouncement,
    PeerEvent,
    PeerSaid,
    WrittenLimits,
)
from negotiation.exchange.limits import DialogueLimits
from negotiation.need import Capability
from tests.anp.channel.test_capabilities import House, says, up
from tests.anp.sidecar.consensus.written import channels
from tests.anp.sidecar.consensus.written.channels import (
    TIMES,
    Fake,
    MemoryLink,
    capability_calls,
    channel_pair,
)
from tests.clauses import clause
from tests.e2e.proxy import CALLER, Proxy
from tests.negotiation.inprocess import JsonschemaValidator
from tests.waiting import until

DEADLINE = 20.0
NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
TWICE = Capability("shop.twice", "Doubles.", NUMBER, NUMBER)
HIDDEN = Capability("shop.hidden", "Not for peers.", True, True)

Run = Callable[[str, dict[str, Any]], Awaitable[Any]]


async def twice(name: str, arguments: dict[str, Any]) -> Any:
    return {"n": arguments["n"] * 2}


@dataclass
class Talk:
    """A requester and a provider on one channel."""

    requester: WrittenRequester
    served: WrittenProvider
    fake: Fake
    exposure: Exposure
    link: MemoryLink | None
    said: list[PeerSaid] = field(default_factory=list)
    ended: list[WrittenRequester] = field(default_factory=list)
    seen: list[CallEntry] = field(default_factory=list)

    async def called(self, count: int) -> None:
        """Wait until the attachment was called so often."""
        await until(lambda: len(self.fake.calls) >= count)


@asynccontextmanager
async def on(
    ours: Channel, theirs: Channel, link: MemoryLink | None, **more: Any
) -> AsyncIterator[Talk]:
    """Speak the envelope, or the protocol `code`, on both ends of a channel."""
    said: list[PeerSaid] = []
    ended: list[WrittenRequester] = []
    parts = WrittenParts(
        validator=JsonschemaValidator(),
        dialogue=DialogueLimits(),
        limits=more.get("limits", WrittenLimits()),
        said=lambda peer, uri, what: said.append(what),
    )
    fake = Fake(more.get("run", twice), [TWICE, HIDDEN])
    calls, exposure = capability_calls(fake, expose=more.get("expose", ("twice",)))
    seen: list[CallEntry] = []
    calls.observer.on_call = seen.append
    served = WrittenProvider(
        theirs,
        ENVELOPE_URI,
        more.get("code") or EnvelopeCode(announce=more.get("announce", False)),
        parts,
        capabilities=calls,
        work=WorkDesk(TIMES, default=5.0),
        offered=lambda: exposure.offered(None),
    )
    code = more.get("code") or EnvelopeCode()
    requester = WrittenRequester(ours, ENVELOPE_URI, code, parts, on_end=ended.append)
    async with asyncio.timeout(DEADLINE):
        running = asyncio.create_task(served.run())
        try:
            yield Talk(requester, served, fake, exposure, link, said, ended, seen)
        finally:
            await requester.channel.close("done")
            await running
            await until(lambda: bool(ended))


@asynccontextmanager
async def talk(**more: Any) -> AsyncIterator[Talk]:
    """Speak the envelope in memory."""
    ours, theirs, link = channel_pair()
    async with on(ours, theirs, link, **more) as one:
        yield one


# Calls.


@clause("ENV-1", "ENV-2", "ENV-16", "ENV-17")
async def test_a_call_runs_the_capability_and_nothing_else_is_said() -> None:
    async with talk() as one:
        answer = await one.requester.call("shop.twice", {"n": 21})
        assert (answer.result, answer.error) == ({"n": 42}, None)
        assert one.fake.calls == [
            ("shop.twice", {"n": 21}, one.requester.channel.local_did)
        ]
        assert one.link is not None
        assert [index for index, _ in one.link.sent] == [0, 1]
        assert one.requester.idle
        assert one.requester.dialogue.messages == 0


@clause("ENV-1")
async def test_many_calls_are_in_flight_on_one_channel() -> None:
    gates = [asyncio.Event() for _ in range(40)]

    async def wait(name: str, arguments: dict[str, Any]) -> Any:
        await gates[arguments["n"]].wait()
        return arguments

    async with talk(run=wait, limits=WrittenLimits(max_served=5)) as one:
        calls = [
            asyncio.create_task(one.requester.call("shop.twice", {"n": number}))
            for number in range(40)
        ]
        await one.called(5)
        for _ in range(50):
            await asyncio.sleep(0)
        # The peer is read no faster than it is served.
        assert len(one.fake.calls) == 5
        assert not one.requester.idle
        for gate in reversed(gates):
            gate.set()
        answers = await asyncio.gather(*calls)
        assert [answer.result for answer in answers] == [{"n": n} for n in range(40)]
        await one.requester.wait_idle()


@clause("ENV-17", "ENV-Q3")
async def test_failures_of_every_kind_come_back_in_the_protocols_words() -> None:
    async def fail(name: str, arguments: dict[str, Any]) -> Any:
        if arguments["n"] == 0:
            raise ToolError(404, "no such thing")
        if arguments["n"] == 1:
            raise RuntimeError("a bug")
        return {"wrong": True}

    async with talk(run=fail) as one:
        call = one.requester.call
        errors = [(await call("shop.twice", {"n": n})).error for n in range(3)]
        assert errors == [
            ("404", "no such thing"),
            ("500", "the call failed"),
            ("502", "the capability answered outside its schema"),
        ]
        # Data that does not fit is not processed, and the capability not called.
        with pytest.raises(InputRefused, match="invalid_payload") as caught:
            await call("shop.twice", {"n": "x"})
        assert not caught.value.may_have_run
        assert len(one.fake.calls) == 3


@clause("ENV-27")
@pytest.mark.parametrize("action", ["shop.hidden", "shop.nothing", "", "x" * 256])
async def test_what_is_not_exposed_is_not_served(action: str) -> None:
    async with talk() as one:
        if not action:
            with pytest.raises(CallError) as usage:
                await one.requester.call(action, {})
            assert usage.value.kind is ErrorKind.USAGE
            return
        with pytest.raises(NotServed) as caught:
            await one.requester.call(action, {})
        assert caught.value.code == "unknown_action"
        assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
        assert not caught.value.may_have_run
        assert one.fake.calls == []
        # The owner sees who asked for what.
        (seen,) = one.seen
        assert (seen.outcome, seen.capability) == ("application_error", action)
        assert (seen.direction, seen.uri) == ("served", ENVELOPE_URI)
        # The channel goes on.
        assert (await one.requester.call("shop.twice", {"n": 1})).result == {"n": 2}


@clause("ENV-27")
async def test_what_is_exposed_or_hidden_meanwhile_counts_at_once() -> None:
    async with talk() as one:
        await one.requester.call("shop.twice", {"n": 1})
        one.fake.healthy = False
        with pytest.raises(NotServed):
            await one.requester.call("shop.twice", {"n": 1})
        one.fake.healthy = True
        await one.requester.call("shop.twice", {"n": 1})


async def test_a_result_outside_the_published_schema_is_an_error() -> None:
    async with talk() as one:
        schema = {"type": "object", "required": ["m"]}
        with pytest.raises(CallError, match="published") as caught:
            await one.requester.call("shop.twice", {"n": 1}, output_schema=schema)
        assert caught.value.may_have_run
        answer = await one.requester.call("shop.twice", {"n": 1}, output_schema=NUMBER)
        assert answer.result == {"n": 2}


async def never(name: str, arguments: dict[str, Any]) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize("own", [True, False])
async def test_a_call_without_an_answer_ends_by_time(own: bool) -> None:
    limits = WrittenLimits() if own else WrittenLimits(answer_timeout=0.05)
    async with talk(run=never, limits=limits) as one:
        terms = CallTerms(time.monotonic() + 0.05, given=True) if own else None
        with pytest.raises(CallError) as caught:
            await one.requester.call("shop.twice", {"n": 1}, terms=terms)
        assert caught.value.kind is ErrorKind.TIMEOUT
        assert caught.value.may_have_run
        assert one.requester.idle
        assert one.requester.alive


@clause("ENV-Q5")
async def test_signs_of_work_keep_a_call_alive() -> None:
    gate = asyncio.Event()

    async def slow(name: str, arguments: dict[str, Any]) -> Any:
        await gate.wait()
        return arguments

    limits = WrittenLimits(answer_timeout=5.0, progress_after=0.01)
    async with talk(run=slow, limits=limits) as one:
        call = asyncio.create_task(one.requester.call("shop.twice", {"n": 1}))
        assert one.link is not None
        sent = one.link.sent
        await until(lambda: len(sent) >= 4)
        signs = [json.loads(frame.data) for index, frame in sent if index]
        assert {sign["payload"]["status"] for sign in signs} == {"in_progress"}
        gate.set()
        assert (await call).result == {"n": 1}


async def test_data_that_cannot_be_sent_is_the_callers_error() -> None:
    async with talk() as one:
        for arguments in ({"n": "x" * 800_000}, {"n": float("nan")}):
            with pytest.raises(CallError) as caught:
                await one.requester.call("shop.twice", arguments)
            assert caught.value.kind is ErrorKind.USAGE
        assert one.fake.calls == []


# The end of a channel.


async def test_a_call_on_an_ended_channel_was_not_sent() -> None:
    async with talk() as one:
        assert one.link is not None
        one.link.cut()
        with pytest.raises(ChannelClosed):
            await one.requester.call("shop.twice", {"n": 1})
        with pytest.raises(ChannelClosed):
            await one.requester.tell("e", {})
        assert not one.requester.alive


async def test_calls_in_flight_end_with_their_channel() -> None:
    async with talk(run=never) as one:
        calls = [
            asyncio.create_task(one.requester.call("shop.twice", {"n": n}))
            for n in range(3)
        ]
        await one.called(3)
        assert one.link is not None
        one.link.cut("gone")
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, CallError)
            assert not isinstance(result, ChannelClosed)
            assert (result.kind, result.may_have_run) == (
                ErrorKind.PEER_UNREACHABLE,
                True,
            )
            assert "gone" in result.detail
        await one.requester.wait_idle()


async def test_what_the_peer_left_alone_may_be_sent_again() -> None:
    async with talk(run=never) as one:
        call = asyncio.create_task(one.requester.call("shop.twice", {"n": 1}))
        await one.called(1)
        assert one.link is not None
        one.link.cut(unprocessed=True)
        with pytest.raises(ChannelClosed):
            await call


async def test_a_request_that_waits_to_be_sent_is_known_not_to_have_been() -> None:
    async with talk() as one:
        assert one.link is not None
        one.link.gate.clear()
        first = asyncio.create_task(one.requester.call("shop.twice", {"n": 1}))
        second = asyncio.create_task(one.requester.call("shop.twice", {"n": 2}))
        for _ in range(5):
            await asyncio.sleep(0)
        one.link.cut()
        results = await asyncio.gather(first, second, return_exceptions=True)
        assert isinstance(results[1], ChannelClosed)
        # How far the first one got, nobody knows.
        assert isinstance(results[0], CallError)
        assert not isinstance(results[0], ChannelClosed)
        assert results[0].may_have_run


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    async with talk(run=never) as one:
        call = asyncio.create_task(one.requester.call("shop.twice", {"n": 1}))
        await one.called(1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert one.requester.idle


async def test_two_sides_that_flood_each_other_do_not_stand_still() -> None:
    async def large(name: str, arguments: dict[str, Any]) -> Any:
        return {"n": arguments["n"], "more": "x" * 10_000}

    async with talk(run=large) as one:

        async def events() -> None:
            for number in range(300):
                await one.requester.tell("e", {"n": number})
                await one.served.tell("e", {"n": number})

        calls = (one.requester.call("shop.twice", {"n": n}) for n in range(200))
        answers = (await asyncio.gather(events(), *calls))[1:]
        assert all(isinstance(one, Answer) and one.error is None for one in answers)
        await until(lambda: len(one.said) >= 600)


# Hostile peers.


async def test_a_peer_that_breaks_the_protocol_loses_the_channel(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="anp")
    async with talk(limits=WrittenLimits(max_faults=5)) as one:
        for _ in range(6):
            await one.requester.channel.send(ProtocolType.APPLICATION, b"\xff")
        ended = await one.requester.channel.wait_ended()
        assert "broke the protocol" in ended.detail
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert record.exc_info is None


async def test_frames_of_other_types_change_nothing() -> None:
    async with talk() as one:
        for channel in (one.requester.channel, one.served.channel):
            for kind in (ProtocolType.VERIFICATION, ProtocolType.NATURAL_LANGUAGE):
                await channel.send(kind, b"x")
            await channel.send(ProtocolType.META, b"{}")
        assert (await one.requester.call("shop.twice", {"n": 1})).result == {"n": 2}


async def test_a_question_about_the_protocol_is_answered() -> None:
    async with talk() as one:
        words = await one.requester.dialogue.ask("What do you speak?")
        assert words is not None
        assert ENVELOPE_URI in words


async def test_written_code_is_not_repaired_on_a_channel() -> None:
    async with talk() as one:
        await one.requester.call("shop.twice", {"n": 1})
        report = await one.requester.dialogue.report("e1", "it is wrong")
        assert "written by hand" in report.reason
        assert (await one.requester.call("shop.twice", {"n": 1})).result == {"n": 2}


@clause("ENV-26", "ENV-Q13")
async def test_the_sender_is_who_the_channel_proved() -> None:
    async with talk() as one:
        assert one.link is not None
        await one.requester.call("shop.twice", {"n": 1})
        request = json.loads(one.link.sent[0][1].data)
        forged = {**request, "sender_id": "did:example:bob", "message_id": "x"}
        await one.requester.channel.send(
            ProtocolType.APPLICATION, json.dumps(forged).encode()
        )
        await one.requester.call("shop.twice", {"n": 2})
        assert [arguments for _, arguments, _ in one.fake.calls] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("method", ["receive_message", "capability_answered"])
async def test_a_bug_of_ours_costs_one_channel_and_leaves_nobody_waiting(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(EnvelopeProvider, method, broken)
    async with talk() as one:
        with pytest.raises(CallError, match="an error of ours") as caught:
            await one.requester.call("shop.twice", {"n": 1})
        assert caught.value.may_have_run


async def test_a_bug_in_a_timer_ends_the_channel_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    async with talk(run=never, limits=WrittenLimits(progress_after=0.01)) as one:
        call = asyncio.create_task(one.requester.call("shop.twice", {"n": 1}))
        await one.called(1)
        monkeypatch.setattr(EnvelopeProvider, "handle_timer", broken)
        with pytest.raises(CallError, match="an error of ours"):
            await call


# Discovery and events.


@clause("ENV-25", "ENV-Q15")
async def test_a_peer_finds_what_it_may_use() -> None:
    async with talk() as one:
        (entry,) = await one.requester.discover()
        assert entry["name"] == "shop.twice"
        assert entry["input_schema"] == NUMBER


async def test_a_long_list_comes_page_by_page() -> None:
    async with talk(expose=("*",), limits=WrittenLimits(max_message=16_384)) as one:
        one.fake.tools[:] = [
            Capability(f"shop.c{n:03}", "x" * 500, NUMBER, NUMBER) for n in range(100)
        ]
        entries = await one.requester.discover()
        assert [entry["name"] for entry in entries] == [
            f"shop.c{n:03}" for n in range(100)
        ]
        assert one.link is not None
        assert len(one.link.sent) > 10


@clause("ENV-19", "ENV-25")
async def test_events_and_announcements_reach_the_owner() -> None:
    async with talk(announce=True) as one:
        await one.requester.tell("restocked", {"sku": "A"})
        entries = [{"name": "calc.add"}]
        await one.requester.call("register", {"capabilities": entries})
        online = PeerEvent("agent_online", {"capabilities": ["shop.twice"]}, True, {})
        assert online in one.said
        assert PeerEvent("restocked", {"sku": "A"}, True, {}) in one.said
        assert PeerAnnouncement((entries[0],)) in one.said
        with pytest.raises(CallError) as caught:
            await one.requester.tell("e", {"x": float("nan")})
        assert caught.value.kind is ErrorKind.USAGE


# Over real sockets.


@pytest.mark.slow
@clause("ENV-5", "ENV-24", "ENV-26", "ENV-28", "ENV-29")
async def test_on_the_wire_nothing_can_be_read_or_changed() -> None:
    alice, bob = House(says(*CAPABILITIES)), House(says(*CAPABILITIES))
    proxy = Proxy()
    async with up(alice, bob):
        proxy.target = bob.url
        with proxy.running():
            url = f"ws://127.0.0.1:{proxy.port}/"
            ours = await alice.links.open_channel(LinkTarget(bob.did, url), alice.meta)
            async with on(ours, await bob.served.get(), None) as one:
                before = len(proxy.seen)
                answer = await one.requester.call("shop.twice", {"n": 21})
                assert answer.result == {"n": 42}
                frames = proxy.seen[before:]
                assert len(frames) == 2
                for frame in frames:
                    assert "twice" not in frame.frame
                    assert "message_id" not in frame.frame
                value = json.loads(frames[0].frame)
                text = value["encryptedData"]["ciphertext"]
                changed = ("B" if text[0] == "A" else "A") + text[1:]
                value["encryptedData"]["ciphertext"] = changed
                for forged in (frames[0].frame, json.dumps(value)):
                    await asyncio.to_thread(proxy.inject, CALLER, forged)
                answer = await one.requester.call("shop.twice", {"n": 1})
                assert answer.result == {"n": 2}
                assert len(one.fake.calls) == 2


def test_the_text_of_the_protocol_names_its_uri_and_all_its_words() -> None:
    text = envelope_document()
    assert ENVELOPE_URI in text
    assert len(text.encode()) < 64 * 1024
    for word in (*EnvelopeAction, *EnvelopeErrorCode, *MessageType, *EnvelopeStatus):
        assert f"`{word}`" in text


async def test_a_call_taken_back_while_its_progress_is_told_has_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    telling: list[ServedCall] = []

    async def tell(call: ServedCall) -> None:
        telling.append(call)
        await asyncio.Event().wait()

    extensions = (*channels.META.extensions, EXTENSION_WORK)
    meta = replace(channels.META, extensions=extensions)
    monkeypatch.setattr(channels, "META", meta)
    monkeypatch.setattr(ServedCall, "tell_progress", tell)
    async with talk(limits=WrittenLimits(max_served=1)) as one:
        asking = asyncio.create_task(one.requester.call("shop.twice", {"n": 21}))
        await until(lambda: bool(telling))
        assert one.served._machine.full
        task = telling[0].task
        assert task is not None
        task.cancel()
        await until(lambda: not one.served._machine.full)
        asking.cancel()
