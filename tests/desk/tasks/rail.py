"""Tasks over the documents of Deutsche Bahn: departures, and travel centres."""

from __future__ import annotations

from typing import Any

from tests.desk.tasks.task import (
    Absent,
    Case,
    Failure,
    Fault,
    Json,
    Task,
    Tool,
    array,
    choice,
    complete,
    integer,
    number,
    open_object,
    text,
)

BOARDS = "Deutsche Bahn Fahrplan-Free v1, APIs-guru openapi-directory (CC0 collection)"
CENTRES = "Deutsche Bahn Reisezentren v1, APIs-guru openapi-directory (CC0 collection)"

STATIONS = {
    "Frankfurt(Main)Hbf": ("8000105", 50.107149, 8.663785),
    "Berlin Hbf": ("8011160", 52.525592, 13.369545),
    "Ulm Hbf": ("8000170", 48.399437, 9.982223),
}
TRAINS = {
    "8000105": [("ICE 571", "10:02", "7"), ("RE 30", "10:21", "12")],
    "8011160": [("ICE 1005", "10:05", "3")],
    "8000170": [("IRE 3", "10:11", "25"), ("ICE 597", "10:57", "1")],
}


def _location(given: Json) -> Json:
    found = [
        {"name": name, "id": row[0], "lat": row[1], "lon": row[2]}
        for name, row in STATIONS.items()
        if given["name"] in name
    ]
    if not found:
        raise Fault(500, "Internal Server Error.")
    return {"locations": found}


def _board(given: Json) -> Json:
    if "T" not in given["date"]:
        raise Fault(400, "Invalid date/time specification.")
    day = given["date"].partition("T")[0]
    rows = [
        {
            "name": name,
            "type": name.split()[0],
            "boardId": given["id"],
            "stopId": given["id"],
            "stopName": "",
            "dateTime": f"{day}T{clock}",
            "origin": "",
            "track": track,
            "detailsId": name.replace(" ", "-"),
        }
        for name, clock, track in TRAINS.get(given["id"], [])
    ]
    return {"boards": rows}


def _centre(number: int, name: str, city: str, **more: Any) -> Json:
    return {"id": number, "name": name, "city": city, **more}


CENTRE_ROWS = {
    "101": _centre(101, "Hamburg Hbf", "Hamburg", type="Reisezentrum", lat=53.5),
    "102": _centre(
        *(102, "Kiel Hbf", "Kiel"),
        type="Mobility Center",
        postCode="24114",
        openingTimes={"mon": ["07:00-19:00"], "sun": []},
    ),
    "103": _centre(
        *(103, "Celle", "Celle"),
        type="Reisezentrum",
        postCode="29221",
        openingTimes={"tue": ["08:00-12:00", "13:00-17:00"]},
    ),
    "104": _centre(
        *(104, "Emden Hbf", "Emden"),
        type="Reisezentrum",
        postCode="26721",
        openingTimes={"mon": ["08:00-12:00", "13:00-17:30"], "sun": ["10:00-14:00"]},
    ),
}


def _find(given: Json) -> Json:
    rows = [row for row in CENTRE_ROWS.values() if given["name"] in row["name"]]
    if not rows:
        raise Fault(404, "No travel centers could be found matching the given name")
    return {"result": rows}


def _centre_by_id(given: Json) -> Json:
    if given["id"] not in CENTRE_ROWS:
        raise Fault(404, "No travel center found")
    return CENTRE_ROWS[given["id"]]


def _near(given: Json) -> Json:
    north = given["lat"] > 53.6
    return CENTRE_ROWS["102" if north else "103"]


BUSY: dict[str, int] = {}
"Questions by name so far: each name's first one finds the service busy."


def _busy(given: Json) -> Json:
    BUSY[given["name"]] = BUSY.get(given["name"], 0) + 1
    if BUSY[given["name"]] % 2:
        raise Fault(503, "The service has been disabled temporarily.")
    return _location(given)


LOCATIONS = open_object(
    "locations",
    locations=array(
        open_object(
            *("name", "lon", "lat", "id"),
            id=text("id of location (eva-number), example: 8000105"),
            name=text("Name of location, example: Frankfurt(Main)Hbf"),
            lat=number("latitude"),
            lon=number("longitude"),
        )
    ),
)
LOCATION = Tool(
    "fahrplan",
    "location",
    "Get information about locations matching the given name or name fragment.",
    open_object("name", name=text("Name or name fragment of a location")),
    LOCATIONS,
    _location,
)
BUSY_LOCATION = Tool(
    "fahrplan",
    "location",
    "Get information about locations matching the given name or name fragment. 503: "
    "the service has been disabled temporarily.",
    open_object("name", name=text("Name or name fragment of a location")),
    LOCATIONS,
    _busy,
)
DEPARTURES = Tool(
    "fahrplan",
    "departureBoard",
    "Get departure board at a given location at a given date and time.",
    open_object(
        *("id", "date"),
        id=text("Id of a location. Use attribute 'id' from the result of 'location'"),
        date=text("Date and time in ISO-8601 format, example: 2017-04-01T10:30"),
    ),
    open_object(
        "boards",
        boards=array(
            open_object(
                *("name", "type", "boardId", "stopId", "stopName", "dateTime"),
                *("origin", "track", "detailsId"),
                name=text("Name of train"),
                type=text(),
                boardId=text(),
                stopId=text(),
                stopName=text(),
                dateTime=text("such as 2017-04-01T10:30"),
                origin=text(),
                track=text(),
                detailsId=text(),
            )
        ),
    ),
    _board,
)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CENTRE = open_object(
    id=integer("Identifying number"),
    name=text("Name of travel center"),
    address=text("Street address of travel center"),
    city=text("City of travel center"),
    postCode=text("Post code of travel center"),
    lat=number("Latitude of travel center location"),
    lon=number("Longitude of travel center location"),
    type=choice("Reisezentrum", "Mobility Center", words="Type of travel center"),
    openingTimes={
        **open_object(**{day: array(text()) for day in DAYS}),
        "description": "Opening times of the travel center, ordered by week day",
    },
)
FIND = Tool(
    "reisezentren",
    "reisezentren",
    "Get all station infos; 404: no travel centers could be found matching the name.",
    open_object("name", name=text("A station name or part of it")),
    open_object("result", result=array(CENTRE)),
    _find,
)
BY_ID = Tool(
    "reisezentren",
    "byId",
    "Get information about a specific station; 404: no travel center found.",
    open_object("id", id=text("Station id")),
    CENTRE,
    _centre_by_id,
)
NEAR = Tool(
    "reisezentren",
    "loc",
    "Get information about a station near a location.",
    open_object("lat", "lon", lat=number("Latitude"), lon=number("Longitude")),
    CENTRE,
    _near,
)

TASKS = (
    Task(
        "departures",
        BOARDS,
        "Trains that leave a station from a moment on: line, moment and platform of "
        "each. The station is given by its name",
        complete(station=text(), since=text("such as 2026-05-01T10:00")),
        complete(
            trains=array(complete(line=text(), leaves=text(), platform=text())),
        ),
        (LOCATION, DEPARTURES),
        (
            Case(
                {"station": "Frankfurt(Main)Hbf", "since": "2026-05-01T10:00"},
                {
                    "trains": [
                        {
                            "line": "ICE 571",
                            "leaves": "2026-05-01T10:02",
                            "platform": "7",
                        },
                        {
                            "line": "RE 30",
                            "leaves": "2026-05-01T10:21",
                            "platform": "12",
                        },
                    ]
                },
            ),
            Case(
                {"station": "Berlin Hbf", "since": "2026-07-09T10:00"},
                {
                    "trains": [
                        {
                            "line": "ICE 1005",
                            "leaves": "2026-07-09T10:05",
                            "platform": "3",
                        }
                    ]
                },
            ),
            Case({"station": "Nowhere", "since": "2026-07-09T10:00"}, Failure(500)),
            Case(
                {"station": "Ulm Hbf", "since": "2026-12-24T10:00"},
                {
                    "trains": [
                        {
                            "line": "IRE 3",
                            "leaves": "2026-12-24T10:11",
                            "platform": "25",
                        },
                        {
                            "line": "ICE 597",
                            "leaves": "2026-12-24T10:57",
                            "platform": "1",
                        },
                    ]
                },
            ),
        ),
    ),
    Task(
        "station-once-more",
        BOARDS,
        "Number and position of a station. The timetable is often busy (503): ask it "
        "once more then, and only once",
        complete(station=text("exact name")),
        complete(eva=text("number"), lat=number(), lon=number()),
        (BUSY_LOCATION,),
        (
            Case(
                {"station": "Ulm Hbf"},
                {"eva": "8000170", "lat": 48.399437, "lon": 9.982223},
            ),
            Case(
                {"station": "Berlin Hbf"},
                {"eva": "8011160", "lat": 52.525592, "lon": 13.369545},
            ),
            Case(
                {"station": "Frankfurt(Main)Hbf"},
                {"eva": "8000105", "lat": 50.107149, "lon": 8.663785},
            ),
            Case(
                {"station": "Ulm Hbf"},
                {"eva": "8000170", "lat": 48.399437, "lon": 9.982223},
            ),
        ),
    ),
    Task(
        "delay",
        BOARDS,
        "The next train of a station and its delay in minutes",
        complete(eva=text("number of the station"), at=text("2026-05-01T10:00")),
        complete(train=text(), delayMinutes=integer()),
        (DEPARTURES, LOCATION),
        (Case({"eva": "8000170", "at": "2026-05-01T10:00"}, None),),
        lacking="the board has the planned time only",
    ),
    Task(
        "monday-hours",
        CENTRES,
        "Town and post code of a ticket office, and its hours on Mondays",
        complete(office=text("number of the office")),
        complete(town=text(), zip=text(), monday=array(text("such as 07:00-19:00"))),
        (BY_ID, FIND),
        (
            Case(
                {"office": "102"},
                {"town": "Kiel", "zip": "24114", "monday": ["07:00-19:00"]},
            ),
            Case({"office": "101"}, Absent()),
            Case({"office": "103"}, Absent()),
            Case(
                {"office": "104"},
                {
                    "town": "Emden",
                    "zip": "26721",
                    "monday": ["08:00-12:00", "13:00-17:30"],
                },
            ),
        ),
    ),
    Task(
        "office-or-near",
        CENTRES,
        "The ticket office at a station. If there is none at that station, the one "
        "near the station's position",
        complete(station=text(), lat=number(), lon=number()),
        complete(office=text("its name"), town=text()),
        (FIND, NEAR),
        (
            Case(
                {"station": "Emden Hbf", "lat": 53.4, "lon": 7.2},
                {"office": "Emden Hbf", "town": "Emden"},
            ),
            Case(
                {"station": "Plön", "lat": 54.2, "lon": 10.4},
                {"office": "Kiel Hbf", "town": "Kiel"},
            ),
            Case(
                {"station": "Hamburg Hbf", "lat": 53.55, "lon": 10.0},
                {"office": "Hamburg Hbf", "town": "Hamburg"},
            ),
            Case(
                {"station": "Gifhorn", "lat": 52.5, "lon": 10.5},
                {"office": "Celle", "town": "Celle"},
            ),
        ),
    ),
    Task(
        "office-lines",
        CENTRES,
        "Name and town of a ticket office. Our terminals read neither JSON nor XML: a "
        "message is lines of key=value, one for each field, each line ended by one "
        "newline. The request has the line office=<number>; the answer has the lines "
        "office=<number>, name=<name> and town=<town> in this order",
        complete(office=text("number")),
        complete(office=text(), name=text(), town=text()),
        (BY_ID,),
        (
            Case(
                {"office": "102"}, {"office": "102", "name": "Kiel Hbf", "town": "Kiel"}
            ),
            Case(
                {"office": "104"},
                {"office": "104", "name": "Emden Hbf", "town": "Emden"},
            ),
            Case(
                {"office": "103"}, {"office": "103", "name": "Celle", "town": "Celle"}
            ),
            Case({"office": "999"}, Absent()),
        ),
        request_bytes=r"office=\d+\n?",
        answer_bytes=r"office=\d+\nname=[^\n]+\ntown=[^\n]+\n?",
    ),
    Task(
        "office-code",
        CENTRES,
        "Kind of a ticket office as a number: 10 for a Reisezentrum, 20 for a Mobility "
        "Center",
        complete(office=text("number of the office")),
        complete(kind=integer("10 or 20")),
        (BY_ID,),
        (
            Case({"office": "101"}, {"kind": 10}),
            Case({"office": "102"}, {"kind": 20}),
            Case({"office": "104"}, {"kind": 10}),
            Case({"office": "7"}, Failure(404)),
        ),
    ),
    Task(
        "office-by-name",
        CENTRES,
        "reisezentren.byId",
        complete(id=text()),
        complete(name=text(), city=text(), postCode=text()),
        (BY_ID, FIND, NEAR),
        (
            Case(
                {"id": "102"}, {"name": "Kiel Hbf", "city": "Kiel", "postCode": "24114"}
            ),
            Case({"id": "101"}, Absent()),
            Case({"id": "1"}, Failure(404)),
            Case(
                {"id": "104"},
                {"name": "Emden Hbf", "city": "Emden", "postCode": "26721"},
            ),
        ),
    ),
)
