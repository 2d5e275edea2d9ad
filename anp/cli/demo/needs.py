"""The needs of the demo's buyer, and the programs of its shop.

The buyer names and shapes its data in another way than the shop's programs do: what
differs is what the two daemons have to come to an agreement about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anp.cli.demo.stage import Stage


@dataclass(frozen=True, slots=True)
class DemoNeed:
    """One thing that the buyer asks the shop for."""

    tool: str
    "The tool that answers, by its short name."

    need: str
    "Text of the call, in the buyer's words."

    data: Mapping[str, Any]
    "The input."

    input: Mapping[str, str] | None = None
    "Fields of the input with their types; None leaves the schema to the shop."

    output: Mapping[str, str] | None = None
    "Fields of the wanted answer with their types; None takes the shop's."

    offered: str = ""
    "The names and units of the shop's tool, for people."

    def words(self, stage: Stage, address: str) -> list[str]:
        """Return the words of the call, after writing the schemas it names."""
        words = ["call", address, self.need]
        words += ["-d", json.dumps(self.data, ensure_ascii=False)]
        for side, fields in (("input", self.input), ("output", self.output)):
            if fields is not None:
                path = stage.write(f"{self.tool}-{side}.json", _schema(fields))
                words += [f"--{side}-schema", path]
        return words


def _schema(fields: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": [*fields],
        "additionalProperties": False,
    }


PRODUCT = DemoNeed(
    "get_product",
    "get_product",
    {"productID": "P12346"},
    {"productID": "string"},
    {"product_name": "string", "price": "number"},
    "product_id -> productId, productName, productDescription, price, currency",
)
"Other names on both sides, and fewer of them: schemas alone settle it."

TIME = DemoNeed(
    "convert_time",
    "Use convert_time to convert a time to another zone",
    {
        "source_timezone": "Europe/Paris",
        "time": "16:30",
        "target_timezone": "Asia/Tokyo",
    },
)
"A tool of an MCP server, asked for in words."

BOOKING = DemoNeed("book_seats", "book_seats", {"show": "Tosca", "seats": 2})
"A capability that counts its calls; for what it changes its name alone has to stand."

UNITS = DemoNeed(
    "get_weather",
    "get_weather in degrees Fahrenheit",
    {"city_name": "Oslo"},
    {"city_name": "string"},
    {"temperature_fahrenheit": "number"},
    "city_name -> cityName, temperatureCelsius, skyCondition",
)
"Another unit: rules do not guess, a model writes the conversion."
