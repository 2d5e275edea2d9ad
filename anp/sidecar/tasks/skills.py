"""Finds the skill that the messages of a task ask for.

In this order: an intent (INT-7), a data part that names a skill, the skill that the
owner marked as conversational, the one that the caller's token names, the only one that
takes a text and has no effects, the owner's model, and the words themselves. What has
effects runs only when it is named.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anp.interaction.elements import Message, Part, PartKind, Task
from anp.protocols.a2a.intents import INTENTS, Intent, read_intents, slot_values
from anp.sidecar.minds.minds import Think
from anp.sidecar.offer.gate import Gate
from anp.sidecar.offer.task_arguments import contents_of
from anp.sidecar.offer.ways import WayIn
from anp.sidecar.tasks.choice import Choice, Chosen, NoSkill, Reach, Wanted, read_reach
from negotiation.errors import MindError
from negotiation.mind import Offer
from negotiation.natural import arguments_for, read_natural_request, text_argument
from negotiation.need import Capability
from negotiation.rules.choice import NoChoice, choose_for_prose

logger = logging.getLogger(__name__)

MAX_NAMED = 1000
"Most characters of names in an answer."


class SkillChooser:
    """Chooses among the capabilities that are exposed to a requester."""

    def __init__(self, gate: Gate, think: Think) -> None:
        self._gate = gate
        self._think = think

    def offered(self, peer: str, reach: Reach) -> tuple[Capability, ...]:
        """Return the capabilities among which tasks of a requester choose."""
        found = self._gate.offered(WayIn.TASK, peer)
        return tuple(one for one in found if reach.has(one.name))

    def named(
        self, peer: str, messages: Sequence[Message], reach: Reach
    ) -> Chosen | None:
        """Return what messages name, None when they are words without a name.

        Raises:
            A2aError: An intent breaks the rules of the extension.
        """
        offered = self.offered(peer, reach)
        intents = [read_intents(message.metadata) for message in messages]
        if any(intents):
            return self._by_intent(offered, messages, intents, reach)
        for message in reversed(messages):
            for part in message.parts:
                if part.kind is PartKind.JSON and _names_skill(part.content):
                    return _by_name(offered, part.content)
        # Data for the only one there is names it no more than words do.
        only = offered[0] if len(offered) == 1 else None
        may_run = only is not None and (only.read_only or reach.names_one)
        if may_run and any(p.kind is PartKind.JSON for p in contents_of(messages)):
            return Choice(offered[0].name, contents_of(messages))
        return None

    async def choose(self, task: Task, messages: Sequence[Message]) -> Chosen:
        """See `Chooser`; what was said besides goes where the skill has a place."""
        peer, reach = task.requester, read_reach(task.extra)
        found = self.named(peer, messages, reach)
        if found is None:
            found = await self._by_words(peer, messages, reach)
        if isinstance(found, Choice):
            more = [p for p in contents_of(messages) if p.kind is not PartKind.JSON]
            others = [part for part in more if part not in found.parts]
            return replace(found, parts=(*found.parts, *others))
        return found

    def _by_intent(
        self,
        offered: Sequence[Capability],
        messages: Sequence[Message],
        intents: Sequence[tuple[Intent, ...]],
        reach: Reach,
    ) -> Chosen | None:
        """Return the first intent that is known and complete (INT-Q4)."""
        incomplete: Wanted | None = None
        latest = next(found for found in reversed(intents) if found)
        for intent in latest:
            skill = find_skill(offered, intent.skill)
            if skill is None:
                continue
            slots = dict(_earlier(intents, intent.skill)) | _grouped(intent)
            whole = Intent(
                intent.skill, tuple((k, v) for k, found in slots.items() for v in found)
            )
            values = slot_values(whole, skill.input_schema)
            if values.unknown:
                logger.warning(
                    "slots dropped skill=%s names=%s",
                    skill.name,
                    ", ".join(values.unknown)[:200],
                )
            lacking = (*values.missing, *values.wrong)
            if not lacking:
                return Choice(skill.name, (Part.value(dict(values.arguments)),))
            if incomplete is None:
                incomplete = Wanted(_slots_wanted(skill, values.missing, values.wrong))
        if incomplete is not None:
            return incomplete
        if any(isinstance(part.content, str) for part in contents_of(messages)):
            # An unknown intent is an ordinary message for an agent that takes words.
            name = self._conversational(messages, reach)
            if name is not None:
                return name
        return NoSkill(f"there is no such skill; {_names(offered)}")

    def _conversational(
        self, messages: Sequence[Message], reach: Reach
    ) -> Choice | None:
        skill = self._gate.exposure.conversational(messages[0].sender)
        if skill is None or text_argument(skill) is None or not reach.has(skill.name):
            return None
        # Data and files that come with the words are the agent's, too.
        return Choice(skill.name, contents_of(messages))

    async def _by_words(
        self, peer: str, messages: Sequence[Message], reach: Reach
    ) -> Chosen:
        offered = self.offered(peer, reach)
        text = "\n".join(
            str(part.content)
            for part in contents_of(messages)
            if part.kind is PartKind.TEXT
        )
        if text:
            found = self._conversational(messages, reach)
            found = found or _only_one(offered, reach, messages)
            found = found or _only_text(offered, text)
            found = found or await self._by_model(peer, offered, text)
            found = found or _by_rules(offered, text)
            if found is not None:
                return found
        return Wanted(_data_wanted(offered))

    async def _by_model(
        self, peer: str, offered: Sequence[Capability], text: str
    ) -> Choice | None:
        harmless = tuple(one for one in offered if one.read_only)
        model = self._think(peer, ours=False).model
        if model is None or not harmless:
            return None
        try:
            spoken = await model.serve_text(text, Offer(harmless))
        except MindError as exc:
            logger.warning("model gave no answer reason=%r", str(exc)[:200])
            return None
        if spoken.capability not in {one.name for one in harmless}:
            return None
        return Choice(spoken.capability, (Part.value(dict(spoken.arguments)),))


def _names_skill(content: Any) -> bool:
    return isinstance(content, Mapping) and isinstance(content.get("skill"), str)


def _by_name(offered: Sequence[Capability], content: Any) -> Chosen:
    skill = find_skill(offered, content["skill"])
    if skill is None:
        return NoSkill(f"there is no such skill; {_names(offered)}")
    arguments = content.get("arguments", {})
    if not isinstance(arguments, dict):
        return NoSkill("the arguments of a skill are a JSON object")
    return Choice(skill.name, (Part.value(arguments),))


def find_skill(offered: Sequence[Capability], name: str) -> Capability | None:
    """Return a skill by its full name, or by a short one that only one has."""
    by_name = {one.name: one for one in offered}
    if name in by_name:
        return by_name[name]
    short = [one for one in offered if one.name.partition(".")[2] == name]
    return short[0] if len(short) == 1 else None


def _grouped(intent: Intent) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for name, text in intent.slots:
        grouped.setdefault(name, []).append(text)
    return grouped


def _earlier(intents: Sequence[tuple[Intent, ...]], skill: str) -> dict[str, list[str]]:
    """Return the slots of a skill in all messages, later ones in place of earlier."""
    found: dict[str, list[str]] = {}
    for said in intents:
        for intent in said:
            if intent.skill == skill:
                found |= _grouped(intent)
    return found


def _slots_wanted(
    skill: Capability, missing: Sequence[str], wrong: Sequence[str]
) -> str:
    told = []
    if missing:
        told.append(f"`{skill.name}` needs {', '.join(missing)}")
    if wrong:
        told.append(f"the values of {', '.join(wrong)} do not fit their types")
    return f"{'; '.join(told)}; send them as slots of {INTENTS}"[:MAX_NAMED]


def _only_one(
    offered: Sequence[Capability], reach: Reach, messages: Sequence[Message]
) -> Choice | None:
    """Return the one skill that the caller's token allows by name; so it was named."""
    if not reach.names_one or len(offered) != 1 or text_argument(offered[0]) is None:
        return None
    return Choice(offered[0].name, contents_of(messages))


def _data_wanted(offered: Sequence[Capability]) -> str:
    """Return the words for a requester whose own words choose no skill."""
    if len(offered) == 1:
        (skill,) = offered
        schema = skill.input_schema if isinstance(skill.input_schema, dict) else {}
        names = ", ".join(schema.get("required") or schema.get("properties", ()))
        wanted = f"{{{names}}}"[:MAX_NAMED]
    else:
        wanted = "{…}"
    name = f'"{offered[0].name}"' if len(offered) == 1 else "…"
    data = f'{{"skill": {name}, "arguments": {wanted}}}'
    return f"name a skill in a data part {data}; {_names(offered)}"


def _only_text(offered: Sequence[Capability], text: str) -> Choice | None:
    takers = [
        (one.name, argument)
        for one in offered
        if one.read_only and (argument := text_argument(one)) is not None
    ]
    if len(takers) != 1:
        return None
    name, argument = takers[0]
    return Choice(name, (Part.value({argument: text}),))


def _by_rules(offered: Sequence[Capability], text: str) -> Choice | None:
    harmless = tuple(one for one in offered if one.read_only)
    request = read_natural_request(text)
    chosen = choose_for_prose(request.requirement, harmless)
    if isinstance(chosen, NoChoice):
        return None
    arguments = arguments_for(request, chosen)
    if arguments is None:
        return None
    return Choice(chosen.name, (Part.value(arguments),))


def _names(offered: Sequence[Capability]) -> str:
    names = ", ".join(one.name for one in offered)[:MAX_NAMED]
    return f"there are: {names or 'none'}"
