"""Runs agreed cases, with the peer over PT=11 or offline on one side (ANP-75).

Messages are compared by their values. Each side keeps private data from the agreement
on the cases: the requester the arguments and the decoded responses, the provider the
capability calls. With these a change in the half's behaviour is detected without the
peer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from negotiation.cases.case import (
    MAX_DETAIL,
    CaseResult,
    CasesReport,
    Fixtures,
    TestCase,
    fixture_key,
)
from negotiation.document.layout import find_layout
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import (
    NO_VALUE,
    CapabilityFailed,
    CasesError,
    HalfError,
    JsonError,
    told_of,
)
from negotiation.mind import HalfRunner, Offer
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut, pointer
from negotiation.schema.samples import make_samples
from negotiation.schema.values import same_json
from negotiation.strict_json import Json, canonical_json, parse_json

MAX_DIFFERENCES: Final = 10
"Largest number of differences that are described."

MAX_MESSAGE: Final = 1024 * 1024
"Largest message that is compared, in bytes."

MAX_UPDATE_SAMPLES: Final = 3
"Updates that are sent in a test."

Reader = Callable[[str, bytes], Awaitable[dict[str, Any]]]
"Reads the values of a message whose bytes are not JSON, as `read_message` does."


async def compare(
    case: TestCase,
    actual: bytes,
    document: Document,
    *,
    read: Reader | None = None,
    sent: bytes | None = None,
) -> list[str]:
    """Return the differences between an answer and the agreed one; ids are ignored.

    Args:
        read: Reads messages whose bytes are not JSON.
        sent: The request that `actual` answers. If given, the answer must have the
            same message id, which real calls need to find their answers.

    Raises:
        HalfError: One of the two messages cannot be read.
    """
    if case.response is None:
        return ["the case has no response"]
    try:
        agreed = await values_of(MessageKind.RESPONSE, case.response, document, read)
        found = await values_of(MessageKind.RESPONSE, actual, document, read)
    except JsonError as exc:
        return [f"the answer cannot be read: {exc}"]
    name = _message_id(document)
    differences: list[str] = []
    if name is not None:
        wanted = _taken(agreed, name)
        carried = _taken(found, name)
        if (wanted is None) != (carried is None):
            what = "unexpected" if wanted is None else "missing"
            differences.append(f"{_place((name,))} is {what}")
        elif sent is not None and carried is not None:
            asked = await _sent_id(sent, name, document, read)
            if asked is not None and carried != asked:
                differences.append(f"{_place((name,))} is not that of the request")
    return [*differences, *differences_of(agreed, found)][:MAX_DIFFERENCES]


def differences_of(agreed: Json, found: Json) -> list[str]:
    """Return the differences of two values, with their places as JSON pointers."""
    differences: list[str] = []
    _differ(agreed, found, (), differences)
    return differences[:MAX_DIFFERENCES]


async def values_of(
    kind: MessageKind, data: bytes, document: Document, read: Reader | None
) -> Json:
    """Return the values of a message.

    Args:
        read: Reads messages whose bytes are not JSON.

    Raises:
        JsonError: The message is not JSON, or its values are not.
        HalfError: `read` cannot read it.
    """
    if document.is_json or read is None:
        return parse_json(data, max_size=MAX_MESSAGE)
    # The result of `read_message` comes from generated code: it may not be plain JSON.
    return parse_json(
        canonical_json(await read(kind.value, data)), max_size=4 * MAX_MESSAGE
    )


async def _sent_id(
    request: bytes, name: str, document: Document, read: Reader | None
) -> Json:
    try:
        return _taken(
            await values_of(MessageKind.REQUEST, request, document, read), name
        )
    except JsonError:
        return None


def _message_id(document: Document) -> str | None:
    layout = find_layout(document.of_values)
    return None if layout is None else layout.message_id


def _taken(message: Json, name: str) -> Json:
    """Remove a field from a message and return its value, or None if absent."""
    return message.pop(name, None) if isinstance(message, dict) else None


def _place(path: tuple[str, ...]) -> str:
    """Return a place in a message as a JSON pointer."""
    return "".join(f"/{pointer(name)}" for name in path)


def _differ(
    agreed: Json, found: Json, path: tuple[str, ...], differences: list[str]
) -> None:
    """Add the differences of two values, with their places as JSON pointers."""
    if len(differences) > MAX_DIFFERENCES:
        return
    where = _place(path) if path else "the answer"
    if isinstance(agreed, dict) and isinstance(found, dict):
        for name in sorted(agreed.keys() | found.keys()):
            inner = (*path, name)
            if name not in found:
                differences.append(f"{_place(inner)} is missing")
            elif name not in agreed:
                differences.append(f"{_place(inner)} is not in the agreed response")
            else:
                _differ(agreed[name], found[name], inner, differences)
    elif isinstance(agreed, list) and isinstance(found, list):
        if len(agreed) != len(found):
            differences.append(
                f"{where} has {len(found)} items, agreed are {len(agreed)}"
            )
        for index, (one, other) in enumerate(zip(agreed, found, strict=False)):
            _differ(one, other, (*path, str(index)), differences)
    elif not same_json(agreed, found):
        differences.append(f"{where} is {cut(found)}, agreed is {cut(agreed)}")


UpdateSamples = tuple[Callable[[bytes], Awaitable[None]], Mapping[str, Sequence[Json]]]
"Sends an update; and values that capabilities may give before their answers."


def update_samples(offer: Offer) -> dict[str, list[Json]]:
    """Return a few values that each streaming capability may give, from its schema."""
    found = {}
    for one in offer.capabilities:
        if one.updates is not None:
            made = make_samples(prepared(one.updates)).values
            found[one.name] = [sample.value for sample in made[:MAX_UPDATE_SAMPLES]]
    return found


async def answer_case(
    request: bytes,
    fixtures: Fixtures,
    *,
    runner: HalfRunner,
    updates: UpdateSamples | None = None,
) -> bytes:
    """Answer a test request with the real half, replaying recorded capability calls.

    A call with another name or other arguments than the recorded one fails.

    Args:
        updates: Sends updates, which the half writes of these values of capabilities.

    Raises:
        CasesError: No agreed case has this request, or its fixtures are damaged.
        HalfError: The half failed.
    """
    kept = fixtures.get(fixture_key(request))
    if kept is None:
        raise CasesError("no agreed test case has this request")
    left = list(kept)

    async def on_call(name: str, arguments: Json) -> Json:
        fixture = left.pop(0) if left else None
        if fixture is None or fixture.get("capability") != name:
            raise CapabilityFailed("409", "the agreed case has no such call")
        if "arguments" in fixture and not same_json(fixture["arguments"], arguments):
            # Quotes no arguments, since the peer may read this text in the answer.
            raise CapabilityFailed("409", "the agreed case has other arguments")
        if "error" not in fixture and "output" in fixture:
            output: Json = fixture["output"]
            return output
        raise _failure(fixture)

    async def on_stream(
        name: str, arguments: Json, write: Callable[[Json], Awaitable[bytes]]
    ) -> Json:
        assert updates is not None
        send, values = updates
        for value in values.get(name, ()):
            await send(await write(value))
        return await on_call(name, arguments)

    answer = await runner.handle_request(
        request, on_call, None if updates is None else on_stream
    )
    if not isinstance(answer, bytes):
        raise HalfError("error", "handle_request did not return bytes")
    return answer


async def run_offline(
    cases: Sequence[TestCase],
    text: str,
    asked: Fixtures,
    *,
    runner: HalfRunner,
    document: Document | None = None,
) -> CasesReport:
    """Run agreed cases on the requester's side alone.

    Our half must make each request again, and read each response as it did when the
    cases were agreed.

    Args:
        asked: The arguments of each request, and the decoded response.
        document: If given, requests are compared by their values, else byte for byte.
    """
    results = [
        await _result(case, _requester_problem(case, asked, runner, document))
        for case in cases
    ]
    return CasesReport("offline", text, tuple(results), "")


async def run_on_fixtures(
    cases: Sequence[TestCase],
    text: str,
    fixtures: Fixtures,
    document: Document,
    *,
    runner: HalfRunner,
    read: Reader | None = None,
) -> CasesReport:
    """Run agreed cases on the provider's side alone: the real half on fixtures.

    Args:
        read: Reads messages whose bytes are not JSON; by default the half itself.
    """
    reader = runner.read_message if read is None else read
    results = [
        await _result(
            case,
            _provider_problem(case, fixtures, document, runner=runner, read=reader),
        )
        for case in cases
    ]
    return CasesReport("offline", text, tuple(results), "")


async def read_responses(
    cases: Sequence[TestCase], asked: Fixtures, *, runner: HalfRunner
) -> Fixtures:
    """Return `asked` with each response as our half decodes it, for later runs.

    Raises:
        HalfError: The half cannot read a response.
    """
    found: Fixtures = {}
    for case in cases:
        key = fixture_key(case.request)
        if key in asked and case.response is not None:
            answer = await decoded(runner, case.response)
            found[key] = [{**asked[key][0], "answer": answer}]
    return found


async def decoded(runner: HalfRunner, response: bytes) -> dict[str, Any]:
    """Return the result or error that a requester half reads in a response.

    Raises:
        HalfError: It cannot read the response, or returns neither of the two.
    """
    answer = await runner.decode_response(response)
    if not isinstance(answer, dict):
        raise HalfError("error", "decode_response did not return a dict")
    if answer.get("error") is None:
        if "result" not in answer:
            raise HalfError("error", "decode_response gave neither result nor error")
        # An error of None means that there is none.
        answer = {name: one for name, one in answer.items() if name != "error"}
    elif "result" in answer:
        raise HalfError("error", "decode_response gave a result and an error")
    try:
        canonical_json(answer)
    except JsonError as exc:
        raise HalfError("error", f"decode_response gave no JSON: {exc}") from None
    return answer


def reads_good(answer: dict[str, Any]) -> bool:
    """Return whether a half read a good response, perhaps one that lacks something."""
    error = answer.get("error")
    told = error.get("message") if isinstance(error, dict) else None
    return error is None or (isinstance(told, str) and told.endswith(NO_VALUE))


async def _result(case: TestCase, run: Awaitable[str | None]) -> CaseResult:
    try:
        problem = await run
    except (HalfError, CasesError) as exc:
        problem = f"our half fails: {told_of(exc)}"
    return CaseResult(case.title, problem is None, (problem or "")[:MAX_DETAIL])


async def _provider_problem(
    case: TestCase,
    fixtures: Fixtures,
    document: Document,
    *,
    runner: HalfRunner,
    read: Reader,
) -> str | None:
    answer = await answer_case(case.request, fixtures, runner=runner)
    differences = await compare(case, answer, document, read=read, sent=case.request)
    return "; ".join(differences) or None


async def _requester_problem(
    case: TestCase, asked: Fixtures, runner: HalfRunner, document: Document | None
) -> str | None:
    """Return how our half deviates from the agreement or its earlier results."""
    if case.response is None:
        return "it has no response"
    answer = await decoded(runner, case.response)
    good = reads_good(answer)
    if case.good is not None and good != case.good:
        return f"{'a good result' if case.good else 'an error'} was expected"
    kept = asked.get(fixture_key(case.request))
    if not kept:
        return None
    if not {"message_id", "arguments"} <= kept[0].keys():
        raise CasesError("what the request was made of is damaged")
    made = await runner.encode_request(kept[0]["message_id"], kept[0]["arguments"])
    if made != case.request and not await _same_request(
        case.request, made, document, runner
    ):
        return "our half makes another request of the same arguments"
    if "answer" not in kept[0]:
        return None
    differences = differences_of(kept[0]["answer"], answer)
    return f"our half reads: {'; '.join(differences)}" if differences else None


async def _same_request(
    agreed: bytes, made: object, document: Document | None, runner: HalfRunner
) -> bool:
    if document is None or not isinstance(made, bytes):
        return False
    kind, read = MessageKind.REQUEST, runner.read_message
    try:
        return same_json(
            await values_of(kind, agreed, document, read),
            await values_of(kind, made, document, read),
        )
    except JsonError:
        return False


def _failure(fixture: dict[str, Any]) -> CapabilityFailed:
    error = fixture.get("error")
    if not isinstance(error, list | tuple) or len(error) != 2:
        raise CasesError("the fixtures of the case are damaged")
    return CapabilityFailed(str(error[0]), str(error[1]))
