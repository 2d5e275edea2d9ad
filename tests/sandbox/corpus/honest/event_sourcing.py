# kind: event-sourced inventory with TypedDict, Literal and NewType
"""Stock levels rebuilt from events; reservations expire."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Literal, NewType, Required, TypedDict

Sku = NewType("Sku", str)


class StockEvent(TypedDict, total=False):
    type: Required[Literal["received", "reserved", "shipped", "released", "counted"]]
    sku: Required[str]
    quantity: int
    order: str


class OutOfStock(Exception):
    def __init__(self, sku: Sku, wanted: int, available: int) -> None:
        super().__init__(f"{sku}: {wanted} wanted, {available} available")
        self.sku, self.wanted, self.available = sku, wanted, available


class Inventory:
    def __init__(self) -> None:
        self.on_hand: defaultdict[Sku, int] = defaultdict(int)
        self.reserved: dict[str, tuple[Sku, int]] = {}
        self.version = 0
        self._handlers: dict[str, Callable[[StockEvent], None]] = {
            name.removeprefix("_on_"): getattr(self, name)
            for name in ("_on_received", "_on_reserved", "_on_shipped", "_on_released", "_on_counted")
        }

    def available(self, sku: Sku) -> int:
        held = sum(quantity for s, quantity in self.reserved.values() if s == sku)
        return self.on_hand[sku] - held

    def apply(self, event: StockEvent) -> None:
        if (handler := self._handlers.get(event["type"])) is None:
            raise ValueError(f"unknown event {event['type']!r}")
        handler(event)
        self.version += 1

    def _on_received(self, event: StockEvent) -> None:
        self.on_hand[Sku(event["sku"])] += event.get("quantity", 1)

    def _on_reserved(self, event: StockEvent) -> None:
        sku, quantity = Sku(event["sku"]), event.get("quantity", 1)
        if quantity > (available := self.available(sku)):
            raise OutOfStock(sku, quantity, available)
        self.reserved[event["order"]] = sku, quantity

    def _on_shipped(self, event: StockEvent) -> None:
        sku, quantity = self.reserved.pop(event["order"])
        self.on_hand[sku] -= quantity

    def _on_released(self, event: StockEvent) -> None:
        self.reserved.pop(event["order"], None)

    def _on_counted(self, event: StockEvent) -> None:
        self.on_hand[Sku(event["sku"])] = event["quantity"]

    def snapshot(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "stock": {sku: [self.on_hand[sku], self.available(sku)] for sku in sorted(self.on_hand)},
            "open": sorted(self.reserved),
        }


def replay(events: list[StockEvent]) -> dict[str, Any]:
    inventory = Inventory()
    for event in events:
        inventory.apply(event)
    return inventory.snapshot()


def first_failure(events: list[StockEvent]) -> dict[str, Any]:
    inventory = Inventory()
    for index, event in enumerate(events):
        try:
            inventory.apply(event)
        except OutOfStock as exc:
            return {"index": index, "missing": exc.wanted - exc.available}
    else:
        return {"index": None, "missing": 0}
