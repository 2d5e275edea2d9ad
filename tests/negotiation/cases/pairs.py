"""Documents of many kinds, with both sides and their halves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from negotiation.mind import Demand
from negotiation.need import Capability, Need
from negotiation.rules.rules import own_terms, propose
from tests.negotiation.cases.table import Pair, by_rules, obj
from tests.negotiation.formats import BINARY, XML, Format

VECTORS = Path(__file__).parent.parent.parent / "vectors" / "negotiation"
SEED_DOCUMENT = (VECTORS / "seed_product_full.md").read_text(encoding="utf-8")

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
COUNT = {"type": "integer"}
FLAG = {"type": "boolean"}
ORDER = Capability(
    "shop.order",
    "",
    obj({"sku": TEXT, "note": TEXT, "count": COUNT}, "sku", "count"),
    obj({"name": TEXT, "maker": TEXT, "price": NUMBER}, "name", "maker", "price"),
)
ORDERED = Demand(
    Need("shop.order", ORDER.input_schema, ORDER.output_schema),
    {"sku": "P1", "note": "soon", "count": 2},
)
SEARCH = Capability("shop.text", "", obj({"query": TEXT}, "query"), TEXT)
PRODUCT = Capability(
    "product_info",
    "",
    obj({"product_id": TEXT, "product_name": TEXT}, "product_id"),
    obj(
        {
            "product_id": TEXT,
            "product_name": TEXT,
            "product_description": TEXT,
            "price": NUMBER,
            "currency": TEXT,
        },
        "product_id",
        "product_name",
        "product_description",
        "price",
        "currency",
    ),
)
PLAN = Capability(
    "trips.plan",
    "",
    obj(
        {
            "from_city": TEXT,
            "to_city": TEXT,
            "stops": {
                "type": "array",
                "items": obj({"stop_name": TEXT, "nights": COUNT}, "stop_name"),
            },
            "by_train": FLAG,
            "class_of": {"enum": ["first", "second"], "default": "second"},
        },
        "from_city",
        "to_city",
        "class_of",
    ),
    obj(
        {
            "legs": {
                "type": "array",
                "items": obj(
                    {"leg_from": TEXT, "leg_to": TEXT, "leg_km": NUMBER},
                    "leg_from",
                    "leg_to",
                    "leg_km",
                ),
            },
            "total_km": NUMBER,
            "is_cheap": FLAG,
            "is_quick": FLAG,
        },
        "legs",
        "total_km",
        "is_cheap",
        "is_quick",
        additionalProperties=TEXT,
    ),
)
PLANNED = Demand(
    Need(
        "trips.plan",
        obj(
            {
                "fromCity": TEXT,
                "toCity": TEXT,
                "stops": {
                    "type": "array",
                    "items": obj({"stopName": TEXT, "nights": COUNT}, "stopName"),
                },
                "byTrain": FLAG,
                "classOf": {"enum": ["first", "second"]},
            },
            "fromCity",
            "toCity",
        ),
        obj(
            {
                "legs": {
                    "type": "array",
                    "items": obj(
                        {"legFrom": TEXT, "legTo": TEXT, "legKm": NUMBER},
                        "legFrom",
                        "legTo",
                        "legKm",
                    ),
                },
                "totalKm": NUMBER,
                "isCheap": FLAG,
                "isQuick": FLAG,
            },
            "legs",
            "totalKm",
            "isCheap",
            "isQuick",
        ),
    ),
    {"fromCity": "Ulm", "toCity": "Bonn"},
)


def schemas(request: dict[str, Any], response: dict[str, Any]) -> str:
    """Return a document in words of others."""
    return (
        "# Need\nweather.report\n\n# Request message\n```json\n"
        f"{json.dumps(request)}\n```\n\n# Response message\n```json\n"
        f"{json.dumps(response)}\n```\n"
    )


WEATHER = Capability(
    "weather.report",
    "",
    obj({"place": TEXT, "days": COUNT}, "place", "days"),
    obj({"summary": TEXT, "high": NUMBER, "low": NUMBER}, "summary", "high", "low"),
)
FORECAST = WEATHER.output_schema
WORDS = schemas(
    obj({"id": TEXT, "place": TEXT, "days": COUNT}, "id", "place", "days"),
    obj(
        {
            "id": TEXT,
            "status": {"enum": ["ok", "error"]},
            "message": TEXT,
            "forecast": FORECAST,
        },
        "id",
        "status",
    ),
)
BARE = schemas(
    obj({"place": TEXT, "days": COUNT}, "place", "days"),
    obj(
        {"code": COUNT, "message": TEXT, "forecast": FORECAST},
        "code",
    ),
)
REPORTED = Demand(
    Need("weather.report", WEATHER.input_schema, WEATHER.output_schema),
    {"place": "Ulm", "days": 3},
)


def by_hand(form: Format) -> Pair:
    """Return a pair whose bytes are not JSON."""
    demand = form.side("requester")
    assert isinstance(demand, Demand)
    return Pair(
        form.document,
        demand,
        form.capability,
        form.file("requester.py"),
        form.file("provider.py"),
    )


INFERRED = Demand(Need("shop.order"), {"sku": "P1", "note": "x", "count": 1})
PAIRS: dict[str, Pair] = {
    "the task's own terms": by_rules(propose(ORDERED), ORDERED, ORDER),
    "inferred from the data": by_rules(propose(INFERRED), INFERRED, ORDER),
    "the capability's terms": by_rules(own_terms(ORDER), ORDERED, ORDER),
    "no object": by_rules(
        own_terms(SEARCH), Demand(Need("shop.text"), {"query": "x"}), SEARCH
    ),
    "the seed's product": by_rules(
        SEED_DOCUMENT.replace("获取商品信息", "product_info"),
        Demand(Need("product_info", PRODUCT.input_schema), {"product_id": "P1"}),
        PRODUCT,
    ),
    "conversions inside": by_rules(propose(PLANNED), PLANNED, PLAN),
    "the capability's terms inside": by_rules(own_terms(PLAN), PLANNED, PLAN),
    "a status in words": by_rules(WORDS, REPORTED, WEATHER),
    "no message id": by_rules(BARE, REPORTED, WEATHER),
    "XML": by_hand(XML),
    "packed binary": by_hand(BINARY),
}
