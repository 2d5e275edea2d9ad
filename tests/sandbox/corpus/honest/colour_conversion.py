# kind: colour conversion with slots, NamedTuple and int formatting
"""Colours between hex, RGB and HSL for the theme protocol."""

from __future__ import annotations

import re
from typing import NamedTuple


class Rgb(NamedTuple):
    red: int
    green: int
    blue: int

    @classmethod
    def from_hex(cls, text: str) -> Rgb:
        match = re.fullmatch(r"#?([0-9a-f]{3}|[0-9a-f]{6})", text.strip(), re.IGNORECASE)
        if not match:
            raise ValueError(f"not a colour: {text}")
        digits = match[1] if len(match[1]) == 6 else "".join(2 * d for d in match[1])
        return cls(*bytes.fromhex(digits))

    @property
    def hex(self) -> str:
        return "#" + "".join(f"{channel:02x}" for channel in self)

    def luminance(self) -> float:
        def linear(channel: int) -> float:
            c = channel / 255
            return c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4

        r, g, b = map(linear, self)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    def to_hsl(self) -> Hsl:
        r, g, b = (channel / 255 for channel in self)
        high, low = max(r, g, b), min(r, g, b)
        light, spread = (high + low) / 2, high - low
        if not spread:
            return Hsl(0.0, 0.0, light)
        saturation = spread / (1 - abs(2 * light - 1))
        if high == r:
            hue = (g - b) / spread % 6
        elif high == g:
            hue = (b - r) / spread + 2
        else:
            hue = (r - g) / spread + 4
        return Hsl(hue * 60, saturation, light)


class Hsl(NamedTuple):
    hue: float
    saturation: float
    light: float

    def to_rgb(self) -> Rgb:
        h, s, l = self
        chroma = (1 - abs(2 * l - 1)) * s
        x = chroma * (1 - abs(h / 60 % 2 - 1))
        sector = int(h // 60) % 6
        r, g, b = [(chroma, x, 0), (x, chroma, 0), (0, chroma, x), (0, x, chroma), (x, 0, chroma), (chroma, 0, x)][sector]
        m = l - chroma / 2
        return Rgb(*(round((v + m) * 255) for v in (r, g, b)))

    def __str__(self) -> str:
        return f"hsl({self.hue:.0f}, {self.saturation:.0%}, {self.light:.0%})"


def describe(text: str) -> dict:
    colour = Rgb.from_hex(text)
    red, *_, blue = colour
    return {
        "hex": colour.hex,
        "rgb": list(colour),
        "hsl": str(colour.to_hsl()),
        "back": colour.to_hsl().to_rgb() == colour,
        "warm": red > blue,
    }


def contrast(a: str, b: str) -> float:
    light, dark = sorted((Rgb.from_hex(a).luminance(), Rgb.from_hex(b).luminance()), reverse=True)
    return round((light + 0.05) / (dark + 0.05), 2)


def lighten(text: str, amount: float) -> str:
    hsl = Rgb.from_hex(text).to_hsl()
    return hsl._replace(light=min(1.0, hsl.light + amount)).to_rgb().hex
