"""Sources that the tests of the sandbox load."""

from __future__ import annotations

REQUESTER = """
import json


def encode_request(message_id, arguments):
    message = {"messageId": message_id, **arguments}
    return json.dumps(message).encode("utf-8")


def decode_response(data):
    try:
        message = json.loads(data.decode("utf-8"))
    except json.JSONDecodeError:
        raise ValueError("no JSON")
    total = 0
    for index, item in enumerate(message["items"]):
        total += index * item
    names = {str(item): item for item in message["items"]}
    return {"message_id": message["messageId"], "result": [total, names]}
"""

PROVIDER = """
def handle_request(data):
    try:
        first = yield call("look_up", {"text": data.decode("utf-8")})
    except CapabilityError as exc:
        return {"code": exc.code, "message": exc.message}
    second = yield call("look_up", {"text": first})
    return [first, second]
"""

MISBEHAVING = """
def echo(value):
    return value


def spin():
    while True:
        pass


def hog():
    return len([0] * 10 ** 10)


def grow():
    kept = [b"x"]
    while True:
        kept.append(kept[-1] * 2)


def flood(size):
    return b"x" * size


def stop():
    raise StopIteration


def fail():
    raise ValueError("a\\nb")


def a_set():
    return {1, 2}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def chatter(count):
    for _ in range(count):
        yield call("look_up", None)
    return count


def spin_after_call():
    yield call("look_up", None)
    while True:
        pass
"""
