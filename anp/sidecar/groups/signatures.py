"""Signatures of members over what they say, made and checked."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from anp.errors import PeerError
from anp.identity.dids import Identities, agent_name
from anp.identity.public_keys import KeyFormatError
from anp.interaction.elements import Message
from anp.interaction.groups.operations import GroupPost, GroupSignature
from anp.protocols.gbz.group_reader import read_signature
from anp.protocols.gbz.group_writer import signed_bytes, with_signature
from anp.sidecar.groups.checked_keys import CheckedKeys

logger = logging.getLogger(__name__)

MAX_SEEN: Final = 1024
"Messages of a hub that are known to be signed."

SIGNED = "signed"
"Mark of what its sender signed."

FORGED = "forged"
"Mark of what has a signature that is not its sender's."


class Signatures:
    """Signs what we say, and marks what others say."""

    def __init__(
        self, identities: Identities, keys: CheckedKeys, *, enabled: bool
    ) -> None:
        """Use our identity.

        Args:
            enabled: We sign what we say.
        """
        self.enabled = enabled
        self._identities = identities
        self._keys = keys
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        "Hashes of what was found signed at our hub, for those who watch it next."

    def sign(self, frame: dict[str, Any], own: str) -> dict[str, Any]:
        """Return a frame of ours with its signature.

        Args:
            own: The DID of ours that the group knows.
        """
        identity = self._identities.for_did(own) or self._identities.primary
        signature = GroupSignature(
            identity.key_id,
            identity.private_key.public_key.multibase,
            identity.sign(signed_bytes(frame)),
        )
        return with_signature(frame, signature)

    async def mark(self, post: GroupPost) -> str:
        """Return what a post's signature shows: `signed`, `forged`, or nothing."""
        if isinstance(post.content, Message) and (
            agent_name(post.content.sender) != agent_name(post.by)
        ):
            logger.warning("hub names another sender group=%s", post.group)
            return FORGED
        if post.signature is None:
            return ""
        return await self._mark(post.frame, post.signature, post.by)

    async def mark_bytes(self, data: bytes, frame: Mapping[str, Any]) -> str:
        """Return what the signature shows on what this daemon's hub distributes.

        Args:
            frame: The JSON object in `data`.
        """
        signature = read_signature(frame)
        if signature is None:
            return ""
        place = hashlib.sha256(data).digest()
        if place in self._seen:
            return SIGNED
        mark = await self._mark(frame, signature)
        if mark == SIGNED:
            self._seen[place] = None
            if len(self._seen) > MAX_SEEN:
                self._seen.popitem(last=False)
        return mark

    async def _mark(
        self, frame: Mapping[str, Any], signature: GroupSignature, by: str = ""
    ) -> str:
        group, number = frame.get("groupId"), frame.get("groupSeq")
        try:
            key = await self._keys.check(
                by or frame["by"], signature.method, signature.key
            )
        except (PeerError, KeyFormatError) as exc:
            logger.warning("key not of its sender group=%s: %s", group, exc)
            return FORGED
        if not key.verifies(signature.value, signed_bytes(frame)):
            logger.warning("forged message group=%s number=%s", group, number)
            return FORGED
        return SIGNED
