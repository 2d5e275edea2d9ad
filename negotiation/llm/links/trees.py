"""Combines links to the conversion of a whole value, or finds what is missing.

Each link gives the source of one place in the target. A link with `*` on both sides
converts a list item by item. A place without a link takes the property of the same
name, if its schema proves that it fits; a required place without any source is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from negotiation.llm.links.conversions import Conversion, How, LinkError, convert
from negotiation.llm.links.spots import (
    ITEMS,
    Root,
    Spot,
    bare_kind,
    covers,
    spots_of,
    without_null,
)
from negotiation.need import Schema
from negotiation.schema.keywords import cut, pointer
from negotiation.schema.plan import values_of, words
from negotiation.schema.terms import Drop, MappingProof, normal_name
from negotiation.schema.values import types_of
from negotiation.strict_json import Json

MAX_REASONS: Final = 12
"Largest number of reasons that are kept."


@dataclass(frozen=True, slots=True)
class ValueLink:
    """The source of one place in the target, as a model gave it."""

    target: tuple[str, ...]
    "Path of the target place."

    how: How
    sources: tuple[Spot, ...]

    args: tuple[str, ...]
    "Parameters of the way."


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value made from others."""

    conversion: Conversion

    needs: tuple[Spot, ...]
    "Sources that must be present."


@dataclass(frozen=True, slots=True)
class Tree:
    """An object made property by property."""

    fields: tuple[Made, ...]

    needs: tuple[Spot, ...]
    "Sources that must be present for the required properties."


@dataclass(frozen=True, slots=True)
class Each:
    """A list made item by item from another."""

    items: Spot
    "The source list, given as the place of its items."

    node: Node

    needs: tuple[Spot, ...]
    "Sources that must be present."

    open: bool = False
    "True if an item may lack a value that it should have."


@dataclass(frozen=True, slots=True)
class Made:
    """One property of an object that is made."""

    name: str
    node: Node

    default: tuple[Json, ...] = ()
    "Its value when a needed source is absent: one value, or none."


Node = Leaf | Tree | Each


@dataclass(slots=True)
class _Builder:
    links: Sequence[ValueLink]
    sources: Mapping[str, Root]
    drop: Drop
    proof: MappingProof
    judged: bool = False
    reasons: list[str] = field(default_factory=list)

    def node(
        self,
        schema: Schema,
        path: tuple[str, ...],
        beside: Sequence[Spot],
        lists: tuple[tuple[str, ...], ...],
    ) -> Node | None:
        """Return the conversion to the place at `path`; None when there is no source.

        Args:
            beside: Places whose properties count as sources of the same name.
            lists: The enclosing lists that are converted, as root and path of their
                items.
        """
        exact = [link for link in self.links if link.target == path]
        if exact and (source := self._invented(exact[-1], schema)) is not None:
            self._reason(
                path,
                f"a constant would be invented here: copy {source.name}; where that "
                "is absent, the answer is an error that names the place",
            )
            return None
        if exact:
            return self._leaf(exact[-1], schema, lists)
        inner = without_null(schema)
        below = [link for link in self.links if link.target[: len(path)] == path]
        kind = bare_kind(inner)
        if kind == "object" and isinstance(inner, dict):
            return self._object(inner, path, beside, lists, linked=bool(below))
        if kind == "array" and isinstance(inner, dict) and below:
            return self._each(inner, path, below, lists)
        return None

    def _leaf(
        self, link: ValueLink, schema: Schema, lists: tuple[tuple[str, ...], ...]
    ) -> Leaf | None:
        for source in link.sources:
            if not _lines_up(source, lists):
                self._reason(link.target, f"{source.name} is in another list")
                return None
        try:
            made = convert(
                link.how,
                link.sources,
                link.args,
                schema,
                drop=self.drop,
                proof=self.proof,
                judged=self.judged,
                place=link.target,
            )
        except LinkError as exc:
            self._reason(link.target, str(exc))
            return None
        return Leaf(made, made.unsure)

    def _invented(self, link: ValueLink, schema: Schema) -> Spot | None:
        """Return the optional source of the same name that a constant replaces."""
        if link.how is not How.CONSTANT or not link.target or values_of(schema):
            return None
        for root in self.sources.values():
            for spot in spots_of(root, whole=False):
                same = _same_name(spot, link.target[-1])
                absent = not spot.sure and not spot.default
                if same and absent and types_of(spot.schema) & types_of(schema):
                    return spot
        return None

    def _object(
        self,
        schema: dict[str, Any],
        path: tuple[str, ...],
        beside: Sequence[Spot],
        lists: tuple[tuple[str, ...], ...],
        *,
        linked: bool,
    ) -> Tree | None:
        properties: dict[str, Schema] = dict(schema.get("properties", {}))
        required = list(schema.get("required", ()))
        for name in required:
            properties.setdefault(name, True)
        if not properties and not linked:
            return Tree((), ()) if not path else None
        fields: list[Made] = []
        needs: list[Spot] = []
        for name in sorted(properties):
            made = self._field(
                name, properties[name], path, beside, lists, needed=name in required
            )
            if made is None:
                continue
            fields.append(made)
            if name in required and not made.default:
                needs += made.node.needs
        if self.drop is Drop.ALL and not fields and (linked or not path):
            self._check_found(path, properties)
        return Tree(tuple(fields), tuple(dict.fromkeys(needs)))

    def _check_found(self, path: tuple[str, ...], wanted: Mapping[str, Schema]) -> None:
        """Refuse a result of which no value has a source, if there is any source."""
        named = [name for name, one in wanted.items() if len(values_of(one)) != 1]
        given = [
            spot
            for root in self.sources.values()
            for spot in spots_of(root, whole=False)
            if root.name != "request"
        ]
        if named and given:
            self._reason(path, f"nothing gives {' or '.join(map(cut, named[:5]))}")

    def _field(
        self,
        name: str,
        schema: Schema,
        path: tuple[str, ...],
        beside: Sequence[Spot],
        lists: tuple[tuple[str, ...], ...],
        *,
        needed: bool,
    ) -> Made | None:
        place = (*path, name)
        known = len(self.reasons)
        meant = [spot for spot in beside if _same_name(spot, name)]
        inner = [
            one
            for spot in meant
            for one in spots_of(Root(spot.root, self.sources[spot.root].schema))
            if covers(spot, one) and len(one.path) == len(spot.path) + 1
        ]
        node = self.node(schema, place, inner, lists)
        said = any(link.target[: len(place)] == place for link in self.links)
        if isinstance(node, Tree) and not said and not needed and not node.fields:
            node = None
        failed = len(self.reasons) > known
        if (node is None or failed) and not said:
            # It has no link of its own, so a property of the same name is enough.
            del self.reasons[known:]
            node = self._same(meant, schema, lists)
            failed = False
        default = _default(schema) if needed else ()
        if node is not None and not failed:
            return Made(name, node, default if node.needs else ())
        if default:
            del self.reasons[known:]
            constant = Conversion(How.CONSTANT, values=default)
            return Made(name, Leaf(constant, ()))
        if needed and not failed:
            self._reason(place, f"nothing gives this {words(schema)}")
        return None

    def _same(
        self, meant: Sequence[Spot], schema: Schema, lists: tuple[tuple[str, ...], ...]
    ) -> Leaf | None:
        fitting: list[Leaf] = []
        for spot in meant:
            if not _lines_up(spot, lists):
                continue
            try:
                made = convert(
                    How.COPY,
                    (spot,),
                    (),
                    schema,
                    drop=self.drop,
                    proof=self.proof,
                    judged=self.judged,
                )
            except LinkError:
                continue
            fitting.append(Leaf(made, made.unsure))
        if not fitting:
            return None
        return fitting[-1]

    def _each(
        self,
        schema: dict[str, Any],
        path: tuple[str, ...],
        below: Sequence[ValueLink],
        lists: tuple[tuple[str, ...], ...],
    ) -> Each | None:
        depth = len(lists)
        walked = {
            (source.root, *_to_star(source.path, depth))
            for link in below
            for source in link.sources
            if source.path.count(ITEMS) > depth
        }
        if len(walked) != 1:
            self._reason(path, "its items come from no list, or from several")
            return None
        (walk,) = walked
        root, *steps = walk
        items = next(
            (
                spot
                for spot in spots_of(self.sources[root])
                if spot.path == tuple(steps)
            ),
            None,
        )
        if items is None:
            self._reason(path, "its items come from a list that is not there")
            return None
        # In a list of pairs, an item's properties are those of both of its sides.
        depth = len(items.path) + (2 if self.sources[root].paired else 1)
        every = spots_of(self.sources[root])
        inner = [one for one in every if covers(items, one) and len(one.path) == depth]
        node = self.node(
            schema.get("items", True), (*path, ITEMS), inner, (*lists, walk)
        )
        if node is None:
            return None
        # Inside an item, names refer to that item; outside, to the whole value.
        local = [
            one for one in node.needs if _lines_up(one, (*lists, walk), inside=True)
        ]
        if local and not self.judged:
            names = ", ".join(one.name for one in local)
            self._reason(path, f"each item needs {names}, which may be absent")
            return None
        if schema.get("minItems") or "maxItems" in schema or schema.get("uniqueItems"):
            self._reason(path, "the number of its items cannot be promised")
            return None
        above = Spot(root, tuple(steps[:-1]), True, items.sure)
        needs = () if items.sure else (above,)
        outside = [one for one in node.needs if one not in local]
        return Each(items, node, tuple(dict.fromkeys((*needs, *outside))), bool(local))

    def _reason(self, path: Sequence[str], why: str) -> None:
        where = "".join(f"/{pointer(step)}" for step in path) or "/"
        text = f"{where}: {why}"
        if text not in self.reasons and len(self.reasons) < MAX_REASONS:
            self.reasons.append(text)


def build_tree(
    target: Schema,
    links: Sequence[ValueLink],
    sources: Iterable[Root],
    *,
    drop: Drop,
    proof: MappingProof = MappingProof.FULL,
    judged: bool = False,
    inside: Spot | None = None,
) -> Node | list[str]:
    """Return the conversion to a value of `target`, or the reasons why there is none.

    Args:
        target: Schema of the value to make, with references replaced.
        links: The links of a model; each names places of `sources`.
        sources: The available values; the last one with a name takes precedence.
        drop: Properties that may be left out inside copied values.
        proof: Conditions that the schemas of the sources must guarantee.
        judged: True if the value is judged at run time; see `is_open`.
        inside: The items of a list, if the value is made for each of them.
    """
    roots = {root.name: root for root in sources}
    builder = _Builder(links, roots, drop, proof, judged)
    beside = [
        spot
        for root in roots.values()
        for spot in spots_of(root)
        if len(spot.path) == 1 or _is_property(inside, spot)
    ]
    lists = () if inside is None else ((inside.root, *inside.path),)
    node = builder.node(target, (), beside, lists)
    if node is None and not builder.reasons:
        node = builder._same(
            [Spot(root.name, (), root.schema, True) for root in roots.values()],
            target,
            (),
        )
        if node is None:
            return [f"/: nothing gives this {words(target)}"]
    if builder.reasons or node is None:
        return builder.reasons[:MAX_REASONS]
    if node.needs and not judged:
        names = ", ".join(sorted({one.name for one in node.needs}))
        return [f"/: it needs {names}, which may be absent"]
    return node


def _is_property(items: Spot | None, spot: Spot) -> bool:
    """Return whether `spot` is a property of each of `items`."""
    if items is None:
        return False
    return covers(items, spot) and len(spot.path) == len(items.path) + 1


def is_open(node: Node) -> bool:
    """Return whether the value may lack what its schema requires, or not fit it.

    Whoever makes it must judge it then: nothing is invented in place of a source that
    is absent.
    """
    return bool(node.needs) or _open_inside(node)


def _open_inside(node: Node) -> bool:
    match node:
        case Leaf(conversion):
            return conversion.open
        case Tree(fields):
            return any(_open_inside(one.node) for one in fields)
        case Each(_, inner):
            return node.open or _open_inside(inner)


def _same_name(spot: Spot, name: str) -> bool:
    return bool(spot.path) and normal_name(spot.path[-1]) == normal_name(name)


def _lines_up(
    spot: Spot, lists: tuple[tuple[str, ...], ...], *, inside: bool = False
) -> bool:
    """Return whether `spot` can be reached from inside `lists`.

    Args:
        inside: True if it must be in the innermost of them.
    """
    stars = spot.path.count(ITEMS)
    if stars > len(lists) or (inside and stars < len(lists)):
        return False
    return all(
        (spot.root, *_to_star(spot.path, place)) == lists[place]
        for place in range(stars)
    )


def _to_star(path: tuple[str, ...], place: int) -> tuple[str, ...]:
    """Return `path` up to the star with the index `place`, counted from 0."""
    stars = [index for index, step in enumerate(path) if step == ITEMS]
    return path[: stars[place] + 1]


def _default(schema: Schema) -> tuple[Json, ...]:
    if not isinstance(schema, dict):
        return ()
    if "const" in schema:
        return (schema["const"],)
    return (schema["default"],) if "default" in schema else ()
