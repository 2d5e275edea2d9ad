"""Generates hostile programs, runs them behind the language layer, and judges them.

A program binds the name of a builtin to a hostile value, in each way in which Python
binds a name, and then uses the name on a target, in each construct that may read or set
an attribute. `python -m tests.sandbox.language.generated [COUNT]` prints what it found.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox import language
from sandbox.language.facades.facade import Facade
from sandbox.language.facades.modules import FACADES
from sandbox.language.policy import compile_half
from sandbox.language.runtime.attributes import guarded_type
from sandbox.language.runtime.builtin_names import BUILTINS
from sandbox.language.runtime.classes import BASES
from sandbox.worker.worker import fresh_globals

NAMES = tuple(sorted(name for name in BUILTINS if not name.startswith("_")))
"The names of builtins that a half may bind, too."

PRELUDE = """
import json, calendar, functools, copy, operator
from abc import ABC
from collections import UserDict, UserList, namedtuple
from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum, Flag
from fractions import Fraction
Fields = namedtuple("Fields", ["trap"])
def reader(base=Fields):
    class Reader(base, ABC):
        __hash__ = None
    try: Reader.register(Hashable)
    except Exception: pass
    return Reader
class Encoder(json.JSONEncoder): pass
class Users(UserDict): pass
@dataclass
class Data:
    trap: object = 1
    default: object = 2
class Odd:
    def __init__(self, *a): pass
    def __new__(cls, *a): return TARGET
    def __call__(self, *a): return TARGET
    def __enter__(self): return TARGET
    def __exit__(self, *a): return True
    def __iter__(self): return iter([TARGET])
    def __getitem__(self, name): return TARGET
    def __eq__(self, other): return True
    __hash__ = None
try:
    class Late(Fraction, Odd): pass
except TypeError:
    Late = Odd
def halves(*a, **k): yield TARGET
"""

HOSTILE = (
    "reader()",
    "Encoder",
    "Users",
    "Data",
    "Odd",
    "object.__new__(Odd)",
    "json.JSONEncoder",
    "UserDict",
    "json",
    "halves",
    "halves()",
    "functools.partial(reader)",
    "operator.itemgetter(0)",
    "super(Encoder, Encoder)",
    "super(Users, Users)",
    "getattr",
    "lambda *a, **k: TARGET",
    "type(TARGET)",
    "TARGET",
)
"Values to which the names are bound."

TARGETS = (
    "canary",
    "json.JSONEncoder",
    "UserDict",
    "Fraction",
    "Canary",
    "json",
    "len",
)
"What the programs try to reach: a foreign object, and classes that all calls share."

BINDINGS = (
    "{name} = {value}",
    "({name}, *_), x = [{value}], 1",
    "for {name} in [{value}]: pass",
    "with Odd() as x, nullcontext({value}) as {name}: pass",
    "def bind({name}={value}): return {name}\n{name} = bind()",
    "({name} := {value})",
    "class {name}(type({value}) if 0 else object):\n    __hash__ = None",
    "from collections import UserDict as {name}",
    "from json import JSONEncoder as {name}",
    "import json as {name}",
    "match [{value}]:\n    case [{name}]: pass",
    "match {{'a': {value}}}:\n    case {{**{name}}}: {name} = {name}['a']",
    "match {value}:\n    case _ as {name}: pass",
    "try: raise ValueError({value})\nexcept ValueError as e: {name} = e.args[0]",
    "{name}: object = {value}",
    "def bind():\n    global {name}\n    {name} = {value}\nbind()",
    "[{name} := {value} for _ in [0]]",
)
"Ways in which the name is bound."

USES = (
    "match TARGET:\n    case {name}(x): found = x",
    "match TARGET:\n    case {name}(trap=x): found = x",
    "match TARGET:\n    case {name}(_): found = 1",
    "match TARGET:\n    case {name}(x) | {name}() as x: found = x",
    "match [TARGET]:\n    case [{name}(x), *_]: found = x",
    "match {{'a': TARGET}}:\n    case {{'a': {name}(x) as y}}: found = x",
    "match {name}:\n    case {name}(x): found = x",
    "match TARGET:\n    case {name}(): found = TARGET.trap",
    "{name}.__init__(TARGET, default='polluted')",
    "{name}.__init__(TARGET)",
    "{name}.__init__(TARGET, 'polluted')",
    "{name}.update(TARGET, trap=1)",
    "{name}.default(TARGET, 1)",
    "super({name}, {name}).__init__(TARGET, default='polluted')",
    "super({name}, {name}).update(TARGET, trap=1)",
    "{name}.register(TARGET)",
    "{name}.trap = 1",
    "TARGET.trap = {name}",
    "TARGET.trap += 1",
    "del TARGET.trap",
    "setattr(TARGET, 'trap', {name})",
    "{name}(TARGET, 'trap', 1)",
    "{name}(TARGET, 'trap')",
    "{name}(TARGET).trap",
    "for TARGET.trap in [1]: pass",
    "with {name} as TARGET.trap: pass",
    "[0 for TARGET.trap in [{name}]]",
    "TARGET.trap, x = {name}, 1",
    "class C({name}):\n    trap = 1\nC.__init__(TARGET)",
    "class C(Enum):\n    __new__ = {name}\n    A = TARGET",
    "class C(Enum):\n    def __new__(cls, v): return TARGET\n    A = {name}",
    "class C(Odd, Flag):\n    A = 1\n    B = 2\nC(3)",
    "Late(1, 2)",
    "Data.__init__(TARGET, 1)",
    "@dataclass\nclass C({name}):\n    trap: object = 1\nC.__init__(TARGET, 2)",
    "functools.update_wrapper(TARGET, {name})",
    "functools.total_ordering(TARGET)",
    "functools.reduce({name}, ['trap'], TARGET)",
    "list(map({name}, [TARGET], ['trap']))",
    "sorted([TARGET, TARGET], key={name})",
    "copy.copy(Odd())",
    "'{{0.trap}}'.format(TARGET)",
    "f'{{TARGET!r:{{{name}}}}}'",
    "object.__setattr__(TARGET, 'trap', {name})",
    "@{name}\ndef f(): pass\nf.trap = 1",
    "try: raise {name}\nexcept {name} as e: e.trap = 1",
    "print(TARGET, sep={name}, file=TARGET)",
    "(lambda {name}=TARGET: {name}.trap)()",
    "{name}[TARGET] = TARGET[{name}]",
)
"Constructs that may read or set an attribute of the target."


MAX_SECONDS = 0.5
"Seconds of its own time that one program may run; they bound its memory, too."

_LANGUAGE = str(Path(language.__file__).parent)

_caught: list[str] = []


def _is_guard() -> bool:
    # The frame of what reached the trap: a guard's, or whatever is not behind one.
    frame = sys._getframe(2)
    return frame.f_code.co_filename.startswith(_LANGUAGE)


class _TooLongError(BaseException):
    """Ends a program that has run for `MAX_SECONDS`."""


def _stop(*_: object) -> None:
    raise _TooLongError


class _Kind(type):
    """The kind of a foreign class; nobody may set its attributes."""

    def __setattr__(cls, name: str, value: Any) -> None:
        # `copy` keeps the names of slots with each class, always the same ones.
        if name != "__slotnames__":
            _caught.append(f"sets {name} of a foreign class")

    def __delattr__(cls, name: str) -> None:
        _caught.append(f"deletes {name} of a foreign class")


class Canary(metaclass=_Kind):
    """A foreign object whose attribute only guards read, and which nobody sets."""

    @property
    def trap(self) -> object:
        """Tell who reads it."""
        if not _is_guard():
            _caught.append("reads an attribute")
        return 1

    def __setattr__(self, name: str, value: Any) -> None:
        _caught.append(f"sets {name} of a foreign object")

    def __delattr__(self, name: str) -> None:
        _caught.append(f"deletes {name} of a foreign object")


def _shared() -> list[type]:
    """Return the classes of the standard library that a half can reach."""
    members = [
        getattr(facade, name)
        for facade in FACADES.values()
        for name in dir(facade)
        if name not in dir(Facade)
    ]
    kinds = {one for one in members if isinstance(one, type)} | BASES
    kinds |= {above for one in kinds for above in one.__mro__} - {guarded_type}
    return sorted(kinds, key=lambda one: (one.__module__, one.__qualname__))


_KEPT = frozenset({"_abc_impl", "__slotnames__"})
"What the library itself keeps with a class, and finds again for each class anew."


class Judge:
    """Runs programs, and tells what each did that it may not."""

    def __init__(self) -> None:
        """Remember the classes of the standard library as they are."""
        self._before = [(kind, dict(vars(kind))) for kind in _shared()]

    def faults(self, source: str, **given: Any) -> list[str] | None:
        """Return what a program did; None if it was refused before it ran.

        Args:
            given: Further names that the program has.
        """
        code, _ = compile_half(source)
        if code is None:
            return None
        namespace = {**fresh_globals(), "canary": Canary(), **given}
        namespace["Canary"] = Canary
        _caught.clear()
        # A hostile program may raise anything, and may not end by itself.
        before = signal.signal(signal.SIGVTALRM, _stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
        try:
            with contextlib.suppress(Exception, _TooLongError):
                exec(code, namespace)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        return [*_caught, *self._changes()]

    def _changes(self) -> Iterator[str]:
        for kind, before in self._before:
            now = vars(kind)
            if len(now) == len(before) and all(
                now.get(name, before) is value for name, value in before.items()
            ):
                continue
            for name in [*now]:
                if name in _KEPT or before.get(name, kind) is now[name]:
                    continue
                yield f"sets {name} of {kind.__module__}.{kind.__qualname__}"
                if name in before:
                    setattr(kind, name, before[name])
                else:
                    delattr(kind, name)


def programs(count: int, seed: int = 0) -> Iterator[str]:
    """Yield programs: each binding with each construct, mixed with any at random.

    Half of them have a class whose patterns read attributes, under a name that stands
    for a builtin in patterns, and the foreign object as their target.
    """
    chance = random.Random(seed)
    pairs = list(itertools.product(BINDINGS, USES))
    chance.shuffle(pairs)
    for number, (binding, use) in enumerate(
        itertools.islice(itertools.cycle(pairs), count)
    ):
        value, target, name = (
            "reader()",
            "canary",
            chance.choice(("int", "str", "list")),
        )
        if number % 2:
            value, target = chance.choice(HOSTILE), chance.choice(TARGETS)
            name = chance.choice(NAMES)
        bound = binding.format(name=name, value=value)
        source = f"{PRELUDE}{bound}\n{use.format(name=name)}\n"
        yield source.replace("TARGET", target)


def main(count: int = 5_000) -> int:
    """Run programs and print what they did; return an exit status."""
    judge, found, ran = Judge(), Counter[str](), 0
    for source in programs(count):
        faults = judge.faults(source)
        ran += faults is not None
        for fault in faults or ():
            found[fault] += 1
    print(f"{count} programs, {ran} ran, {count - ran} refused; faults: {len(found)}")
    for fault, times in found.most_common():
        print(f"  {times:4} {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
