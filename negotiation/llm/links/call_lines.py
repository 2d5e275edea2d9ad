"""Writes the capability calls of a provider half, and what is made of their outputs.

A generator yields its calls itself, so loops and choices are lines of
`handle_request`. All of them together make at most `MAX_MADE` calls for one request:
who would need more gets an error in the document's own way before anything is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from negotiation.errors import NO_VALUE, NOT_RUN
from negotiation.llm.links.plans import (
    Meaning,
    Otherwise,
    PlannedCall,
    PlannedJoin,
    ProviderPlan,
)
from negotiation.llm.links.source import Source
from negotiation.llm.links.spots import ITEMS, Spot
from negotiation.rules.judge_source import lacking_lines, unpromised
from negotiation.rules.literals import indented, literal, names_literal
from negotiation.trial.module_shapes import (
    FailingValue,
    ItemCalls,
    KeyJoin,
    ModuleShapes,
)

UNUSABLE: Final = "(ArithmeticError, LookupError, TypeError, ValueError)"
"Exceptions of a conversion that cannot read a value."

NOT_FOUND: Final = ("404", "410")
"Codes of a capability that has none of what it is asked for."


class PlanLines:
    """The lines from the values of a request to `result`.

    Args:
        where: Name of the place of the result, for errors.
    """

    def __init__(self, source: Source, where: str) -> None:
        self._source = source
        self._where = where
        self._count = 0
        self._made: list[tuple[PlannedCall, int]] = []

    def lines(self, plan: ProviderPlan) -> list[str]:
        """Return the lines of a plan with all that stand in for it."""
        counted = ["made = 0"] if _counts(plan) else []
        refused = []
        if plan.taken is not None:
            told = 'unplaced + ": the capability takes no such value"'
            refused = [
                f'unplaced = anp_unplaced(values, {literal(plan.taken)}, "")',
                "if unplaced:",
                f'    raise CapabilityError("400", {told})',
            ]
        return [*counted, *refused, *self._plan(plan, {"request": "values"})]

    def _plan(self, plan: ProviderPlan, roots: Mapping[str, str]) -> list[str]:
        known = dict(roots)
        lines: list[str] = []
        for number, one in enumerate(plan.calls):
            none = ""
            if earlier := [at for made, at in self._made if made == one]:
                # It was made before it was known that another one has none.
                _keep(one, earlier[0], known)
                continue
            otherwise = plan.otherwise
            if otherwise is not None and otherwise.fallback.first == one.capability:
                none = f"none_{self._count + 1}"
            lines += self._call(one, known, otherwise if none else None)
            if otherwise is None or not none:
                continue
            rest = self._rest(
                plan, known, plan.calls[number + 1 :], none, one.capability
            )
            other = self._plan(otherwise.plan, roots)
            return [
                *lines,
                f"if not {none}:",
                *indented(rest),
                f"if {none}:",
                *indented(other),
            ]
        return [*lines, *self._result(plan, known)]

    def _rest(
        self,
        plan: ProviderPlan,
        roots: Mapping[str, str],
        calls: Sequence[PlannedCall],
        none: str,
        skipped: str,
    ) -> list[str]:
        """Return the lines after the call `skipped`, if it had what was asked for."""
        known = dict(roots)
        before = [made for made in self._made if made[0].capability != skipped]
        lines = [line for one in calls for line in self._call(one, known, None)]
        # What was made here was not made where the call had none.
        self._made = before
        lines += self._result(plan, known, judge=False)
        assert plan.otherwise is not None
        if plan.judged is None or not plan.otherwise.harmless:
            return [*lines, *unpromised(plan.judged, self._where)]
        *judging, condition, raising = unpromised(plan.judged, self._where)
        return [
            *lines,
            *judging,
            f"{none} = problem.endswith({NO_VALUE!r})",
            f"{condition[:-1]} and not {none}:",
            raising,
        ]

    def _result(
        self, plan: ProviderPlan, roots: Mapping[str, str], *, judge: bool = True
    ) -> list[str]:
        known = dict(roots)
        lines = []
        for one in plan.joins:
            lines += self._join(one, known)
        lines.append(f"result = {self._source.builder(plan.result, known)}")
        return [*lines, *unpromised(plan.judged, self._where)] if judge else lines

    def _call(
        self, one: PlannedCall, roots: dict[str, str], otherwise: Otherwise | None
    ) -> list[str]:
        """Return the lines of one call, whose output becomes known in `roots`."""
        self._count += 1
        number, is_first = self._count, self._count == 1
        self._made.append((one, number))
        if one.each is not None:
            lines = self._each(one, one.each, number, roots)
        else:
            lines = self._given(one, roots, is_first=is_first)
            pages = one.pages is not None
            plain = otherwise is None and not pages and not one.again
            given = "given"
            if plain and not is_first and one.judged is None:
                given = lines.pop().removeprefix("given = ")
            asked = self._asked(one, number, given)
            if one.pages is not None:
                asked = _paged(one, number, asked)
            if otherwise is not None:
                asked = _with_none(otherwise, number, asked)
            lines += asked
        for meaning in one.fails:
            lines += _failing(meaning, number, otherwise)
        _keep(one, number, roots)
        return lines

    def _given(
        self,
        one: PlannedCall,
        roots: Mapping[str, str],
        *,
        is_first: bool,
        items: Mapping[tuple[str, ...], str] | None = None,
    ) -> list[str]:
        """Return the lines that make the arguments."""
        lines = [f"given = {self._source.builder(one.arguments, roots, items)}"]
        if is_first:
            # The value comes from the peer, so the peer is told about the fault.
            lines = [
                "try:",
                *indented(lines),
                f"except {UNUSABLE} as problem:",
                '    raise CapabilityError("400", "the request cannot be used: " + '
                "str(problem)[:200])",
            ]
        if one.judged is not None:
            lines += lacking_lines(one.judged, one.capability, is_first=is_first)
        return lines

    def _asked(self, one: PlannedCall, number: int, given: str) -> list[str]:
        call = f"output_{number} = yield call({one.capability!r}, {given})"
        if not one.again:
            return [call]
        return [
            "try:",
            f"    {call}",
            "except CapabilityError as problem:",
            "    if not anp_passing(problem):",
            "        raise",
            "    made = anp_room(made, 1)",
            f"    {call}",
        ]

    def _each(
        self, one: PlannedCall, items: Spot, number: int, roots: Mapping[str, str]
    ) -> list[str]:
        item, every = f"item_{number}", f"items_{number}"
        names = names_literal(items.path[:-1])
        within = {(items.root, *items.path): item}
        inner = self._given(one, roots, is_first=number == 1, items=within)
        return [
            f"{every} = anp_expect(anp_given({roots[items.root]}, {names}, []), list)",
            f"made = anp_room(made, len({every}))",
            f"pairs_{number} = []",
            f"for {item} in {every}:",
            *indented(inner),
            "    try:",
            *indented(indented(self._asked(one, number, "given"))),
            "    except CapabilityError as problem:",
            f"        told, at = problem.message, len(pairs_{number}) + 1",
            # These words are for the requester's code, which looks at their beginning.
            f"        if not told.startswith({NOT_RUN!r}):",
            '            told = "item " + str(at) + ": " + told',
            "        raise CapabilityError(problem.code, told)",
            f'    pairs_{number}.append({{"left": {item}, "right": output_{number}}})',
        ]

    def _join(self, one: PlannedJoin, roots: dict[str, str]) -> list[str]:
        sides = []
        for key in (one.left, one.right):
            at = key.path.index(ITEMS)
            items, rest = (
                names_literal(key.path[:at]),
                names_literal(key.path[at + 1 :]),
            )
            sides.append(f"{roots[key.root]}, {items}, {rest}")
        self._count += 1
        name = f"joined_{self._count}"
        roots[one.name] = name
        return [f"{name} = anp_joined({', '.join(sides)})"]


def _keep(one: PlannedCall, number: int, roots: dict[str, str]) -> None:
    """Make the output of a call known."""
    # A capability that is called again moves last: its latest output is used.
    roots.pop(one.capability, None)
    if one.each is not None:
        roots[pairs_name(one.capability)] = f"pairs_{number}"
    else:
        roots[one.capability] = f"output_{number}"


def pairs_name(capability: str) -> str:
    """Return the name of the root of items with the answers to them."""
    return f"each {capability}"


def _counts(plan: ProviderPlan) -> bool:
    """Return whether the number of calls depends on data."""
    if any(one.each or one.pages or one.again for one in plan.calls):
        return True
    return plan.otherwise is not None and _counts(plan.otherwise.plan)


def _paged(one: PlannedCall, number: int, asked: Sequence[str]) -> list[str]:
    pages = one.pages
    assert pages is not None
    output, items = f"output_{number}", f"list_{number}"
    argument, names = literal(pages.argument), names_literal(pages.items)
    if pages.following:
        following = names_literal(pages.following)
        more = [
            f"following = anp_given({output}, {following}, None)",
            'if following is None or following == "":',
            "    break",
            f"if following == given.get({argument}):",
            '    raise CapabilityError("502", "the same page came again")',
            f"given = {{**given, {argument}: following}}",
        ]
    else:
        step = "len(page)" if pages.offset else "1"
        more = [
            "if not page:",
            "    break",
            f"given = {{**given, {argument}: given[{argument}] + {step}}}",
        ]
    return [
        f"{items} = []",
        "while True:",
        "    made = anp_room(made, 1)",
        *indented(asked),
        f"    page = anp_expect(anp_given({output}, {names}, []), list)",
        f"    {items} = anp_full({items} + page)",
        *indented(more),
        f"{output} = anp_put({output}, {names}, {items})",
    ]


def _with_none(otherwise: Otherwise, number: int, asked: Sequence[str]) -> list[str]:
    fallback, none = otherwise.fallback, f"none_{number}"
    test = "False"
    if fallback.place is not None:
        place, value = names_literal(fallback.place), literal(fallback.value)
        test = f"anp_is(output_{number}, {place}, {value})"
    return [
        "try:",
        *indented(asked),
        f"    {none} = {test}",
        "except CapabilityError as problem:",
        f"    if str(problem.code) not in {names_literal(NOT_FOUND)}:",
        "        raise",
        f"    {none} = True",
    ]


def _failing(meaning: Meaning, number: int, otherwise: Otherwise | None) -> list[str]:
    names = names_literal(meaning.spot.path)
    test = f"anp_is(output_{number}, {names}, {literal(meaning.value)})"
    if otherwise is not None:
        test = f"not none_{number} and {test}"
    told = f"{meaning.spot.pointer[1:]} is {literal(meaning.value)}"
    return [f"if {test}:", f"    raise CapabilityError({meaning.code!r}, {told!r})"]


def shapes_of(plan: ProviderPlan) -> ModuleShapes:
    """Return the shapes of a plan, for the check of its half."""
    found = ModuleShapes(
        each=tuple(
            ItemCalls(one.capability, one.each.root, one.each.path[:-1])
            for one in plan.calls
            if one.each is not None
        ),
        pages=tuple(one.pages for one in plan.calls if one.pages is not None),
        joins=tuple(
            KeyJoin((one.left.root, one.left.path), (one.right.root, one.right.path))
            for one in plan.joins
        ),
        again=tuple(one.capability for one in plan.calls if one.again),
        fails=tuple(
            FailingValue(one.capability, each.spot.path, each.value, each.code)
            for one in plan.calls
            for each in one.fails
        ),
    )
    if plan.otherwise is None:
        return found
    other = shapes_of(plan.otherwise.plan)
    return ModuleShapes(
        each=tuple(dict.fromkeys((*found.each, *other.each))),
        pages=tuple(dict.fromkeys((*found.pages, *other.pages))),
        joins=tuple(dict.fromkeys((*found.joins, *other.joins))),
        fallbacks=(plan.otherwise.fallback, *other.fallbacks),
        again=tuple(dict.fromkeys((*found.again, *other.again))),
        fails=(*found.fails, *other.fails),
    )
