# kind: XML building and parsing with namespaces
"""Invoices as XML in the namespace agreed with the peer."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from decimal import Decimal

NS = "urn:example:invoice:2"
NSMAP = {"inv": NS}


class InvoiceError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"[{code}] {message}")
        self.code = code


@dataclass
class Line:
    description: str
    quantity: int
    unit_price: Decimal

    @property
    def amount(self) -> Decimal:
        return self.quantity * self.unit_price


@dataclass
class Invoice:
    number: str
    currency: str = "EUR"
    lines: list[Line] = field(default_factory=list)

    @property
    def total(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal("0"))

    def to_xml(self) -> ET.Element:
        root = ET.Element(f"{{{NS}}}Invoice", {"number": self.number})
        root.set("currency", self.currency)
        for position, line in enumerate(self.lines, start=1):
            element = ET.SubElement(root, f"{{{NS}}}Line", position=str(position))
            ET.SubElement(element, f"{{{NS}}}Description").text = line.description
            ET.SubElement(element, f"{{{NS}}}Amount").text = f"{line.amount:.2f}"
        ET.SubElement(root, f"{{{NS}}}Total").text = f"{self.total:.2f}"
        return root

    @classmethod
    def from_dict(cls, data: dict) -> Invoice:
        lines = [
            Line(item["description"], int(item["quantity"]), Decimal(item["price"]))
            for item in data.get("lines", [])
        ]
        return cls(data["number"], data.get("currency", "EUR"), lines)


def encode_invoice(data: dict) -> bytes:
    return ET.tostring(Invoice.from_dict(data).to_xml(), encoding="utf-8")


def decode_invoice(data: bytes) -> dict:
    try:
        root = ET.fromstring(data)
    except ET.ParseError as exc:
        raise InvoiceError(400, "malformed XML") from exc
    if root.tag != f"{{{NS}}}Invoice":
        raise InvoiceError(422, f"unexpected root {root.tag!r}")
    lines = []
    for element in root.findall("inv:Line", NSMAP):
        lines.append(
            {
                "position": int(element.get("position", "0")),
                "description": element.findtext("inv:Description", "", NSMAP),
                "amount": element.findtext("inv:Amount", "0.00", NSMAP),
            }
        )
    total = root.find("inv:Total", NSMAP)
    return {
        "number": root.attrib["number"],
        "currency": root.get("currency"),
        "lines": lines,
        "total": total.text if total is not None else None,
    }
