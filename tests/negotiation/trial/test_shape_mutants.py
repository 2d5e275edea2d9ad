"""Halves with loops, choices and joins that have one fault each fail their trial."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, HalfSource, Offer
from negotiation.need import Need
from negotiation.trial.acceptance import check_half
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator
from tests.negotiation.llm import test_shapes as shapes
from tests.negotiation.llm.scripted import ScriptedModel

PLANS: dict[str, tuple[Need, Offer, Any]] = {
    "each": (shapes.PRICES, shapes.PRICE, shapes.PRICES_ANSWER),
    "counted": (shapes.BOOKS, shapes.COUNTED, shapes.pages("page", first="1")),
    "offset": (
        shapes.BOOKS,
        shapes.library(argument={"offset": shapes.WHOLE}, gives=shapes.FOUND),
        shapes.pages("offset", first="0", offset=True),
    ),
    "cursor": (
        shapes.BOOKS,
        shapes.cursor_library(),
        shapes.pages("cursor", of="next"),
    ),
    "fallback": (shapes.STOCK, shapes.SHOPS, shapes.stock()),
    "value": (shapes.STOCK, shapes.SHOPS, shapes.stock("state", "none")),
    "join": (shapes.ORDERS, shapes.DESK, shapes.joined()),
    "again": (shapes.FLAKY, shapes.STORE, shapes.AGAIN),
}
MUTANTS = [
    ("each", "in items_1:", "in items_1[:-1]:"),
    ("each", "in items_1:", "in items_1[1:]:"),
    ("each", "in items_1:", "in items_1 + items_1[:1]:"),
    (
        "each",
        '"right": output_1}',
        '"right": (pairs_1 or [{"right": output_1}])[0]["right"]}',
    ),
    ("each", '{"left": item_1', '{"left": items_1[0]'),
    ("each", "given = anp_make_2(values, item_1)", "given = {'sku': 's'}"),
    ("counted", "['page'] + 1", "['page'] + 2"),
    ("counted", "if not page:", "if made > 1:"),
    ("counted", "if not page:", "if made > 0:"),
    ("counted", "anp_full(list_1 + page)", "anp_full(page)"),
    ("counted", "anp_full(list_1 + page)", "anp_full(list_1 + page[:-1])"),
    ("counted", "anp_full(list_1 + page)", "anp_full(list_1 + page[1:])"),
    ("counted", "anp_full(list_1 + page)", "anp_full(list_1 or page)"),
    ("counted", "'page'] = 1", "'page'] = 2"),
    ("offset", "+ len(page)", "+ 1"),
    ("offset", "+ len(page)", "+ len(page) - 1"),
    ("offset", "+ len(page)", "+ len(page) + 1"),
    ("cursor", "'cursor': following}", "'cursor': 'cursor 2'}"),
    ("cursor", "anp_full(list_1 + page)", "anp_full(page)"),
    ("cursor", "if following is None", "if made > 0 or following is None"),
    ("fallback", "    none_1 = True", "    raise"),
    ("fallback", "not in ('404', '410',)", "not in ('404', '410', '500',)"),
    ("fallback", "not in ('404', '410',)", "not in ('410',)"),
    ("fallback", "not in ('404', '410',)", "in ('404', '410',)"),
    ("fallback", "none_1 = False", "none_1 = True"),
    ("fallback", "if none_1:", "if False:"),
    ("value", "'none')", "'never')"),
    ("value", "none_1 = anp_is(", "none_1 = not anp_is("),
    ("join", "('customer',)", "('id',)"),
    ("join", "('number',)", "('name',)"),
    ("join", "in partners:", "not in partners:"),
    (
        "join",
        'pair["right"] = partners[own]',
        'pair["right"] = list(partners.values())[0]',
    ),
    (
        "join",
        "for item in anp_expect(anp_given(value, names, []), list):",
        "for item in anp_given(value, names, [])[:1]:",
    ),
    (
        "join",
        "for item in anp_expect(anp_given(other, other_names, []), list):",
        "for item in anp_given(other, other_names, [])[:1]:",
    ),
    ("again", "if not anp_passing(problem):", "if anp_passing(problem):"),
    ("again", "if not anp_passing(problem):", "if False:"),
    ("again", "(429, 500, 502, 503, 504)", "(404, 429)"),
]


async def half_of(name: str) -> tuple[HalfSource, str, Offer]:
    need, offer, answer = PLANS[name]
    assert need.input_schema is not None
    assert need.output_schema is not None
    text = render_document(need.requirement, need.input_schema, need.output_schema)
    mind = LlmMind(ScriptedModel({"offer": [answer]}))
    assert await mind.judge(text, offer, ()) == Accept()
    return await mind.write_half(text, offer), text, offer


async def faults(half: str, of: HalfSource, text: str, offer: Offer) -> tuple[str, ...]:
    found = await check_half(
        HalfSource(half, of.origin, of.capabilities),
        read_document(text),
        offer,
        runner=InProcessHalf(half),
        validator=JsonschemaValidator(),
    )
    return found.problems


@pytest.mark.parametrize("name", PLANS)
async def test_a_half_as_it_was_written_passes(name: str) -> None:
    half, text, offer = await half_of(name)
    assert await faults(half.text, half, text, offer) == ()


@pytest.mark.parametrize(("name", "right", "wrong"), MUTANTS)
async def test_a_half_with_one_fault_does_not(
    name: str, right: str, wrong: str
) -> None:
    half, text, offer = await half_of(name)
    changed = half.text.replace(right, wrong)
    assert changed != half.text, half.text
    assert await faults(changed, half, text, offer) != ()
