"""`[negotiation] capabilities`: what the owner lets peers use."""

from __future__ import annotations

from pathlib import Path

import pytest

from anp.errors import ConfigError
from anp.sidecar.config.load import load_config
from anp.sidecar.config.schema import default_config_text
from anp.sidecar.home.home import Home
from anp.wire.meta_protocol import CAPABILITIES
from tests.clauses import clause


def loaded(folder: Path, text: str) -> tuple[str, ...]:
    """Return the capabilities of a home whose file is `text`."""
    (folder / "anpd.toml").write_text(text, encoding="utf-8")
    config = load_config(Home(folder), home_given=True, environ={})
    return config.negotiation.capabilities


@clause("ANP-77", "ANP-79")
@pytest.mark.parametrize("text", ["", "[negotiation]\n", default_config_text()])
def test_by_default_all_capabilities_are_offered(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text) == CAPABILITIES


@clause("ANP-77")
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("[]", ()),
        ('["fixErrorNegotiation"]', ("fixErrorNegotiation",)),
        (
            '["fixErrorNegotiation", "verificationProtocol", "fixErrorNegotiation"]',
            ("verificationProtocol", "fixErrorNegotiation"),
        ),
    ],
)
def test_an_owner_offers_what_stands_in_the_list(
    tmp_path: Path, value: str, read: tuple[str, ...]
) -> None:
    assert loaded(tmp_path, f"[negotiation]\ncapabilities = {value}\n") == read


@clause("ANP-79")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('["telepathy"]', "or 'fixErrorNegotiation', got 'telepathy'"),
        ('["FixErrorNegotiation"]', "got 'FixErrorNegotiation'"),
        ("[7]", "got 7"),
        ('"fixErrorNegotiation"', "should be an array"),
        ("true", "should be an array"),
    ],
)
def test_an_unknown_name_of_our_own_is_a_mistake_of_one_line(
    tmp_path: Path, value: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"[negotiation]\nmax_proposals = 3\ncapabilities = {value}\n")
    line = str(caught.value)
    assert line.startswith("config: negotiation.capabilities")
    assert words in line
    assert line.endswith("anpd.toml, line 3)")
    assert "\n" not in line
