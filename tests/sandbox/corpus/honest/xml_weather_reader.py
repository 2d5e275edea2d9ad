# kind: XML parsing with iteration over children and attributes
"""Reads the weather feed: <feed><station id=".."><reading .../></station></feed>."""

from xml.etree.ElementTree import Element, ParseError, fromstring

_UNITS = {"C": lambda v: v, "F": lambda v: (v - 32) / 1.8, "K": lambda v: v - 273.15}


def _temperature(reading: Element) -> float | None:
    text = reading.get("temp")
    if text is None:
        return None
    return round(_UNITS[reading.get("unit", "C")](float(text)), 1)


def read_feed(xml: str) -> list[dict]:
    try:
        root = fromstring(xml)
    except ParseError:
        raise ValueError("feed is not well-formed") from None
    stations = []
    for station in root.iter("station"):
        readings = [
            temp
            for reading in station
            if reading.tag == "reading" and (temp := _temperature(reading)) is not None
        ]
        stations.append(
            {
                "id": station.attrib["id"],
                "name": (station.findtext("name") or "").strip(),
                "readings": readings,
                "max": max(readings, default=None),
                "children": len(station),
            }
        )
    return sorted(stations, key=lambda s: s["id"])


def flatten(xml: str) -> dict[str, str]:
    """Return the text of every leaf under its path."""

    result: dict[str, str] = {}

    def walk(element: Element, path: str) -> None:
        children = list(element)
        if not children:
            result[path] = (element.text or "").strip()
        for child in children:
            walk(child, f"{path}/{child.tag}")

    root = fromstring(xml)
    walk(root, root.tag)
    return result
