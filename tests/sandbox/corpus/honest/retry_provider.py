# kind: generator half: retries when a capability fails
"""Provider half: books a table; tries other times when one is taken."""

import json
from datetime import datetime, timedelta

RETRY_CODES = frozenset({409, 503})
STEP = timedelta(minutes=30)


class BookingFailed(Exception):
    def __init__(self, attempts: int, last_message: str):
        super().__init__(f"gave up after {attempts} attempts: {last_message}")


def _candidates(start: str, attempts: int):
    moment = datetime.fromisoformat(start)
    for number in range(attempts):
        yield number, moment + number * STEP


def _book(start: str, guests: int, attempts: int):
    last = None
    for number, moment in _candidates(start, attempts):
        params = {"at": moment.isoformat(), "guests": guests}
        try:
            confirmation = yield call("book_table", params)
        except CapabilityError as exc:
            if exc.code not in RETRY_CODES:
                raise BookingFailed(number + 1, exc.message) from exc
            print(f"attempt {number + 1} failed: {exc.code} {exc.message}")
            last = exc.message
        else:
            return {**confirmation, "at": params["at"], "attempts": number + 1}
    raise BookingFailed(attempts, last or "no attempt was made")


def handle_request(data: bytes):
    request = json.loads(data.decode("utf-8"))
    result = yield from _book(request["at"], request.get("guests", 2), request.get("attempts", 3))
    return json.dumps({"ok": True, **result}).encode("utf-8")
