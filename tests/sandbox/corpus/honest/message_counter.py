# kind: module state with global, callable objects, bytes protocol
"""Numbered binary packets with a sequence per session."""

import struct

_sequence = 0
_FORMAT = struct.Struct("<HB")


def reset(start=0):
    global _sequence
    _sequence = start


def _next_sequence():
    global _sequence
    _sequence = (_sequence + 1) % 0x10000
    return _sequence


class Packet:
    def __init__(self, kind, payload=b"", sequence=None):
        self.kind = kind
        self.payload = payload
        self.sequence = _next_sequence() if sequence is None else sequence

    def __bytes__(self):
        return _FORMAT.pack(self.sequence, self.kind) + self.payload

    def __eq__(self, other):
        return isinstance(other, Packet) and bytes(self) == bytes(other)

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        return (self.sequence, self.kind) < (other.sequence, other.kind)

    def __repr__(self):
        return "Packet(kind=%d, %d bytes, #%d)" % (self.kind, len(self.payload), self.sequence)

    @classmethod
    def parse(cls, data):
        sequence, kind = _FORMAT.unpack_from(data)
        return cls(kind, data[_FORMAT.size:], sequence)


class Router:
    """Calls the handler of a packet's kind; a router is itself a handler."""

    def __init__(self, **handlers):
        self.handlers = {int(name.lstrip("k")): handler for name, handler in handlers.items()}
        self.default = None

    def __call__(self, packet):
        handler = self.handlers.get(packet.kind, self.default)
        if not callable(handler):
            raise LookupError("no handler of %(kind)d" % {"kind": packet.kind})
        return handler(packet)


def send(payloads, start):
    reset(start)
    packets = [Packet(index % 2, payload) for index, payload in enumerate(payloads)]
    return [bytes(packet) for packet in packets]


def receive(datas):
    router = Router(k0=lambda p: p.payload[::-1], k1=Router(k1=repr))
    packets = sorted(map(Packet.parse, datas))
    return [router(packet) for packet in packets]


def same(a, b):
    return [Packet.parse(a) == Packet.parse(b), Packet.parse(a) != Packet.parse(b)]
