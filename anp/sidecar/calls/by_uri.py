"""What a selected consensus protocol becomes: an agreement, or a call made ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.candidates import WrittenCandidate
from anp.sidecar.calls.prepared import Ready
from anp.sidecar.consensus.written import InputRefused, ResultUnfit, WrittenRequester
from anp.sidecar.halves.protocol import Answer
from cache.records.records import AgreementRecord
from negotiation.mind import Need
from negotiation.schema.plan import PlanError

__all__ = ["Outdated", "known_as", "ready_by_name"]


class Outdated(CallError):
    """The peer takes or gives other data than it published; the call may be repeated.

    Nothing ran; or, with `may_have_run`, what ran was harmless by what the peer
    published, and may run again if it still says so.
    """


def known_as(agreement: AgreementRecord) -> tuple[str, ...]:
    """Return what a kept key of an agreement may be bound to, best first.

    One that came about by a URI was opened under that, and goes on by its hash.
    """
    uri = agreement.tests.get("consensus")
    return (agreement.hash, uri) if isinstance(uri, str) else (agreement.hash,)


def ready_by_name(
    session: WrittenRequester,
    candidate: WrittenCandidate,
    need: Need,
    outdated: Callable[[], None],
) -> Ready:
    """Return a call through a protocol of the daemon's own.

    Args:
        outdated: Told when what the peer published seems to be so no longer.

    Raises:
        CallError: `usage`, the data does not fit.
    """
    pick = candidate.pick
    arguments, schema = need.arguments, None
    if pick is not None:
        schema = pick.capability.output_schema
        try:
            arguments = pick.arguments.apply(arguments)
        except PlanError as exc:
            raise CallError(
                ErrorKind.USAGE, f"the input does not fit the capability: {exc}"
            ) from exc
    assert isinstance(arguments, dict), "checked before the call"
    data: dict[str, Any] = arguments
    repeatable = pick is not None and (
        pick.capability.read_only or pick.capability.idempotent
    )

    def unfit(error: CallError) -> CallError:
        """Say what a result outside its schema means for the call."""
        outdated()
        if not repeatable:
            return error
        return Outdated(error.kind, error.detail, may_have_run=True)

    async def send() -> Answer:
        try:
            answer = await session.call(candidate.action, data, output_schema=schema)
        except InputRefused as exc:
            if pick is None:
                raise
            outdated()
            raise Outdated(exc.kind, exc.detail) from exc
        except ResultUnfit as exc:
            raise unfit(exc) from exc
        if answer.error is not None:
            outdated()
            return answer
        if pick is None:
            return answer
        try:
            return replace(answer, result=pick.result.apply(answer.result))
        except PlanError as exc:
            error = CallError(
                ErrorKind.GENERATED_CODE,
                f"the result is not as the peer publishes it: {exc}",
                may_have_run=True,
            )
            raise unfit(error) from exc

    return Ready(
        session,
        send,
        "consensus",
        candidate.entry.protocol.hash,
        uri=candidate.uri,
        repeatable=repeatable,
    )
