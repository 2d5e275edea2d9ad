# kind: generator half: several capability calls in a row with compensation
"""Provider half: flight, hotel, payment; undoes the earlier steps when one fails."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any


def _error(code: str, message: str, **extra: Any) -> bytes:
    return json.dumps({"status": "error", "code": code, "message": message} | extra).encode()


def handle_request(data: bytes):
    """Book a trip: `{from, to, date, nights, budget}`."""
    try:
        trip = json.loads(data)
        budget = Decimal(str(trip["budget"]))
        nights = int(trip.get("nights", 1))
    except (ValueError, KeyError, TypeError) as exc:
        return _error("bad_request", f"{type(exc).__name__}")

    flights = yield call("search_flights", {k: trip[k] for k in ("from", "to", "date")})
    affordable = [f for f in flights if Decimal(f["price"]) <= budget]
    if not affordable:
        return _error("too_expensive", f"{len(flights)} flights, none within {budget:.2f}")
    flight = min(affordable, key=lambda f: (Decimal(f["price"]), f["departs"]))

    undo: list[tuple[str, dict[str, Any]]] = []
    try:
        ticket = yield call("book_flight", {"id": flight["id"]})
        undo.append(("cancel_flight", {"ticket": ticket}))
        room = yield call("book_hotel", {"city": trip["to"], "nights": nights})
        undo.append(("cancel_hotel", {"reference": room["reference"]}))
        total = Decimal(flight["price"]) + nights * Decimal(room["rate"])
        receipt = yield call("pay", {"amount": str(total)})
    except CapabilityError as exc:
        for name, params in reversed(undo):
            yield call(name, params)
        return _error("failed", exc.message, undone=[name for name, _ in reversed(undo)])
    return json.dumps(
        {"status": "ok", "ticket": ticket, "hotel": room["reference"], "total": str(total), "receipt": receipt}
    ).encode()
