"""The words of version 2 of GB/Z 185.6: groups and subscriptions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from anp.interaction.groups.elements import GroupState, JoinRule
from anp.interaction.groups.operations import GroupAct

GBZ_GROUPS_VERSION: Final = "2"
"Version of the text with groups."

GBZ_GROUPS_URI: Final = f"urn:anpd:gbz-185.6:{GBZ_GROUPS_VERSION}"
"URI of the consensus protocol with groups and subscriptions (ANP-91)."


class GroupWord(StrEnum):
    """Values of `op` that version 2 has in addition (GBZ-Q10)."""

    FETCH = "group.fetch"
    SUBSCRIBE = "subscribe.create"
    UNSUBSCRIBE = "subscribe.cancel"


ACTS: Final = {f"group.{act}": act for act in GroupAct}
"The operations that change who is in a group."

JOIN_RULES: Final = {str(one): one for one in JoinRule}

GROUP_STATES: Final = {str(one): one for one in GroupState}

NO_HISTORY: Final = "none"

ALL_HISTORY: Final = "all"

NOT_SIGNED: Final = frozenset(
    {"ref", "groupSeq", "epoch", "at", "by", "replayed", "signature"}
)
"Fields of a frame that its sender does not sign: its own number, and the hub's words."
