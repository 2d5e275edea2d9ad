"""A new agreement is tested with the peer before it is used (ANP-48 to ANP-54)."""

from __future__ import annotations

import contextlib
import logging
import time

from anp.channel.channel import ChannelClosed
from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.outcomes import TESTS_KEY, in_words
from anp.sidecar.bound.cases import RequesterCases, untested
from anp.sidecar.bound.requester import Session
from cache.records.records import State
from negotiation.errors import NegotiationError
from negotiation.exchange.dialogue import CasesSkipped
from negotiation.mind import Need
from negotiation.runner import Validator

__all__ = ["verify_with_peer"]

logger = logging.getLogger(__name__)


async def verify_with_peer(session: Session, need: Need, validator: Validator) -> None:
    """Agree test cases with the provider, run them, and keep the outcome.

    The agreement is active afterwards, or failed. With an error of another kind, or
    when this is cancelled, it stays in its tests and is used by nobody. Whenever
    this raises, the channel is closed.

    Raises:
        CallError: A case fails, so the protocol is not to be used.
        ChannelClosed: The link was lost.
    """
    try:
        await _verify(session, need, validator)
    except BaseException:
        with contextlib.suppress(CallError):
            await session.channel.close("the test cases did not pass")
        raise


async def _verify(session: Session, need: Need, validator: Validator) -> None:
    if "testCasesNegotiation" not in session.channel.capabilities:
        await session.tested(untested("the peer does not negotiate test cases"))
        return
    cases = RequesterCases(session, need, validator)
    try:
        text = await cases.propose()
        settled = await session.agree_cases(cases, text)
        if isinstance(settled, CasesSkipped):
            await session.tested(untested(settled.reason))
            return
        report = await cases.run(settled.text)
    except ChannelClosed:
        raise
    except NegotiationError as exc:
        # Tests are optional (ANP-48): what cannot be tested is used untested.
        logger.warning("test cases not run reason=%r", str(exc)[:200])
        await session.tested(untested(str(exc)[:500]))
        return
    kept = {**report.to_json(), "asked": cases.asked, "at": time.time()}
    tests = {TESTS_KEY: kept}
    if not report.passed:
        await session.tested(tests, State.FAILED)
        short = session.agreement.hash[:12]
        logger.warning("test cases failed hash=%s what=%r", short, in_words(tests))
        raise CallError(
            ErrorKind.GENERATED_CODE,
            f"the protocol that was agreed is not used: {in_words(tests)}; "
            f"`anpd protocols show {short}` tells more",
        )
    await session.tested(tests)
    logger.info("test cases passed mode=%s cases=%d", report.mode, len(report.results))
