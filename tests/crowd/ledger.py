"""Compares what every member of a group heard with what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Heard = Mapping[int, tuple[str, str]]
"What a member has: sender and text of each message by its number."


@dataclass
class Said:
    """What one agent's program said, and what became of that as far as it knows."""

    numbers: dict[str, int] = field(default_factory=dict)
    "Numbers of messages by their text, as the daemon told them."

    queued: set[str] = field(default_factory=set)
    "Messages that the daemon stored while the hub was away."

    unknown: set[str] = field(default_factory=set)
    "Messages whose daemon was killed before it answered."

    refused: int = 0

    @property
    def certain(self) -> set[str]:
        """Messages that must arrive."""
        return {*self.numbers, *self.queued}


def faults(said: Mapping[str, Said], heard: Mapping[str, Heard]) -> list[str]:
    """Return everything that is wrong; one line each.

    Args:
        said: By the DID of the member.
        heard: By the DID of the member; its own messages may lack their text, when it
            was killed after they were taken.
    """
    found: list[str] = []
    truth: dict[int, tuple[str, str]] = {}
    for name, messages in heard.items():
        for number, (by, text) in messages.items():
            if by == name and not text:
                continue
            known = truth.setdefault(number, (by, text))
            if known != (by, text):
                found.append(f"{name} heard {text!r} as {number}, others {known}")
    order = [truth[number][1] for number in sorted(truth)]
    found += _twice(order)
    for name, messages in heard.items():
        missing = truth.keys() - messages.keys()
        found += [f"{name} did not hear {truth[one]}" for one in sorted(missing)[:3]]
    at_all = set(order)
    for name, one in said.items():
        lost = one.certain - at_all
        found += [f"{text!r} of {name} is lost" for text in sorted(lost)[:3]]
        found += [
            f"{text!r} of {name} was told to be {number}, and is {truth.get(number)}"
            for text, number in one.numbers.items()
            if truth.get(number) != (name, text)
        ][:3]
    known_texts = set().union(*(one.certain | one.unknown for one in said.values()))
    found += [f"nobody said {text!r}" for text in sorted(at_all - known_texts)[:3]]
    return found


def _twice(order: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    found = []
    for text in order:
        if text in seen:
            found.append(f"{text!r} came twice")
        seen.add(text)
    return found
