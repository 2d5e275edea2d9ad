"""Frames above the limit of others, and links kept for who cannot be dialled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.channel.core.limits import RenewalLimits, next_wait
from anp.channel.core.traffic import FrameTooLarge
from anp.channel.links import LinkTarget
from anp.errors import CallError, ConfigError
from anp.wire.frames import ProtocolType
from anp.wire.meta_protocol import (
    MAX_PAYLOAD,
    OTHERS_MAX_TEXT,
    MetaProtocol,
    plaintext_size,
    text_size,
)
from tests.anp.channel.two_links import META, Party, echo
from tests.clauses import clause
from tests.waiting import until

MIB = 1024 * 1024


@pytest.fixture
def parties(tmp_path: Path) -> tuple[Party, Party]:
    return Party(tmp_path / "alice"), Party(tmp_path / "bob")


@clause("WIRE row 34")
async def test_the_smaller_of_both_limits_holds_for_a_frame(
    parties: tuple[Party, Party],
) -> None:
    alice, bob = parties
    bob.meta = replace(META, max_message=3 * MIB)
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        # The header is one byte of the frame.
        await echo(channel, bytes(3 * MIB - 1))
        with pytest.raises(FrameTooLarge, match="too_large"):
            await channel.send(ProtocolType.APPLICATION, bytes(3 * MIB))
        await echo(channel, b"still open")


@clause("WIRE row 34")
@pytest.mark.parametrize("missing", ["name", "value"])
async def test_without_the_extension_the_limit_of_others_holds(
    parties: tuple[Party, Party], missing: str
) -> None:
    alice, bob = parties
    bob.meta = (
        replace(META, max_message=None)
        if missing == "value"
        else replace(META, extensions=("close", "counter"))
    )
    async with bob.up(), alice.up() as links:
        channel = await links.open_channel(bob.target, META)
        assert channel.max_payload == MAX_PAYLOAD
        await echo(channel, bytes(MAX_PAYLOAD))
        with pytest.raises(FrameTooLarge):
            await channel.send(ProtocolType.APPLICATION, bytes(MAX_PAYLOAD + 1))
        await echo(channel, b"still open")


@given(st.integers(min_value=4096, max_value=2**31))
def test_what_fits_a_text_frame_is_computed_from_its_size(
    size: int,
) -> None:
    plaintext = plaintext_size(size)
    assert text_size(plaintext) <= size < text_size(plaintext + 3)
    assert text_size(MAX_PAYLOAD + 1) <= OTHERS_MAX_TEXT


@clause("WIRE row 34")
@pytest.mark.parametrize("odd", [0, 1, 65_535, 2**48, -1, True, 1.5, "9", [], {}])
def test_a_limit_of_the_peer_that_is_none_leaves_the_limit_of_others(odd: Any) -> None:
    read = MetaProtocol.from_json({**META.to_json(), "maxMessage": odd})
    assert read.max_message is None
    assert META.common_max_message(read) is None
    assert any("maxMessage" in remark for remark in read.remarks)


@clause("ANP-Q20")
@pytest.mark.parametrize(
    "odd",
    [
        {},
        [],
        "lost",
        7,
        {"secretKeyId": "ab" * 8},
        {"secretKeyId": "AB" * 8, "counter": 0},
        {"secretKeyId": "ab" * 9, "counter": 0},
        {"secretKeyId": "ab" * 8, "counter": -1},
        {"secretKeyId": "ab" * 8, "counter": 2**48},
        {"secretKeyId": "ab" * 8, "counter": True},
        {"secretKeyId": "ab" * 8, "counter": 1.0},
        {"secretKeyId": "ab" * 8, "counter": 0, "accepted": "no"},
        {"secretKeyId": "ab" * 8, "counter": 0, "accepted": 0},
    ],
    ids=str,
)
def test_a_question_about_a_lost_key_that_is_none_is_left_out(odd: Any) -> None:
    read = MetaProtocol.from_json({**META.to_json(), "lostKey": odd})
    assert read.lost_key is None
    assert any("lostKey" in remark for remark in read.remarks)
    # The rest of the hello counts all the same.
    assert read == META


async def test_who_keeps_a_link_can_be_called_over_it(
    parties: tuple[Party, Party],
) -> None:
    hidden, server = parties
    looked = 0

    async def find() -> LinkTarget:
        nonlocal looked
        looked += 1
        return server.target

    async with server.up() as links, hidden.up() as keeping:
        keeping.keep("server", find, lambda: META)
        for _ in range(2):
            await until(lambda: links.has_link(hidden.did))
            channel = await links.open_channel(LinkTarget(hidden.did, None), META)
            await echo(channel, b"hello behind the wall")
            # Cut from the other side; the link comes back by itself.
            for link in list(links._links):
                await link.close()
            await until(lambda: not links.has_link(hidden.did))
    assert looked >= 2


async def test_without_a_link_nobody_behind_a_wall_can_be_called(
    parties: tuple[Party, Party],
) -> None:
    hidden, server = parties
    async with server.up() as links:
        with pytest.raises(CallError, match="no address is known"):
            await links.open_channel(LinkTarget(hidden.did, None), META)


def test_waits_double_up_to_a_limit_and_differ() -> None:
    waits = [next_wait(n, least=1.0, most=60.0, draw=1.0) for n in range(8)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert next_wait(3, least=1.0, most=60.0, draw=0.0) == 4.0
    assert next_wait(10**6, least=1.0, most=60.0, draw=0.5) == 45.0


def test_a_renewal_is_due_at_a_part_of_the_life() -> None:
    limits = RenewalLimits(life=0.8)
    assert limits.due_at(100.0, 200.0) == 180.0
    # What is left is enough for a call, but half of the life is used in any case.
    assert replace(limits, longest_call=10.0).due_at(100.0, 200.0) == 180.0
    assert replace(limits, longest_call=30.0).due_at(100.0, 200.0) == 170.0
    assert replace(limits, longest_call=60.0).due_at(100.0, 200.0) == 150.0


@pytest.mark.parametrize("wrong", [{"life": 0.0}, {"life": 1.0}, {"messages": 0}])
def test_limits_that_never_renew_or_always_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        RenewalLimits(**wrong)  # type: ignore[arg-type]  # wrong on purpose
