# kind: functools.singledispatch, partial and wraps
"""Encodes our values as tagged JSON and decodes them again."""

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial, singledispatch, wraps
from typing import Any
from uuid import UUID


@singledispatch
def to_wire(value: Any) -> Any:
    raise TypeError(f"cannot encode {type(value).__name__}")


@to_wire.register(str)
@to_wire.register(int)
@to_wire.register(float)
@to_wire.register(type(None))
def _(value: Any) -> Any:
    return value


@to_wire.register
def _decimal(value: Decimal) -> dict:
    return {"$decimal": str(value)}


@to_wire.register
def _moment(value: datetime) -> dict:
    return {"$at": value.isoformat()}


@to_wire.register
def _day(value: date) -> dict:
    return {"$day": value.isoformat()}


@to_wire.register(timedelta)
def _span(value: timedelta) -> dict:
    return {"$seconds": value.total_seconds()}


@to_wire.register
def _mapping(value: dict) -> dict:
    return {str(key): to_wire(item) for key, item in value.items()}


@to_wire.register(list)
@to_wire.register(tuple)
@to_wire.register(set)
def _sequence(value: Any) -> list:
    items = sorted(value) if isinstance(value, set) else value
    return [to_wire(item) for item in items]


_DECODERS = {
    "$decimal": Decimal,
    "$at": datetime.fromisoformat,
    "$day": date.fromisoformat,
    "$seconds": lambda seconds: timedelta(seconds=seconds),
    "$uuid": UUID,
}


def traced(function):
    """Name the function in errors."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError) as exc:
            raise ValueError(f"{function.__name__}: {exc}") from exc

    return wrapper


def _object_hook(obj: dict, strict: bool = False) -> Any:
    if len(obj) == 1:
        (tag, value), = obj.items()
        if decoder := _DECODERS.get(tag):
            return decoder(value)
        if strict and tag.startswith("$"):
            raise ValueError(f"unknown tag {tag}")
    return obj


_strict_loads = partial(json.loads, object_hook=partial(_object_hook, strict=True))


@traced
def encode_sample(name: str, price: str, day: str, tags: list) -> str:
    value = {
        "name": name,
        "price": Decimal(price).quantize(Decimal("0.01")),
        "day": date.fromisoformat(day),
        "at": datetime.fromisoformat(f"{day}T08:30"),
        "span": timedelta(days=1, seconds=2),
        "tags": set(tags),
        "pair": (1, 2.5),
        "none": None,
    }
    return json.dumps(to_wire(value))


@traced
def double(text: str) -> Any:
    values = _strict_loads(text)
    return to_wire([value * 2 for value in values])


@traced
def refuse(data: bytes) -> Any:
    return to_wire({"data": data})
