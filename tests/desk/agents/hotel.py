"""A hotel."""

from typing import Literal, TypedDict


class Booked(TypedDict):
    reference: str
    until: str


def reserve(
    first_night: str, last_night: str, room: Literal["S", "D"], breakfast: bool = False
) -> Booked:
    """Reserve a room, S for one person or D for two; dates are YYYY-MM-DD."""
    return {"reference": f"{room}-{first_night}-{breakfast:d}", "until": last_night}
