"""The tasks: who wants what from whom, who has a model, and what has to come back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from negotiation.need import Need, Schema

Json = dict[str, Any]

TEXT: Final[Json] = {"type": "string"}
NUMBER: Final[Json] = {"type": "number"}
INTEGER: Final[Json] = {"type": "integer"}
BOOLEAN: Final[Json] = {"type": "boolean"}


class Sides(StrEnum):
    """Which side has a model; the other one has rules only."""

    BOTH = "both"
    REQUESTER = "requester"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Refused:
    """An application error with a code of the document's own."""

    code: str
    "The code, as a text."


@dataclass(frozen=True, slots=True)
class Holds:
    """An output whose fields nobody prescribed, but what it says is known."""

    values: tuple[Any, ...]
    "Each of them stands somewhere in it; a text may be part of another one."


@dataclass(frozen=True, slots=True)
class Step:
    """One call and what has to come back."""

    arguments: Json
    "What the caller gives."

    expected: Any
    "The output, `Holds` or `Refused`, or a function that gives one of them."


@dataclass(frozen=True, slots=True)
class Scene:
    """A task between two agents."""

    kind: str
    "What is hard about it."

    sides: Sides
    "Where the model is."

    agent: str
    "Attached by the provider's owner: a module under `tests.desk.agents`, or its name."

    expose: tuple[str, ...]
    "Functions of it that peers may use."

    need: Need
    "What the caller wants."

    steps: Sequence[Step] = ()
    "Calls in their order; the first one negotiates."

    missing: tuple[str, ...] = ()
    "Words of which the reason has one, when nobody can serve the task."

    notes: str = ""
    "Why the scene is as it is."

    read_only: tuple[str, ...] = ()
    "Functions that the provider's owner says have no side effects."

    command: tuple[str, ...] = ()
    "An MCP server that is attached instead of a module; runs in the repository."

    @property
    def name(self) -> str:
        """Name of the scene and of its cassette."""
        return f"{self.kind}-{self.sides}"


def strict(**properties: Any) -> Schema:
    """Return the schema of an object with these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def listed(**properties: Any) -> Json:
    """Return the schema of a list of such objects."""
    return {"type": "array", "items": strict(**properties)}


def every(
    kind: str,
    agent: str,
    expose: str,
    requirement: str,
    given: Schema | None,
    wanted: Schema | None,
    *steps: Step,
    named: str,
    looks_up: str,
    read_only: bool = False,
) -> tuple[Scene, ...]:
    """Return a scene for each choice of sides.

    Args:
        expose: Names of functions, parted by blanks.
        named: Added to the requirement where the provider has rules only, which know a
            capability by its name.
        looks_up: Functions that rules may call for a sentence, since they change
            nothing; marked so where the provider has rules only.
        read_only: All functions are marked so on all sides.
    """
    return tuple(
        Scene(
            kind,
            sides,
            agent,
            tuple(expose.split()),
            Need(
                requirement + (f" {named}" if sides is Sides.REQUESTER else ""),
                given,
                wanted,
            ),
            steps,
            read_only=("*",)
            if read_only
            else tuple(looks_up.split())
            if sides is Sides.REQUESTER
            else (),
        )
        for sides in Sides
    )


NESTED = every(
    "nested",
    "parcels",
    "track_parcel cancel_parcel",
    "Where has a parcel been? Who gets it, in which town, and each place with its "
    "state.",
    strict(shipment=TEXT),
    strict(
        receiver=strict(name=TEXT, city=TEXT),
        stops=listed(location=TEXT, status=TEXT),
    ),
    *(
        Step(
            {"shipment": number},
            {
                "receiver": {"name": "Ada Example", "city": "Berlin"},
                "stops": [
                    {"location": "Lyon", "status": "accepted"},
                    {"location": "Leipzig", "status": "sorted"},
                ],
            },
        )
        for number in ("P-1", "P-2")
    ),
    named="By track_parcel.",
    looks_up="track_parcel",
)

UNITS = every(
    "units",
    "weather",
    "observe daily",
    "Weather at a place now: temperature in degrees Celsius, wind in km/h, and how far "
    "one can see, in metres.",
    strict(lat=NUMBER, lon=NUMBER),
    strict(celsius=NUMBER, wind_kmh=NUMBER, visibility_m=NUMBER),
    Step(
        {"lat": 40.0, "lon": -3.7},
        {"celsius": 30.0, "wind_kmh": 16.09344, "visibility_m": 8046.72},
    ),
    Step(
        {"lat": 60.2, "lon": 24.9},
        {"celsius": 5.0, "wind_kmh": 16.09344, "visibility_m": 8046.72},
    ),
    named="By observe.",
    looks_up="observe",
)

METER: Final = strict(kilowatt_hours=NUMBER, volts=NUMBER, alarm=BOOLEAN)
METER_STEPS: Final = (
    Step({"meter": 12}, {"kilowatt_hours": 12.0, "volts": 230.5, "alarm": False}),
    Step({"meter": 7}, {"kilowatt_hours": 7.0, "volts": 230.5, "alarm": True}),
)
PACKED = (
    Scene(
        "packed",
        Sides.BOTH,
        "meters",
        ("read_meter",),
        Need(
            "Read an electricity meter. The messages are packed binary structures, "
            "big-endian, not JSON, and small enough for a slow radio link.",
            strict(meter=INTEGER),
            METER,
        ),
        METER_STEPS,
    ),
    Scene(
        "packed",
        Sides.REQUESTER,
        "meters",
        ("read_frame",),
        Need("Read an electricity meter, by read_frame.", strict(meter=INTEGER), METER),
        METER_STEPS,
        notes="The provider's rules write JSON only; the packed bytes are a value.",
        read_only=("read_frame",),
    ),
    Scene(
        "packed",
        Sides.PROVIDER,
        "meters",
        ("store_reading",),
        Need(
            "Keep a reading of an electricity meter. `frame` is base64 of a packed "
            "big-endian structure of 11 bytes: uint32 number of the meter, uint32 "
            "energy in watt-hours, uint16 voltage in tenths of a volt, uint8 of which "
            "nothing is used. The answer says the energy kept, in watt-hours.",
            strict(frame=TEXT),
            strict(wh=INTEGER),
        ),
        (
            Step({"frame": "AAAADAAALuAJAQA="}, {"wh": 12000}),
            Step({"frame": "AAAABwAAG1gJAQA="}, {"wh": 7000}),
        ),
        notes="The requester's rules write JSON only; the packed bytes are a value.",
    ),
)

BOOK: Final = strict(name=TEXT, writers={"type": "array", "items": TEXT}, year=INTEGER)
BOOK_STEPS: Final = tuple(
    Step(
        {"isbn": isbn},
        {
            "name": f"R&D <of> {isbn[-3:]}",
            "writers": ["Grace Example", "Édouard Muster"],
            "year": 1972,
        },
    )
    for isbn in ("978-0-00-000000-2", "978-0-00-000001-9")
)
XML = (
    Scene(
        "xml",
        Sides.BOTH,
        "library",
        ("find_book",),
        Need(
            "Look up a book by its ISBN. The messages are XML documents in UTF-8.",
            strict(isbn=TEXT),
            BOOK,
        ),
        BOOK_STEPS,
    ),
    Scene(
        "xml",
        Sides.REQUESTER,
        "library",
        ("find_record",),
        Need("Look up a book by its ISBN, by find_record.", strict(isbn=TEXT), BOOK),
        BOOK_STEPS,
        notes="The provider's rules write JSON only; the XML text is a value.",
        read_only=("find_record",),
    ),
    Scene(
        "xml",
        Sides.PROVIDER,
        "library",
        ("add_book",),
        Need(
            "Add a book to the catalogue. `record` is an XML text such as "
            '`<book year="1972"><title>A</title><author>B</author></book>` with one or '
            "more authors. The answer says how many authors were kept.",
            strict(record=TEXT),
            strict(author_count=INTEGER),
        ),
        (
            Step(
                {
                    "record": '<book year="1999"><title>One &amp; two</title>'
                    "<author>A</author><author>B</author></book>"
                },
                {"author_count": 2},
            ),
            Step(
                {
                    "record": '<book year="2001"><title>Three</title>'
                    "<author>C</author></book>"
                },
                {"author_count": 1},
            ),
        ),
        notes="The requester's rules write JSON only; the XML text is a value.",
    ),
)

CODES_TEXT: Final = (
    "Balance of a bank account in euros. Error code 4404 if there is no such account, "
    "4410 if the account is closed."
)
CODES_STEPS: Final = (
    Step({"account": "250"}, {"euros": 250.0}),
    Step({"account": "closed"}, Refused("4410")),
    Step({"account": "nobody"}, Refused("4404")),
)
CODES = (
    Scene(
        "codes",
        Sides.BOTH,
        "bank",
        ("get_balance",),
        Need(CODES_TEXT, strict(account=TEXT), strict(euros=NUMBER)),
        CODES_STEPS,
    ),
    Scene(
        "codes",
        Sides.REQUESTER,
        "bank",
        ("get_balance",),
        Need(
            "Balance of a bank account in euros, by get_balance. Error code 404 if "
            "there is no such account, 409 if the account is closed.",
            strict(account=TEXT),
            strict(euros=NUMBER),
        ),
        (
            Step({"account": "250"}, {"euros": 250.0}),
            Step({"account": "closed"}, Refused("409")),
            Step({"account": "nobody"}, Refused("404")),
        ),
        notes="A provider with rules only has the codes of HTTP, and its own cause.",
        read_only=("get_balance",),
    ),
    Scene(
        "codes",
        Sides.PROVIDER,
        "bank",
        ("get_balance",),
        Need(
            "Balance of a bank account in euros. 404 if there is no such account, 409 "
            "if the account is closed.",
            strict(account=TEXT),
            strict(euros=NUMBER),
        ),
        (
            Step({"account": "250"}, {"euros": 250.0}),
            Step({"account": "closed"}, Refused("409")),
            Step({"account": "nobody"}, Refused("404")),
        ),
        notes="A requester with rules only has the codes of HTTP.",
    ),
)

CHINESE = every(
    "chinese",
    "trains",
    "lookup_train",
    "查询列车的发车时间、站台和晚点分钟数。日期格式为 YYYY-MM-DD。",
    strict(车次=TEXT, 日期=TEXT),
    strict(发车时间=TEXT, 站台=INTEGER, 晚点分钟=NUMBER),
    Step(
        {"车次": "G101", "日期": "2026-05-01"},
        {"发车时间": "08:15", "站台": 4, "晚点分钟": 7.0},
    ),
    Step(
        {"车次": "D7", "日期": "2026-05-01"},
        {"发车时间": "08:15", "站台": 2, "晚点分钟": 7.0},
    ),
    named="使用 lookup_train。",
    looks_up="lookup_train",
)

TWO = every(
    "two",
    "sales",
    "find_customer open_invoices",
    "Which invoices has a company not paid yet? Number and amount in euros of each.",
    strict(company=TEXT),
    strict(unpaid=listed(number=TEXT, euros=NUMBER)),
    *(
        Step(
            {"company": company},
            {
                "unpaid": [
                    {"number": f"{customer}-1", "euros": 10.5},
                    {"number": f"{customer}-2", "euros": 20.5},
                ]
            },
        )
        for company, customer in (("Example Ltd", 7), ("Muster GmbH", 8))
    ),
    named="By find_customer, then open_invoices.",
    looks_up="find_customer open_invoices",
    # Rules put capabilities in a row only if they change nothing.
    read_only=True,
)

ROOM_TEXT: Final = (
    "Book a hotel room. `arrival` is DD.MM.YYYY; `nights` is how many nights are slept "
    "there, one or more. The answer is the reference of the booking."
)
ROOM: Final = (
    strict(arrival=TEXT, nights=INTEGER, persons={"enum": ["one", "two"]}),
    strict(booking=TEXT),
)
ROOM_STEPS: Final = (
    Step(
        {"arrival": "31.12.2026", "nights": 2, "persons": "two"},
        {"booking": "D-2026-12-31-0"},
    ),
    Step(
        {"arrival": "28.02.2027", "nights": 1, "persons": "one"},
        {"booking": "S-2027-02-28-0"},
    ),
)
DATES = (
    *(
        Scene("dates", sides, "hotel", ("reserve",), Need(ROOM_TEXT, *ROOM), ROOM_STEPS)
        for sides in (Sides.BOTH, Sides.PROVIDER)
    ),
    Scene(
        "dates",
        Sides.REQUESTER,
        "hotel",
        ("reserve",),
        Need(
            "reserve",
            strict(
                arrival={**TEXT, "description": "DD.MM.YYYY"},
                nights={
                    **INTEGER,
                    "description": "How many nights are slept there, one or more.",
                },
                persons={"enum": ["one", "two"]},
            ),
            strict(booking={**TEXT, "description": "Reference of the booking."}),
        ),
        ROOM_STEPS,
        notes="A provider with rules only books nothing for a sentence, so the name is "
        "all that the requirement has, and the schemas say the rest.",
    ),
)

PROSE = every(
    "prose",
    "weather",
    "observe daily",
    "How warm does it get in a city on each of the coming days, today included? The "
    "dates with the highest temperature in Celsius.",
    None,
    None,
    Step({"city": "Lyon", "how_many_days": 2}, Holds(("2026-07-02", 30.5, 31.5))),
    Step({"city": "Oslo", "how_many_days": 3}, Holds(("2026-07-03", 31.5, 32.5))),
    named="By daily.",
    looks_up="daily",
)


def newest_commits() -> Holds:
    """Return what the newest two commits of this repository are known by."""
    found = subprocess.run(
        ["git", "log", "-2", "--format=%H"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return Holds(tuple(found.stdout.split()))


GIT = tuple(
    Scene(
        "git",
        sides,
        "git",
        ("git_log", "git_status", "git_show", "git_branch"),
        Need("Show me the newest two commits of the repository in the folder `.`"),
        (Step({}, newest_commits), Step({}, newest_commits)),
        command=(sys.executable, "-m", "mcp_server_git", "--repository", "."),
    )
    for sides in (Sides.BOTH, Sides.PROVIDER)
)

IMPOSSIBLE = tuple(
    Scene(kind, sides, agent, tuple(expose.split()), need, missing=missing)
    for sides in (Sides.BOTH, Sides.PROVIDER)
    for kind, agent, expose, need, missing in (
        (
            "nobody",
            "parcels",
            "track_parcel cancel_parcel",
            Need(
                "Translate a sentence from German into Finnish.",
                strict(sentence=TEXT),
                strict(translation=TEXT),
            ),
            ("translat",),
        ),
        (
            "lacking",
            "weather",
            "observe daily",
            Need(
                "Air quality at a place now: fine dust PM2.5 in micrograms per cubic "
                "metre, and the temperature in Celsius.",
                strict(lat=NUMBER, lon=NUMBER),
                strict(pm25=NUMBER, celsius=NUMBER),
            ),
            ("pm2", "pm 2", "dust", "air quality"),
        ),
    )
)

SCENES: Final = {
    scene.name: scene
    for scene in (
        *(*NESTED, *UNITS, *PACKED, *XML, *CODES, *CHINESE, *TWO, *DATES, *PROSE),
        *(*GIT, *IMPOSSIBLE),
    )
}
"Every scene by its name."
