"""A box office: a capability with side effects, which counts its calls.

It knows nothing of anpd. To offer it to peers:

    anpd attach python examples/booking.py:book_seats --expose '*'
"""

from __future__ import annotations

from itertools import count
from typing import Annotated, TypedDict


class Booking(TypedDict):
    """One booking."""

    booking: int
    show: str
    seats: int


_numbers = count(1)


def book_seats(
    show: Annotated[str, "Name of the show."], seats: Annotated[int, "How many."]
) -> Booking:
    """Book seats of a show; each call is a booking of its own."""
    return {"booking": next(_numbers), "show": show, "seats": seats}
