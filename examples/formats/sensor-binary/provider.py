"""Provider half of the sensor reading in packed binary, written by hand."""
# ruff: noqa: F821 -- `call` and `CapabilityError` are given by the worker.

import struct

UNITS = "CFK"


def text_field(text, width):
    """Return text in UTF-8 behind its length of `width` bytes."""
    data = text.encode("utf-8")
    return len(data).to_bytes(width, "big") + data


class Reader:
    """Takes fields from the front of a message."""

    def __init__(self, data):
        self.data = data
        self.place = 0

    def take(self, count):
        """Return the next bytes."""
        end = self.place + count
        if end > len(self.data):
            raise ValueError("the message is cut")
        found = self.data[self.place : end]
        self.place = end
        return found

    def fields(self, form):
        """Return the fields of a struct."""
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def text(self, width):
        """Return a text behind its length."""
        size = int.from_bytes(self.take(width), "big")
        return self.take(size).decode("utf-8")

    def end(self):
        """Refuse what is left over."""
        if self.place != len(self.data):
            raise ValueError("bytes are left over")


def begun(data, magic):
    """Return a reader behind the head of a message."""
    reader = Reader(data)
    if reader.take(3) != magic + b"\x01":
        raise ValueError("not a message of this protocol")
    return reader


def unit_of(number):
    """Return the letter of a unit."""
    letter = chr(number)
    if letter not in UNITS:
        raise ValueError("unknown unit")
    return letter


def read_request(data):
    """Return the values of a request."""
    reader = begun(data, b"SR")
    values = {"messageId": reader.text(1), "sensor": reader.text(1)}
    values["unit"] = unit_of(reader.fields(">B")[0])
    reader.end()
    return values


def read_response(data):
    """Return the values of a response."""
    reader = begun(data, b"SA")
    values = {"messageId": reader.text(1), "code": reader.fields(">H")[0]}
    if values["code"] == 200:
        number, unit, raw = reader.fields(">dBi")
        values["reading"] = {"value": number, "unit": unit_of(unit), "raw": raw}
    else:
        values["message"] = reader.text(2)
    reader.end()
    return values


def read_message(kind, data):
    """Return the values that the schemas describe."""
    return read_request(data) if kind == "request" else read_response(data)


def response(message_id, code, rest):
    """Return the bytes of a response."""
    return b"SA\x01" + text_field(message_id, 1) + struct.pack(">H", code) + rest


def handle_request(data):
    """Answer one request."""
    request = read_request(data)
    message_id = request["messageId"]
    wanted = {"sensor": request["sensor"], "unit": request["unit"]}
    try:
        reading = yield call("sensors.read", wanted)
    except CapabilityError as error:
        text = str(error.code)
        code = int(text) if len(text) == 3 and text.isdecimal() else 500
        if not 400 <= code <= 599:
            code = 500
        # Cut in characters, so that no character is cut in its bytes.
        return response(message_id, code, text_field(error.message[:1000], 2))
    packed = struct.pack(">dBi", reading["value"], ord(reading["unit"]), reading["raw"])
    return response(message_id, 200, packed)
