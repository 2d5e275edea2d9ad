"""Where schemas alone leave a place empty, a model is asked, and else it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from negotiation.llm.auto import AutoMind
from negotiation.llm.mind import LlmMind
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from tests.negotiation.llm.scripted import (
    Rejected,
    ScriptedModel,
    call,
    link,
    meet,
    offer_answer,
    reply_answer,
)

TEXT = {"type": "string"}
TITLES = {"type": "array", "items": TEXT}


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


ALBUM = obj(title=TEXT, songs=TITLES)
WANTED = obj(title=TEXT, tracks=TITLES)
GIVEN = {"title": "Blue", "songs": ["River"]}
RUN = {"music.album": lambda _: GIVEN}


def tool(gives: Any, takes: Any = None) -> Capability:
    return Capability("music.album", "", takes or obj(id=TEXT), gives, read_only=True)


def auto(**script: Sequence[Any]) -> tuple[AutoMind, ScriptedModel]:
    model = ScriptedModel(script)
    return AutoMind(RulesMind(), LlmMind(model)), model


def demand(wants: Any, gives: Any = None, **data: Any) -> Demand:
    return Demand(Need("music.album", gives, wants), data)


MEANT = link("result:/tracks", of=["music.album:/songs"])
READ = link("result:/tracks", of=["response:/songs"])


async def test_the_providers_model_fills_what_rules_would_leave_empty() -> None:
    mind, model = auto(offer=[offer_answer(call("music.album"), result=[MEANT])])
    offer = Offer((tool(ALBUM),))
    contact = await meet(RulesMind(), mind, demand(WANTED), offer)
    assert await contact.call({}, RUN, offer) == {"title": "Blue", "tracks": ["River"]}
    assert contact.halves[0].empty == contact.halves[1].empty == ()
    assert model.calls == {"offer": 1}


async def test_the_callers_model_fills_what_rules_would_leave_empty() -> None:
    mind, model = auto(reply=[reply_answer([], [READ])])
    offer = Offer((tool(ALBUM),))
    contact = await meet(mind, RulesMind(), demand(WANTED), offer)
    assert await contact.call({}, RUN, offer) == {"title": "Blue", "tracks": ["River"]}
    assert contact.halves[0].empty == ()
    assert model.calls == {"reply": 1}


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_model_cannot_fill_is_agreed_and_told(*, fails: bool) -> None:
    """Each model is asked once, also where it fails, and rules serve as without it."""
    offered, replied = offer_answer(), {**reply_answer([], []), "usable": False}
    theirs, provides = auto(offer=[] if fails else [offered])
    ours, asks = auto(reply=[] if fails else [replied])
    offer = Offer((tool(ALBUM),))
    contact = await meet(ours, theirs, demand(WANTED), offer)
    assert await contact.call({}, RUN, offer) == {"title": "Blue"}
    assert contact.halves[0].empty == ("/tracks",)
    assert (provides.calls, asks.calls) == ({"offer": 1}, {"reply": 1})


async def test_a_published_document_with_a_gap_gets_a_half_of_the_model() -> None:
    mind, model = auto(reply=[reply_answer([], [READ])])
    text = await RulesMind().propose(demand(ALBUM))
    half = await mind.write_half(text, demand(WANTED))
    assert (half.origin, half.empty, model.calls) == ("model", (), {"reply": 1})
    failing, model = auto()
    half = await failing.write_half(text, demand(WANTED))
    assert (half.origin, half.empty, model.calls) == (
        "rules",
        ("/tracks",),
        {"reply": 1},
    )


async def test_a_models_plan_tells_what_it_leaves_empty() -> None:
    mind = LlmMind(ScriptedModel({"offer": [offer_answer(call("music.album"))]}))
    offer = Offer((tool(ALBUM),))
    contact = await meet(RulesMind(), mind, demand(WANTED), offer)
    assert contact.halves[1].empty == ("/tracks",)


async def test_a_model_that_gives_nothing_of_a_result_has_no_plan() -> None:
    wanted = obj(tracks=TITLES, albums={"type": "array", "items": obj(name=TEXT)})
    answer = offer_answer(call("music.album"))
    mind = LlmMind(ScriptedModel({"offer": [answer, answer]}))
    with pytest.raises(Rejected, match="'tracks', got only 'songs', 'title'"):
        await meet(RulesMind(), mind, demand(wanted), Offer((tool(ALBUM),)))


LINES = {"type": "array", "items": obj("sku", sku=TEXT, note=TEXT)}
TAKEN = obj("lines", lines={"type": "array", "items": obj("code", code=TEXT)})


@pytest.mark.parametrize(
    "given",
    [
        {"lines": [{"sku": "a", "note": "red"}]},
        {"lines": [{"sku": "a", "size": 1}]},
        {"lines": [], "when": "now"},
    ],
    ids=["inside a list", "not named inside", "not named"],
)
async def test_a_models_plan_refuses_an_argument_that_it_has_no_place_for(
    given: dict[str, Any],
) -> None:
    linked = call(
        "music.album", link("music.album:/lines/*/code", of=["request:/lines/*/sku"])
    )
    mind = LlmMind(ScriptedModel({"offer": [offer_answer(linked)]}))
    offer = Offer((tool(obj(title=TEXT), TAKEN),))
    need = demand(obj(title=TEXT), obj("lines", lines=LINES), lines=[{"sku": "a"}])
    contact = await meet(RulesMind(), mind, need, offer)
    assert await contact.call({"lines": [{"sku": "a"}]}, RUN, offer) == {
        "title": "Blue"
    }
    answer = await contact.call(given, RUN, offer)
    assert answer["code"] == 400
    assert "takes no such value" in answer["message"]
    assert len(contact.called) == 1
