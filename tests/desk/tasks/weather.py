"""Tasks over Open-Meteo's documents, and the example weather of an MCP server."""

from __future__ import annotations

from tests.desk.scenes import Holds
from tests.desk.tasks.task import (
    Absent,
    Case,
    Fault,
    Json,
    Task,
    Tool,
    array,
    boolean,
    choice,
    complete,
    integer,
    number,
    open_object,
    text,
)

METEO = (
    "Open-Meteo, openapi.yml and openapi/elevation.yml of its repository (CC BY 4.0)"
)
GEO = "Open-Meteo, forecast (openapi.yml, CC BY 4.0) and its geocoding endpoint"
NOW = "right now, in degrees Celsius"
EVERYTHING = "MCP server-everything, get-structured-content (MIT)"

CITIES = {
    "Oslo": (59.91, 10.75, "NO"),
    "Lisbon": (38.72, -9.13, "PT"),
    "Nairobi": (-1.29, 36.82, "KE"),
    "Quito": (-0.18, -78.47, "EC"),
}
CELSIUS = {59.91: 4.5, 38.72: 18.0, -1.29: 22.5, -0.18: 15.0}


def _elevation(given: Json) -> Json:
    pairs = zip(
        given["latitude"].split(","), given["longitude"].split(","), strict=True
    )
    return {"elevation": [round(abs(float(a) * 10 + float(b)), 1) for a, b in pairs]}


def _forecast(given: Json) -> Json:
    latitude, longitude = given["latitude"], given["longitude"]
    if abs(latitude) > 90:
        raise Fault(400, "Latitude must be in range of -90 to 90")
    answer: Json = {
        "latitude": latitude,
        "longitude": longitude,
        "elevation": 44.0,
        "utc_offset_seconds": 0,
    }
    # There is no station near the poles, and nobody asked for the weather else.
    if given.get("current_weather") and abs(latitude) < 85:
        celsius = CELSIUS.get(latitude, round(30 - abs(latitude) / 2, 2))
        hot = given.get("temperature_unit") == "fahrenheit"
        speed = {"kmh": 36.0, "ms": 10.0, "mph": 22.4, "kn": 19.4}
        answer["current_weather"] = {
            "time": "2026-03-01T12:00",
            "temperature": celsius * 1.8 + 32 if hot else celsius,
            "wind_speed": speed[given.get("wind_speed_unit", "kmh")] + abs(latitude),
            "wind_direction": 180 + longitude,
            "weather_code": 3,
        }
    if "temperature_2m_max" in given.get("daily", []):
        top = [round(20 + latitude / 10 + day, 1) for day in range(7)]
        answer["daily"] = {
            "time": [f"2026-03-0{day}" for day in range(1, 8)],
            "temperature_2m_max": top,
        }
        answer["daily_units"] = {"time": "iso8601", "temperature_2m_max": "°C"}
    return answer


def _search(given: Json) -> Json:
    found = CITIES.get(given["name"])
    if found is None:
        return {}
    latitude, longitude, country = found
    return {
        "results": [
            {
                "id": 1,
                "name": given["name"],
                "latitude": latitude,
                "longitude": longitude,
                "country_code": country,
            }
        ]
    }


def _structured(given: Json) -> Json:
    return {
        "New York": {"temperature": 33, "conditions": "Cloudy", "humidity": 82},
        "Chicago": {"temperature": 36, "conditions": "Drizzle", "humidity": 81},
        "Los Angeles": {"temperature": 73, "conditions": "Sunny", "humidity": 48},
    }[given["location"]]


ELEVATION = Tool(
    "meteo",
    "elevation",
    "Returns terrain elevation, in metres, using a 90-metre digital elevation model.",
    open_object(
        "latitude",
        "longitude",
        latitude=text("Comma-separated list of latitude values in WGS84."),
        longitude=text("Comma-separated list of longitude values in WGS84."),
    ),
    open_object(elevation=array(number())),
    _elevation,
)
FORECAST = Tool(
    "meteo",
    "forecast",
    "7 day weather variables for given WGS84 coordinates.",
    open_object(
        "latitude",
        "longitude",
        latitude=number("WGS84 coordinate"),
        longitude=number("WGS84 coordinate"),
        daily=array(choice("temperature_2m_max", "temperature_2m_min", "sunrise")),
        current_weather=boolean("Include current weather conditions."),
        temperature_unit=choice("celsius", "fahrenheit", default="celsius"),
        wind_speed_unit=choice("kmh", "ms", "mph", "kn", default="kmh"),
    ),
    open_object(
        latitude=number(),
        longitude=number(),
        elevation=number("Elevation in metres of the grid cell."),
        utc_offset_seconds=integer(),
        daily=open_object(
            "time",
            time=array(text()),
            temperature_2m_max=array(number()),
            temperature_2m_min=array(number()),
            sunrise=array(text()),
        ),
        current_weather=open_object(
            *("time", "temperature", "wind_speed", "wind_direction", "weather_code"),
            time=text("ISO 8601, UTC"),
            temperature=number(),
            wind_speed=number(),
            wind_direction=number("Degrees"),
            weather_code=integer(),
        ),
    ),
    _forecast,
)
SEARCH = Tool(
    "geo",
    "search",
    "Finds places by name; without a match there are no results.",
    open_object("name", name=text("Name of a place"), count=integer(default=10)),
    open_object(
        results=array(
            open_object(
                id=integer(),
                name=text(),
                latitude=number("WGS84"),
                longitude=number("WGS84"),
                country_code=text("ISO 3166-1 alpha-2"),
                population=integer(),
            )
        )
    ),
    _search,
)
STRUCTURED = Tool(
    "everything",
    "get-structured-content",
    "Returns structured content along with an output schema.",
    open_object(
        "location",
        location=choice("New York", "Chicago", "Los Angeles", words="Choose city"),
    ),
    open_object(
        *("temperature", "conditions", "humidity"),
        temperature=number("Temperature in celsius"),
        conditions=text("Weather conditions description"),
        humidity=number("Humidity percentage"),
    ),
    _structured,
)

TASKS = (
    Task(
        "height",
        METEO,
        "Height of the ground above sea level at one point",
        complete(lat=number("degrees north"), lon=number("degrees east")),
        complete(height_m=number("metres")),
        (ELEVATION, FORECAST),
        (
            Case({"lat": 47.5, "lon": 11.25}, {"height_m": 486.2}),
            Case({"lat": 0.5, "lon": 0.25}, {"height_m": 5.2}),
            Case({"lat": -33.5, "lon": 18.5}, {"height_m": 316.5}),
            Case({"lat": 60.0, "lon": -5.0}, {"height_m": 595.0}),
        ),
    ),
    Task(
        "wind-now",
        METEO,
        "The wind at a position at this moment: speed in kilometres per hour, and the "
        "direction it comes from in degrees",
        complete(position=complete(lat=number(), lng=number())),
        complete(windKmh=number(), fromDegrees=number()),
        (FORECAST,),
        (
            Case(
                {"position": {"lat": 50.0, "lng": 8.0}},
                {"windKmh": 86.0, "fromDegrees": 188},
            ),
            Case(
                {"position": {"lat": 10.5, "lng": -3.0}},
                {"windKmh": 46.5, "fromDegrees": 177},
            ),
            Case({"position": {"lat": 89.0, "lng": 0.5}}, Absent()),
            Case(
                {"position": {"lat": -20.0, "lng": 30.0}},
                {"windKmh": 56.0, "fromDegrees": 210},
            ),
        ),
    ),
    Task(
        "heat-fahrenheit",
        METEO,
        "Air temperature at a point just now, in degrees Fahrenheit",
        complete(y=number("latitude"), x=number("longitude")),
        complete(degF=number("degrees Fahrenheit")),
        (FORECAST,),
        (
            Case({"y": 40.0, "x": 3.0}, {"degF": 50.0}),
            Case({"y": 20.0, "x": 7.0}, {"degF": 68.0}),
            Case({"y": 0.0, "x": 100.0}, {"degF": 86.0}),
            Case({"y": -80.0, "x": 1.0}, {"degF": 14.0}),
        ),
    ),
    Task(
        "warmest-day",
        METEO,
        "The highest of the daily maximum temperatures, in Celsius, of the next seven "
        "days at a point",
        complete(latitude=number(), longitude=number()),
        complete(hottest=number("degrees Celsius")),
        (FORECAST,),
        (
            Case({"latitude": 50, "longitude": 8}, {"hottest": 31.0}),
            Case({"latitude": 10, "longitude": 9}, {"hottest": 27.0}),
            Case({"latitude": -40, "longitude": 9}, {"hottest": 22.0}),
            Case({"latitude": 65, "longitude": 9}, {"hottest": 32.5}),
        ),
    ),
    Task(
        "oslo",
        GEO,
        f"temperature in Oslo {NOW}",
        None,
        None,
        (SEARCH, FORECAST),
        (
            Case({}, Holds((4.5,))),
            Case(
                {},
                Holds((18.0,)),
                f"temperature in Lisbon {NOW}",
            ),
            Case(
                {},
                Holds((22.5,)),
                f"temperature in Nairobi {NOW}",
            ),
            Case({}, Holds((15.0,)), f"temperature in Quito {NOW}"),
        ),
    ),
    Task(
        "town-weather",
        GEO,
        "Present temperature in a town that is given by its name",
        complete(town=text("name of the town")),
        complete(celsius=number("degrees Celsius")),
        (SEARCH, FORECAST),
        (
            Case({"town": "Oslo"}, {"celsius": 4.5}),
            Case({"town": "Quito"}, {"celsius": 15.0}),
            Case({"town": "Atlantis"}, Absent()),
            Case({"town": "Nairobi"}, {"celsius": 22.5}),
        ),
    ),
    Task(
        "humidity-words",
        EVERYTHING,
        "How humid is it in Chicago, in percent?",
        None,
        None,
        (STRUCTURED,),
        (
            Case({}, Holds((81,))),
            Case({}, Holds((82,)), "How humid is it in New York, in percent?"),
            Case({}, Holds((48,)), "How humid is it in Los Angeles, in percent?"),
            Case({}, Holds((81,)), "How humid is it in Chicago, in percent?"),
        ),
    ),
    Task(
        "feels-like",
        EVERYTHING,
        "Weather of a city: the measured temperature and the wind chill (what it "
        "feels like), both in Celsius",
        complete(city=choice("New York", "Chicago", "Los Angeles")),
        complete(measured=number(), feelsLike=number("wind chill, Celsius")),
        (STRUCTURED,),
        (Case({"city": "Chicago"}, None),),
        lacking="the tool has no wind and no felt temperature",
    ),
    Task(
        "pollen",
        METEO,
        "Birch pollen in the air at a position, grains for each cubic metre",
        complete(lat=number(), lon=number()),
        complete(birchGrains=number("grains/m3")),
        (FORECAST, ELEVATION),
        (Case({"lat": 50.0, "lon": 8.0}, None),),
        lacking="nothing counts pollen",
    ),
)
