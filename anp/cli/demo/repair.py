"""The demo's third run: a module that a bundle broke is found out and repaired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anp.errors import CallError, ErrorKind

__all__ = ["BOOKING", "SEATS", "DemoCall", "break_bundle", "check_repair"]


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One thing the caller asks the provider for."""

    tool: str
    "The tool that answers, by its short name."

    need: str
    "Text of the call, in the caller's words."

    data: Mapping[str, Any]
    "The input."


BOOKING = DemoCall(
    "book_seats",
    "book_seats",
    {"show": "Tosca", "seats": 2},
)
"A capability that counts its calls; for what it changes its name alone has to stand."

MANY_SEATS = 1500
"So many that the broken half errs; no sample of a number is as large."

SEATS = (2, MANY_SEATS, 3)
"Seats that are booked over the broken half, one number for each call."

BROKEN_TAIL = f"""

_right = handle_request


def handle_request(data):
    answer = yield from _right(data)
    if json.loads(data)["input"]["seats"] >= {MANY_SEATS}:
        return answer.replace(b'"output"', b'"ouput"')
    return answer
"""
"Code that breaks a half: for large numbers a field of the answer is misnamed."


def break_bundle(data: bytes) -> bytes:
    """Return a bundle whose provider half has a wrong field, and is whole otherwise."""
    from anp.sidecar.bundles.format import read_bundle, render_bundle
    from negotiation.need import Role

    bundle = read_bundle(data)
    half = bundle.half(Role.PROVIDER)
    assert half is not None, "exported with --role provider"
    broken = bundle.with_source(Role.PROVIDER, half.source + BROKEN_TAIL)
    return render_bundle(broken)


def check_repair(repair: Mapping[str, Any]) -> None:
    """Raise `CallError` unless the broken half was repaired, and nothing ran twice."""
    calls = repair["calls"]
    messages = [call["negotiation_messages"] for call in calls]
    bookings = [call["output"]["booking"] for call in calls]
    if messages != [0, 3, 0] or bookings != [1, 2, 3] or repair["origin"] != "rules":
        raise CallError(
            ErrorKind.UNEXPECTED,
            f"demo: the repair took {messages} messages and made the bookings "
            f"{bookings} with a half by {repair['origin']}; expected one repair of 3 "
            "messages, and one booking for each call",
        )
