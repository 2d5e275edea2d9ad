"""A small product catalogue: an agent's own program, as plain as such programs are.

It knows nothing of anpd. To offer it to peers:

    anpd attach python examples/catalogue.py --expose '*'
"""

from __future__ import annotations

from typing import Annotated, TypedDict


class Product(TypedDict):
    """One product, with its price."""

    productId: str
    productName: str
    productDescription: str
    price: float
    currency: str


class ProductNotFoundError(LookupError):
    """No product has this id."""

    code = 404

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # Peers read this; the words of other exceptions stay in the log.
        self.caller_message = message


PRODUCTS: dict[str, Product] = {
    "P12345": {
        "productId": "P12345",
        "productName": "高性能笔记本电脑",
        "productDescription": "配备最新处理器和大容量内存的高性能笔记本电脑。",
        "price": 1299.99,
        "currency": "USD",
    },
    "P12346": {
        "productId": "P12346",
        "productName": "Mechanical keyboard",
        "productDescription": "87 keys, hot-swappable switches, USB-C.",
        "price": 89.5,
        "currency": "USD",
    },
    "P20001": {
        "productId": "P20001",
        "productName": "Écran 27 pouces",
        "productDescription": "2560 × 1440, 75 Hz, pied réglable en hauteur.",
        "price": 249.0,
        "currency": "EUR",
    },
}


def get_product(product_id: Annotated[str, "Such as P12345."]) -> Product:
    """Name, description and price of a product by its id."""
    product = PRODUCTS.get(product_id)
    if product is None:
        raise ProductNotFoundError(f"no product {product_id}")
    return product


def list_products() -> list[Product]:
    """All products of the catalogue."""
    return list(PRODUCTS.values())
