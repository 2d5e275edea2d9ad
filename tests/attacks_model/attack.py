"""An attack, how it is carried out between two daemons, and the verdict on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.attacks_model.orders import Order


class Broken(Exception):
    """The attack had success; the text says with what."""


class Victim(StrEnum):
    """The side whose model obeys."""

    PROVIDER = "provider"
    CALLER = "caller"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack."""

    kind: str
    "Kind of the issue: hint, approval, exposure, cost, code, document, error text."

    name: str
    "The attack in a few words."

    victim: Victim = Victim.PROVIDER

    orders: tuple[Order, ...] = ()
    "The commands that the attacker's texts hold."

    disguise: str = "plain"
    "Key of `DISGUISES` in which they are hidden."

    document: Callable[[Any], str] | None = None
    "Makes the attacker's protocol text from the scene; None takes a usual one."

    requirement: str = "Cost of a ware"
    "The words of the need, before the orders."

    gains: str = "cost"
    "Name of the result's field: `cost`, a number, or `done`, a truth value."

    arguments: Mapping[str, Any] = field(default_factory=lambda: {"ware": "A"})

    half: str = ""
    "Source of the attacker's half; a usual one if empty."

    act: Callable[[Any], Awaitable[None]] | None = None
    "Carries the attack out in a scene; None makes one call, and one more after it."

    approve: str = "side-effects"
    "`negotiation.approve` of the victim."

    settings: Mapping[str, Any] = field(default_factory=dict)
    "Further settings of the victim; such an attack has daemons of its own."

    listed: bool = True
    "False if the attacker is unknown to the victim's owner."

    counters: int = 1
    "Counter-proposals of an attacker that provides."

    cases: bool = False
    "True if the attacker negotiates test cases before the first call."

    effects: int = 0
    "Calls with side effects that the victim's owner approved, or really wanted."

    reaches: bool = True
    "False if no text of the attacker's reaches the model, as the attack tries."


@dataclass
class Outcome:
    """The traces of one attack."""

    attack: Attack
    free: bool
    ran: list[str] = field(default_factory=list)
    "Functions of the victim, or of the peer that it paid, in order."

    asked: int = 0
    "Questions to the victim's model."

    obeyed: int = 0
    "Answers of the model that followed an order."

    knew: set[str] = field(default_factory=set)
    "Steps whose prompt held a private text."

    frames: int = 0
    "Plaintexts that the victim sent."

    bytes: int = 0

    ended: list[str] = field(default_factory=list)
    "How each call of the attack ended."

    broken: list[str] = field(default_factory=list)
    "The successes of the attack; none is wanted."
