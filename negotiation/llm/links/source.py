"""Writes the conversion of a value by links as the lines of a function.

Foreign names and constants enter only as the `repr` of checked plain values, as in
`halves`. The one exception is a Python expression of a model: it is placed in a
function of its own, and is checked and run in the sandbox only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from negotiation.errors import NO_VALUE
from negotiation.llm.links.conversions import MESSAGES, Conversion, How, gives_nothing
from negotiation.llm.links.functions import IMPORTS, helpers_for
from negotiation.llm.links.spots import ITEMS, Spot
from negotiation.llm.links.trees import Each, Leaf, Made, Node, Tree
from negotiation.rules.judge_source import some_lines
from negotiation.rules.literals import indented, literal, names_literal
from negotiation.schema.plan import KEEP, ByKind, Fields, Items, Scale, Step

LETTERS: Final = ("a", "b", "c")


class Source:
    """The growing text of one half."""

    def __init__(self) -> None:
        self._functions: list[str] = []
        self._count = 0

    def function(self, head: str, lines: Sequence[str]) -> None:
        """Add a function."""
        body = "\n".join(indented(lines))
        self._functions.append(f"def {head}:\n{body}\n")

    def builder(
        self,
        node: Node,
        roots: Mapping[str, str],
        items: Mapping[tuple[str, ...], str] | None = None,
    ) -> str:
        """Add the function that makes a value, and return a call of it.

        Args:
            roots: The variable of each root, by the root's name.
            items: The variable of an item, by root and path of its list's items.
        """
        inside = items or {}
        variables = list(dict.fromkeys([*roots.values(), *inside.values()]))
        known: dict[tuple[str, ...], str] = {
            (root,): name for root, name in roots.items()
        }
        known |= inside
        lines: list[str] = []
        if node.needs and not isinstance(node, Tree):
            given = " and ".join(_given(spot, known) for spot in node.needs)
            lines += [f"if not ({given}):", "    return None"]
        value = self._node(node, known, lines)
        name = self._name("make")
        self.function(f"{name}({', '.join(variables)})", [*lines, f"return {value}"])
        return f"{name}({', '.join(variables)})"

    def calls(self, name: str) -> bool:
        """Return whether a function so far calls one of this name."""
        return any(f"{name}(" in one for one in self._functions)

    def text(self, about: str, *, before: str = "") -> str:
        """Return the whole text.

        Args:
            about: The docstring, in plain words.
            before: Foreign text that precedes ours: a codec.
        """
        own = "\n\n".join(self._functions)
        helpers = helpers_for(own)
        every = "\n\n".join([*helpers, own])
        imports = [
            line for name, line in IMPORTS.items() if re.search(rf"\b{name}\b", every)
        ]
        parts = [f'"""{about}"""', "\n".join(imports), before.strip()]
        head = "\n\n".join(part for part in parts if part)
        return f"{head}\n\n\n{every}"

    def _node(
        self, node: Node, variables: dict[tuple[str, ...], str], lines: list[str]
    ) -> str:
        """Add to `lines` the steps that make a value; return the expression for it."""
        match node:
            case Leaf(conversion):
                return self._value(conversion, variables)
            case Tree(fields):
                name = self._name("object")
                lines.append(f"{name} = {{}}")
                for one in fields:
                    self._field(name, one, variables, lines)
                return name
            case Each():
                return self._each(node, variables, lines)

    def _field(
        self,
        owner: str,
        made: Made,
        variables: dict[tuple[str, ...], str],
        lines: list[str],
    ) -> None:
        inner: list[str] = []
        value = self._node(made.node, variables, inner)
        inner.append(f"{owner}[{made.name!r}] = {value}")
        needs = [_given(spot, variables) for spot in made.node.needs]
        if not needs:
            lines += inner
            return
        lines += [f"if {' and '.join(needs)}:", *indented(inner)]
        if made.default:
            default = literal(made.default[0])
            lines += ["else:", f"    {owner}[{made.name!r}] = {default}"]

    def _each(
        self, node: Each, variables: dict[tuple[str, ...], str], lines: list[str]
    ) -> str:
        every, item = self._name("items"), self._name("item")
        walked = Spot(node.items.root, node.items.path[:-1], True, True)
        inner: list[str] = []
        known = {**variables, (node.items.root, *node.items.path): item}
        value = self._node(node.node, known, inner)
        if node.open and not isinstance(node.node, Tree):
            given = " and ".join(_given(spot, known) for spot in node.node.needs)
            value = f"{value} if {given} else None"
        lines += [
            f"{every} = []",
            f"for {item} in anp_expect({_read(walked, variables)}, list):",
            *indented([*inner, f"{every}.append({value})"]),
        ]
        return every

    def _value(self, made: Conversion, variables: Mapping[tuple[str, ...], str]) -> str:
        read = [_read(source, variables) for source in made.sources]
        values = [literal(value) for value in made.values]
        match made.how:
            case How.COPY:
                return self._copied(made.step, read[0])
            case How.CONSTANT:
                return values[0]
            case How.JOIN:
                texts = ", ".join(f"anp_text({one})" for one in read)
                return f"{values[0]}.join([{texts}])"
            case How.LIST:
                return f"[{read[0]}]"
            case How.COUNT:
                return f"len(anp_expect({read[0]}, list))"
            case How.PYTHON:
                name = self._name("compute")
                letters = ", ".join(LETTERS[: len(read)])
                lines = [f"return {made.values[0]}"]
                if gives_nothing(made.sources):
                    # An item or a name that is not there: no value is made up for it.
                    lines = [
                        "try:",
                        *indented(lines),
                        *_absent(made.sources),
                        "except (ArithmeticError, ValueError):",
                        f"    if [] in [{letters}]:",
                        f"        {_absence(made.sources)}",
                        "    raise",
                    ]
                self.function(f"{name}({letters})", lines)
                return f"{name}({', '.join(read)})"
            case How.SCALE:
                return f"anp_scaled({', '.join([*read, *values])})"
            case How.TEXT:
                return f"anp_text({read[0]})"
            case How.NUMBER:
                return f"anp_number({', '.join([*read, *values])})"
            case How.DATE:
                return f"anp_date({', '.join([*read, *values])})"
            case How.VALUES:
                return f"anp_mapped({', '.join([*read, *values])})"
            case How.SPLIT:
                return f"anp_part({', '.join([*read, *values])})"
            case How.FIRST:
                if not gives_nothing(made.sources):
                    return f"anp_first({read[0]})"
                name = self._name("first")
                lines = ["try:", "    return anp_expect(value, list)[0]"]
                self.function(f"{name}(value)", [*lines, *_absent(made.sources)])
                return f"{name}({read[0]})"

    def _copied(self, step: Step, value: str) -> str:
        """Return the expression that carries out `step`, as rules write it."""
        if step == KEEP:
            return value
        if isinstance(step, Scale):
            numbers = f"{step.times}, {step.plus}, {step.over}, False"
            return f"(None if {value} is None else anp_scaled({value}, {numbers}))"
        lines: list[str]
        match step:
            case Items(inner):
                item = self._copied(inner, "item")
                lines = [f"return [{item} for item in anp_expect(value, list)]"]
            case ByKind(of_object, of_array):
                lines = [
                    "if isinstance(value, dict):",
                    f"    return {self._copied(of_object, 'value')}",
                    "if isinstance(value, list):",
                    f"    return {self._copied(of_array, 'value')}",
                    "return value",
                ]
            case Fields():
                lines = self._copied_fields(step)
            case _:
                return value
        name = self._name("convert")
        self.function(f"{name}(value)", lines)
        return f"{name}({value})"

    def _copied_fields(self, step: Fields) -> list[str]:
        lines = ["anp_expect(value, dict)", "result = {}"]
        for name, constant in step.constants:
            lines.append(f"result[{name!r}] = {literal(constant)}")
        for one in step.fields:
            read = f"value[{one.source!r}]"
            made = f"result[{one.target!r}] = {self._copied(one.step, read)}"
            if one.required and not one.default:
                lines.append(made)
                continue
            lines += [f"if {one.source!r} in value:", f"    {made}"]
            if one.default:
                default = literal(one.default[0])
                lines += ["else:", f"    result[{one.target!r}] = {default}"]
        if step.rest is not None:
            known = names_literal([one.source for one in step.fields])
            item = self._copied(step.rest, "value[name]")
            lines += [
                "for name in value:",
                f"    if name not in {known}:",
                f"        result[name] = {item}",
            ]
        some = some_lines() if step.gives_some else []
        return [*lines, *some, "return result"]

    def _name(self, what: str) -> str:
        self._count += 1
        return f"anp_{what}_{self._count}"


def _absent(sources: Sequence[Spot]) -> list[str]:
    """Return the end of a `try` in which a part of a capability's value was missing."""
    return ["except LookupError:", f"    {_absence(sources)}"]


def _absence(sources: Sequence[Spot]) -> str:
    path = next(one.path for one in sources if one.root not in MESSAGES)
    told = f"{'.'.join(path) or 'the answer'}: the capability {NO_VALUE}"
    return f"raise ValueAbsent({told!r})"


def _read(spot: Spot, variables: Mapping[tuple[str, ...], str]) -> str:
    """Return the expression that reads a place."""
    variable, rest = _nearest(spot, variables)
    if rest and spot.default:
        default = literal(spot.default[0])
        return f"anp_given({variable}, {names_literal(rest)}, {default})"
    return f"anp_at({variable}, {names_literal(rest)})" if rest else variable


def _given(spot: Spot, variables: Mapping[tuple[str, ...], str]) -> str:
    """Return the expression that is true when a place has a value."""
    variable, rest = _nearest(spot, variables)
    return f"anp_has({variable}, {names_literal(rest)})"


def _nearest(
    spot: Spot, variables: Mapping[tuple[str, ...], str]
) -> tuple[str, tuple[str, ...]]:
    """Return the variable nearest to a place, and the names from there to the place."""
    stars = [index for index, step in enumerate(spot.path) if step == ITEMS]
    end = stars[-1] + 1 if stars else 0
    return variables[(spot.root, *spot.path[:end])], spot.path[end:]
