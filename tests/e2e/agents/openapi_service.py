"""A shop made with FastAPI; run as: python openapi_service.py PORT.

It runs in an environment of its own, which has none of our packages.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Query
from pydantic import BaseModel, Field


def allowed(x_key: Annotated[str | None, Header()] = None) -> None:
    """Want the key, if there is one."""
    if x_key != os.environ.get("SHOP_KEY"):
        raise HTTPException(401, "no key")


app = FastAPI(title="Shop", dependencies=[Depends(allowed)])


class Order(BaseModel):
    """Something somebody wants."""

    sku: str
    quantity: int = Field(ge=1, le=99)
    note: str | None = None


class Receipt(BaseModel):
    """What an order costs."""

    number: int
    sku: str
    total: float


class Item(BaseModel):
    """Something in stock."""

    sku: str
    title: str
    tags: list[str]


ORDERS: dict[int, Receipt] = {}


@app.get("/items/{sku}", operation_id="get_item")
def get_item(sku: str, tag: Annotated[list[str] | None, Query()] = None) -> Item:
    """Look an item up."""
    if sku == "none":
        raise HTTPException(404, "we have no such thing")
    return Item(sku=sku, title=f"Item {sku}", tags=tag or [])


@app.post("/orders", operation_id="place_order", status_code=201)
def place_order(order: Order) -> Receipt:
    """Order something."""
    receipt = Receipt(number=len(ORDERS) + 1, sku=order.sku, total=order.quantity * 2.5)
    ORDERS[receipt.number] = receipt
    return receipt


@app.get("/orders", operation_id="list_orders")
def list_orders() -> list[Receipt]:
    """List every order."""
    return list(ORDERS.values())


@app.delete("/orders/{number}", operation_id="drop_order", status_code=204)
def drop_order(number: int) -> None:
    """Drop an order."""
    ORDERS.pop(number, None)


@app.get("/whoami", operation_id="whoami")
def whoami(
    anpd_caller: Annotated[str, Header(include_in_schema=False)],
) -> dict[str, str]:
    """Say who calls."""
    return {"did": anpd_caller}


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])
