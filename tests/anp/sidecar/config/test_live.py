"""A reload puts some settings into effect; others wait for a restart."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from anp.sidecar.config.entries import PeerEntry
from anp.sidecar.config.live import LIVE, changes
from anp.sidecar.config.settings import Config


def names_of(config: Config) -> set[str]:
    """Return every setting by its dotted name."""
    found = set()
    for section in fields(config):
        value = getattr(config, section.name)
        if is_dataclass(value):
            found |= {f"{section.name}.{key.name}" for key in fields(value)}
        else:
            found.add(section.name)
    return found


def changed(**sections: Any) -> Config:
    """Return the defaults with other sections."""
    return replace(Config(), **sections)


def test_every_live_setting_exists() -> None:
    assert names_of(Config()) >= LIVE


def test_nothing_changed_means_nothing_to_say() -> None:
    found = changes(Config(), Config())
    assert (found.applied, found.restart) == ((), ())
    assert found.config == Config()


def test_a_live_setting_counts_at_once() -> None:
    new = changed(log=replace(Config().log, level="debug"))
    found = changes(Config(), new)
    assert found.applied == ("log.level",)
    assert found.config == new


def test_any_other_setting_stays_as_it_was_and_is_named() -> None:
    new = changed(
        limits=replace(Config().limits, max_message=70_000),
        policy=replace(Config().policy, peers="listed", share_agreements=True),
    )
    found = changes(Config(), new)
    assert found.applied == ("policy.peers",)
    assert found.restart == ("policy.share_agreements", "limits.max_message")
    assert found.config.limits == Config().limits
    assert found.config.policy.peers == "listed"
    assert not found.config.policy.share_agreements


def test_peers_are_taken_as_a_whole() -> None:
    peer = PeerEntry(name="shop", did="did:web:shop.example", policy="block")
    found = changes(Config(), changed(peer=(peer,)))
    assert found.applied == ("peer",)
    assert found.config.peer == (peer,)


@pytest.mark.parametrize("name", sorted(names_of(Config()) - LIVE))
def test_no_setting_is_silently_ignored(name: str) -> None:
    """Each changed setting is either applied or said to need a restart."""
    section, _, key = name.partition(".")
    old = getattr(Config(), section)
    # A value no setting has by default; types do not matter to the comparison.
    new = object.__new__(type(old))
    for field in fields(old):
        value = "other" if field.name == key else getattr(old, field.name)
        object.__setattr__(new, field.name, value)
    found = changes(Config(), changed(**{section: new}))
    assert found.restart == (name,)
    assert found.applied == ()
