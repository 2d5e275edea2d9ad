# kind: unions told apart by match on mappings, sequences and literals
"""Events of a chat room; each event is one of several shapes."""

from typing import Any


class UnknownEvent(Exception):
    code = 1404

    def __str__(self) -> str:
        return f"unknown event (code {self.code}): {self.args[0]}"


def describe(event: Any) -> str:
    match event:
        case {"type": "message", "from": str(sender), "text": str(text), **rest}:
            suffix = f" (+{', '.join(sorted(k for k in rest))})" if rest else ""
            return f"{sender}: {text}{suffix}"
        case {"type": "join" | "leave" as verb, "user": {"name": name}}:
            return f"{name} {verb}s"
        case {"type": "reaction", "emoji": emoji, "count": int(count)} if count > 0:
            return emoji * min(count, 3)
        case {"type": "batch", "events": [first, *others]}:
            return describe(first) + (f" and {len(others)} more" if others else "")
        case {"type": "batch", "events": []}:
            return "nothing"
        case [x, y]:
            return f"moved to {x}, {y}"
        case [("up" | "down") as direction, int() | float() as amount, *_]:
            return f"{direction} by {amount:.1f}"
        case None | "" | False:
            return "silence"
        case bool() | int():
            return f"code {int(event)}"
        case -1.5:
            return "special"
        case _:
            raise UnknownEvent(type(event).__name__)


def describe_all(events: list[Any]) -> list[str]:
    lines: list[str] = []
    for event in events:
        try:
            lines.append(describe(event))
        except UnknownEvent as exc:
            lines.append(f"? {exc}")
    return lines


def area(shape: dict[str, Any]) -> float:
    match shape:
        case {"kind": "circle", "r": (int() | float()) as r}:
            return round(3.14159 * r**2, 3)
        case {"kind": "rect", "size": [w, h]} | {"kind": "rect", "w": w, "h": h}:
            return float(w * h)
        case {"kind": kind}:
            raise ValueError(f"no area of a {kind}")
    raise TypeError("a shape has a kind")
