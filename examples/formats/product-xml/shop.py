"""The shop's own program: it knows neither XML nor anpd."""

from __future__ import annotations

from typing import TypedDict


class Product(TypedDict):
    """One product, with its price."""

    title: str
    price: float
    currency: str


class ProductNotFoundError(LookupError):
    """No product has this stock number."""

    code = 404

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # Peers read this; the words of other exceptions stay in the log.
        self.caller_message = message


PRODUCTS: dict[str, Product] = {
    "P&1": {"title": 'Écran 27" <mat>', "price": 249.5, "currency": "EUR"},
    "P2": {"title": "Mechanical keyboard", "price": 89.0, "currency": "USD"},
}


def product(sku: str) -> Product:
    """Look up one product by its stock number."""
    found = PRODUCTS.get(sku)
    if found is None:
        raise ProductNotFoundError(f"no product {sku}")
    return found
