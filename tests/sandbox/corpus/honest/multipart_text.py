# kind: multipart text with headers
"""Multipart messages: parts with headers, separated by a boundary."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Iterable, Mapping

CRLF = b"\r\n"


class MultipartError(ValueError):
    pass


class Headers:
    """Case-insensitive headers that keep their order and spelling."""

    def __init__(self, items: Iterable[tuple[str, str]] | Mapping[str, str] = ()) -> None:
        self._items: dict[str, tuple[str, str]] = {}
        for name, value in dict(items).items():
            self[name] = value

    def __setitem__(self, name: str, value: str) -> None:
        self._items[name.lower()] = (name, value)

    def __getitem__(self, name: str) -> str:
        return self._items[name.lower()][1]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._items

    def __iter__(self):
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def get(self, name: str, default: str = "") -> str:
        return self[name] if name in self else default


@dataclass
class Part:
    body: bytes
    headers: Headers = field(default_factory=Headers)

    def encode(self) -> bytes:
        lines = [f"{name}: {value}".encode("latin-1") for name, value in self.headers]
        return CRLF.join([*lines, b"", self.body])

    @classmethod
    def decode(cls, raw: bytes) -> Part:
        if raw.startswith(CRLF):
            return cls(raw.removeprefix(CRLF))
        head, separator, body = raw.partition(CRLF + CRLF)
        if not separator:
            raise MultipartError("part without an empty line")
        headers = Headers()
        for line in head.split(CRLF):
            name, _, value = line.decode("latin-1").partition(":")
            if name:
                headers[name.strip()] = value.strip()
        return cls(body, headers)


def encode(parts: list[dict]) -> bytes:
    encoded = [Part(p["body"], Headers(p.get("headers", {}))).encode() for p in parts]
    boundary = b"--" + hashlib.sha1(b"".join(encoded)).hexdigest()[:12].encode()
    chunks = [boundary + CRLF + part for part in encoded]
    return CRLF.join([*chunks, boundary + b"--", b""])


def decode(data: bytes) -> list[dict]:
    boundary, _, rest = data.partition(CRLF)
    if not boundary.startswith(b"--"):
        raise MultipartError("no boundary")
    body, closing, _ = rest.partition(CRLF + boundary + b"--")
    if not closing:
        raise MultipartError("no closing boundary")
    result = []
    for raw in body.split(CRLF + boundary + CRLF):
        part = Part.decode(raw)
        kind, _, parameters = part.headers.get("content-type", "text/plain").partition(";")
        result.append(
            {
                "type": kind.strip(),
                "charset": dict(
                    pair.strip().split("=", 1) for pair in parameters.split(";") if "=" in pair
                ).get("charset", "utf-8"),
                "headers": len(part.headers),
                "body": part.body,
            }
        )
    return result
