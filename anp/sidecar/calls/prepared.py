"""A session with one request made ready for it, whatever protocol it speaks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from anp.sidecar.bound.requester import BoundRequester
from anp.sidecar.consensus.written import WrittenRequester
from anp.sidecar.halves.protocol import Answer
from anp.wire.messages import MetaProtocol
from cache.records.records import AgreementRecord
from negotiation.mind import Need

__all__ = ["MetaOffer", "Ready", "ready_through", "size_of"]


class MetaOffer(Protocol):
    """Makes our `metaProtocol` for a hello."""

    def __call__(
        self, digest: str | None, *, candidates: Sequence[str] = ()
    ) -> MetaProtocol: ...


@dataclass(slots=True)
class Ready:
    """A session with one request made ready for it."""

    session: BoundRequester | WrittenRequester
    "Where to send it."

    send: Callable[[], Awaitable[Answer]]
    "Sends it and waits for its answer; see `BoundRequester.exchange`."

    source: str
    "`negotiated`, `agreement` or `consensus`."

    protocol: str
    "Hash of the document."

    uri: str | None = None
    "The consensus protocol it goes through."

    repeatable: bool = False
    "By the peer's word a second call does no more than the first."

    messages: int = 0
    "Meta messages that it took, both directions."

    rounds: int = 0
    "Candidates that were on the table."

    model_calls: int = 0
    "Model calls that it took, on our side."

    cost: float = 0.0
    "What those cost at the owner's prices."

    @property
    def agreement(self) -> AgreementRecord | None:
        """What was settled; None for a protocol of the daemon's own."""
        return (
            self.session.agreement if isinstance(self.session, BoundRequester) else None
        )

    def take_bill(self) -> None:
        """Add what repairs and questions on the session took, if nobody has yet."""
        if isinstance(self.session, BoundRequester):
            calls, cost = self.session.bill.take()
            self.model_calls += calls
            self.cost += cost

    def after(self, before: Ready) -> Ready:
        """Return this one, with what the one before it took added."""
        return replace(
            self,
            messages=self.messages + before.messages,
            rounds=self.rounds + before.rounds,
            model_calls=self.model_calls + before.model_calls,
            cost=self.cost + before.cost,
        )


def ready_through(
    session: BoundRequester, message_id: str, data: bytes, need: Need, source: str
) -> Ready:
    """Return a request that is encoded already, to be sent on `session`."""
    arguments = need.arguments
    assert isinstance(arguments, dict), "checked before the call"
    given: dict[str, Any] = arguments
    return Ready(
        session,
        lambda: session.exchange(message_id, data, given),
        source,
        session.agreement.hash,
    )


def size_of(need: Need) -> int:
    """Return about how many bytes a message with these arguments has."""
    return len(json.dumps(need.arguments)) + 2048
