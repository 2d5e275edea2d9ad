"""Pairs of right halves: some by rules, some from a plan as a model gives it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document
from negotiation.document.shape import document_hash
from negotiation.llm.links.halves import provider_half, requester_half
from negotiation.llm.links.plans import ProviderPlan, RequesterPlan
from negotiation.llm.steps.offer import offer_form, read_offer
from negotiation.llm.steps.reply import read_reply, reply_form
from negotiation.mind import Demand, Offer
from negotiation.need import Capability, Need
from negotiation.rules.rules import own_terms, propose
from tests.negotiation.cases.pairs import PAIRS as RULES
from tests.negotiation.cases.table import Pair, by_rules, obj

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
COUNT = {"type": "integer"}
FLAG = {"type": "boolean"}
DAY = {"type": "string", "format": "date"}


def link(to: str, source: str = "", how: str = "copy", *args: str) -> dict[str, Any]:
    """Return a link as a model writes it."""
    return {
        "to": to,
        "how": how,
        "from": source.split() if source else [],
        "args": list(args),
    }


def planned(
    demand: Demand,
    capability: Capability,
    arguments: list[dict[str, Any]],
    result: list[dict[str, Any]],
) -> Pair:
    """Return a pair whose provider half is made from a plan."""
    text = propose(demand)
    document = read_document(text)
    answer = {
        "serves": True,
        "missing": "",
        "calls": [{"capability": capability.name, "arguments": arguments}],
        "result": result,
    }
    plan = read_offer(offer_form(document, Offer((capability,))), answer)
    assert isinstance(plan, ProviderPlan), plan
    half = provider_half(plan, document_hash(text))
    pair = by_rules_requester(text, demand, capability)
    return replace(pair, provider=half.text)


def by_rules_requester(text: str, demand: Demand, capability: Capability) -> Pair:
    """Return a pair whose provider half is still to be made."""
    own = by_rules(own_terms(capability), as_is(capability), capability)
    theirs = by_rules(text, demand, named(capability, demand))
    return replace(theirs, capability=capability, provider=own.provider)


def as_is(capability: Capability) -> Demand:
    """Return a need with the capability's own schemas."""
    need = Need(capability.name, capability.input_schema, capability.output_schema)
    return Demand(need, {})


def named(capability: Capability, demand: Demand) -> Capability:
    """Return a capability of the same name with the need's own schemas."""
    need = demand.need
    assert need.input_schema is not None
    assert need.output_schema is not None
    return Capability(capability.name, "", need.input_schema, need.output_schema)


def adapted(
    demand: Demand,
    capability: Capability,
    request: list[dict[str, Any]],
    result: list[dict[str, Any]],
) -> Pair:
    """Return a pair in the capability's terms; the requester half is from a plan."""
    text = own_terms(capability)
    document = read_document(text)
    answer = {"usable": True, "missing": "", "request": request, "result": result}
    plan = read_reply(reply_form(document, demand), answer)
    assert isinstance(plan, RequesterPlan), plan
    pair = by_rules(text, as_is(capability), capability)
    half = requester_half(plan, document_hash(text))
    return replace(pair, demand=demand, requester=half.text)


REPORT = Capability(
    "weather.report",
    "",
    obj(
        {
            "place_name": TEXT,
            "radius_km": NUMBER,
            "page_index": {**COUNT, "minimum": 0},
            "hourly": FLAG,
        },
        "place_name",
        "radius_km",
        "page_index",
    ),
    obj(
        {"temp_c": NUMBER, "wind": NUMBER, "station": TEXT, "note": TEXT, "day": DAY},
        "temp_c",
        "station",
    ),
)
WEATHER = Demand(
    Need(
        "weather.report",
        obj(
            {
                "city": TEXT,
                "radiusMiles": NUMBER,
                "page": {**COUNT, "minimum": 1},
                "hourly": FLAG,
            },
            "city",
            "radiusMiles",
            "page",
        ),
        obj(
            {
                "temperature": {**NUMBER, "description": "in degrees Fahrenheit"},
                "station": TEXT,
                "note": TEXT,
                "day": DAY,
            },
            "temperature",
            "station",
            "day",
        ),
    ),
    {"city": "Ulm", "radiusMiles": 10.5, "page": 1},
)
TRACK = Capability(
    "parcels.track",
    "",
    obj({"tracking_code": TEXT, "since": DAY, "limit": COUNT}, "tracking_code"),
    obj(
        {
            "events": {
                "type": "array",
                "items": obj(
                    {"at": DAY, "place": TEXT, "weight_kg": NUMBER}, "at", "place"
                ),
            },
            "carrier": TEXT,
            "sender": TEXT,
            "receiver": TEXT,
        },
        "events",
        "carrier",
    ),
)
TRACKED = Demand(
    Need(
        "parcels.track",
        obj({"code": TEXT, "since": DAY, "limit": COUNT}, "code", "since"),
        obj(
            {
                "steps": {
                    "type": "array",
                    "items": obj(
                        {"at": DAY, "place": TEXT, "weight_lb": NUMBER}, "at", "place"
                    ),
                },
                "carrier": TEXT,
                "sender": TEXT,
                "receiver": TEXT,
            },
            "steps",
            "carrier",
            "sender",
        ),
    ),
    {"code": "X1", "since": "2024-05-01"},
)
LIST = Capability(
    "shop.list",
    "",
    obj(
        {
            "query": TEXT,
            "page": {**COUNT, "minimum": 1},
            "max_price": NUMBER,
            "min_weight_kg": NUMBER,
            "in_stock": FLAG,
            "sort": {"enum": ["name", "price"]},
        },
        "query",
        "page",
    ),
    obj(
        {
            "items": {
                "type": "array",
                "items": obj({"name": TEXT, "maker": TEXT, "price": NUMBER}, "name"),
            },
            "next_page": COUNT,
            "total_count": COUNT,
        },
        "items",
    ),
)
LISTED = Demand(
    Need(
        "shop.list",
        LIST.input_schema,
        obj(
            {
                "items": {
                    "type": "array",
                    "items": obj(
                        {"name": TEXT, "maker": TEXT, "price": NUMBER}, "name", "price"
                    ),
                },
                "total_count": COUNT,
                "next_page": COUNT,
            },
            "items",
            "total_count",
        ),
    ),
    {"query": "chair", "page": 1, "in_stock": True},
)
PLANNED = {
    "weather by a plan": planned(
        WEATHER,
        REPORT,
        [
            link("weather.report:/place_name", "request:/city"),
            link(
                "weather.report:/radius_km",
                "request:/radiusMiles",
                "scale",
                "1.609344",
                "0",
            ),
            link("weather.report:/page_index", "request:/page", "scale", "1", "-1"),
        ],
        [
            link("result:/temperature", "weather.report:/temp_c", "scale", "9/5", "32"),
        ],
    ),
    "parcels by a plan": planned(
        TRACKED,
        TRACK,
        [link("parcels.track:/tracking_code", "request:/code")],
        [
            link("result:/steps/*/at", "parcels.track:/events/*/at"),
            link("result:/steps/*/place", "parcels.track:/events/*/place"),
            link(
                "result:/steps/*/weight_lb",
                "parcels.track:/events/*/weight_kg",
                "scale",
                "2.2046226218",
                "0",
            ),
        ],
    ),
    "weather by the caller's plan": adapted(
        WEATHER,
        REPORT,
        [
            link("request:/place_name", "arguments:/city"),
            link(
                "request:/radius_km", "arguments:/radiusMiles", "scale", "1.609344", "0"
            ),
            link("request:/page_index", "arguments:/page", "scale", "1", "-1"),
        ],
        [link("result:/temperature", "response:/temp_c", "scale", "9/5", "32")],
    ),
    "parcels by the caller's plan": adapted(
        TRACKED,
        TRACK,
        [link("request:/tracking_code", "arguments:/code")],
        [
            link("result:/steps/*/at", "response:/events/*/at"),
            link("result:/steps/*/place", "response:/events/*/place"),
            link(
                "result:/steps/*/weight_lb",
                "response:/events/*/weight_kg",
                "scale",
                "2.2046226218",
                "0",
            ),
        ],
    ),
}
CORPUS: dict[str, Pair] = {
    **{
        name: RULES[name]
        for name in (
            "the task's own terms",
            "the capability's terms",
            "the seed's product",
            "conversions inside",
            "the capability's terms inside",
            "a status in words",
            "no message id",
            "inferred from the data",
            "no object",
        )
    },
    "shop by rules": by_rules(propose(LISTED), LISTED, LIST),
    "shop in the capability's terms": by_rules(own_terms(LIST), LISTED, LIST),
    "shop, plain": by_rules(
        render_document("shop.list", LIST.input_schema, LIST.output_schema),
        as_is(LIST),
        LIST,
    ),
    **PLANNED,
}
