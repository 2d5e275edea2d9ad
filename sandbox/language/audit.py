"""The audit: what was compiled is examined, not what was written.

Each instruction of a half must be in the allow list of this version of Python, and each
that reads or sets an attribute must work directly on the result of a guard. To prove
this, the audit follows what lies on the stack of each function, as far as it matters: a
guard, its result, a constant. So a fault in the rules for syntax opens nothing.
"""

from __future__ import annotations

import dis
import opcode
import sys
from dataclasses import dataclass, replace
from inspect import CO_OPTIMIZED
from types import CodeType
from typing import Any, Final

from sandbox.errors import Finding
from sandbox.language import names
from sandbox.language.facades.modules import MODULE_MEMBERS
from sandbox.language.opcodes import KINDS, allowed, effects

GUARDS: Final = {
    "_annotation_": (1, 1),
    "_exact_group_": (0, 0),
    "_getattr_": (2, 2),
    "_getattr_guarded_": (2, 2),
    "_hold_": (1, 1),
    "_import_": (1, 2),
    "_keywords_": (1, 1),
    "_write_": (1, 1),
}
"The guards, with the fewest and the most arguments that each is called with."

_PROLOGUE = frozenset(
    {
        "__annotate_func__",
        "__classcell__",
        "__classdictcell__",
        "__firstlineno__",
        "__module__",
        "__qualname__",
        "__slots__",
        "__static_attributes__",
    }
)
"Special names besides `CLASS_NAMES` that the code of a class body sets."

_NAMESPACE = "__classdict__"
"The variable that has the names of a class, for its annotations (Python 3.14)."

_LOCALS = names.MODULE_NAMES | {"__class__", _NAMESPACE, ".0"}
"Reserved names that variables of functions may have."

_SETS = frozenset({"DELETE_GLOBAL", "DELETE_NAME", "STORE_GLOBAL", "STORE_NAME"})

_ENDS = frozenset({"RAISE_VARARGS", "RERAISE", "RETURN_CONST", "RETURN_VALUE"})


@dataclass(frozen=True, slots=True)
class _Value:
    """A value on the stack, as far as it is known; None stands for any other value."""

    kind: str
    "`constant`, `guard`, `result` of a guard, `locals` of a class body, or `name`."

    content: Any = None
    "The constant; the name of the guard, or of the variable."


_Stack = list[_Value | None]
"The top of a stack, the topmost value last; below it anything may lie."


class _UnguardedError(Exception):
    """An instruction may do what no guard examines."""


def audit(code: CodeType) -> list[Finding]:
    """Return why compiled code of a half may not run; nothing if it may.

    Only the first finding of each function comes, since what follows rests on it.
    """
    if not allowed():
        version = ".".join(map(str, sys.version_info[:2]))
        reason = f"the instructions of Python {version} were never examined here"
        return [Finding(None, f"{reason}; use a version that anpd supports")]
    found, waiting = [], [code]
    while waiting:
        one = waiting.pop()
        examined = _Audit(one)
        try:
            examined.run()
        except _UnguardedError as exc:
            found.append(Finding(examined.line(), f"the compiled code {exc}"))
        waiting += [inside for inside in one.co_consts if type(inside) is CodeType]
    return found


class _Audit:
    """Examines one code object without those inside it."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._is_class = not code.co_flags & CO_OPTIMIZED and code.co_name != "<module>"
        self._is_function = bool(code.co_flags & CO_OPTIMIZED)
        self._has_namespace = _NAMESPACE in (*code.co_cellvars, *code.co_freevars)
        self._stack: _Stack = []
        self._known: dict[int, _Stack] = {}
        self._at = 0
        self._has_keywords = False
        table = dis._parse_exception_table(code)  # type: ignore[attr-defined]  # the only reader of it
        self._handlers = {entry.target for entry in table}

    def line(self) -> int | None:
        """Return the line of the instruction at hand in the source."""
        lines = (
            n for start, end, n in self._code.co_lines() if start <= self._at < end
        )
        return next(lines, None)

    def run(self) -> None:
        """Follow all instructions once; raise for the first without a guard."""
        for name in (*self._code.co_varnames, *self._code.co_cellvars):
            self._check_local(name)
        listed, raw = allowed(), self._code.co_code
        more, falls = 0, False
        for at in range(0, len(raw), 2):
            number = raw[at]
            if number == 0 and at:
                continue  # The memory of the instruction before it.
            self._at = at
            one = listed.get(number)
            if one is None:
                raise _UnguardedError(f"has the instruction {dis.opname[number]}")
            argument = raw[at + 1] | more
            if one.name == "EXTENDED_ARG":
                more = argument << 8
                continue
            more = 0
            self._meet(at, falls=falls)
            if one.name == "SEND":
                # What was sent last comes here again, and is taken off in any case.
                size = min(2, len(self._known[at]))
                self._known[at][-size:] = [None] * size
            self._take(one.name, number, argument)
            falls = one.name not in _ENDS and not one.name.startswith("JUMP_FORWARD")
            falls = falls and not one.name.startswith("JUMP_BACKWARD")

    def _check_local(self, name: str) -> None:
        if names.is_reserved(name) and name not in _LOCALS:
            raise _UnguardedError(f"has a variable {name}")

    # The ways to an instruction

    def _meet(self, at: int, *, falls: bool) -> None:
        """Keep of the stack what is the same on every way to an instruction."""
        before = self._known.get(at)
        if at in self._handlers or (before is None and not falls):
            self._stack = []
        elif before is not None:
            self._stack = _same(before, self._stack) if falls else before
        self._known[at] = self._stack[:]

    def _jump(self, number: int, argument: int, stack: _Stack) -> None:
        raw, end = self._code.co_code, self._at + 2
        while end < len(raw) and raw[end] == 0:
            end += 2
        if "BACKWARD" not in dis.opname[number]:
            target = end + 2 * argument
            before = self._known.get(target)
            self._known[target] = stack if before is None else _same(before, stack)
            return
        # That way was examined without this one, and may not have known more.
        known = self._known.get(end - 2 * argument, [])
        missing: _Stack = [None] * (len(known) - len(stack))
        met = [*missing, *stack][len(missing) + len(stack) - len(known) :]
        if any(o is not None and o != t for o, t in zip(known, met, strict=True)):
            raise _UnguardedError("jumps back with something else on the stack")

    # The instructions

    def _take(self, name: str, number: int, argument: int) -> None:
        match name:
            case "LOAD_CONST":
                value = self._code.co_consts[argument]
                self._stack.append(_Value("constant", value))
            case "LOAD_NAME":
                self._stack.append(self._loaded(self._code.co_names[argument]))
            case "LOAD_GLOBAL":
                self._load_global(argument)
            case "CALL" | "CALL_KW":
                self._call(name, argument)
            case "PRECALL":
                pass
            case _:
                self._move(name, number, argument)

    def _move(self, name: str, number: int, argument: int) -> None:
        match name:
            case "COPY":
                self._stack.append(_plain(self._peek(argument)))
            case "SWAP":
                self._swap(argument)
            case "LOAD_LOCALS":
                self._stack.append(_Value("locals"))
            case "LOAD_DEREF" if self._is_namespace(argument):
                self._stack.append(_Value("locals"))
            case "STORE_DEREF" if self._is_namespace(argument):
                self._pop(1)
            case "LOAD_FROM_DICT_OR_GLOBALS":
                self._pop(1)
                self._stack.append(self._loaded(self._code.co_names[argument]))
            case _:
                self._other(name, number, argument)

    def _other(self, name: str, number: int, argument: int) -> None:
        count, given, jumped = effects(number, argument)
        taken = self._pop(count)
        if name in KINDS:
            _check_kind(name, argument)
        elif name == "KW_NAMES":
            self._has_keywords = True
        elif name.endswith("_ATTR"):
            self._check_attribute(name, argument, taken[-1])
        elif name == "MATCH_CLASS" and (
            argument or taken[-1] != _Value("constant", ())
        ):
            raise _UnguardedError("matches a class with patterns inside")
        elif name in _SETS:
            self._check_stored(self._code.co_names[argument], [*taken, None][0])
        elif name != "LOAD_FROM_DICT_OR_DEREF" and _Value("locals") in taken:
            raise _UnguardedError("has the names of a class as a value")
        if jumped is not None:
            self._jump(number, argument, [*self._stack, *jumped])
        self._stack += given

    def _peek(self, depth: int) -> _Value | None:
        return self._stack[-depth] if depth <= len(self._stack) else None

    def _swap(self, depth: int) -> None:
        missing = depth - len(self._stack)
        self._stack[:0] = [None] * max(0, missing)
        stack = self._stack
        stack[-depth], stack[-1] = stack[-1], stack[-depth]

    def _pop(self, count: int) -> _Stack:
        """Take values off the stack; none may be a guard, which is only called."""
        missing = count - len(self._stack)
        self._stack[:0] = [None] * max(0, missing)
        kept = len(self._stack) - count
        taken = self._stack[kept:]
        del self._stack[kept:]
        for one in taken:
            if one is not None and one.kind == "guard":
                raise _UnguardedError(f"has the guard {one.content} as a value")
        return taken

    def _loaded(self, name: str) -> _Value | None:
        if not names.is_reserved(name):
            return None
        if name in GUARDS:
            return _Value("guard", name)
        if name in names.MODULE_NAMES or name == "__name__":
            return _Value("name", name)
        if self._is_class and (
            name in names.CLASS_NAMES or _is_private(name) or name == "__annotations__"
        ):
            return None
        raise _UnguardedError(f"reads {name}")

    def _is_namespace(self, argument: int) -> bool:
        code: Any = self._code
        return self._has_namespace and bool(
            code._varname_from_oparg(argument) == _NAMESPACE
        )

    def _load_global(self, argument: int) -> None:
        loaded = [self._loaded(self._code.co_names[argument >> 1])]
        if argument & 1:
            # The place of `self` stands behind the function since Python 3.13.
            loaded = [*loaded, None] if sys.version_info >= (3, 13) else [None, *loaded]
        self._stack += loaded

    def _check_stored(self, name: str, value: _Value | None) -> None:
        if not names.is_reserved(name):
            return
        if self._is_class:
            allows = name in names.CLASS_NAMES | _PROLOGUE or _is_private(name)
            if name == "__module__":
                allows = value == _Value("name", "__name__")
        else:
            allows = not self._is_function and name in names.MODULE_NAMES
        if not allows:
            raise _UnguardedError(f"sets or deletes {name}")

    def _call(self, name: str, argument: int) -> None:
        given = self._pop(argument + (name == "CALL_KW"))
        missing = 2 - len(self._stack)
        self._stack[:0] = [None] * max(0, missing)
        called = [self._stack.pop(), self._stack.pop()]
        guard = next((o for o in called if o is not None and o.kind == "guard"), None)
        has_keywords = self._has_keywords or name == "CALL_KW"
        self._has_keywords = False
        if guard is None:
            self._stack.append(None)
            return
        fewest, most = GUARDS[guard.content]
        if called.count(None) != 1 or has_keywords or not fewest <= argument <= most:
            raise _UnguardedError(f"calls {guard.content} in another way than ours")
        _check_arguments(guard.content, given)
        self._stack.append(_Value("result", guard.content))

    def _check_attribute(self, name: str, argument: int, of: _Value | None) -> None:
        number = argument
        if name == "LOAD_ATTR" and sys.version_info >= (3, 12):
            number, is_method = argument >> 1, argument & 1
            if is_method:
                raise _UnguardedError("calls a method that no guard read")
        attribute = self._code.co_names[number]
        if of == _Value("result", "_hold_") and attribute == "value":
            return
        if of != _Value("result", "_write_"):
            raise _UnguardedError(
                f"has the attribute {attribute} of unexamined objects"
            )
        is_read = name == "LOAD_ATTR" and attribute in names.GUARDED_ATTRIBUTES
        if is_read or not _may_be_attribute(attribute):
            raise _UnguardedError(f"has the attribute {attribute}")


def _check_arguments(guard: str, given: _Stack) -> None:
    """Check the constants with which a guard is called."""
    constants = [
        one.content if one is not None and one.kind == "constant" else None
        for one in given
    ]
    if guard in {"_getattr_", "_getattr_guarded_"}:
        name = constants[-1]
        is_guarded = name in names.GUARDED_ATTRIBUTES
        if (
            type(name) is not str
            or is_guarded is not (guard == "_getattr_guarded_")
            or not (is_guarded or _may_be_attribute(name))
        ):
            raise _UnguardedError(f"reads the attribute {name!r:.200} by {guard}")
    elif guard == "_import_":
        module, *member = map(str, constants)
        if not set(member) <= MODULE_MEMBERS.get(module, frozenset()) or (
            module not in MODULE_MEMBERS
        ):
            raise _UnguardedError(f"imports {constants!r:.200}")


def _check_kind(name: str, argument: int) -> None:
    listed, may_be = KINDS[name]
    table = opcode.__dict__[listed]
    kind = table[argument] if argument < len(table) else f"kind {argument}"
    if getattr(kind, "__name__", kind) not in may_be.split():
        raise _UnguardedError(f"has {name} with {kind}")


def _may_be_attribute(name: str) -> bool:
    """Return whether an attribute has a name that the rules for syntax let pass."""
    if name in names.BLOCKED_ATTRIBUTES:
        return False
    return not names.is_reserved(name) or _is_private(name) or name in _OF_MEMBERS


_OF_MEMBERS = frozenset({"_value_", "_name_", "_"})


def _is_private(name: str) -> bool:
    return name.startswith(f"{names.PREFIX}_")


def _plain(value: _Value | None) -> _Value | None:
    """Return the copy of a value; no guard is ever copied."""
    if value is not None and value.kind == "guard":
        raise _UnguardedError(f"copies the guard {value.content}")
    return value and replace(value)


def _same(one: _Stack, other: _Stack) -> _Stack:
    """Return the values that two stacks have in common, from the top."""
    size = min(len(one), len(other))
    pairs = zip(one[len(one) - size :], other[len(other) - size :], strict=True)
    kept = []
    for left, right in pairs:
        if left != right and "guard" in {
            v.kind for v in (left, right) if v is not None
        }:
            raise _UnguardedError("has a guard on one of two ways only")
        kept.append(left if left == right else None)
    return kept
