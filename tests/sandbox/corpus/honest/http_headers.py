# kind: header parsing, content negotiation, cookies
"""HTTP-like headers inside our messages: Accept, Cache-Control and cookies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

_QUOTED = re.compile(r'([\w!#$%&\'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,]+)))?')


@dataclass(order=True, frozen=True)
class _Choice:
    quality: float
    specificity: int
    media: str

    @classmethod
    def parse(cls, text: str) -> _Choice:
        media, *parameters = (part.strip() for part in text.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                quality = max(0.0, min(1.0, float(value)))
        return cls(quality, 2 - media.count("*"), media.lower())

    def matches(self, offered: str) -> bool:
        main, _, sub = self.media.partition("/")
        offered_main, _, offered_sub = offered.partition("/")
        return main in ("*", offered_main) and sub in ("*", offered_sub)


class NotAcceptable(Exception):
    code = 406


def negotiate(accept: str, offers: list[str]) -> str:
    choices = sorted(map(_Choice.parse, accept.split(",")), reverse=True)
    for choice in choices:
        for offer in offers:
            if choice.quality and choice.matches(offer):
                return offer
    raise NotAcceptable(f"{accept!r} matches none of {', '.join(offers)}")


def parse_parameters(value: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, quoted, plain in _QUOTED.findall(value):
        text = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        result[name.lower()] = int(text) if text.isdigit() else text or True
    return result


def parse_headers(block: str) -> dict[str, str | list[str]]:
    headers: dict[str, list[str]] = {}
    current: str | None = None
    for line in block.split("\r\n"):
        if not line:
            break
        if line[0] in " \t" and current:
            headers[current][-1] += " " + line.strip()
        else:
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise ValueError(f"bad header line {line!r}")
            current = name.title()
            headers.setdefault(current, []).append(value.strip())
    return {k: v[0] if len(v) == 1 else v for k, v in headers.items()}


def set_cookie(name: str, value: str, expires: int, *flags: str) -> str:
    moment = datetime.fromtimestamp(expires, tz=timezone.utc)
    parts = [f"{name}={value}", f"Expires={moment:%a, %d %b %Y %H:%M:%S} GMT", *flags]
    return "; ".join(parts)


def session_cookie(value: str, expires: int) -> str:
    return set_cookie("sid", value, expires, "Secure", "HttpOnly")
