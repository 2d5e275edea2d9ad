"""The trial of a provider half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from negotiation.document.fields import Slot, build_message
from negotiation.document.message_judge import find
from negotiation.document.shape import MessageKind
from negotiation.errors import CapabilityFailed, HalfError, SchemaError
from negotiation.mind import Offer
from negotiation.need import Schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut, keywords_of
from negotiation.schema.narrow import narrowed
from negotiation.schema.samples import make_samples
from negotiation.schema.terms import normal_name
from negotiation.schema.values import default_of, same_json
from negotiation.schema.variants import leaves
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.module_shapes import MAX_MADE, ModuleShapes, shapes_in
from negotiation.trial.open_maps import LookedUp, looked_up
from negotiation.trial.shape_checks import ShapeChecks
from negotiation.trial.stand_ins import StandIns
from negotiation.trial.trial import (
    HOSTILE,
    MESSAGE_ID,
    Trial,
    dumped,
    fullest,
    lacks,
    slots,
)

# The part of a provider half's trial that varies requests and outputs.


MAX_CALLS: Final = 16
"Largest number of capability calls for one sample."


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request that the half must answer."""

    data: bytes

    message_id: Json = MESSAGE_ID
    "The value of its message id, if the document has one."


MAX_CODES: Final = 64
"Largest number of a document's error codes that are tried."


@dataclass(slots=True)
class _Calls:
    """The capability calls of one message."""

    names: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    outputs: list[tuple[str, Json]] = field(default_factory=list)


class ProviderTrial(Trial):
    """Passes requests to the half, and answers its calls with results and failures."""

    _side: Offer
    _shapes = ModuleShapes()
    _stand = StandIns(_shapes, {})
    _looked_up = LookedUp()
    _outputs: Mapping[str, Schema] = MappingProxyType({})

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
        self._outputs, self._looked_up = outputs, looked_up(self._half.text)
        self._shapes = shapes_in(self._half.text)
        values = self._layout.request.places[0].schema if self._layout else True
        self._stand = StandIns(self._shapes, {**outputs, "request": values})
        # The fullest first: less may be answered with an error that names the place.
        answers = {
            name: [
                self._stand.first(name, one)
                for one in sorted(
                    await self._valid(schema, (), name),
                    key=lambda one: -len(leaves(one)),
                )
            ]
            for name, schema in outputs.items()
        }
        requests = await self._requests()
        if self._shapes.each:
            # For an empty list nothing is called.
            requests.sort(key=lambda one: -len(one.data))
        if requests:
            await self._updates(requests[0], inputs, answers)
            await self._answers(requests[0], inputs, answers)
            await self._vary(requests, answers, inputs, outputs)
        for request in requests:
            await self._handle_good(request, inputs, answers, 0)
            for code, words in (("404", "not found"), ("tool_failed", "it broke")):
                failure = CapabilityFailed(code, words)
                await self._handle_bad(request, inputs, failure)
        for own in self._layout.response.promised[:MAX_CODES] if self._layout else ():
            # Each code that the document promises has to be reachable.
            failure = CapabilityFailed(str(own), "it failed")
            for request in requests[:1]:
                await self._handle_bad(request, inputs, failure)
        if self._refusal is not None and not self._served:
            self.problem(
                "handle_request says error to every sample request without calling "
                f"anything, or to every sample of an output: {self._refusal}"
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
            value = self._stand.first("request", value)
            message = build_message(
                layout.request.fields, filled, place=place, value=value
            )
            if await self._validator.validate(schema, message):
                self._partial = True
                continue
            requests.append(SampleRequest(dumped(message)))
        return requests

    async def _updates(
        self,
        request: SampleRequest,
        inputs: dict[str, Schema],
        answers: dict[str, list[Json]],
    ) -> None:
        """Check the messages that the half writes before its answer."""
        schema = self._document.update_schema
        given = {
            one.name: await self._valid(prepared(one.updates), (), "update")
            for one in self._side.capabilities
            if one.updates is not None
        }
        if schema is None or not given:
            return
        calls, what = _Calls(), "write_update"

        async def on_call(name: str, arguments: Json) -> Json:
            await self._judge_call(calls, inputs, name, arguments)
            made = answers[name]
            if not made:
                raise CapabilityFailed("500", "no sample of the output could be made")
            return made[0]

        async def on_stream(
            name: str, arguments: Json, write: Callable[[Json], Awaitable[bytes]]
        ) -> Json:
            for value in given.get(name, ()):
                self._checks += 1
                data = await write(value)
                if await self._fits(MessageKind.UPDATE, schema, data, what):
                    values = await self._values(MessageKind.UPDATE, data)
                    self._carries_id(values, what, request.message_id)
            return await on_call(name, arguments)

        try:
            await self._runner.handle_request(request.data, on_call, on_stream)
        except HalfError as exc:
            self.problem(f"handle_request fails with updates: {exc}")

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
        if self._shapes.fails and None in responses:
            # That a value is an error is an effect of it.
            return
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
        given = await self._values(MessageKind.REQUEST, request.data)

        async def on_call(name: str, arguments: Json) -> Json:
            await self._judge_call(calls, inputs, name, arguments)
            made = answers[name]
            if not made:
                raise CapabilityFailed("500", "no sample of the output could be made")
            first = made[min(turn, len(made) - 1)]
            number = calls.names.count(name) - 1
            output = self._stand.answer(name, number, first)
            calls.outputs.append((name, self._filled(name, output, given)))
            return calls.outputs[-1][1]

        response = await self._handle(request.data, on_call, "a good answer")
        self._report(calls)
        if response is None or not all(map(answers.get, calls.names)):
            return None
        absent = any(
            lacks(made[min(turn, len(made) - 1)], made) for made in answers.values()
        )
        # A sample need not have room in a layout.
        failing = any(
            one.is_in(output)
            for one in self._shapes.fails
            for name, output in calls.outputs
            if name == one.capability
        )
        may_refuse = absent or failing or not calls.names or not self._document.is_json
        if may_refuse and await self._is_refusal(request, response):
            return None
        if not calls.names and not calls.faults and not self._shapes.each:
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
        meant, or leave out what the document requires. Such answers are accepted
        unless all answers are of this kind.
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
            raise failure.again()

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
        for fault in self._code_faults(values, failure.code):
            self.problem(fault)

    def _code_faults(self, values: dict[str, Json], code: str) -> list[str]:
        """Return the faults of the codes in an error response, for a code that is."""
        if self._layout is None:
            return []
        response = self._layout.response
        if code in response.words:
            said = [find(values, mark.path) for mark in response.marks]
            told = f"the capability failed with the listed code {code}"
            return [] if code in said else [f"handle_request says {said} when {told}"]
        if not code.isdecimal():
            return []
        faults = []
        for path, leaf in response.bad:
            got = find(values, path)
            listed = response.codes and int(code) not in response.codes
            if leaf in {Slot.CODE, Slot.CODE_TEXT} and not listed and str(got) != code:
                faults.append(
                    f"handle_request says {cut(got)} in {'/'.join(path)} when the "
                    f"capability failed with {code}"
                )
        return faults

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
        if len(calls.names) > self._most:
            calls.faults.append(f"makes more than {self._most} calls for one request")
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

    def _filled(self, name: str, output: Json, request: Json) -> Json:
        """Return an output with the names that the half looks up in its maps."""
        return self._looked_up.filled(output, self._outputs[name], request)

    @property
    def _most(self) -> int:
        """The largest number of capability calls for one sample."""
        return MAX_MADE if self._shapes.each or self._shapes.pages else MAX_CALLS

    async def _vary(
        self,
        requests: Sequence[SampleRequest],
        answers: dict[str, list[Json]],
        inputs: dict[str, Schema],
        outputs: dict[str, Schema],
    ) -> None:
        """Check that each field of request and outputs goes where it belongs."""
        layout = self._layout
        best = {name: fullest(values) for name, values in answers.items()}
        if layout is None or self.problems or None in best.values():
            return
        await self._vary_request(best)
        values = [await self._values(MessageKind.REQUEST, one.data) for one in requests]
        request = requests[max(range(len(values)), key=lambda at: len(str(values[at])))]
        _, base = await self._observed(request.data, best)
        if base is None:
            return
        to = layout.response.places[0].schema
        for name, schema in outputs.items():

            async def result(output: Json, name: str = name) -> Json:
                given = {**best, name: output}
                return (await self._observed(request.data, given))[1]

            await self._cross("handle_request", (schema, best[name]), to, result)
        await self._leave_out(request, best, base)
        inside = (layout.request.places[0], layout.request.taken)
        given = await self._values(MessageKind.REQUEST, request.data)
        checks = ShapeChecks(
            self._shapes,
            self._stand,
            inputs=inputs,
            outputs=outputs,
            best={**best, "request": self._inside(given, *inside)},
            observe=lambda answer: self._watched(request.data, answer),
            told=lambda answer: self._told(request.data, answer),
        )
        for fault in await checks.faults():
            self.problem(f"handle_request {fault}")

    async def _leave_out(
        self, request: SampleRequest, best: dict[str, Json], base: Json
    ) -> None:
        """Check that nothing is invented where a capability gives no value."""
        assert self._layout is not None
        to = keywords_of(self._layout.response.places[0].schema).get("properties", {})
        for capability in self._side.capabilities:
            output = best.get(capability.name)
            if not isinstance(output, dict) or not isinstance(base, dict):
                continue
            gives = keywords_of(prepared(capability.output_schema))
            for name in sorted(output.keys() - set(gives.get("required", ()))):
                less = {key: one for key, one in output.items() if key != name}
                given = {**best, capability.name: less}
                _, result = await self._observed(request.data, given)
                meant = default_of(gives.get("properties", {}).get(name, True))
                for key, made in (result if isinstance(result, dict) else {}).items():
                    same = normal_name(key) == normal_name(name) and key in base
                    told = meant or default_of(to.get(key, True))
                    if same and not told and not same_json(made, base[key]):
                        self.problem(
                            f"handle_request invents {cut(made)} for {cut(key)}, "
                            f"which {capability.name} did not give"
                        )

    async def _vary_request(self, best: dict[str, Json]) -> None:
        layout = self._layout
        if layout is None or not self._document.is_json:
            return
        place = layout.request.places[0]
        whole = fullest(await self._valid(place.schema, (), "request"))
        whole = self._stand.first("request", whole)
        base = await self._accepted(place.schema, whole, best)
        called = await self._called(base, best)
        if not isinstance(called, list):
            return
        inputs: dict[str, Schema] = {
            one.name: prepared(one.input_schema)
            for one in self._side.capabilities
            if one.name in best
        }
        to = {
            "prefixItems": [
                {"prefixItems": [True, inputs.get(name, True)]} for name, _ in called
            ]
        }

        async def calls(value: Json) -> Json:
            return await self._called(value, best)

        source = place.schema, base
        await self._cross("handle_request", source, to, calls, head=2, every=True)

    async def _accepted(
        self, schema: Schema, whole: Json, best: dict[str, Json]
    ) -> Json:
        """Return as much of a request's values as the half takes, the required first.

        Optional fields without a place at the capability are refused.
        """
        if not isinstance(whole, dict) or await self._called(whole, best) is not None:
            return whole
        required = keywords_of(schema).get("required", ())
        base = {name: one for name, one in whole.items() if name in required}
        for name in [one for one in whole if one not in base]:
            more = {**base, name: whole[name]}
            if await self._called(more, best) is not None:
                base = more
        return base

    async def _called(self, value: Json, best: dict[str, Json]) -> Json:
        """Return the calls for a request with `value`; None if it is refused."""
        assert self._layout is not None
        request = self._layout.request
        filled = slots()
        if request.action_schema is not None:
            actions = make_samples(request.action_schema).values
            filled[Slot.ACTION] = actions[0].value if actions else "call"
        message = build_message(
            request.fields, filled, place=request.places[0], value=value
        )
        calls, result = await self._observed(dumped(message), best)
        # A value that only the answer shows has an effect as well.
        told = canonical_json(result).decode("utf-8")
        made: list[Json] = [[name, given] for name, given in calls]
        return None if result is None else [*made, ["", told]]

    async def _observed(
        self, data: bytes, outputs: dict[str, Json]
    ) -> tuple[list[tuple[str, Json]], Json]:
        """Return the calls for a request, and the result; None when it is refused."""

        def answer(name: str, number: int) -> Json:
            if name not in outputs:
                raise CapabilityFailed("403", "not allowed")
            return self._stand.answer(name, number, outputs[name])

        return await self._watched(data, answer)

    async def _watched(
        self, data: bytes, answer: Callable[[str, int], Json]
    ) -> tuple[list[tuple[str, Json]], Json]:
        """Return the calls for a request, and the result; see `_observed`.

        Args:
            answer: Returns the output of a capability, by the number of its calls
                before.
        """
        calls, values = await self._ran(data, answer)
        if values is None or self._says_good(values) is False:
            return calls, None
        assert self._layout is not None
        part = self._layout.response
        return calls, self._inside(values, part.places[0], part.taken)

    async def _told(self, data: bytes, answer: Callable[[str, int], Json]) -> Json:
        """Return the values of the response to a request; None without one."""
        return (await self._ran(data, answer))[1]

    async def _ran(
        self, data: bytes, answer: Callable[[str, int], Json]
    ) -> tuple[list[tuple[str, Json]], dict[str, Json] | None]:
        """Return the calls for a request and the values of the response, if any."""
        calls: list[tuple[str, Json]] = []

        async def on_call(name: str, arguments: Json) -> Json:
            number = sum(name == one for one, _ in calls)
            calls.append((name, arguments))
            if len(calls) > self._most:
                raise CapabilityFailed("403", "not allowed")
            return self._filled(name, answer(name, number), given)

        given = await self._values(MessageKind.REQUEST, data)
        try:
            response = await self._runner.handle_request(data, on_call)
        except HalfError:
            return calls, None
        return calls, await self._values(MessageKind.RESPONSE, response)
