"""Names: those a half may use, and the renaming of private attributes.

Variables keep their names. All names that our guards need have the form `_x_`, which
no source may use. Attributes are renamed, because `obj._x` could reach into an object
that is not the half's own: `_x` is stored and read as `private__x` everywhere, and the
objects that we provide have no attribute of such a name.
"""

from __future__ import annotations

from RestrictedPython.transformer import INSPECT_ATTRIBUTES

OWN_MODULE = "half"
"`__name__` of a half, and so `__module__` of its classes and functions."

FILENAME = "<half>"
"File name of a half in tracebacks, and so of the code of its own functions."

PREFIX = "private_"
"Prefix of a private attribute's own name; that one keeps its underscore."

_CODE = (
    "argcount cellvars code code_adaptive consts exceptiontable filename firstlineno "
    "flags freevars kwonlyargcount lines linetable lnotab name names nlocals positions "
    "posonlyargcount qualname stacksize varnames"
)
_FUNCTION = "closure code defaults dict doc globals name"

BLOCKED_ATTRIBUTES = frozenset(INSPECT_ATTRIBUTES).union(
    (f"co_{name}" for name in _CODE.split()),
    (f"func_{name}" for name in _FUNCTION.split()),
    ("f_lasti", "f_lineno", "f_trace_lines", "f_trace_opcodes"),
    ("tb_lasti", "tb_lineno", "gi_running", "gi_suspended", "cr_running"),
    ("cr_suspended", "ag_running", "ag_suspended"),
    ("im_class", "im_func", "im_self", "fdel", "fget", "fset", "mro"),
)
"Public names that lead to frames, code and functions; never allowed as attributes."

_METHODS = (
    "init new post_init repr str bytes hash bool int float complex index eq ne "
    "lt le gt ge len length_hint iter next reversed getitem setitem delitem "
    "contains missing call enter exit copy deepcopy add sub mul matmul truediv "
    "floordiv mod divmod pow lshift rshift and or xor radd rsub rmul rmatmul "
    "rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor iadd "
    "isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior "
    "ixor neg pos abs invert round trunc floor ceil"
)

SPECIAL_METHODS = frozenset(f"__{name}__" for name in _METHODS.split())
"Methods that a class of the half may define (SANDBOX.md, list item 4)."

CLASS_NAMES = SPECIAL_METHODS | {"__doc__", "_missing_", "_generate_next_value_"}
"Special names that a class body may bind: methods and a few others."

MODULE_NAMES = frozenset(
    {"__all__", "__version__", "__author__", "__license__", "__doc__"}
)
"Special names that may be assigned at module level."

READABLE_DUNDERS = SPECIAL_METHODS | {
    "__class__",
    "__name__",
    "__qualname__",
    "__doc__",
    "__cause__",
    "__members__",
    "__setattr__",
}
"Special attributes that may be read; a guard decides by the object."

TUPLE_ATTRIBUTES = frozenset(
    {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
)
"Attributes of named tuples that are public in spite of their underscore."

GUARDED_ATTRIBUTES = (
    READABLE_DUNDERS
    | {"format", "format_map", "obj", "register", "_value_", "_name_"}
    | {PREFIX + name for name in TUPLE_ATTRIBUTES}
)
"Attributes that a guard decides by the object; all others need only one check."


def is_reserved(name: str) -> bool:
    """Return whether no variable may have this name: `_x_`, `__x__`, our prefix."""
    if name.startswith("_"):
        return name.endswith("_") and name not in {"_", "__"}
    return name.startswith(PREFIX + "_")


def private_attribute(name: str, owner: str | None) -> str:
    """Return the name that the private attribute `name` gets.

    Args:
        owner: The class whose body contains the source, since Python makes names such
            as `__x` private to their class.
    """
    if owner is not None and name.startswith("__"):
        name = f"_{owner.lstrip('_')}{name}"
    return PREFIX + name


def slot_name(name: str, owner: str) -> str | None:
    """Return the real name of the slot that source calls `name`; None if forbidden."""
    if name in {"__dict__", "__weakref__"}:
        return name
    if not name.isidentifier() or is_reserved(name) or name in BLOCKED_ATTRIBUTES:
        return None
    return private_attribute(name, owner) if name.startswith("_") else name


def plain_text(text: str) -> str:
    """Return a message with private attributes under their source names."""
    return text.replace(PREFIX + "_", "_")
