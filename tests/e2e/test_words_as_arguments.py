"""Values in the words of a need become arguments: the next one costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Need
from tests.e2e.scripted_model import ScriptedModel, says, scripted_model
from tests.negotiation.llm.scripted import call, link, offer_answer

SOURCE = """
from typing import TypedDict


class Reading(TypedDict):
    celsius: float


def measured(town: str) -> Reading:
    return {"celsius": float(len(town))}


def forecast(city: str = "Paris") -> Reading:
    return {"celsius": 100.0 + len(city)}
"""

SERVED = offer_answer(
    call("sky.measured", link("sky.measured:/town", of=["request:/city"])),
    result=[link("result:", of=["sky.measured:"])],
)


def marks(*values: tuple[str, str]) -> dict[str, Any]:
    """Return a model's answer that marks values with names."""
    return {"values": [{"text": text, "name": name} for text, name in values]}


@dataclass(frozen=True)
class Weather:
    """A caller, and a provider with two ways to tell a temperature."""

    caller: Daemon
    provider: Daemon

    async def ask(
        self, words: str, arguments: dict[str, Any] | None = None
    ) -> CallResult:
        """Call the provider with words."""
        peer = f"{self.provider.url}#{self.provider.did}"
        return await self.caller.caller.call(
            CallRequest(peer=peer, need=Need(words), arguments=arguments or {})
        )

    @property
    def negotiations(self) -> int:
        """Negotiations that the caller has begun."""
        return len(self.caller.store.negotiations())


@asynccontextmanager
async def weather(
    folder: Path,
    *,
    caller: ScriptedModel | None,
    provider: ScriptedModel | None,
    expose: str = "measured",
) -> AsyncIterator[Weather]:
    """Run both daemons; a side with a model has it on loopback."""
    (folder / "sky_tools.py").write_text(SOURCE)
    daemons = []
    for name, model in (("caller", caller), ("provider", provider)):
        home = Home(folder / name)
        if not home.config_file.exists():
            home.create()
        flags: dict[str, Any] = {"listen.port": 0}
        if model is not None:
            flags |= {"llm.model": "scripted", "llm.base_url": model.url}
        if name == "provider":
            spec = AttachmentSpec(
                kind="python",
                name="sky",
                target="sky_tools",
                cwd=folder,
                expose=(expose,),
                read_only=(expose,),
            )
            save_attachment(home.attachments, spec)
        config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
        daemons.append(Daemon(home, config))
    first, second = daemons
    async with first.running(), second.running():
        yield Weather(first, second)


async def test_the_next_city_costs_no_model_call_and_no_negotiation(
    tmp_path: Path,
) -> None:
    with (
        scripted_model(says(marks(("Oslo", "city")))) as ours,
        scripted_model(says(SERVED)) as theirs,
    ):
        async with weather(tmp_path, caller=ours, provider=theirs) as house:
            first = await house.ask("temperature in Oslo")
            assert first.output == {"celsius": 4.0}
            assert first.source == "negotiated"
            assert first.llm_calls == 1
            second = await house.ask("temperature in Bergen")
            assert second.output == {"celsius": 6.0}
            assert second.source == "agreement"
            assert second.llm_calls == 0
            assert second.protocol == first.protocol
            assert house.negotiations == 1
            # Nothing of the first call is in the protocol or its code.
            [agreement] = house.caller.store.all_agreements()
            document = house.caller.store.document(agreement.hash)
            assert document is not None
            assert "Oslo" not in document.text
            assert agreement.need is not None
            assert agreement.need["requirement"] == "temperature in {city}"
            for daemon in (house.caller, house.provider):
                [agreement] = daemon.store.all_agreements()
                half = daemon.store.half(
                    agreement.hash, agreement.role, agreement.revision
                )
                assert half is not None
                assert "Oslo" not in half.source
        assert len(ours.asked) == len(theirs.asked) == 1


async def test_a_restarted_daemon_without_its_model_still_reads_the_words(
    tmp_path: Path,
) -> None:
    with (
        scripted_model(says(marks(("Oslo", "city")))) as ours,
        scripted_model(says(SERVED)) as theirs,
    ):
        async with weather(tmp_path, caller=ours, provider=theirs) as house:
            await house.ask("temperature in Oslo")
    async with weather(tmp_path, caller=None, provider=None) as house:
        result = await house.ask("temperature in Kristiansand")
        assert result.output == {"celsius": 12.0}
        assert result.source == "agreement"


async def test_two_cities_at_once_make_one_negotiation(tmp_path: Path) -> None:
    class Reader(ScriptedModel):
        def answer(self, request: dict[str, Any]) -> Any:
            self.asked.append(request["messages"])
            city = "Oslo" if "Oslo" in str(request["messages"][1]) else "Bergen"
            return says(marks((city, "city")))

    with scripted_model() as ours, scripted_model(says(SERVED)) as theirs:
        ours.__class__ = Reader
        async with weather(tmp_path, caller=ours, provider=theirs) as house:
            oslo, bergen = await asyncio.gather(
                house.ask("temperature in Oslo"), house.ask("temperature in Bergen")
            )
            assert oslo.output == {"celsius": 4.0}
            assert bergen.output == {"celsius": 6.0}
            assert house.negotiations == 1
        assert len(theirs.asked) == 1


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        # The model sees another value at the same place, of more words.
        ("temperature in New York", marks(("New York", "town"))),
        # Small letters say nothing, so the model is asked; the agreement is the same.
        ("temperature in bergen", marks(("bergen", "place"))),
    ],
)
async def test_a_value_of_another_look_costs_a_question_and_no_negotiation(
    tmp_path: Path, sentence: str, marked: dict[str, Any]
) -> None:
    with (
        scripted_model(says(marks(("Oslo", "city"))), says(marked)) as ours,
        scripted_model(says(SERVED)) as theirs,
    ):
        async with weather(tmp_path, caller=ours, provider=theirs) as house:
            first = await house.ask("temperature in Oslo")
            second = await house.ask(sentence)
            assert second.source == "agreement"
            assert second.protocol == first.protocol
            assert second.llm_calls == 1
            assert second.output == {"celsius": float(len(sentence) - 15)}
        assert len(ours.asked) == 2
        assert len(theirs.asked) == 1


async def test_words_that_mean_something_else_are_never_taken_for_the_template(
    tmp_path: Path,
) -> None:
    refused = {**SERVED, "calls": [], "result": [], "serves": False}
    with (
        scripted_model(
            says(marks(("Oslo", "city"))), says(marks(("Oslo", "city")))
        ) as ours,
        scripted_model(
            says(SERVED), says({**refused, "missing": "only the present"})
        ) as theirs,
    ):
        async with weather(tmp_path, caller=ours, provider=theirs) as house:
            await house.ask("temperature in Oslo")
            with pytest.raises(CallError) as caught:
                await house.ask("temperature in Oslo yesterday")
            assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
            assert "only the present" in caught.value.detail
        # The provider's model was asked about another requirement.
        assert "temperature in {city} yesterday" in str(theirs.asked[1])


async def test_a_value_in_words_is_not_lost_where_the_words_name_a_capability(
    tmp_path: Path,
) -> None:
    """`forecast` may be called without a city, and would then tell that of Paris."""
    with scripted_model(says(marks(("Oslo", "city")))) as ours:
        async with weather(
            tmp_path, caller=ours, provider=None, expose="forecast"
        ) as house:
            first = await house.ask("forecast for Oslo")
            assert first.output == {"celsius": 104.0}
            # By what the peer publishes: nothing was negotiated.
            assert first.source == "published"
            second = await house.ask("forecast for Bergen")
            assert second.output == {"celsius": 106.0}
            assert second.llm_calls == 0
        assert len(ours.asked) == 1


async def test_without_a_model_the_words_stay_and_no_value_is_dropped(
    tmp_path: Path,
) -> None:
    async with weather(
        tmp_path, caller=None, provider=None, expose="forecast"
    ) as house:
        with pytest.raises(CallError) as caught:
            await house.ask("forecast for Oslo")
        assert "no argument carries what the words say (Oslo)" in caught.value.detail
        result = await house.ask("forecast for {city}", {"city": "Oslo"})
        assert result.output == {"celsius": 104.0}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("forecast for {city}, and answer in CSV", "not JSON"),
        ("forecast for {city}. The messages are XML.", "not JSON"),
        ("Mean warmth of {city} as key=value lines, not JSON", "not JSON"),
        ("forecast for {city} in Fahrenheit", "Fahrenheit is asked for"),
    ],
)
async def test_what_the_words_insist_on_is_kept_or_refused(
    tmp_path: Path, words: str, reason: str
) -> None:
    """By its name the capability was called as published: in JSON, and in Celsius."""
    async with weather(
        tmp_path, caller=None, provider=None, expose="forecast"
    ) as house:
        with pytest.raises(CallError) as caught:
            await house.ask(words, {"city": "Oslo"})
        assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
        assert reason in caught.value.detail
        assert house.caller.store.all_agreements() == []
        assert house.provider.store.all_agreements() == []


async def test_a_model_that_calls_without_the_value_is_asked_again(
    tmp_path: Path,
) -> None:
    """A caller of another make gives its words alone; the plan dropped the city."""
    whole = [link("result:", of=["sky.forecast:"])]
    dropping = offer_answer(call("sky.forecast"), result=whole)
    rome = link("sky.forecast:/city", "constant", '"Rome"')
    keeping = offer_answer(call("sky.forecast", rome), result=whole)
    with scripted_model(says(dropping), says(keeping)) as theirs:
        async with weather(
            tmp_path, caller=None, provider=theirs, expose="forecast"
        ) as house:
            result = await house.ask("What is the weather like in Rome?")
            assert result.output == {"celsius": 104.0}
        assert "no argument carries what the words say (Rome)" in str(theirs.asked[1])
