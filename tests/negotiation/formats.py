"""Two formats whose bytes are not JSON, worked out under `examples/formats`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.document.shape import Document
from negotiation.mind import Demand, Offer, Side
from negotiation.need import Capability, Need

FORMATS = Path(__file__).parent.parent.parent / "examples" / "formats"


@dataclass(frozen=True)
class Format:
    """One of the worked formats under `examples/`, and the capability it is for."""

    folder: str
    "Where its files are."

    capability: Capability
    "What the provider offers."

    arguments: dict[str, Any]
    "What the worked request asks it."

    def file(self, name: str) -> str:
        """Return the text of one of its files."""
        return (FORMATS / self.folder / name).read_text(encoding="utf-8")

    @property
    def document(self) -> Document:
        """Its document, read."""
        return read_document(self.file("document.md"))

    def side(self, role: str) -> Side:
        """Return what a half of that role is checked for."""
        tool = self.capability
        if role == "provider":
            return Offer((tool,))
        need = Need(tool.name, tool.input_schema, tool.output_schema)
        return Demand(need, self.arguments)


def strict(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has just these properties to have."""
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
UNIT = {"enum": ["C", "F", "K"]}
XML = Format(
    "product-xml",
    Capability(
        "shop.product",
        "",
        strict(sku=TEXT),
        strict(title=TEXT, price=NUMBER, currency=TEXT),
    ),
    {"sku": "P&1"},
)
BINARY = Format(
    "sensor-binary",
    Capability(
        "sensors.read",
        "",
        strict(sensor=TEXT, unit=UNIT),
        strict(value=NUMBER, unit=UNIT, raw={"type": "integer"}),
    ),
    {"sensor": "roof", "unit": "C"},
)
BOTH = pytest.mark.parametrize("form", [XML, BINARY], ids=["xml", "binary"])
ROLES = pytest.mark.parametrize("role", ["requester", "provider"])
