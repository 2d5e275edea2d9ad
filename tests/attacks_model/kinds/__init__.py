"""The attacks, a module for each kind of them; `answers` are answers that many use."""

from __future__ import annotations

from typing import Final

from tests.attacks_model.attack import Attack
from tests.attacks_model.kinds import (
    approval,
    code,
    cost,
    document,
    error_text,
    exposure,
    hint,
)

__all__ = ["ATTACKS"]

ATTACKS: Final[tuple[Attack, ...]] = (
    *hint.ATTACKS,
    *approval.ATTACKS,
    *exposure.ATTACKS,
    *cost.ATTACKS,
    *code.ATTACKS,
    *document.ATTACKS,
    *error_text.ATTACKS,
)
"""All attacks, by their kinds."""
