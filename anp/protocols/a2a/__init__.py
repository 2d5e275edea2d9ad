"""A2A 0.3 and 1.0 as a codec over sessions and tasks.

* `objects`: The objects of A2A as both versions mean them; see `reader` and `writer`.
* `reader`: Reads what callers of A2A 0.3 and 1.0 send (A2A-11 to A2A-13). Pure.
* `view`: A task of a session as A2A shows it: made of the events of its log. Pure.
* `words`: The words of A2A 0.3 and 1.0: methods, states and errors (A2A-14, A2A-16,
  A2A-22).
* `writer`: Writes the objects of A2A in the form of 0.3 or of 1.0 (A2A-13 to A2A-18).
  Pure.
* `results`: Reads what agents of A2A 0.3 and 1.0 answer (A2A-14, A2A-15, A2A-18). Pure.
* `calls`: Calls of one turn over A2A between daemons: one message, and the task it
  becomes.
* `intents`: The intent extension: a message says which skill it means (INT-1 to
  INT-13). Pure.
* `modes`: Input and output modes: the media types of skills and of answers (A2A-19).
  Pure.
* `pieces`: Answers of A2A cut to the size of a frame, where there are frames. Pure.

`words` has methods, states and errors; `objects` what both versions mean; `reader` and
`writer` their two forms in JSON; `view` makes a task of A2A out of a session's log.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from anp.protocols.a2a.calls import A2aCode
from anp.protocols.a2a.words import A2A_URIS

__all__ = ["A2A_URIS", "A2aCode", "a2a_document"]


@cache
def a2a_document(uri: str) -> str:
    """Return the text of a consensus protocol that carries A2A."""
    name = uri.removeprefix("urn:anpd:").replace(":", "-")
    return (files(__name__) / f"{name}.md").read_text("utf-8")
