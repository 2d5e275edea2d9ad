# kind: uuid5 and uuid parsing
"""Stable identifiers for products, derived from the peer's namespace."""

import uuid
from uuid import NAMESPACE_DNS, UUID, uuid5

_NAMESPACE = uuid5(NAMESPACE_DNS, "catalogue.example")


def _normalise(name: str) -> str:
    return " ".join(name.lower().split())


def product_id(name: str, *, variant: str | None = None) -> str:
    base = uuid5(_NAMESPACE, _normalise(name))
    return str(base if variant is None else uuid5(base, variant))


def assign_ids(products: list[dict]) -> list[dict]:
    seen: dict[UUID, str] = {}
    result = []
    for product in products:
        key = UUID(product_id(product["name"], variant=product.get("variant")))
        if (previous := seen.setdefault(key, product["name"])) != product["name"]:
            raise ValueError(f"{product['name']!r} and {previous!r} share {key}")
        result.append({"id": key.hex, "urn": key.urn, **product})
    return result


def describe(text: str) -> dict:
    try:
        value = UUID(text)
    except ValueError:
        return {"valid": False, "input": text}
    return {
        "valid": True,
        "version": value.version,
        "rfc": value.variant == uuid.RFC_4122,
        "int": str(value.int),
        "first": value.bytes[:4],
    }
