# kind: enums: Enum with data, IntEnum, StrEnum, Flag, auto
"""Ticket vocabulary shared with the help desk."""

from enum import Enum, Flag, IntEnum, StrEnum, auto


class Status(StrEnum):
    OPEN = auto()
    IN_PROGRESS = "in-progress"
    CLOSED = auto()

    @classmethod
    def _missing_(cls, value: object) -> "Status | None":
        if isinstance(value, str):
            for member in cls:
                if member.value == value.strip().lower().replace("_", "-"):
                    return member
        return None


class Priority(IntEnum):
    LOW = 10
    NORMAL = 20
    URGENT = 30


class Channel(Flag):
    NONE = 0
    EMAIL = auto()
    SMS = auto()
    PUSH = auto()
    ALL = EMAIL | SMS | PUSH


class Region(Enum):
    NORTH = ("N", 1.5)
    SOUTH = ("S", 0.75)

    def __init__(self, letter: str, factor: float) -> None:
        self.letter = letter
        self.factor = factor

    def scaled(self, value: float) -> float:
        return value * self.factor


def read_ticket(ticket: dict) -> dict:
    status = Status(ticket["status"])
    priority = Priority[ticket.get("priority", "normal").upper()]
    channels = Channel.NONE
    for name in ticket.get("notify", []):
        channels |= Channel[name.upper()]
    region = next(r for r in Region if r.letter == ticket.get("region", "N"))
    return {
        "status": status.value,
        "active": status in (Status.OPEN, Status.IN_PROGRESS),
        "urgent": priority >= Priority.URGENT,
        "rank": int(priority),
        "channels": [c.name for c in Channel if c is not Channel.ALL and c in channels and c.value],
        "mask": channels.value,
        "region": region.name.title(),
        "due_hours": region.scaled(40 - priority),
    }


def vocabulary() -> dict:
    return {
        "status": [str(member) for member in Status],
        "priority": {member.name: member.value for member in Priority},
        "regions": list(Region.__members__),
    }
