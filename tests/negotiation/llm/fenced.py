"""Halves that a bad model wrote, tried in this process behind the language layer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from negotiation.document.reader import read_document
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import Accept, HalfSource, Mind, OnStream, Side, Verdict
from negotiation.strict_json import Json
from negotiation.trial.acceptance import check_half, prepare_half
from negotiation.trial.trial import Findings
from sandbox.language.policy import compile_half
from sandbox.worker.worker import CapabilityCall, fresh_globals
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator


class FencedHalf(InProcessHalf):
    """A half with the names that a worker gives it, and no others.

    Raises:
        HalfError: The static policy refuses the source, or it fails while it loads.
    """

    def __init__(self, source: str) -> None:
        code, findings = compile_half(source)
        if code is None:
            raise HalfError("policy", "; ".join(one.reason for one in findings))
        self.space = fresh_globals()
        try:
            exec(code, self.space)
        except Exception as exc:
            raise HalfError("error", f"{type(exc).__name__}: {exc}") from exc

    async def handle_request(
        self,
        data: bytes,
        on_call: Callable[[str, Json], Awaitable[Json]],
        on_stream: OnStream | None = None,
    ) -> bytes:
        try:
            generator = self.space["handle_request"](data)
            answer: Json = None
            failed: CapabilityFailed | None = None
            while True:
                try:
                    if failed is None:
                        wanted = generator.send(answer)
                    else:
                        known = self.space["CapabilityError"]
                        error = known(failed.code, failed.message)
                        wanted = generator.throw(error)
                except StopIteration as end:
                    result: bytes = end.value
                    return result
                failed = None
                assert isinstance(wanted, CapabilityCall)
                try:
                    answer = await on_call(wanted.name, wanted.params)
                except CapabilityFailed as exc:
                    failed = exc
        except (HalfError, AssertionError):
            raise
        except Exception as exc:
            raise HalfError("error", f"{type(exc).__name__}: {exc}") from exc


async def _check(half: HalfSource, document: str, side: Side) -> Findings:
    return await check_half(
        half,
        read_document(document),
        side,
        runner=FencedHalf(half.text),
        validator=JsonschemaValidator(),
    )


async def prepare(mind: Mind, document: str, side: Side) -> HalfSource:
    """Let `mind` write its half; what comes back is sure to pass acceptance.

    Raises:
        HalfError: No half passed.
        MindError: The mind failed.
    """

    async def check(half: HalfSource, text: str) -> Findings:
        return await _check(half, text, side)

    half = await prepare_half(document, side, mind=mind, check=check)
    assert (await _check(half, document, side)).problems == ()
    return half


async def settle(mind: Mind, document: str, side: Side) -> Verdict | HalfSource:
    """Judge as the negotiation does; give the half behind an `Accept`.

    Raises:
        MindError: The mind failed.
    """
    verdict = await mind.judge(document, side, ())
    if not isinstance(verdict, Accept):
        return verdict
    try:
        return await prepare(mind, document, side)
    except HalfError as exc:
        again = await mind.judge(document, side, (), findings=(exc.reason,))
        assert not isinstance(again, Accept)
        return again
