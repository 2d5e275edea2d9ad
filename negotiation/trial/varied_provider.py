"""The part of a provider half's trial that varies requests and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from negotiation.document.fields import Slot, build_message
from negotiation.document.shape import MessageKind
from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import Offer
from negotiation.need import Schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut, keywords_of
from negotiation.schema.samples import make_samples
from negotiation.schema.terms import normal_name
from negotiation.schema.values import default_of, same_json
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.module_shapes import MAX_MADE, ModuleShapes
from negotiation.trial.open_maps import LookedUp
from negotiation.trial.shape_checks import ShapeChecks
from negotiation.trial.stand_ins import StandIns
from negotiation.trial.trial import MESSAGE_ID, Trial, dumped, fullest, slots

MAX_CALLS: Final = 16
"Largest number of capability calls for one sample."


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request that the half must answer."""

    data: bytes

    message_id: Json = MESSAGE_ID
    "The value of its message id, if the document has one."


class VariedProvider(Trial):
    """Checks that each value goes where it belongs, and the shapes of the calls."""

    _side: Offer
    _shapes = ModuleShapes()
    _stand = StandIns(_shapes, {})
    _looked_up = LookedUp()
    _outputs: Mapping[str, Schema] = MappingProxyType({})

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
