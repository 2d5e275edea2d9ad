"""The table of the gate: every way in, with every setting of `negotiation.approve`.

`python -m tests.gate` prints it as docs/owner.md has it.
"""

from __future__ import annotations

from typing import Final, get_args, get_type_hints

from anp.sidecar.config.settings import NegotiationConfig
from anp.sidecar.offer.ways import WAYS, Approval, Passage, WayIn, decide

SETTINGS: Final[tuple[str, ...]] = get_args(
    get_type_hints(NegotiationConfig)["approve"]
)
"The values of `negotiation.approve`."


KINDS: Final[dict[str, dict[str, bool]]] = {
    "read-only": {"read_only": True},
    "side effects": {"read_only": False},
    "side effects, not named": {"read_only": False, "named": False},
    "withdrawn": {"read_only": True, "withdrawn": True},
}
"The kinds of capabilities for which the table has a row, and their facts."


def cell(
    way: WayIn,
    approve: str,
    *,
    read_only: bool,
    named: bool = True,
    withdrawn: bool = False,
) -> str:
    """Return the gate's decision about a peer that may use the capability.

    Args:
        named: False when words chose it that do not name it.
        withdrawn: True when the owner withdrew it from the peer.
    """
    passage = decide(
        way,
        approve,
        admitted=True,
        exposed=True,
        read_only=read_only,
        repeatable=read_only,
        approved=False,
        named=named,
        withdrawn=withdrawn,
    )
    if passage is not Passage.ASK:
        return str(passage)
    if WAYS[way].approval is Approval.PROTOCOL and named and not withdrawn:
        return "asks: protocol"
    once = WAYS[way].approval is Approval.CAPABILITY and approve == "always"
    return "asks: each call" if once else "asks: capability"


def rows() -> list[list[str]]:
    """Return the table, its head first."""
    found = [["way in", "capability", *(f"`{one}`" for one in SETTINGS)]]
    for way in WayIn:
        for kind, facts in KINDS.items():
            cells = [cell(way, one, **facts) for one in SETTINGS]
            found.append([way.replace("_", " "), kind, *cells])
    return found


def table() -> str:
    """Return the table as Markdown."""
    head, *body = rows()
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(table())
