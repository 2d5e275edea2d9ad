"""Nothing is agreed that is empty: a fit gives values, and says which stay out."""

from __future__ import annotations

from typing import Any

import pytest

from negotiation.mind import Accept, Counter, Demand, Offer
from negotiation.need import Capability, Need, Schema
from negotiation.rules.rules import RulesMind, judge_offer, judge_reply, propose
from negotiation.schema.mapping import compare
from negotiation.schema.plan import Mismatch, NothingFound, Plan
from negotiation.schema.terms import Drop, MappingProof
from negotiation.transcript import calls_in_words
from tests.negotiation.llm.scripted import Contact, Rejected, Tool, meet

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def obj(*required: str, **properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TITLES = {"type": "array", "items": TEXT}
SONGS = obj(songs=TITLES)
TRACKS = obj(tracks=TITLES)
ALBUM = obj(title=TEXT, songs=TITLES)
WANTED = obj(title=TEXT, tracks=TITLES)


def tool(gives: Schema, takes: Schema | None = None) -> Capability:
    return Capability("music.album", "", takes or obj(id=TEXT), gives, read_only=True)


def demand(wants: Schema, gives: Schema | None = None, **data: Any) -> Demand:
    return Demand(Need("music.album", gives, wants), data)


async def agreed(need: Demand, offered: Capability) -> Contact:
    return await meet(RulesMind(), RulesMind(), need, Offer((offered,)))


def giving(output: Any) -> dict[str, Tool]:
    return {"music.album": lambda _: output}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


@pytest.mark.parametrize("proof", [MappingProof.FULL, MappingProof.OPEN])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (SONGS, TRACKS),
        ({"type": "array", "items": SONGS}, {"type": "array", "items": TRACKS}),
        (obj(album=SONGS), obj(album=TRACKS)),
        (obj(albums={"type": "array", "items": SONGS}), obj(albums={"items": TRACKS})),
        (nullable(SONGS), nullable(TRACKS)),
        (SONGS, obj("kind", kind={"const": "album"}, tracks=TITLES)),
        (SONGS, obj("tracks", tracks={**TITLES, "default": []})),
        (SONGS, {**TRACKS, "additionalProperties": True}),
    ],
    ids=["flat", "items", "inside", "both", "null", "constant", "default", "open"],
)
def test_a_result_of_which_no_wanted_value_has_a_source_is_no_fit(
    source: Schema, target: Schema, proof: MappingProof
) -> None:
    found = compare(source, target, drop=Drop.ALL, proof=proof)
    assert isinstance(found, Mismatch)
    assert any(isinstance(one, NothingFound) for one in found.reasons)


@pytest.mark.parametrize(
    ("source", "target", "empty"),
    [
        (ALBUM, WANTED, ("/tracks",)),
        (obj(title=TEXT), WANTED, ()),
        (obj(title=TEXT, year=NUMBER), WANTED, ()),
        (obj(title=TEXT, extra=SONGS), obj(title=TEXT, extra=TRACKS), ("/extra",)),
        (
            {"type": "array", "items": ALBUM},
            {"type": "array", "items": WANTED},
            ("/*/tracks",),
        ),
        (
            obj(title=TEXT, songs=TITLES),
            obj("tracks", title=TEXT, tracks={**TITLES, "default": []}),
            ("/tracks",),
        ),
        (
            obj(title=TEXT, n=NUMBER),
            obj(title=TEXT, count={"type": "integer"}),
            ("/count",),
        ),
    ],
)
def test_a_place_stays_empty_where_an_unused_value_may_be_meant(
    source: Schema, target: Schema, empty: tuple[str, ...]
) -> None:
    plan = compare(source, target, drop=Drop.ALL)
    assert isinstance(plan, Plan)
    assert plan.empty == empty
    assert sum("gets no value" in line for line in plan.describe()) == len(empty)


async def test_a_need_of_other_names_alone_is_refused_with_them() -> None:
    with pytest.raises(Rejected, match=r"'tracks', got only 'songs'"):
        await agreed(demand(TRACKS), tool(SONGS))


async def test_a_part_of_a_result_is_agreed_on_and_its_empty_places_are_known() -> None:
    contact = await agreed(demand(WANTED), tool(ALBUM))
    assert contact.halves[0].empty == ("/tracks",)
    run = giving({"title": "Blue", "songs": ["River"]})
    assert await contact.call({}, run, Offer((tool(ALBUM),))) == {"title": "Blue"}


async def test_a_caller_with_more_arguments_still_learns_what_stays_empty() -> None:
    """Its data have no place in the provider's terms, which take its request then."""
    takes, gives = obj(id=TEXT), obj(id=TEXT, language=TEXT)
    offered = tool(ALBUM, takes)
    contact = await agreed(demand(WANTED, gives, id="1"), offered)
    assert contact.halves[0].empty == ("/tracks",)
    run = giving({"title": "Blue"})
    answer = await contact.call({"id": "1"}, run, Offer((offered,)))
    assert (answer, contact.called) == (
        {"title": "Blue"},
        [("music.album", {"id": "1"})],
    )
    refused = await contact.call({"id": "1", "language": "fr"}, run, Offer((offered,)))
    assert refused == {
        "code": 400,
        "message": "language: the capability takes no such value",
    }
    assert len(contact.called) == 1


def test_a_provider_whose_terms_were_declined_accepts_and_tells_the_places() -> None:
    need, offer = demand(WANTED), Offer((tool(ALBUM),))
    first = judge_offer(propose(need), offer, ())
    assert isinstance(first, Counter)
    assert first.empty == ("/tracks",)
    assert "nothing is called /tracks here" in first.summary
    again = judge_offer(propose(need), offer, (first.document,))
    assert again == Accept(empty=("/tracks",))
    assert judge_reply(first.document, need, (propose(need),)) == again
    words = calls_in_words(["music.album"], again.empty)
    assert words == "Calls `music.album`.\nGives no value for `/tracks`."


async def test_a_dictionary_without_names_gives_what_is_wanted_or_an_error() -> None:
    offered = tool({"type": "object"})
    contact = await agreed(demand(WANTED), offered)
    for given, answer in (
        ({"title": "Blue", "songs": []}, {"title": "Blue"}),
        ({}, {}),
    ):
        assert await contact.call({}, giving(given), Offer((offered,))) == answer
    failed = await contact.call({}, giving({"songs": ["River"]}), Offer((offered,)))
    assert (failed["code"], failed["message"][:23]) == (502, "none of the values that")


@pytest.mark.parametrize(
    ("takes", "given"),
    [
        (obj(id=TEXT), {"id": "1", "language": "fr"}),
        (obj(where=obj(city=TEXT)), {"where": {"city": "a", "zip": "1"}}),
        (obj(lines={"type": "array", "items": obj(sku=TEXT)}), {"lines": [{"n": 1}]}),
    ],
    ids=["flat", "inside", "items"],
)
async def test_an_argument_without_a_place_is_refused_before_anything_runs(
    takes: dict[str, Any], given: dict[str, Any]
) -> None:
    """The caller's schema allows it without naming it."""
    closed = {
        **takes,
        "properties": {name: _closed(one) for name, one in takes["properties"].items()},
        "additionalProperties": False,
    }
    offered = tool(ALBUM, closed)
    contact = await agreed(demand(obj(title=TEXT), takes), offered)
    run = giving({"title": "Blue"})
    answer = await contact.call(given, run, Offer((offered,)))
    assert answer["code"] == 400
    assert contact.called == []


def _closed(schema: Any) -> Any:
    if schema.get("type") == "array":
        return {**schema, "items": _closed(schema["items"])}
    return (
        {**schema, "additionalProperties": False} if "properties" in schema else schema
    )
