# kind: JSON mapping with renamed and nested fields
"""Requester half of the order protocol: maps our order to the shop's JSON."""

from __future__ import annotations

import json
from typing import Any

PROTOCOL_VERSION = "1.2"
_FIELD_NAMES: dict[str, str] = {
    "order_id": "orderId",
    "customer_name": "customerName",
    "placed_at": "placedAt",
}
_REVERSED = {wire: ours for ours, wire in _FIELD_NAMES.items()}


class MappingError(ValueError):
    """Raised when the message does not have the agreed shape."""


def _rename(record: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in record.items()}


def encode_request(order: dict[str, Any]) -> bytes:
    """Encode an order as UTF-8 JSON with camelCase names and a nested address."""
    body = _rename({k: v for k, v in order.items() if k in _FIELD_NAMES}, _FIELD_NAMES)
    street, _, city = order.get("address", "").partition(", ")
    body["shipping"] = {"address": {"street": street, "city": city or None}}
    body["lines"] = [
        {"sku": line["sku"], "qty": line.get("quantity", 1)}
        for line in order.get("lines", [])
    ]
    body["total"] = sum(line["qty"] for line in body["lines"])
    return json.dumps(
        {"version": PROTOCOL_VERSION, "order": body},
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode("utf-8")


def decode_response(data: bytes) -> dict[str, Any]:
    """Decode the shop's answer into our own field names."""
    try:
        message = json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise MappingError("response is not valid JSON") from exc
    if not isinstance(message, dict) or "order" not in message:
        raise MappingError("response has no 'order'")
    result = _rename(message["order"], _REVERSED)
    shipping = result.pop("shipping", {}) or {}
    address = shipping.get("address", {})
    result["address"] = ", ".join(
        part for part in (address.get("street"), address.get("city")) if part
    )
    return result
