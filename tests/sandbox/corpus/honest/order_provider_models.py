# kind: generator half: dataclass models, match on the request, CSV reply
"""Provider half: orders with models, and answers as JSON or CSV."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from enum import StrEnum
from io import StringIO
from typing import Any, Self


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, kw_only=True)
class Item:
    sku: str
    quantity: int
    price: Decimal

    @classmethod
    def from_stock(cls, sku: str, quantity: int, stock: dict[str, Any]) -> Self:
        return cls(sku=sku, quantity=min(quantity, stock["available"]), price=Decimal(str(stock["price"])))

    @property
    def total(self) -> Decimal:
        return self.price * self.quantity


@dataclass
class Order:
    customer: str
    items: list[Item] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __iadd__(self, item: Item) -> Self:
        self.items.append(item)
        return self

    @property
    def total(self) -> Decimal:
        return sum((item.total for item in self.items), Decimal())

    def render(self, format: Format) -> bytes:
        match format:
            case Format.JSON:
                body = asdict(self) | {"total": self.total}
                return json.dumps(body, default=str).encode()
            case Format.CSV:
                out = StringIO()
                writer = csv.writer(out)
                writer.writerow(("sku", "quantity", "total"))
                writer.writerows((i.sku, i.quantity, f"{i.total:.2f}") for i in self.items)
                return out.getvalue().encode()


def _wanted(request: dict[str, Any]) -> dict[str, int]:
    match request:
        case {"items": {**items}}:
            return {str(sku): int(quantity) for sku, quantity in items.items()}
        case {"items": [*pairs]}:
            return {sku: quantity for sku, quantity in pairs}
        case {"sku": str(sku), **rest}:
            return {sku: rest.get("quantity", 1)}
    raise ValueError("request names no items")


def handle_request(data: bytes):
    request: dict[str, Any] = json.loads(data)
    order = Order(request.get("customer", "anonymous"))
    for sku, quantity in _wanted(request).items():
        try:
            stock = yield call("stock", {"sku": sku})
        except CapabilityError as exc:
            order.warnings.append(f"{sku}: {exc.message} ({exc.code})")
            continue
        item = Item.from_stock(sku, quantity, stock)
        if item.quantity < quantity:
            order.warnings.append(f"{sku}: only {item.quantity} of {quantity}")
        order += item
    if order.items and not request.get("dry_run", False):
        lines = [{"sku": item.sku, "quantity": item.quantity} for item in order.items]
        yield call("reserve", {"customer": order.customer, "lines": lines})
    return order.render(Format(request.get("format", "json")))
