"""A language model at the table of two daemons, on one side each time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.calls.call import CallRequest, CallResult, Mode
from anp.sidecar.config.load import load_config
from anp.sidecar.daemon import Daemon
from anp.sidecar.home.home import Home
from negotiation.need import Need
from tests.e2e.scripted_model import ScriptedModel, says, scripted_model
from tests.negotiation.llm.scripted import call, link, offer_answer, reply_answer

SOURCE = """
from typing import TypedDict


class Reading(TypedDict):
    fahrenheit: float
    volume_ml: int


def read_oven(oven: str, seconds: int) -> Reading:
    return {"fahrenheit": 392.0, "volume_ml": seconds * 10}


def purge(sure: str) -> dict[str, bool]:
    raise AssertionError("never")
"""


def strict(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TASK = Need(
    "Temperature of the oven in degrees Celsius",
    strict(oven={"type": "string"}, minutes={"type": "integer"}),
    strict(celsius={"type": "number"}, litres={"type": "number"}),
)
PROVIDER_ANSWER = offer_answer(
    call(
        "kitchen.read_oven",
        link("kitchen.read_oven:/oven", of=["request:/oven"]),
        link("kitchen.read_oven:/seconds", "scale", "60", "0", of=["request:/minutes"]),
    ),
    result=[
        link(
            "result:/celsius",
            "scale",
            "5/9",
            "-160/9",
            of=["kitchen.read_oven:/fahrenheit"],
        ),
        link(
            "result:/litres",
            "scale",
            "0.001",
            "0",
            of=["kitchen.read_oven:/volume_ml"],
        ),
    ],
)


@dataclass(frozen=True)
class Kitchen:
    """A provider with an oven, and a caller."""

    caller: Daemon
    provider: Daemon

    async def ask(
        self, need: Need, arguments: dict[str, Any], mode: Mode = Mode.AUTO
    ) -> CallResult:
        """Call the provider."""
        peer = f"{self.provider.url}#{self.provider.did}"
        return await self.caller.caller.call(
            CallRequest(peer=peer, need=need, arguments=arguments, mode=mode)
        )


@asynccontextmanager
async def kitchen(
    folder: Path,
    *,
    caller: ScriptedModel | None,
    provider: ScriptedModel | None,
    budget: Mapping[str, int] | None = None,
) -> AsyncIterator[Kitchen]:
    """Run both; a side with a model has it on loopback, without a key.

    Args:
        budget: Settings of both, by dotted name.
    """
    (folder / "kitchen_tools.py").write_text(SOURCE)
    daemons = []
    for name, model in (("caller", caller), ("provider", provider)):
        home = Home(folder / name)
        home.create()
        flags: dict[str, Any] = {"listen.port": 0, **(budget or {})}
        if model is not None:
            flags |= {"llm.model": "scripted", "llm.base_url": model.url}
        if name == "provider":
            spec = AttachmentSpec(
                kind="python",
                name="kitchen",
                target="kitchen_tools",
                cwd=folder,
                expose=("read_oven",),
                read_only=("read_oven",),
            )
            save_attachment(home.attachments, spec)
        config = load_config(home, home_given=True, flags=flags, environ={}, cwd=folder)
        daemons.append(Daemon(home, config))
    first, second = daemons
    async with first.running(), second.running():
        yield Kitchen(first, second)


async def test_a_provider_with_a_model_serves_other_names_and_units(
    tmp_path: Path,
) -> None:
    with scripted_model(says(PROVIDER_ANSWER)) as model:
        async with kitchen(tmp_path, caller=None, provider=model) as house:
            result = await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert result.output == {"celsius": 200.0, "litres": 3.0}
            assert result.source == "negotiated"
            # The caller has no model, so it paid nothing.
            assert result.llm_calls == 0
            again = await house.ask(TASK, {"oven": "left", "minutes": 10})
            assert again.output == {"celsius": 200.0, "litres": 6.0}
            assert again.source == "agreement"
            [negotiation] = house.provider.store.negotiations()
            assert negotiation.model_calls == 1
            [exchange] = negotiation.exchanges
            assert exchange["step"] == "offer"
            assert exchange["outcome"] == "ok"
            assert "kitchen.read_oven" in str(exchange["messages"])
        assert len(model.asked) == 1


async def test_a_caller_with_a_model_puts_the_mapping_into_its_own_half(
    tmp_path: Path,
) -> None:
    answer = reply_answer(
        [link("request:/seconds", "scale", "60", "0", of=["arguments:/minutes"])],
        [
            link(
                "result:/celsius", "scale", "5/9", "-160/9", of=["response:/fahrenheit"]
            ),
            link("result:/litres", "scale", "1/1000", "0", of=["response:/volume_ml"]),
        ],
    )
    # By name, so that the provider's rules know which capability is meant.
    need = Need("read_oven in Celsius", TASK.input_schema, TASK.output_schema)
    with scripted_model(says(answer)) as model:
        async with kitchen(tmp_path, caller=model, provider=None) as house:
            result = await house.ask(need, {"oven": "left", "minutes": 5})
            assert result.output == {"celsius": 200.0, "litres": 3.0}
            assert result.llm_calls == 1
        assert len(model.asked) == 1


async def test_a_model_that_is_not_there_or_talks_nonsense_ends_in_a_clear_failure(
    tmp_path: Path,
) -> None:
    nonsense = says("I would rather talk about the weather.")
    with scripted_model(*[nonsense] * 12) as model:
        async with kitchen(tmp_path, caller=None, provider=model) as house:
            with pytest.raises(CallError) as caught:
                await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert caught.value.kind is ErrorKind.NEGOTIATION_REJECTED
            assert house.provider.store.all_agreements() == []
        assert 0 < len(model.asked) <= 8


async def test_an_obedient_model_never_reaches_what_is_not_exposed(
    tmp_path: Path,
) -> None:
    evil = offer_answer(
        call("kitchen.purge", link("kitchen.purge:/sure", of=["request:/oven"])),
        result=[],
    )
    with scripted_model(*[says(evil)] * 12) as model:
        async with kitchen(tmp_path, caller=None, provider=model) as house:
            with pytest.raises(CallError):
                await house.ask(TASK, {"oven": "left", "minutes": 5})
            assert house.provider.store.all_agreements() == []
        # Later questions quote the answer back; the first shows what is exposed.
        first = str(model.asked[0])
        assert "kitchen.read_oven" in first
        assert "purge" not in first


async def test_what_a_peer_makes_us_ask_is_paid_from_its_budget(tmp_path: Path) -> None:
    with scripted_model(says(PROVIDER_ANSWER)) as model:
        async with kitchen(tmp_path, caller=None, provider=model) as house:
            await house.ask(TASK, {"oven": "left", "minutes": 5})
            [spent] = house.provider.store.spends(since="2000-01-01")
            assert spent.account == "unlisted"
            assert spent.calls == 1
