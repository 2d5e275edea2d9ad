"""Texts for the peer that no mind wrote, and limits for the length of our texts."""

from __future__ import annotations

__all__ = [
    "CANCEL_REASON",
    "DEFAULT_SUMMARY",
    "MAX_REASON",
    "MAX_SUMMARY",
    "MIND_REASON",
    "UNCODED_REASON",
]

MAX_REASON = 2_000
"Longest reason that we send or pass on, in characters."

MAX_SUMMARY = 16_000
"Longest summary that we send, in characters: at worst 64 KiB of UTF-8."

DEFAULT_SUMMARY = "The document was replaced as a whole."
"Used when a mind gives no summary, which ANP-29 demands."

MIND_REASON = "This side could not work out an answer."
"Sent to the peer when our mind fails; only the owner sees the details."

CANCEL_REASON = "The negotiation was cancelled."
"Sent to the peer when the owner, the caller or the daemon ends the negotiation."

UNCODED_REASON = "This side could not make working code for the document."
"Sent to the peer when our half for its candidate did not pass its tests."
