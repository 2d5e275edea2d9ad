"""Test cases as natural language: written in one form, read from looser ones.

Markdown: a heading for each case, and three list items with the request, the response
and the expected result; in English or Chinese, with or without bold and fences
(ANP-50, ANP-54). Patterns match only at the beginning of a line and are bounded, so
that each line is examined once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from negotiation.cases.body import fenced, is_closing, opening_of, read_body
from negotiation.cases.case import MAX_CASES, MAX_DATA, TestCase
from negotiation.cases.expected import kind_said, words_for
from negotiation.document.shape import Document
from negotiation.errors import CasesError
from negotiation.messages import MAX_TEXT_SIZE

__all__ = ["fitting", "read_cases", "render_cases"]

MAX_TITLE: Final = 120
MAX_EXPECTED: Final = 1_000
MAX_HEAD: Final = 200
"Characters of a line that may contain a heading or a label."

_LEAD: Final = (
    r"[ \t]{0,12}(?:>[ \t]{0,3})?"
    r"(?P<mark>\#{1,6}[ \t]{0,4}|[-*+•][ \t]{1,4}|\d{1,2}[.)、][ \t]{0,4})?"
    r"(?P<bold>\*{2}|_{2})?[ \t]{0,2}"
)
_HEADING: Final = re.compile(
    _LEAD + r"(?:测试用例|測試用例|用例|test[ \t_-]?case|case(?=[ \t]?\d))"
    r"[ \t]{0,3}[#№]?[ \t]{0,2}(?P<number>\d{1,4}|[一二三四五六七八九十]{1,3})?"
    r"(?P<rest>(?:\*{2}|_{2})?(?:$|[ \t]|[:\uff1a.、,(\uff08–—-]))",
    re.IGNORECASE,
)
_SEPARATED: Final = re.compile(
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
_ITEM: Final = re.compile(
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
