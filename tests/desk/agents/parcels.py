"""A carrier."""

from typing import TypedDict


class Address(TypedDict):
    street: str
    zip: str
    town: str


class Recipient(TypedDict):
    full_name: str
    address: Address


class Scan(TypedDict):
    at: str
    place: str
    state: str


class Parcel(TypedDict):
    id: str
    weight_g: int
    recipient: Recipient
    scans: list[Scan]


def track_parcel(tracking_no: str) -> Parcel:
    """Where a parcel is and was, newest scan last; weight in grams."""
    return {
        "id": tracking_no,
        "weight_g": 1250,
        "recipient": {
            "full_name": "Ada Example",
            "address": {"street": "Hauptstr. 1", "zip": "10115", "town": "Berlin"},
        },
        "scans": [
            {"at": "2026-03-01T08:00:00Z", "place": "Lyon", "state": "accepted"},
            {"at": "2026-03-02T21:30:00Z", "place": "Leipzig", "state": "sorted"},
        ],
    }


def cancel_parcel(tracking_no: str) -> dict[str, bool]:
    """Stop a parcel and send it back to who sent it."""
    raise AssertionError("nobody asked for it")
