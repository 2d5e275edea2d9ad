"""Fixed functions of halves, of which each half contains those it uses.

They need only constructs that RestrictedPython accepts without extension. Their names
begin with `anp_`, so that a codec written by a model does not redefine one by chance.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from negotiation.trial.module_shapes import MAX_MADE
from negotiation.trial.worked import BEYOND

MAX_ITEMS: Final = 5_000
"Largest number of items that all pages of a list have together."


def _read_helpers() -> dict[str, str]:
    text = (files(__package__) / "helpers.txt").read_text("utf-8")
    for name, value in (
        ("MAX_MADE", MAX_MADE),
        ("MAX_ITEMS", MAX_ITEMS),
        ("BEYOND", BEYOND),
    ):
        text = text.replace(f"{{{name}}}", str(value))
    found = text.split("\ndef ")
    return {
        one.partition("(")[0]: f"def {one}"
        for one in (found[0].removeprefix("def "), *found[1:])
    }


HELPERS: Final = _read_helpers()
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
