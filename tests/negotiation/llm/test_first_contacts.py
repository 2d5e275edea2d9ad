"""First contacts with a model on one side: kinds of tasks, their calls and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest

from negotiation.llm.auto import AutoMind
from negotiation.llm.mind import LlmMind
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from tests.clauses import clause
from tests.negotiation.llm.scripted import (
    Contact,
    ScriptedModel,
    Tool,
    call,
    link,
    meet,
    offer_answer,
    reply_answer,
)


def strict(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
WHOLE: dict[str, Any] = {"type": "integer"}


@dataclass(frozen=True)
class Kind:
    """One kind of task, with a good reader's answers on either side."""

    demand: Demand
    tools: tuple[Capability, ...]
    run: Mapping[str, Tool]
    gives: Any
    calls: Sequence[tuple[str, Any]]
    provider: Sequence[Any]
    requester: Sequence[Any] = ()
    error: Any = None
    fails: Mapping[str, Tool] = field(default_factory=dict)

    @property
    def offer(self) -> Offer:
        return Offer(self.tools)


RENAMED = Kind(
    Demand(
        Need(
            "Tell the weather of a place",
            strict(city=TEXT, country=TEXT),
            strict(temperature=NUMBER, wind=strict(speed=NUMBER, from_=TEXT)),
        ),
        {"city": "Ulm", "country": "DE"},
    ),
    (
        Capability(
            "met.observe",
            "Latest observation of a station near a place, in Celsius and km/h",
            strict(location=strict(name=TEXT, land=TEXT)),
            strict(obs=strict(temp=NUMBER, wind_kmh=NUMBER), wind_dir=TEXT, at=TEXT),
            read_only=True,
        ),
        Capability("met.purge", "Deletes all stations", strict(sure=TEXT), strict()),
    ),
    {
        "met.observe": lambda given: {
            "obs": {"temp": 7.5, "wind_kmh": 30},
            "wind_dir": "NW",
            "at": given["location"]["name"],
        }
    },
    {"temperature": 7.5, "wind": {"speed": 30, "from_": "NW"}},
    [("met.observe", {"location": {"name": "Ulm", "land": "DE"}})],
    [
        offer_answer(
            call(
                "met.observe",
                link("met.observe:/location/name", of=["request:/city"]),
                link("met.observe:/location/land", of=["request:/country"]),
            ),
            result=[
                link("result:/temperature", of=["met.observe:/obs/temp"]),
                link("result:/wind/speed", of=["met.observe:/obs/wind_kmh"]),
                link("result:/wind/from_", of=["met.observe:/wind_dir"]),
            ],
        )
    ],
    [
        reply_answer(
            [
                link("request:/location/name", of=["arguments:/city"]),
                link("request:/location/land", of=["arguments:/country"]),
            ],
            [
                link("result:/temperature", of=["response:/obs/temp"]),
                link("result:/wind/speed", of=["response:/obs/wind_kmh"]),
                link("result:/wind/from_", of=["response:/wind_dir"]),
            ],
        )
    ],
)

UNITS = Kind(
    Demand(
        Need(
            "Temperature of the oven in degrees Celsius",
            strict(oven=TEXT, minutes=WHOLE),
            strict(celsius=NUMBER, litres=NUMBER),
        ),
        {"oven": "left", "minutes": 5},
    ),
    (
        Capability(
            "oven.read",
            "Mean temperature in Fahrenheit over some seconds, and volume in ml",
            strict(oven=TEXT, seconds=WHOLE),
            strict(fahrenheit=NUMBER, volume_ml=WHOLE),
            read_only=True,
        ),
    ),
    {"oven.read": lambda given: {"fahrenheit": 392, "volume_ml": 61500}},
    {"celsius": 200.0, "litres": 61.5},
    [("oven.read", {"oven": "left", "seconds": 300})],
    [
        offer_answer(
            call(
                "oven.read",
                link("oven.read:/oven", of=["request:/oven"]),
                link("oven.read:/seconds", "scale", "60", "0", of=["request:/minutes"]),
            ),
            result=[
                link(
                    "result:/celsius",
                    "scale",
                    "5/9",
                    "-160/9",
                    of=["oven.read:/fahrenheit"],
                ),
                link(
                    "result:/litres", "scale", "0.001", "0", of=["oven.read:/volume_ml"]
                ),
            ],
        )
    ],
    [
        reply_answer(
            [link("request:/seconds", "scale", "60", "0", of=["arguments:/minutes"])],
            [
                link(
                    "result:/celsius",
                    "scale",
                    "5/9",
                    "-160/9",
                    of=["response:/fahrenheit"],
                ),
                link(
                    "result:/litres", "scale", "1/1000", "0", of=["response:/volume_ml"]
                ),
            ],
        )
    ],
)

CHINESE = Kind(
    Demand(
        Need(
            "查询一本书的价格,单位为元",
            strict(书名=TEXT),
            strict(价格=NUMBER, 作者=TEXT),
        ),
        {"书名": "红楼梦"},
    ),
    (
        Capability(
            "books.lookup",
            "Looks up a book by its title; the price is in fen, 1/100 yuan",
            strict(title=TEXT),
            strict(price_fen=WHOLE, authors={"type": "array", "items": TEXT}),
            read_only=True,
        ),
    ),
    {"books.lookup": lambda given: {"price_fen": 5980, "authors": ["曹雪芹", "高鹗"]}},
    {"价格": 59.8, "作者": "曹雪芹, 高鹗"},
    [("books.lookup", {"title": "红楼梦"})],
    [
        offer_answer(
            call("books.lookup", link("books.lookup:/title", of=["request:/书名"])),
            result=[
                link(
                    "result:/价格",
                    "scale",
                    "1/100",
                    "0",
                    of=["books.lookup:/price_fen"],
                ),
                link(
                    "result:/作者",
                    "python",
                    "', '.join(a)",
                    of=["books.lookup:/authors"],
                ),
            ],
        )
    ],
    [
        reply_answer(
            [link("request:/title", of=["arguments:/书名"])],
            [
                link("result:/价格", "scale", "1/100", "0", of=["response:/price_fen"]),
                link(
                    "result:/作者", "python", "', '.join(a)", of=["response:/authors"]
                ),
            ],
        )
    ],
)

DATES = Kind(
    Demand(
        Need(
            "Book a desk for a day",
            strict(
                day={"type": "string", "format": "date"},
                size={"enum": ["small", "large"]},
            ),
            strict(
                until={"type": "string", "format": "date-time"},
                state={"enum": ["booked", "waiting"]},
            ),
        ),
        {"day": "2027-03-01", "size": "large"},
    ),
    (
        Capability(
            "desks.reserve",
            "Reserves; start in Unix seconds; s and l are the sizes; ok: free or queue",
            strict(start=WHOLE, kind={"enum": ["s", "l"]}),
            strict(end=WHOLE, free={"type": "boolean"}),
        ),
    ),
    {"desks.reserve": lambda given: {"end": given["start"] + 86399, "free": False}},
    {"until": "2027-03-01T23:59:59Z", "state": "waiting"},
    [("desks.reserve", {"start": 1803859200, "kind": "l"})],
    [
        offer_answer(
            call(
                "desks.reserve",
                link(
                    "desks.reserve:/start",
                    "date",
                    "date",
                    "unix-seconds",
                    of=["request:/day"],
                ),
                link(
                    "desks.reserve:/kind",
                    "values",
                    *("small", "s", "large", "l"),
                    of=["request:/size"],
                ),
            ),
            result=[
                link(
                    "result:/until",
                    "date",
                    "unix-seconds",
                    "date-time",
                    of=["desks.reserve:/end"],
                ),
                link(
                    "result:/state",
                    "values",
                    *("true", "booked", "false", "waiting"),
                    of=["desks.reserve:/free"],
                ),
            ],
        )
    ],
    [
        reply_answer(
            [
                link(
                    "request:/start",
                    "date",
                    "date",
                    "unix-seconds",
                    of=["arguments:/day"],
                ),
                link(
                    "request:/kind",
                    "values",
                    *("small", "s", "large", "l"),
                    of=["arguments:/size"],
                ),
            ],
            [
                link(
                    "result:/until",
                    "date",
                    "unix-seconds",
                    "date-time",
                    of=["response:/end"],
                ),
                link(
                    "result:/state",
                    "values",
                    *("true", "booked", "false", "waiting"),
                    of=["response:/free"],
                ),
            ],
        )
    ],
)

LISTS = Kind(
    Demand(
        Need(
            "Search flats and list them with their rent",
            strict(area=TEXT),
            strict(
                flats={"type": "array", "items": strict(street=TEXT, rent=NUMBER)},
                count=WHOLE,
            ),
        ),
        {"area": "north"},
    ),
    (
        Capability(
            "homes.search",
            "Finds homes; rent in cents",
            strict(district=TEXT, limit=WHOLE),
            strict(
                hits={
                    "type": "array",
                    "items": strict(addr=strict(line=TEXT), cents=WHOLE),
                }
            ),
            read_only=True,
        ),
    ),
    {
        "homes.search": lambda given: {
            "hits": [
                {"addr": {"line": "A 1"}, "cents": 80000},
                {"addr": {"line": "B 2"}, "cents": 95050},
            ]
        }
    },
    {
        "flats": [{"street": "A 1", "rent": 800.0}, {"street": "B 2", "rent": 950.5}],
        "count": 2,
    },
    [("homes.search", {"district": "north", "limit": 20})],
    [
        offer_answer(
            call(
                "homes.search",
                link("homes.search:/district", of=["request:/area"]),
                link("homes.search:/limit", "constant", "20"),
            ),
            result=[
                link("result:/flats/*/street", of=["homes.search:/hits/*/addr/line"]),
                link(
                    "result:/flats/*/rent",
                    *("scale", "0.01", "0"),
                    of=["homes.search:/hits/*/cents"],
                ),
                link("result:/count", "count", of=["homes.search:/hits"]),
            ],
        )
    ],
    [
        reply_answer(
            [
                link("request:/district", of=["arguments:/area"]),
                link("request:/limit", "constant", "20"),
            ],
            [
                link("result:/flats/*/street", of=["response:/hits/*/addr/line"]),
                link(
                    "result:/flats/*/rent",
                    *("scale", "0.01", "0"),
                    of=["response:/hits/*/cents"],
                ),
                link("result:/count", "count", of=["response:/hits"]),
            ],
        )
    ],
)

TWO_CALLS = Kind(
    Demand(
        Need(
            "Weather at an address, in Celsius",
            strict(address=TEXT),
            strict(celsius=NUMBER, place=TEXT),
        ),
        {"address": "Münsterplatz 1, Ulm"},
    ),
    (
        Capability(
            "geo.find",
            "Coordinates of an address",
            strict(query=TEXT),
            strict(lat=NUMBER, lon=NUMBER, label=TEXT),
            read_only=True,
        ),
        Capability(
            "sky.at",
            "Temperature in kelvin at coordinates",
            strict(latitude=NUMBER, longitude=NUMBER),
            strict(kelvin=NUMBER),
            read_only=True,
        ),
    ),
    {
        "geo.find": lambda given: {"lat": 48.4, "lon": 9.99, "label": "Ulm"},
        "sky.at": lambda given: {"kelvin": 280.15},
    },
    {"celsius": 7.0, "place": "Ulm"},
    [
        ("geo.find", {"query": "Münsterplatz 1, Ulm"}),
        ("sky.at", {"latitude": 48.4, "longitude": 9.99}),
    ],
    [
        offer_answer(
            call("geo.find", link("geo.find:/query", of=["request:/address"])),
            call(
                "sky.at",
                link("sky.at:/latitude", of=["geo.find:/lat"]),
                link("sky.at:/longitude", of=["geo.find:/lon"]),
            ),
            result=[
                link("result:/celsius", "scale", "1", "-273.15", of=["sky.at:/kelvin"]),
                link("result:/place", of=["geo.find:/label"]),
            ],
        )
    ],
)

KINDS = {
    "renamed and nested": RENAMED,
    "units": UNITS,
    "chinese": CHINESE,
    "dates and enums": DATES,
    "lists": LISTS,
    "two calls": TWO_CALLS,
}
BOTH = pytest.mark.parametrize("name", KINDS)
AT_REQUESTER = pytest.mark.parametrize(
    "name", [name for name in KINDS if KINDS[name].requester]
)


async def right(kind: Kind, contact: Contact) -> None:
    arguments: Any = kind.demand.arguments
    assert await contact.call(arguments, kind.run, kind.offer) == kind.gives
    assert contact.called == list(kind.calls)
    used = {name for name, _ in kind.calls}
    assert set(contact.halves[1].capabilities) == used


@clause("ANP-5")
@BOTH
async def test_the_provider_alone_has_a_model(name: str) -> None:
    kind = KINDS[name]
    model = ScriptedModel({"offer": kind.provider})
    contact = await meet(RulesMind(), LlmMind(model), kind.demand, kind.offer)
    await right(kind, contact)
    assert model.calls == {"offer": 1}
    assert len(contact.transcript) == 1


@clause("ANP-33")
@AT_REQUESTER
async def test_the_requester_alone_has_a_model(name: str) -> None:
    kind = KINDS[name]
    model = ScriptedModel({"reply": kind.requester})
    # The rules of the provider know a capability by its name, and serve a sentence by
    # one that changes nothing only.
    name, harmless = kind.tools[0].name, kind.tools[0].read_only
    demand = Demand(
        Need(
            f"{kind.demand.need.requirement} (`{name}`)" if harmless else name,
            kind.demand.need.input_schema,
            kind.demand.need.output_schema,
        ),
        kind.demand.arguments,
    )
    contact = await meet(LlmMind(model), RulesMind(), demand, kind.offer)
    await right(kind, contact)
    assert model.calls == {"reply": 1}
    assert len(contact.transcript) == 2


@BOTH
async def test_with_rules_first_the_model_is_asked_no_more(name: str) -> None:
    kind = KINDS[name]
    model = ScriptedModel({"offer": kind.provider})
    mind = AutoMind(RulesMind(), LlmMind(model))
    other = AutoMind(RulesMind(), LlmMind(ScriptedModel()))
    contact = await meet(other, mind, kind.demand, kind.offer)
    await right(kind, contact)
    assert model.calls == {"offer": 1}


async def test_a_first_contact_costs_at_most_three_calls_in_the_median() -> None:
    counts: dict[str, int] = {}
    for name, kind in KINDS.items():
        model = ScriptedModel({"offer": kind.provider, "reply": kind.requester})
        sides = LlmMind(model), LlmMind(model)
        await right(kind, await meet(*sides, kind.demand, kind.offer))
        counts[name] = model.calls.total()
    print(counts)
    assert median(counts.values()) <= 3
    assert max(counts.values()) <= 6


async def test_the_second_contact_asks_nothing() -> None:
    model = ScriptedModel({"offer": RENAMED.provider})
    mind = LlmMind(model)
    first = await meet(RulesMind(), mind, RENAMED.demand, RENAMED.offer)
    again = await mind.write_half(first.document, RENAMED.offer)
    assert again.text == first.halves[1].text
    assert model.calls.total() == 1


async def test_what_schemas_alone_decide_costs_no_call() -> None:
    model = ScriptedModel()
    (tool, *_) = CHINESE.tools
    need = Need("books.lookup", tool.input_schema, tool.output_schema)
    one, two = (AutoMind(RulesMind(), LlmMind(model)) for _ in range(2))
    demand = Demand(need, {"title": "红楼梦"})
    contact = await meet(one, two, demand, CHINESE.offer)
    result = await contact.call({"title": "红楼梦"}, CHINESE.run, CHINESE.offer)
    assert result["price_fen"] == 5980
    assert contact.halves[0].origin == contact.halves[1].origin == "rules"
    assert model.calls == {}
