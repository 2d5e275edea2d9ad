"""Our offers and limits on the wire, as the owner's configuration sets them."""

from __future__ import annotations

from collections.abc import Sequence

from anp.channel.core.limits import LinkConfig, LinksConfig, RenewalLimits
from anp.channel.core.traffic import EXTENSION_CLOSE
from anp.sidecar.config.settings import Config
from anp.wire.envelopes import EXTENSION_BINARY
from anp.wire.meta_protocol import (
    EXTENSION_LIST,
    EXTENSION_MAX_MESSAGE,
    EXTENSION_RESUME,
    EXTENSION_WORK,
    MetaProtocol,
)
from anp.wire.outcome import HandshakeConfig
from anp.wire.replay import EXTENSION_COUNTER
from negotiation.exchange.limits import ANSWER_TIMEOUT, NegotiationLimits


def extensions(config: Config) -> tuple[str, ...]:
    """Return the extensions of the channel that we list in a hello (WIRE)."""
    resume = (EXTENSION_RESUME,) if config.channels.resumption else ()
    binary = (EXTENSION_BINARY,) if config.channels.binary else ()
    return (
        *binary,
        EXTENSION_CLOSE,
        EXTENSION_COUNTER,
        EXTENSION_LIST,
        EXTENSION_MAX_MESSAGE,
        EXTENSION_WORK,
        *resume,
    )


def our_meta(
    config: Config,
    digest: str | None,
    *,
    candidates: Sequence[str] = (),
    selected: str | None = None,
) -> MetaProtocol:
    """Return our side of `metaProtocol`: what we offer, or what we confirm.

    Args:
        digest: Hash of an agreed document, offered or confirmed.
        candidates: URIs of consensus protocols that we offer, best first.
        selected: The one of the peer's candidates that we confirm.
    """
    return MetaProtocol(
        supported_capabilities=config.negotiation.capabilities,
        used_protocol_hash=digest,
        candidate_protocols=tuple(candidates),
        selected_protocol=selected,
        extensions=extensions(config),
        max_message=config.channels.max_frame,
    )


def links_config(config: Config) -> LinksConfig:
    """Return the limits of links, channels and keys."""
    return LinksConfig(
        link=LinkConfig(
            handshake=HandshakeConfig(key_lifetime=config.channels.key_lifetime),
            renewal=RenewalLimits(
                messages=config.channels.renew_messages,
                longest_call=config.call.timeout,
            ),
            resumption=config.channels.resumption,
            max_message=config.limits.max_message,
            max_payload=config.limits.max_payload,
            max_channels=config.limits.max_channels,
        ),
        max_links=config.limits.max_connections,
        idle_timeout=config.channels.idle_timeout,
    )


def negotiation_limits(config: Config) -> NegotiationLimits:
    """Return the limits of one negotiation."""
    return NegotiationLimits(
        timeout=config.negotiation.timeout,
        message_timeout=config.negotiation.message_timeout,
        codegen_timeout=config.negotiation.codegen_timeout,
        # A model's answer may take as long as the owner lets it.
        answer_timeout=(
            config.llm.timeout if config.llm.model is not None else ANSWER_TIMEOUT
        ),
        max_rounds=config.negotiation.max_proposals,
    )
