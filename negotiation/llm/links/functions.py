"""Fixed functions of halves, of which each half contains those it uses.

They need only constructs that RestrictedPython accepts without extension. Their names
begin with `anp_`, so that a codec written by a model does not redefine one by chance.
"""

from __future__ import annotations

import re
from typing import Final

from negotiation.trial.module_shapes import MAX_MADE
from negotiation.trial.worked import BEYOND

MAX_ITEMS: Final = 5_000
"Largest number of items that all pages of a list have together."

HELPERS: Final[dict[str, str]] = {
    "anp_expect": """\
def anp_expect(value, kind):
    if not isinstance(value, kind):
        raise ValueError("a value of the message has the wrong type")
    return value
""",
    "anp_at": """\
def anp_at(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise ValueError("the value has no " + name)
        value = value[name]
    return value
""",
    "anp_given": """\
def anp_given(value, names, default):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return default
        value = value[name]
    return value
""",
    "anp_has": """\
def anp_has(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return value is not None
""",
    "anp_find": """\
def anp_find(value, names):
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return ""
        value = value[name]
    return value
""",
    "anp_unplaced": """\
def anp_unplaced(value, known, path):
    if isinstance(known, list) and isinstance(value, list):
        for item in value:
            unplaced = anp_unplaced(item, known[0], path + "*/")
            if unplaced:
                return unplaced
    if isinstance(known, dict) and isinstance(value, dict):
        for name in value:
            if name not in known:
                return path + name
            unplaced = anp_unplaced(value[name], known[name], path + name + "/")
            if unplaced:
                return unplaced
    return ""
""",
    "anp_finite": """\
def anp_finite(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a value of the message is no number")
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("a number of the message is not finite")
    return value
""",
    "anp_scaled": """\
def anp_scaled(value, times, plus, over, whole):
    if over == 1 and isinstance(value, int):
        return anp_finite(value) * times + plus
    made = Decimal(str(anp_finite(value))) * times + plus
    if over != 1:
        made = made / over
    if whole:
        return int(round(made))
    return anp_finite(float(made))
""",
    "anp_text": """\
def anp_text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return str(anp_finite(value))
""",
    "anp_number": """\
def anp_number(value, whole):
    number = anp_finite(float(anp_expect(value, str).strip()))
    if whole or (number == int(number) and "." not in value and "e" not in value):
        if number != int(number):
            raise ValueError("a text of the message is no whole number")
        return int(number)
    return number
""",
    "anp_moment": """\
def anp_moment(value, form):
    if form == "unix-seconds":
        return datetime.fromtimestamp(anp_finite(value), timezone.utc)
    if form == "unix-milliseconds":
        return datetime.fromtimestamp(anp_finite(value) / 1000, timezone.utc)
    if form in ("date", "date-time"):
        moment = datetime.fromisoformat(anp_expect(value, str))
    else:
        moment = datetime.strptime(anp_expect(value, str), form)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment
""",
    "anp_date": """\
def anp_date(value, before, after):
    moment = anp_moment(value, before)
    if after == "unix-seconds":
        return int(moment.timestamp())
    if after == "unix-milliseconds":
        return int(moment.timestamp() * 1000)
    if after == "date":
        return moment.date().isoformat()
    if after == "date-time":
        return moment.isoformat().replace("+00:00", "Z")
    return moment.strftime(after)
""",
    "anp_mapped": """\
def anp_mapped(value, pairs, default):
    for pair in pairs:
        if isinstance(pair[0], bool) == isinstance(value, bool) and pair[0] == value:
            return pair[1]
    if not default:
        raise ValueError("a value of the message is not one of those that are known")
    return default[0]
""",
    "anp_part": """\
def anp_part(value, separator, place):
    parts = anp_expect(value, str).split(separator)
    if place >= len(parts) or -place > len(parts):
        raise ValueError("a text of the message has fewer parts")
    return parts[place]
""",
    "anp_first": """\
def anp_first(value):
    if not anp_expect(value, list):
        raise ValueError("a list of the message is empty")
    return value[0]
""",
    "anp_holds": """\
def anp_holds(read, meant, shape):
    if isinstance(shape, dict) and isinstance(meant, dict):
        for name in shape:
            if not isinstance(read, dict):
                return False
            if not anp_holds(read.get(name), meant.get(name), shape[name]):
                return False
        return True
    if isinstance(shape, list) and isinstance(meant, list):
        if not isinstance(read, list) or len(read) != len(meant):
            return False
        for number, one in enumerate(meant):
            if not anp_holds(read[number], one, shape[0]):
                return False
        return True
    if isinstance(meant, float) and isinstance(read, (int, float)):
        return abs(read - meant) <= 0.5
    return read == meant
""",
    "anp_packed": f"""\
def anp_packed(kind, message, names, values, shape):
    try:
        data = write_message(kind, message)
        read = read_message(kind, data)
    except Exception as problem:
        raise ValueError("{BEYOND}: " + str(problem)[:200])
    if not anp_holds(anp_find(read, names), values, shape):
        raise ValueError("{BEYOND}: they come back changed")
    return data
""",
    "anp_status": """\
def anp_status(error):
    text = str(error.code)
    if len(text) == 3 and text.isdecimal() and text[0] in "45":
        return int(text)
    return 500
""",
    "anp_coded": """\
def anp_coded(error, codes, default):
    text = str(error.code)
    if text in codes:
        return codes[text]
    return codes.get(str(anp_status(error)), default)
""",
    "anp_passing": """\
def anp_passing(error):
    if str(error.code) == "approval-pending":
        return False
    return anp_status(error) in (429, 500, 502, 503, 504)
""",
    "anp_room": f"""\
def anp_room(made, more):
    if made + more > {MAX_MADE}:
        raise CapabilityError("413", "it would take more than {MAX_MADE} calls")
    return made + more
""",
    "anp_full": f"""\
def anp_full(items):
    if len(items) > {MAX_ITEMS}:
        raise CapabilityError("413", "the pages have more than {MAX_ITEMS} items")
    return items
""",
    "anp_put": """\
def anp_put(value, names, items):
    if not names:
        return items
    return {**value, names[0]: anp_put(value.get(names[0], {}), names[1:], items)}
""",
    "anp_is": """\
def anp_is(value, names, wanted):
    found = anp_given(value, names, None)
    if wanted is None:
        return found is None or found == "" or found == []
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted
""",
    "anp_joined": """\
def anp_joined(value, names, key, other, other_names, other_key):
    partners = {}
    for item in anp_expect(anp_given(other, other_names, []), list):
        own = json.dumps(anp_given(item, other_key, None))
        if own != "null" and partners.get(own, item) != item:
            raise CapabilityError("502", "two items have the key " + own[:100])
        partners[own] = item
    pairs = []
    for item in anp_expect(anp_given(value, names, []), list):
        own = json.dumps(anp_given(item, key, None))
        pair = {"left": item}
        if own != "null" and own in partners:
            pair["right"] = partners[own]
        pairs.append(pair)
    return pairs
""",
}
"The functions by name, each after those that it uses."

IMPORTS: Final[dict[str, str]] = {
    "json": "import json",
    "datetime": "from datetime import datetime",
    "timedelta": "from datetime import timedelta",
    "timezone": "from datetime import timezone",
    "Decimal": "from decimal import Decimal",
    "base64": "import base64",
    "fromstring": "from xml.etree.ElementTree import fromstring",
    "html": "import html",
    "math": "import math",
    "re": "import re",
    "struct": "import struct",
}
"The import line for each name that a half may use."

_NAME: Final = re.compile(r"\banp_[a-z]+\b")


def helpers_for(text: str) -> list[str]:
    """Return the functions that `text` uses, and those that they use."""
    wanted: set[str] = set()
    found = set(_NAME.findall(text)) & HELPERS.keys()
    while found - wanted:
        wanted |= found
        found = {
            name
            for one in wanted
            for name in _NAME.findall(HELPERS[one])
            if name in HELPERS
        }
    return [HELPERS[name] for name in HELPERS if name in wanted]
