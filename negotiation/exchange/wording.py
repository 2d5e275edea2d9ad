"""What a peer reads when no mind of ours said it, and how long our words may be."""

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
"Most characters of a reason that we send or pass on."

MAX_SUMMARY = 16_000
"Most characters of a summary that we send: 64 KiB of UTF-8 in the worst case."

DEFAULT_SUMMARY = "The document was replaced as a whole."
"For a mind that gives no summary: ANP-29 demands one."

MIND_REASON = "This side could not work out an answer."
"What the peer sees when our mind fails; the detail is the owner's."

CANCEL_REASON = "The negotiation was cancelled."
"What the peer sees when the owner, the caller or the daemon wants an end."

UNCODED_REASON = "This side could not make working code for the document."
"What the peer sees when our half for its candidate did not pass its tests."
