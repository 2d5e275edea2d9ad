"""Signatures of members over what they say, made and checked."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from anp.errors import PeerError
from anp.identity.dids import Identities
from anp.identity.public_keys import KeyFormatError
from anp.interaction.elements import Message
from anp.interaction.groups.operations import GroupPost, GroupSignature
from anp.protocols.gbz.group_reader import read_signature
from anp.protocols.gbz.group_writer import signed_bytes, with_signature
from anp.sidecar.groups.checked_keys import CheckedKeys
from anp.sidecar.peers.policy import agent_name

__all__ = ["FORGED", "SIGNED", "Signatures"]

logger = logging.getLogger(__name__)

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

    async def mark_frame(self, frame: Mapping[str, Any]) -> str:
        """Return what the signature shows on a frame that this daemon's hub took."""
        signature = read_signature(frame)
        return "" if signature is None else await self._mark(frame, signature)

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
