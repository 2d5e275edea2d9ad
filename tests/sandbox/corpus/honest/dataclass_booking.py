# kind: dataclasses with defaults, validation and conversion
"""Requester and provider models for hotel bookings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date


class ValidationError(ValueError):
    """Invalid booking; `field` names what is wrong."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(f"{field_name}: {message}")
        self.field_name = field_name


@dataclass(slots=True)
class Guest:
    name: str
    email: str | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValidationError("name", "must not be empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    room: str
    check_in: date
    check_out: date
    guests: list[Guest] = field(default_factory=list)
    extras: tuple[str, ...] = ()
    reference: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.check_out <= self.check_in:
            raise ValidationError("check_out", "must be after check_in")

    @property
    def nights(self) -> int:
        return (self.check_out - self.check_in).days

    @classmethod
    def from_json(cls, text: str) -> Booking:
        raw = json.loads(text)
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(raw) - known):
            raise ValidationError(unknown[0], "unknown field")
        raw["check_in"] = date.fromisoformat(raw["check_in"])
        raw["check_out"] = date.fromisoformat(raw["check_out"])
        raw["guests"] = [Guest(**guest) for guest in raw.get("guests", [])]
        raw["extras"] = tuple(raw.get("extras", ()))
        return cls(**raw)

    def to_dict(self) -> dict:
        data = asdict(self)
        data["check_in"] = self.check_in.isoformat()
        data["check_out"] = self.check_out.isoformat()
        data["extras"] = list(self.extras)
        data["nights"] = self.nights
        return data


def normalise(text: str) -> dict:
    return Booking.from_json(text).to_dict()


def extend(text: str, days: int) -> dict:
    booking = Booking.from_json(text)
    later = date.fromordinal(booking.check_out.toordinal() + days)
    longer = replace(booking, check_out=later, reference="extended")
    return {"same": booking == longer, "nights": longer.nights, "shown": repr(longer)}
