"""Finds the capability that a message asks for: by name, or the only one that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anp.interaction.elements import Part, PartKind
from anp.protocols.a2a.objects import A2aMessage
from anp.protocols.a2a.words import A2aError, A2aFault
from anp.sidecar.a2a.callers import A2aCaller
from anp.sidecar.a2a.desk import Choice
from negotiation.need import Capability

__all__ = ["SkillChooser"]

MAX_NAMED = 1000
"Most characters of names in an error."


class SkillChooser:
    """Chooses among the capabilities that are exposed to a caller."""

    def __init__(self, offered: Callable[[A2aCaller], Sequence[Capability]]) -> None:
        self._offered = offered

    def __call__(self, caller: A2aCaller, message: A2aMessage) -> Choice:
        """Return what a message asks for.

        Raises:
            A2aError: It says nothing that could be found.
        """
        offered = {one.name: one for one in self._offered(caller)}
        for part in message.parts:
            if part.kind is PartKind.JSON and _names_skill(part.content):
                return _named(offered, part.content)
        if len(offered) == 1:
            return Choice(next(iter(offered)), message.parts)
        names = ", ".join(sorted(offered))[:MAX_NAMED]
        raise A2aError(
            A2aFault.PARAMS,
            "message.parts: name a skill in a data part "
            f'{{"skill", "arguments"}}; there are: {names or "none"}',
        )


def _names_skill(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("skill"), str)


def _named(offered: dict[str, Capability], content: Any) -> Choice:
    name, arguments = content["skill"], content.get("arguments", {})
    if name not in offered:
        names = ", ".join(sorted(offered))[:MAX_NAMED]
        raise A2aError(
            A2aFault.PARAMS, f"there is no such skill; there are: {names or 'none'}"
        )
    if not isinstance(arguments, dict):
        raise A2aError(A2aFault.PARAMS, "arguments: must be an object")
    return Choice(name, (Part.value(arguments),))
