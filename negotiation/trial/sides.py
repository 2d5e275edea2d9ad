"""The trials of a requester half and of a provider half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from negotiation.document.fields import Slot, build_message
from negotiation.document.message_judge import find
from negotiation.document.shape import MessageKind
from negotiation.errors import CapabilityFailed, HalfError, JsonError, SchemaError
from negotiation.mind import Demand, Offer
from negotiation.need import Schema, infer_schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut
from negotiation.schema.narrow import narrowed
from negotiation.schema.samples import make_samples
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.trial import HOSTILE, MESSAGE_ID, Trial, dumped, slots

__all__ = ["ProviderTrial", "RequesterTrial", "SampleRequest"]


class RequesterTrial(Trial):
    """Encodes data that the need may send, and decodes answers of a provider."""

    _side: Demand

    async def run(self) -> None:
        """Run all checks, with the data at hand and the samples of the need."""
        demand, need = self._side, self._side.need
        try:
            given = need.input_schema
            schema = prepared(
                infer_schema(demand.arguments) if given is None else given
            )
            wanted = prepared(
                True if need.output_schema is None else need.output_schema
            )
        except SchemaError as exc:
            self.problem(f"the task's schema cannot be used: {exc}")
            return
        # Without a schema of the caller only the data at hand is known to be valid.
        if given is None:
            arguments: list[Json] = [demand.arguments]
        else:
            arguments = await self._valid(schema, [demand.arguments], "arguments")
        encoded = [await self._encode(value) for value in arguments]
        target = self._layout.request.places[0].schema if self._layout else True
        self._constant(arguments, encoded, target=target, what="encode_request")
        await self._decode_good(wanted)
        await self._decode_bad()
        for name, data in (
            *HOSTILE,
            *self._wrong_types(self._document.response_schema),
        ):
            await self._decode_hostile(name, data)

    async def _encode(self, arguments: Json) -> bytes | None:
        self._checks += 1
        self._tried += 1
        if not isinstance(arguments, dict):
            self.problem("the arguments of the task are no object")
            return None
        try:
            data = await self._runner.encode_request(MESSAGE_ID, arguments)
        except HalfError as exc:
            self.problem(f"encode_request fails for {cut(arguments)}: {exc}")
            return None
        kind, schema = MessageKind.REQUEST, self._document.request_schema
        if not await self._fits(kind, schema, data, "encode_request"):
            return None
        self._carries_id(await self._values(kind, data), "encode_request")
        return data

    async def _decode_good(self, wanted: Schema) -> None:
        layout = self._layout
        if layout is None:
            return
        place = layout.response.places[0]
        values = await self._valid(place.schema, (), "response")
        results: list[bytes | None] = []
        for value in values:
            message = build_message(
                layout.response.good, slots(), place=place, value=value
            )
            schema = self._document.response_schema
            if await self._validator.validate(schema, message):
                # The response as a whole has further conditions, so this shows nothing.
                self._partial = True
                results.append(None)
                continue
            results.append(await self._decode(dumped(message), wanted))
        self._constant(values, results, target=wanted, what="decode_response")

    async def _decode(
        self, data: bytes, wanted: Schema, message_id: Json = MESSAGE_ID
    ) -> bytes | None:
        self._checks += 1
        self._tried += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError as exc:
            self.problem(f"decode_response fails for a good response: {exc}")
            return None
        if "error" in answer or "result" not in answer:
            self.problem("decode_response gives no result for a good response")
            return None
        has_id = self._layout is not None and self._layout.message_id is not None
        if has_id and answer.get("message_id") != message_id:
            self.problem("decode_response does not give back the message id")
        for finding in await self._validator.validate(wanted, answer["result"]):
            self.problem(f"the result does not fit the task: {finding}")
        try:
            return canonical_json(answer["result"])
        except JsonError as exc:
            self.problem(f"decode_response gives a result that is no JSON: {exc}")
            return None

    async def _decode_bad(self) -> None:
        if self._layout is None:
            return
        message = build_message(self._layout.response.bad, slots())
        await self._decode_error(dumped(message))

    async def _decode_error(self, data: bytes) -> None:
        self._checks += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError as exc:
            self.problem(f"decode_response fails for an error response: {exc}")
            return
        error = answer.get("error")
        if not isinstance(error, dict) or "result" in answer:
            self.problem("decode_response takes an error response for a good one")
        elif not {"code", "message"} <= error.keys():
            self.problem("decode_response gives an error without code and message")

    async def _decode_hostile(self, name: str, data: bytes) -> None:
        self._checks += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError:
            return
        if "error" not in answer and await self._unfit(MessageKind.RESPONSE, data):
            self.problem(f"decode_response takes {name} for a good response")


MAX_CALLS: Final = 16
"Largest number of capability calls for one sample."


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request that the half must answer."""

    data: bytes

    message_id: Json = MESSAGE_ID
    "The value of its message id, if the document has one."


@dataclass(slots=True)
class _Calls:
    """The capability calls of one message."""

    names: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class ProviderTrial(Trial):
    """Passes requests to the half, and answers its calls with results and failures."""

    _side: Offer
    _served = 0
    _refusal: str | None = None

    async def run(self) -> None:
        """Run all checks, with samples as the outputs of capabilities."""
        allowed = {one.name: one for one in self._side.capabilities}
        unknown = sorted(set(self._half.capabilities) - allowed.keys())
        if unknown:
            self.problem(f"the half wants capabilities that are not offered: {unknown}")
            return
        if not self._half.capabilities:
            self.problem("the half names no capability that it calls")
            return
        try:
            inputs = {
                name: prepared(allowed[name].input_schema)
                for name in self._half.capabilities
            }
            wanted = self._layout.response.places[0].schema if self._layout else True
            outputs = {
                name: narrowed(prepared(allowed[name].output_schema), wanted)
                for name in self._half.capabilities
            }
        except SchemaError as exc:
            self.problem(f"a capability's schema cannot be used: {exc}")
            return
        answers = {
            name: await self._valid(schema, (), name)
            for name, schema in outputs.items()
        }
        requests = await self._requests()
        if requests:
            await self._answers(requests[0], inputs, answers)
        for request in requests:
            await self._handle_good(request, inputs, answers, 0)
            for code, words in (("404", "not found"), ("tool_failed", "it broke")):
                failure = CapabilityFailed(code, words)
                await self._handle_bad(request, inputs, failure)
        if self._refusal is not None and not self._served:
            self.problem(
                "handle_request says error to every sample request without calling "
                f"anything: {self._refusal}"
            )
        wrong = self._wrong_types(self._document.request_schema)
        for name, data in (*HOSTILE, *wrong):
            await self._handle_hostile(name, data, inputs, answers)

    async def _requests(self) -> list[SampleRequest]:
        """Return the requests that can be made, as the requester would send them."""
        layout, schema = self._layout, self._document.request_schema
        if layout is None:
            made = await self._valid(schema, (), "request")
            return [SampleRequest(dumped(value)) for value in made]
        place = layout.request.places[0]
        requests = []
        for value in await self._valid(place.schema, (), "request"):
            filled = slots()
            if layout.request.action_schema is not None:
                actions = make_samples(layout.request.action_schema).values
                filled[Slot.ACTION] = actions[0].value if actions else "call"
            message = build_message(
                layout.request.fields, filled, place=place, value=value
            )
            if await self._validator.validate(schema, message):
                self._partial = True
                continue
            requests.append(SampleRequest(dumped(message)))
        return requests

    async def _answers(
        self,
        request: SampleRequest,
        inputs: dict[str, Schema],
        answers: dict[str, list[Json]],
    ) -> None:
        """Check that different outputs of the capability give different responses."""
        most = max((len(values) for values in answers.values()), default=0)
        responses = [
            await self._handle_good(request, inputs, answers, turn)
            for turn in range(most)
        ]
        sources = [
            [
                values[min(turn, len(values) - 1)]
                for values in answers.values()
                if values
            ]
            for turn in range(most)
        ]
        target = self._layout.response.places[0].schema if self._layout else True
        self._constant(sources, responses, target=target, what="handle_request")

    async def _handle_good(
        self,
        request: SampleRequest,
        inputs: dict[str, Schema],
        answers: dict[str, list[Json]],
        turn: int,
    ) -> bytes | None:
        calls = _Calls()

        async def on_call(name: str, arguments: Json) -> Json:
            await self._judge_call(calls, inputs, name, arguments)
            made = answers[name]
            if not made:
                raise CapabilityFailed("500", "no sample of the output could be made")
            return made[min(turn, len(made) - 1)]

        response = await self._handle(request.data, on_call, "a good answer")
        self._report(calls)
        if response is None or not all(map(answers.get, calls.names)):
            return None
        if not calls.names and await self._is_refusal(request, response):
            return None
        if not calls.names and not calls.faults:
            self.problem("handle_request answers without calling its capability")
        kind, schema = MessageKind.RESPONSE, self._document.response_schema
        if not await self._fits(kind, schema, response, "handle_request"):
            return None
        values = await self._values(kind, response)
        self._carries_id(values, "handle_request", request.message_id)
        if self._says_good(values) is False:
            self.problem("handle_request says error although the capability answered")
        if self._result_missing(values):
            self.problem("handle_request leaves the result out of a good response")
        self._served += 1
        return response

    async def _is_refusal(self, request: SampleRequest, response: bytes) -> bool:
        """Return whether the half reported the request itself as invalid.

        A schema may not express every condition: it may allow any text where a date is
        meant. Such answers are accepted unless all answers are of this kind.
        """
        values = await self._values(MessageKind.RESPONSE, response)
        if self._says_good(values) is not False:
            return False
        what = "handle_request (refusal)"
        kind, schema = MessageKind.RESPONSE, self._judge.error_schema
        if await self._fits(kind, schema, response, what):
            self._carries_id(values, what, request.message_id)
            said = self._said(values)
            self._refusal = said if self._refusal is None else self._refusal
        return True

    def _said(self, values: dict[str, Json]) -> str:
        """Return the text of an error response, or as much of it as can be shown."""
        assert self._layout is not None, "or nothing would say error"
        texts = [find(values, path) for path in self._layout.response.texts]
        return next((one for one in texts if isinstance(one, str)), cut(values))[:300]

    async def _handle_bad(
        self,
        request: SampleRequest,
        inputs: dict[str, Schema],
        failure: CapabilityFailed,
    ) -> None:
        calls = _Calls()

        async def on_call(name: str, arguments: Json) -> Json:
            await self._judge_call(calls, inputs, name, arguments)
            raise failure

        response = await self._handle(request.data, on_call, "CapabilityError")
        self._report(calls)
        if response is None or not calls.names:
            return
        kind, what = MessageKind.RESPONSE, "handle_request (error)"
        if not await self._fits(kind, self._judge.error_schema, response, what):
            return
        values = await self._values(kind, response)
        self._carries_id(values, what, request.message_id)
        if self._says_good(values):
            self.problem("handle_request says good although the capability failed")

    async def _handle(
        self,
        request: bytes,
        on_call: Callable[[str, Json], Awaitable[Json]],
        after: str,
    ) -> bytes | None:
        self._checks += 1
        self._tried += 1
        try:
            return await self._runner.handle_request(request, on_call)
        except HalfError as exc:
            self.problem(f"handle_request fails after {after}: {exc}")
            return None

    async def _handle_hostile(
        self,
        name: str,
        data: bytes,
        inputs: dict[str, Schema],
        answers: dict[str, list[Json]],
    ) -> None:
        self._checks += 1
        calls = _Calls()

        async def on_call(capability: str, arguments: Json) -> Json:
            # As in the daemon: arguments that do not fit the schema are refused here.
            await self._judge_call(calls, inputs, capability, arguments)
            if calls.faults or not answers[capability]:
                raise CapabilityFailed("400", "the arguments do not fit")
            return answers[capability][0]

        try:
            response = await self._runner.handle_request(data, on_call)
        except HalfError:
            return
        values = await self._values(MessageKind.RESPONSE, response)
        if self._says_good(values) is not False and await self._unfit(
            MessageKind.REQUEST, data
        ):
            self.problem(f"handle_request takes {name} for a good request")

    async def _judge_call(
        self, calls: _Calls, inputs: dict[str, Schema], name: str, arguments: Json
    ) -> None:
        calls.names.append(name)
        if len(calls.names) > MAX_CALLS:
            calls.faults.append(f"makes more than {MAX_CALLS} calls for one request")
            raise CapabilityFailed("429", "too many calls")
        if name not in inputs:
            calls.faults.append(f"calls {cut(name)}, which it did not name")
            raise CapabilityFailed("403", "not allowed")
        for finding in await self._validator.validate(inputs[name], arguments):
            calls.faults.append(
                f"calls {name} with arguments that do not fit: {finding}"
            )

    def _report(self, calls: _Calls) -> None:
        for fault in calls.faults:
            self.problem(f"handle_request {fault}")
