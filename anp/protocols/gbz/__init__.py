"""GB/Z 185.6 point to point, as a consensus protocol over the model of interaction.

* `words`: URI, operations and words, Chinese ones included.
* `fields`: fields of a peer's objects, each checked for its type and its limits.
* `reader`: turns bytes of a peer into an operation, or into a reason why they are none.
* `writer`: turns operations into bytes.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from anp.protocols.gbz.words import GBZ_URI, GBZ_VERSION

__all__ = ["GBZ_URI", "GBZ_VERSION", "gbz_document"]


@cache
def gbz_document() -> str:
    """Return the text of the consensus protocol, of this version."""
    return (files(__name__) / f"gbz-185.6-{GBZ_VERSION}.md").read_text("utf-8")
