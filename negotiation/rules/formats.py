"""Formats of messages that a requirement insists on, as far as plain words tell.

Rules write JSON only. A need whose messages have to be something else is refused by
them with the format's name, and never agreed as JSON without a word.
"""

from __future__ import annotations

import re
from typing import Final

from negotiation.late_patterns import late_pattern
from negotiation.schema.keywords import cut

OTHER_FORMAT: Final = late_pattern(
    r"xml|binary|packed|bytes?\b|csv|\btsv|msgpack|cbor|protobuf|yaml|edifact|hl7"
    r"|fixed[ -]?(?:width|length|layout|size)|\blayout|delimited|separated by"
    r"|hexadecimal|form[ -]?encoded|(?:message|wire) format|二进制|字节|固定长度|报文",
    re.IGNORECASE,
)
"Words in a need that may ask for messages which are not JSON."

_FORMAT: Final = (
    r"(?:xml|csv|tsv|yaml|toml|messagepack|msgpack|cbor|protobuf|protocol buffers?"
    r"|edifact|hl7|asn\.1"
    r"|packed (?:binary|struct|bytes|big|little)|binary(?! search)"
    r"|form[ -]?(?:url)?encoded"
    r"|fixed[ -]?(?:width|length|layout|size)"
    r"|(?:key|name)\s?[=:]\s?value|[`\"']?\w+=\w+[`\"']? (?:lines|pairs)"
    r"|plain text lines"
    r"|(?:comma|tab|semicolon|pipe|line)[ -](?:separated|delimited)"
    r"|(?:fields|values|columns) (?:separated|delimited) by)"
    r"(?! (?:files?|fields?|columns?|attachments?)\b)"
)
"Formats that are not JSON."

_MESSAGE: Final = (
    r"(?:(?:messages?|requests?|responses?|repl(?:y|ies)|answers?|payloads?|bod(?:y|ies)"
    r"|telegrams?|frames?)(?: and (?:messages?|requests?|responses?|repl(?:y|ies)"
    r"|answers?))?)"
)
"Words for what goes over the wire."

_GAP: Final = r"(?:(?!\bjson\b)[^.;!?`\n]){0,40}?"
"Other words of the same clause, none of which is a field's name."

_INSISTING: Final = (
    # Requests are lines; messages: fixed-width.
    late_pattern(
        r"\b(?:messages|requests|responses|replies|answers) are "
        r"((?:single |plain )?(?:text )?lines)\b",
        re.IGNORECASE,
    ),
    late_pattern(rf"\bmessages?:\s*({_FORMAT})", re.IGNORECASE),
    # The messages are packed binary structures; answers come as CSV.
    late_pattern(
        rf"\b{_MESSAGE} (?:is|are|must|have to|has to|should|shall|come|comes|travel"
        rf"|go|goes|consist|use|uses|as|in)\b{_GAP}({_FORMAT})",
        re.IGNORECASE,
    ),
    # XML messages; in CSV messages.
    late_pattern(
        rf"({_FORMAT})(?: \w+)? (?:messages|requests|responses|replies|answers"
        r"|message format|wire format)\b",
        re.IGNORECASE,
    ),
    # Answer in CSV; reply with key=value lines; talk XML.
    late_pattern(
        r"(?:^|[.;,!?]\s*|\band |\bplease )(?:only )?(?:answer|reply|respond"
        rf"|speak|talk)s? (?:only )?(?:(?:in|as|with|by) )?(?:an? )?({_FORMAT})",
        re.IGNORECASE,
    ),
    late_pattern(rf"\b(?:on|over) the wire\b{_GAP}({_FORMAT})", re.IGNORECASE),
    late_pattern(
        r"(?:报文|消息|请求|响应|应答)[^。;;\n]{0,12}?"
        r"(xml|csv|yaml|二进制|固定长度|定长)",
        re.IGNORECASE,
    ),
)

_NO_JSON: Final = late_pattern(
    r"\b(?:not|no|never|without|instead of|rather than) (?:as |in |be )?json\b"
    r"|(?:不是|不用|非)\s?json",
    re.IGNORECASE,
)


def may_want_format(text: str) -> bool:
    """Return whether a requirement may ask for messages that are not JSON."""
    return OTHER_FORMAT.search(text) is not None or bool(insisted_format(text))


def insisted_format(text: str) -> str:
    """Return the format that a requirement wants its messages in; empty for JSON.

    Only plain statements about messages count: that a field holds XML says nothing
    about the message around it.
    """
    shown = text[:8_000]
    for pattern in _INSISTING:
        if found := pattern.search(shown):
            return found[1].casefold()
    return "another format than JSON" if _NO_JSON.search(shown) else ""


def format_refusal(text: str) -> str:
    """Return why rules cannot serve a requirement that insists on a format; else empty.

    The text is for both sides: it names the format and what to do.
    """
    wanted = insisted_format(text)
    if not wanted:
        return ""
    return (
        f"the task insists on messages that are not JSON ({cut(wanted)}), and rules "
        "write JSON only; a requester with a model can describe that format, or the "
        "task can leave it out"
    )
