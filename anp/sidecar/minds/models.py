"""Makes the model's endpoint and accounts from the owner's `[llm]` and `[budget]`.

Nothing here turns a model on but `llm.model`: a key in the environment does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from anp.errors import ConfigError
from anp.sidecar.config.settings import BudgetConfig, Config, LlmConfig
from anp.sidecar.minds.accounts import Spending
from anp.sidecar.telemetry.observer import Observer
from cache.store import Store
from negotiation.llm.asking.budget import BudgetLimits

if TYPE_CHECKING:
    from negotiation.llm.asking.endpoint import (
        EndpointSettings,
        ModelEndpoint,
        Validate,
    )

OPENAI_KEY = "OPENAI_API_KEY"
"Variable of the key for OpenAI's own address; never sent elsewhere unasked."

MAX_KEY_FILE = 8 * 1024
"Largest file of a key, in bytes."


def make_spending(
    store: Store, config: Config, observer: Observer | None = None
) -> Spending:
    """Return the accounts that the owner's model calls are paid from."""
    prices = config.llm.price_input or 0.0, config.llm.price_output or 0.0
    return Spending(
        store,
        budget_limits(config.budget),
        model=config.llm.model or "",
        prices=prices,
        observer=observer,
    )


def budget_limits(config: BudgetConfig) -> BudgetLimits:
    """Return the owner's `[budget]` for the core."""
    return BudgetLimits(**asdict(config))


def make_endpoint(
    config: LlmConfig, validate: Validate, *, environ: Mapping[str, str] = os.environ
) -> ModelEndpoint | None:
    """Return the endpoint of the owner's model, or None while `llm.model` is not set.

    Raises:
        ConfigError: A key was named and is not there, or is none.
    """
    settings = endpoint_settings(config, environ=environ)
    if settings is None:
        return None
    # Without a model nobody has to wait for its parts at start.
    from negotiation.llm.asking.endpoint import ModelEndpoint

    return ModelEndpoint(settings, validate)


def endpoint_settings(
    config: LlmConfig, *, environ: Mapping[str, str] = os.environ
) -> EndpointSettings | None:
    """Return the settings for asking the owner's model; see `make_endpoint`."""
    if config.model is None:
        return None
    from negotiation.llm.asking.answers import Form
    from negotiation.llm.asking.attempts import AskingLimits
    from negotiation.llm.asking.endpoint import EndpointSettings

    return EndpointSettings(
        model=config.model,
        base_url=model_place(config),
        api_key=read_key(config, environ=environ),
        headers=dict(config.headers),
        timeout=config.timeout,
        tokens_name=config.max_tokens_name,
        temperature=config.temperature,
        seed=config.seed,
        reasoning_effort=config.reasoning_effort,
        form=Form(config.answer_form),
        limits=AskingLimits(thinking_tokens=config.thinking_tokens),
    )


def model_place(config: LlmConfig) -> str:
    """Return the address that prompts go to; OpenAI's when none is set."""
    from negotiation.llm.asking.endpoint import OPENAI_URL

    return config.base_url.rstrip("/") if config.base_url else OPENAI_URL


def model_summary(
    config: LlmConfig, *, environ: Mapping[str, str] = os.environ
) -> tuple[bool, str]:
    """Return whether the model's settings are sound, and where prompts go, in words."""
    if config.model is None:
        return True, "none, llm.model is not set: protocols are agreed by rules alone"
    place = model_place(config)
    text = f"{config.model} at {place}"
    if config.base_url is None:
        text += ", OpenAI's own, since llm.base_url is not set"
        if environ.get("OPENAI_BASE_URL"):
            text += " (the variable OPENAI_BASE_URL is not read)"
    try:
        key = read_key(config, environ=environ)
    except ConfigError as exc:
        return False, f"{text}: {exc}"
    return True, f"{text}, {'with a key' if key else 'without a key'}"


def read_key(
    config: LlmConfig, *, environ: Mapping[str, str] = os.environ
) -> str | None:
    """Return the key to send, or None to send none.

    `OPENAI_API_KEY` goes to OpenAI's own address only, unless the owner names it: the
    key of one provider is nothing for another one's server.

    Raises:
        ConfigError: It is missing or cannot be a key; never with the key in it.
    """
    if config.api_key_file is not None:
        return _as_key(_read_key_file(config.api_key_file), str(config.api_key_file))
    from negotiation.llm.asking.endpoint import OPENAI_URL

    official = model_place(config) == OPENAI_URL
    name = config.api_key_env or (OPENAI_KEY if official else None)
    if name is None:
        return None
    found = environ.get(name, "").strip()
    if not found:
        raise ConfigError(
            f"llm: no key for {model_place(config)}: set the variable {name}, or "
            "llm.api_key_file"
        )
    return _as_key(found, f"the variable {name}")


def _read_key_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_FILE + 1)
        if len(data) > MAX_KEY_FILE:
            raise ConfigError(f"llm.api_key_file: over {MAX_KEY_FILE} bytes ({path})")
        return data.decode("ascii").strip()
    except OSError as exc:
        raise ConfigError(
            f"llm.api_key_file: cannot read {path}: {exc.strerror}"
        ) from exc
    except UnicodeDecodeError:
        raise ConfigError(f"llm.api_key_file: {path} holds no key") from None


def _as_key(text: str, where: str) -> str:
    from negotiation.llm.asking.endpoint import KEY

    if KEY.fullmatch(text) is None:
        raise ConfigError(
            f"llm: what is in {where} is no key: it has to be one word of ASCII"
        )
    return text
