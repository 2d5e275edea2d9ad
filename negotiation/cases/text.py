"""Test cases as natural language: written in one form, read from looser ones.

Markdown: a heading for each case, and three list items with the request, the response
and the expected result; in English or Chinese, with or without bold and fences
(ANP-50, ANP-54). Data are JSON, or bytes in hex or base64. Patterns match only at the
beginning of a line and are bounded, so that each line is examined once.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from negotiation.cases.case import MAX_CASES, MAX_DATA, TestCase
from negotiation.document.shape import Document
from negotiation.errors import CasesError, JsonError
from negotiation.late_patterns import late_pattern
from negotiation.messages import MAX_TEXT_SIZE
from negotiation.strict_json import parse_json

GOOD: Final = "A good result."

FAILURES: Final[tuple[tuple[str, str], ...]] = (
    ("404", "not found"),
    ("999", "failed & said so"),
    ("503", "not available"),
)
"""Failures of capabilities in error cases: code and words.

One is a code that halves pass on, one is no HTTP status, and one is a server error.
"""

# The first words of our own texts are recognised before all others.
_OURS: Final = late_pattern(r"(a good result|an error)\b", re.IGNORECASE)
_BAD: Final = late_pattern(
    r"error|fail|not found|invalid|reject|refus|\b[45]\d\d\b"
    r"|错误|失败|不存在|异常|无效|拒绝|未找到",
    re.IGNORECASE,
)
_GOOD: Final = late_pattern(r"good|succe|\bok\b|\b200\b|成功|正常", re.IGNORECASE)
_OWN: Final = late_pattern(
    r"An error, as the capability fails with ([\w.-]{1,64}) \(([^()]{1,200})\)",
    re.ASCII,
)
_CODE: Final = late_pattern(r"(?<![0-9A-Za-z])[1-9][0-9]{2}(?![0-9A-Za-z])")


def kind_said(words: str) -> bool | None:
    """Return whether the words expect a good result; None if they leave it open."""
    ours = _OURS.match(words)
    if ours is not None:
        return ours[1].casefold() == "a good result"
    good, bad = bool(_GOOD.search(words)), bool(_BAD.search(words))
    return good if good != bad else None


def words_for(words: str, good: bool | None) -> str:
    """Return words that mean `good` to `kind_said`, as close to `words` as possible."""
    if good is None or kind_said(words) == good:
        return words
    begin = "A good result" if good else "An error"
    return f"{begin}: {words}" if words else f"{begin}."


def error_words(failure: tuple[str, str]) -> str:
    """Return the expected result of a case in which the capability fails."""
    code, text = failure
    return f"An error, as the capability fails with {code} ({text})."


def failure_said(words: str) -> tuple[str, str]:
    """Return the failure that a case with an expected error requires.

    In our own words the code stands in its place. Else it is the first number of three
    digits that does not mean success; codes of HTTP errors come before others.
    """
    if (own := _OWN.match(words)) is not None:
        return own[1], dict(FAILURES).get(own[1], own[2])
    codes = [code for code in _CODE.findall(words) if not code.startswith("2")]
    codes.sort(key=lambda code: code[0] not in "45")
    if not codes:
        return FAILURES[0]
    return codes[0], dict(FAILURES).get(codes[0], "it failed")


MAX_TRIES: Final = 8
"Largest number of brackets in one body at which a JSON value is tried."

_FENCE: Final = late_pattern(
    r"([ \t]{0,12})(`{3,}|~{3,})[ \t]{0,4}([A-Za-z0-9_+-]{0,20})"
)
_BRACKET: Final = late_pattern(r"[{\[]")
_HEX: Final = late_pattern(r"[0-9A-Fa-f]+")


@dataclass(frozen=True, slots=True)
class Opening:
    """The first line of a code fence."""

    mark: str
    "The backticks or tildes."

    language: str
    "The language word after the marks, in lower case."

    indentation: int
    "Number of blanks in front of the marks."


def opening_of(line: str) -> Opening | None:
    """Return the fence that `line` opens, or None."""
    found = _FENCE.match(line)
    if found is None or "`" in line[found.end() :]:
        return None
    return Opening(found[2], found[3].lower(), len(found[1]))


def is_closing(line: str, mark: str) -> bool:
    """Return whether `line` closes a fence that `mark` opened."""
    bare = line.strip(" \t")
    return bare.startswith(mark) and not bare.strip(mark[0])


def fenced(data: bytes, document: Document) -> str:
    """Return a fence from which `read_body` reads exactly these bytes again."""
    text = _json_text(data) if document.is_json else None
    if text is None:
        return f"```hex\n{data.hex()}\n```"
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}json\n{text}\n{mark}"


def read_body(lines: list[str], document: Document, what: str) -> bytes | None:
    """Return the bytes that the lines under one label represent; None for no data.

    The first fence counts; without a fence the first JSON value or the whole text.

    Args:
        what: Name of the data for the error message.

    Raises:
        CasesError: The data cannot be read.
    """
    opened, text = _fence_in(lines)
    language = opened.language if opened is not None else ""
    if opened is None:
        text = _outdented(lines).strip("` \t\n")
    try:
        if language == "hex":
            return bytes.fromhex("".join(text.split())) or None
        if language in ("base64", "b64"):
            return base64.b64decode("".join(text.split()), validate=True) or None
        if not document.is_json:
            return _packed(text, as_is=bool(language))
        if not text.strip():
            return None
        if opened is None:
            return _first_json(text)
        data = text.encode("utf-8")
        parse_json(data, max_size=MAX_TEXT_SIZE)
        return data
    except (JsonError, ValueError, binascii.Error) as exc:
        raise CasesError(f"{what} cannot be read: {_words(exc)}") from None


def _json_text(data: bytes) -> str | None:
    """Return JSON as the text of a fence; None if a fence would change it."""
    try:
        text = data.decode("utf-8")
        parse_json(data, max_size=MAX_TEXT_SIZE)
    except (UnicodeDecodeError, JsonError):
        return None
    # Reading a text drops carriage returns, so such data would not survive a fence.
    return None if "\r" in text else text


def _fence_in(lines: list[str]) -> tuple[Opening | None, str]:
    for start, line in enumerate(lines):
        opened = opening_of(line)
        if opened is None:
            continue
        inside: list[str] = []
        for other in lines[start + 1 :]:
            if is_closing(other, opened.mark):
                break
            blanks = len(other) - len(other.lstrip(" \t"))
            inside.append(other[min(blanks, opened.indentation) :])
        return opened, "\n".join(inside)
    return None, ""


def _outdented(lines: list[str]) -> str:
    """Return the lines without the indentation that all of them share."""
    depths = [len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip()]
    depth = min(depths, default=0)
    return "\n".join([*lines[:1], *(line[depth:] for line in lines[1:])])


def _first_json(text: str) -> bytes | None:
    """Return the exact text of the first JSON value inside prose.

    Raises:
        JsonError: There is a bracket, but no JSON value begins at one.
    """
    reader = json.JSONDecoder()
    problem: JsonError | None = None
    for tried, bracket in enumerate(_BRACKET.finditer(text)):
        if tried == MAX_TRIES:
            break
        try:
            _, end = reader.raw_decode(text, bracket.start())
            data = text[bracket.start() : end].encode("utf-8")
            parse_json(data, max_size=MAX_TEXT_SIZE)
            return data
        except (JsonError, ValueError, RecursionError) as exc:
            problem = problem or JsonError(_words(exc))
    if problem is not None:
        raise problem
    return None


def _packed(text: str, *, as_is: bool) -> bytes | None:
    """Return the bytes of a message that is not JSON.

    Args:
        as_is: True when the text itself is the message, as with XML.
    """
    if as_is:
        return text.encode("utf-8") or None
    bare = "".join(text.split())
    if not bare:
        return None
    if _HEX.fullmatch(bare) and len(bare) % 2 == 0:
        return bytes.fromhex(bare)
    return base64.b64decode(bare, validate=True)


def _words(exc: Exception) -> str:
    if isinstance(exc, JsonError):
        return str(exc)
    if isinstance(exc, RecursionError):
        return "it is nested too deep"
    # Messages of other errors may quote the text.
    return "it is neither JSON nor hex nor base64"


MAX_TITLE: Final = 120
MAX_EXPECTED: Final = 1_000
MAX_HEAD: Final = 200
"Characters of a line that may contain a heading or a label."

_LEAD: Final = (
    r"[ \t]{0,12}(?:>[ \t]{0,3})?"
    r"(?P<mark>\#{1,6}[ \t]{0,4}|[-*+•][ \t]{1,4}|\d{1,2}[.)、][ \t]{0,4})?"
    r"(?P<bold>\*{2}|_{2})?[ \t]{0,2}"
)
_HEADING: Final = late_pattern(
    _LEAD + r"(?:测试用例|測試用例|用例|test[ \t_-]?case|case(?=[ \t]?\d))"
    r"[ \t]{0,3}[#№]?[ \t]{0,2}(?P<number>\d{1,4}|[一二三四五六七八九十]{1,3})?"
    r"(?P<rest>(?:\*{2}|_{2})?(?:$|[ \t]|[:\uff1a.、,(\uff08–—-]))",
    re.IGNORECASE,
)
_SEPARATED: Final = late_pattern(
    r"(?:\*{2}|_{2})?[ \t]{0,3}(?:$|[:\uff1a.、,(\uff08–—-])"
)
"Text after the number of a heading that has no other mark of a heading."
_LABELS: Final = (
    r"测试请求数据|测试响应数据|测试预期结果|测试请求|测试响应|请求数据|响应数据|预期结果|期望结果"
    r"|请求消息|响应消息|请求|响应|预期"
    r"|(?:the )?(?:test |expected )?(?:request|response)"
    r"(?: (?:data|message|body|bytes))?"
    r"|(?:the )?(?:test )?expected(?: (?:test )?(?:result|outcome|status|output))?"
)
_ITEM: Final = late_pattern(
    _LEAD + rf"(?P<label>{_LABELS})[ \t]{{0,2}}"
    r"(?:[(\uff08][^()\uff08\uff09]{0,60}[)\uff09])?[ \t]{0,2}"
    r"(?:(?P<colon>(?:\*{2}|_{2})?[ \t]{0,2}[:\uff1a](?:\*{2}|_{2})?)"
    r"|(?:\*{2}|_{2})?[ \t]{0,4}$)",
    re.IGNORECASE,
)


class _Part(Enum):
    REQUEST = auto()
    RESPONSE = auto()
    EXPECTED = auto()


@dataclass(slots=True)
class _Draft:
    """A case whose lines are being read."""

    title: str
    parts: dict[_Part, list[str]] = field(default_factory=dict)


def render_cases(cases: Sequence[TestCase], document: Document) -> str:
    """Return the text of a set of cases (ANP-50).

    Raises:
        CasesError: The text would exceed 64 KiB, or there are too many cases.
    """
    if len(cases) > MAX_CASES:
        raise CasesError(f"{len(cases)} test cases, at most {MAX_CASES} are agreed")
    text = "\n".join(
        _block(number, case, document) for number, case in enumerate(cases, 1)
    )
    if len(text.encode()) > MAX_TEXT_SIZE:
        raise CasesError(f"the test cases have more than {MAX_TEXT_SIZE} bytes")
    return text


def fitting(
    cases: Sequence[TestCase], document: Document, *, share: float = 1.0
) -> tuple[list[TestCase], list[TestCase]]:
    """Return the cases that fit into a text, in order, and the others.

    Args:
        share: Part of the text that may be filled, from 0 to 1: a proposal leaves
            room for the responses.
    """
    kept: list[TestCase] = []
    others: list[TestCase] = []
    room = int(MAX_TEXT_SIZE * share)
    for case in cases:
        size = len(_block(len(kept) + 1, case, document).encode()) + 1
        sizes = (len(case.request), len(case.response or b""))
        if len(kept) == MAX_CASES or max(sizes) > MAX_DATA or size > room:
            others.append(case)
            continue
        room -= size
        kept.append(case)
    return kept, others


def read_cases(text: str, document: Document) -> tuple[TestCase, ...]:
    """Return the cases in a text, in order.

    Raises:
        CasesError: There is no case or too many, or one has no request or has data
            that is neither JSON nor bytes in hex or base64.
    """
    if len(text) > MAX_TEXT_SIZE or len(text.encode(errors="replace")) > MAX_TEXT_SIZE:
        raise CasesError(f"the test cases have more than {MAX_TEXT_SIZE} bytes")
    # A heading without parts, such as one above all cases, is not a case.
    drafts = [draft for draft in _drafts(text) if draft.parts]
    if not drafts:
        raise CasesError("no test case is in the text; each begins with `# Test case`")
    if len(drafts) > MAX_CASES:
        raise CasesError(f"{len(drafts)} test cases, at most {MAX_CASES} are agreed")
    return tuple(
        _case(number, draft, document) for number, draft in enumerate(drafts, 1)
    )


def _block(number: int, case: TestCase, document: Document) -> str:
    title = _title(case.title)
    lines = [
        f"# Test case {number}: {title}" if title else f"# Test case {number}",
        "",
        "- **Test request data**:",
        "",
        fenced(case.request, document),
        "",
    ]
    if case.response is not None:
        lines += ["- **Test response data**:", ""]
        lines += [fenced(case.response, document), ""]
    expected = _expected(words_for(_expected(case.expected), case.good))
    lines += [f"- **Expected result**: {expected}".rstrip(), ""]
    return "\n".join(lines)


def _drafts(text: str) -> list[_Draft]:
    drafts: list[_Draft] = []
    lines: list[str] | None = None
    fence = ""
    for line in (one.removesuffix("\r") for one in text.split("\n")):
        if fence:
            if is_closing(line, fence):
                fence = ""
        elif opened := opening_of(line):
            fence = opened.mark
        elif (title := _heading(line)) is not None:
            drafts.append(_Draft(title))
            lines = None
            continue
        elif drafts and (item := _label(line)) is not None:
            part, rest = item
            # If a part occurs twice, the first counts.
            lines = [] if part in drafts[-1].parts else [rest]
            drafts[-1].parts.setdefault(part, lines)
            continue
        if lines is not None:
            lines.append(line)
    return drafts


def _heading(line: str) -> str | None:
    """Return the title of the case that begins at `line`, or None."""
    heading = _HEADING.match(line[:MAX_HEAD])
    if heading is None:
        return None
    rest = line[heading.start("rest") :]
    marked = heading["mark"] or heading["bold"]
    if not marked and not (heading["number"] and _SEPARATED.match(rest[:MAX_HEAD])):
        return None
    return _title(rest)


def _label(line: str) -> tuple[_Part, str] | None:
    """Return the part that begins at `line`, and the text after its label; or None."""
    item = _ITEM.match(line[:MAX_HEAD])
    if item is None:
        return None
    if item["colon"] is None and not (item["mark"] or item["bold"]):
        # A single word on a line of prose is not a label.
        return None
    label = item["label"].casefold()
    if "请求" in label or "request" in label:
        part = _Part.REQUEST
    elif "响应" in label or "response" in label:
        part = _Part.RESPONSE
    else:
        part = _Part.EXPECTED
    return part, line[item.end() :]


def _title(text: str) -> str:
    text = " ".join(text.split()).lstrip(":\uff1a.、,*_#–— -")
    return text[:MAX_TITLE].rstrip("*_#: ")


def _expected(text: str) -> str:
    """Return the words in one line, so that none of them can act as Markdown."""
    return " ".join(text.split())[:MAX_EXPECTED].strip("*_ ")


def _case(number: int, draft: _Draft, document: Document) -> TestCase:
    if _Part.REQUEST not in draft.parts:
        raise CasesError(f"test case {number} has no request data")
    request, response = (
        read_body(draft.parts[part], document, f"the {name} of test case {number}")
        if part in draft.parts
        else None
        for part, name in ((_Part.REQUEST, "request"), (_Part.RESPONSE, "response"))
    )
    if request is None:
        raise CasesError(f"the request of test case {number} holds no data")
    expected = _expected("\n".join(draft.parts.get(_Part.EXPECTED, ())))
    return TestCase(draft.title, request, response, expected, kind_said(expected))
