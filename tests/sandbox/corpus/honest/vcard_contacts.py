# kind: vCard text with folding and escaping
"""Contacts as vCards."""

from collections.abc import Iterable, Iterator
from typing import TypedDict

_ESCAPES = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}
FOLD = 40


class Contact(TypedDict, total=False):
    name: str
    emails: list[str]
    phones: dict[str, str]
    note: str


class CardError(ValueError):
    pass


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(ch, ch) for ch in text)


def _unescape(text: str) -> str:
    out, characters = [], iter(text)
    for ch in characters:
        if ch == "\\":
            following = next(characters, "")
            ch = "\n" if following in {"n", "N"} else following
        out.append(ch)
    return "".join(out)


def _fold(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        while len(line) > FOLD:
            yield line[:FOLD]
            line = " " + line[FOLD:]
        yield line


def _unfold(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith((" ", "\t")) and lines:
            lines[-1] += line[1:]
        elif line:
            lines.append(line)
    return lines


def encode(contacts: list[Contact]) -> str:
    def card(contact: Contact) -> Iterator[str]:
        first, _, last = contact["name"].rpartition(" ")
        yield "BEGIN:VCARD"
        yield "VERSION:4.0"
        yield f"N:{_escape(last)};{_escape(first)};;;"
        yield f"FN:{_escape(contact['name'])}"
        yield from (f"EMAIL:{email}" for email in contact.get("emails", ()))
        for kind, number in contact.get("phones", {}).items():
            yield f"TEL;TYPE={kind}:{number}"
        if note := contact.get("note"):
            yield "NOTE:" + _escape(note)
        yield "END:VCARD"

    return "".join(f"{line}\r\n" for contact in contacts for line in _fold(card(contact)))


def decode(text: str) -> list[dict]:
    contacts: list[dict] = []
    current: dict | None = None
    for number, line in enumerate(_unfold(text), start=1):
        left, colon, value = line.partition(":")
        name, *parameters = left.upper().split(";")
        if name == "BEGIN":
            current = {"emails": [], "phones": {}}
        elif current is None or not colon:
            raise CardError(f"line {number}: unexpected {line!r}")
        elif name == "END":
            contacts.append(current)
            current = None
        elif name == "FN":
            current["name"] = _unescape(value)
        elif name == "EMAIL":
            current["emails"].append(value)
        elif name == "TEL":
            options = dict(p.split("=") for p in parameters)
            current["phones"][options.get("TYPE", "VOICE").lower()] = value
        elif name == "NOTE":
            current["note"] = _unescape(value)
    if current is not None:
        raise CardError("card without an end")
    return contacts
