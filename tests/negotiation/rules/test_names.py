"""A side effect needs its name: when a requirement names a capability enough."""

from __future__ import annotations

import pytest

from negotiation.need import Capability
from negotiation.rules.names import mentioned, name_key, of_name, unnamed_effects


def tool(name: str, *, read_only: bool = False) -> Capability:
    return Capability(name, "", {}, {}, read_only=read_only)


DRAW = tool("bank.withdraw_seed_sample")
RING = tool("tower.ring_bell")
LOOK = tool("tower.look", read_only=True)
PRODUCT = tool("shop.获取商品信息")
HINDI = tool("shop.जानकारी")
ALL = (DRAW, RING, LOOK, PRODUCT, HINDI)


@pytest.mark.parametrize(
    ("requirement", "meant"),
    [
        ("bank.withdraw_seed_sample", DRAW),
        ("withdraw_seed_sample", DRAW),
        ("Withdraw seed sample", DRAW),
        (" WITHDRAW-SEED-SAMPLE\n", DRAW),
        ("获取商品信息", PRODUCT),
        ("जानकारी", HINDI),
    ],
)
def test_the_whole_requirement_is_the_name(requirement: str, meant: Capability) -> None:
    assert unnamed_effects(requirement, [meant.name], ALL) == []
    assert unnamed_effects(requirement, [meant.name, LOOK.name], ALL) == []


@pytest.mark.parametrize(
    "requirement",
    [
        "withdraw_seed_samples",
        "withdraw_seed_sample2",
        "withdraw_seed_sample v2",
        "withdraw_seed_sample@2",
        "withdraw_seed_sample 2.1",
        "please withdraw_seed_sample",
        "withdr\u0430w_seed_sample",  # a Cyrillic letter
        "with\u200bdraw_seed_sample",  # an invisible character
        "withdra\u0308w_seed_sample",  # a mark over a letter
        "withdraw_\u017feed_sample",  # a long s
        "read the humidity",
        "",
    ],
)
def test_anything_else_does_not_name_a_single_side_effect(requirement: str) -> None:
    assert unnamed_effects(requirement, [DRAW.name], ALL) == [DRAW.name]


@pytest.mark.parametrize(
    ("requirement", "is_named"),
    [
        ("tower.ring_bell, then look", True),
        ("First ring bell. Do not wait. Then look.", True),
        ("look from the tower", False),
        ("do not ring_bell, but look", False),
        ("look, without ring_bell", False),
        ("ring_bells, then look", False),
        ("ring_bell v2, then look", False),
        ("ring_bell 2, then look", False),
        ("ring_bell's log, then look", False),
        ("pre-ring_bell, then look", False),
        ("ring_b\u0435ll, then look", False),  # a Cyrillic letter
    ],
)
def test_a_plan_of_several_steps_needs_the_name_as_a_word(
    requirement: str, *, is_named: bool
) -> None:
    found = unnamed_effects(requirement, [RING.name, LOOK.name], ALL)
    assert found == ([] if is_named else [RING.name])


def test_a_short_name_that_two_share_names_neither() -> None:
    both = (DRAW, tool("vault.withdraw_seed_sample"))
    assert unnamed_effects("withdraw_seed_sample", [DRAW.name], both) == [DRAW.name]
    assert unnamed_effects(DRAW.name, [DRAW.name], both) == []


def test_what_only_reads_needs_no_name_and_what_is_not_offered_does() -> None:
    assert unnamed_effects("anything", [LOOK.name], ALL) == []
    assert unnamed_effects("anything", ["gone.by"], ALL) == ["gone.by"]


def test_vowel_signs_belong_to_their_word() -> None:
    assert name_key("जानकारी") != name_key("जानकार")
    assert of_name("जानकार", ALL) == []
    assert mentioned("मुझे जानकारी चाहिए", ALL) == [HINDI]
    composed, split = "Bestellung_ausl\u00f6sen", "Bestellung_auslo\u0308sen"
    assert name_key(composed) == name_key(split)
