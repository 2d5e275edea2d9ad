"""From the owner's `[llm]` and `[budget]` to an endpoint: what turns a model on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from anp.errors import ConfigError
from anp.sidecar.config.load import load_config
from anp.sidecar.config.settings import BudgetConfig, Config, LlmConfig
from anp.sidecar.home.home import Home
from anp.sidecar.minds.models import (
    budget_limits,
    endpoint_settings,
    make_endpoint,
    make_spending,
    model_place,
    model_summary,
    read_key,
)
from cache.store import Store
from negotiation.llm.asking.budget import BudgetLimits
from negotiation.llm.asking.endpoint import OPENAI_URL
from negotiation.llm.asking.requests import Usage
from tests.negotiation.llm.script import KEY, validate

LOCAL = "http://127.0.0.1:8080/v1"


def test_a_key_in_the_environment_turns_nothing_on() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": LOCAL, "OPENAI_MODEL": "m"}
    assert make_endpoint(LlmConfig(), validate, environ=environ) is None
    assert make_endpoint(LlmConfig(base_url=LOCAL), validate, environ=environ) is None
    sound, text = model_summary(LlmConfig(), environ=environ)
    assert sound
    assert "llm.model is not set" in text


def test_a_model_alone_is_one_of_openai_and_it_is_said() -> None:
    config = LlmConfig(model="gpt-x")
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": LOCAL}
    found = endpoint_settings(config, environ=environ)
    assert found is not None
    assert (found.base_url, found.api_key) == (OPENAI_URL, KEY)
    sound, text = model_summary(config, environ=environ)
    assert sound
    assert "api.openai.com" in text
    assert "llm.base_url is not set" in text
    assert "OPENAI_BASE_URL is not read" in text
    assert KEY not in text


def test_the_key_of_openai_goes_nowhere_else_unless_the_owner_says_so() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OTHER": "another-key"}
    assert read_key(LlmConfig(model="m", base_url=LOCAL), environ=environ) is None
    named = LlmConfig(model="m", base_url=LOCAL, api_key_env="OPENAI_API_KEY")
    assert read_key(named, environ=environ) == KEY
    other = LlmConfig(model="m", api_key_env="OTHER")
    assert read_key(other, environ=environ) == "another-key"
    slash = LlmConfig(model="m", base_url=f"{OPENAI_URL}/")
    assert model_place(slash) == OPENAI_URL
    assert read_key(slash, environ=environ) == KEY


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LlmConfig(model="m"), "set the variable OPENAI_API_KEY, or llm.api_key_file"),
        (LlmConfig(model="m", api_key_env="MINE"), "set the variable MINE"),
        (LlmConfig(model="m", api_key_file=Path("/nowhere/key")), "cannot read"),
    ],
)
def test_a_key_that_is_missing_is_said_with_what_to_do(
    config: LlmConfig, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        make_endpoint(config, validate, environ={})
    sound, text = model_summary(config, environ={})
    assert not sound
    assert words in text


def test_a_key_may_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"\n{KEY}\n")
    config = LlmConfig(model="m", api_key_file=file)
    assert read_key(config, environ={"OPENAI_API_KEY": "other"}) == KEY


@pytest.mark.parametrize(
    "content", [b"", b"two words", b"sk-\xc3\xa9", b"sk\nX-Evil: 1", b"x" * 9000]
)
def test_what_cannot_be_a_key_is_refused_without_showing_it(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_key(LlmConfig(model="m", api_key_file=file), environ={})
    assert "\n" not in str(caught.value)
    for word in ("Evil", "two", "xxx"):
        assert word not in str(caught.value)


def test_every_setting_reaches_the_endpoint() -> None:
    config = LlmConfig(
        model="m",
        base_url=LOCAL,
        timeout=7.0,
        answer_form="text",
        max_tokens_name="max_completion_tokens",
        thinking_tokens=9,
        reasoning_effort="low",
        temperature=0.5,
        seed=3,
        headers={"X-Team": "agents"},
    )
    found = endpoint_settings(config, environ={})
    assert found is not None
    assert found.limits.thinking_tokens == 9
    assert (found.form, found.tokens_name) == ("text", "max_completion_tokens")
    assert (found.timeout, found.temperature, found.seed) == (7.0, 0.5, 3)
    assert (found.reasoning_effort, found.headers) == ("low", {"X-Team": "agents"})


def test_the_defaults_of_the_budget_are_the_same_in_both_places() -> None:
    assert asdict(BudgetConfig()) == asdict(BudgetLimits())
    limits = budget_limits(BudgetConfig(day_calls=10, owner_share=0.3))
    assert limits.owner_calls == 3


def test_prices_are_for_a_million_tokens(tmp_path: Path) -> None:
    llm = LlmConfig(model="m", price_input=2.0, price_output=8.0)
    with Store(tmp_path) as store:
        spending = make_spending(store, Config(llm=llm))
        assert spending.cost(Usage(500_000, 250_000)) == 3.0
        assert make_spending(store, Config()).cost(Usage(9, 9)) == 0.0


SECRET = "sk-secret-0123456789"


@pytest.mark.parametrize(
    "text",
    [
        f'base_url = "http://user:{SECRET}@host/v1"',
        f'base_url = "http://host/v1?key={SECRET}"',
        f'headers = {{ "api-key" = "{SECRET}\\n" }}',
        f'headers = {{ "api key" = "{SECRET}" }}',
        f'headers = "{SECRET}"',
        f'headers = {{ Nested = {{ a = "{SECRET}" }} }}',
    ],
)
def test_a_mistake_in_the_settings_is_told_without_their_secrets(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "anpd.toml").write_text(f"[llm]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(Home(tmp_path), home_given=True, environ={})
    assert "llm." in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("answer_form", "xml"),
        ("max_tokens_name", "tokens"),
        ("temperature", 3),
        ("seed", -1),
        ("price_input", -1),
        ("thinking_tokens", -1),
        ("base_url", "ftp://x"),
        ("timeout", 0),
    ],
)
def test_settings_out_of_range_are_refused(
    tmp_path: Path, key: str, value: Any
) -> None:
    with pytest.raises(ConfigError, match=rf"llm\.{key}"):
        load_config(
            Home(tmp_path), home_given=True, flags={f"llm.{key}": value}, environ={}
        )


def test_headers_are_not_in_the_repr_of_the_settings() -> None:
    assert SECRET not in repr(Config(llm=LlmConfig(headers={"X": SECRET})))
