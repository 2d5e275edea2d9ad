"""The instructions that a compiled half may have, each with who guards it.

A row holds for some minor versions of CPython; an instruction of no row, or a version
that `VERSIONS` lacks, means that the code does not run. Most instructions call methods
that the language itself names, such as `__add__`: a class of the half may define only
those of `SPECIAL_METHODS`, and no facade has a method that leads further.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

VERSIONS: Final = frozenset({11, 12, 13, 14})
"Minor versions of Python 3 whose instructions the rows cover; each was run."

_NEWEST = max(VERSIONS)

_MOVES = "no guard: it moves values, or makes containers of them"
_NAMES = "the audit: a reserved name is a guard's, and no half binds one"
_FLOW = "no guard: it decides which instruction is next"
_METHODS = "SPECIAL_METHODS: it calls a method whose name the language gives"
_GUARD = "the audit: only on the result of a guard"
_CALLS = "the object that is called; guards are called with what they expect"
_ERRORS = "no guard: it handles an exception, or raises one"
_GROUPS = "exact_group: the group is of one of the original classes"
_CLASS = "build_class: bases are examined, and metaclasses are theirs"
_KIND = "the audit: only for what this half may need of it"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction that a compiled half may have."""

    name: str
    "As `dis` calls it."

    pops: str
    """The number of values it takes from the stack, and the number that its argument
    adds: `n` that, `2n` twice that, `b` the bits set in the last four, `s` one
    for a format's specification, `k` one for keyword arguments."""

    guard: str
    "The part of the sandbox that keeps it from harm, or `no guard` with the reason."


# The first and the last minor version, what is popped, who guards, and the names.
_ROWS: tuple[tuple[int, int, str, str, str], ...] = (
    (11, _NEWEST, "0", _MOVES, "CACHE NOP RESUME EXTENDED_ARG PUSH_NULL COPY SWAP"),
    (11, _NEWEST, "0", _MOVES, "LOAD_CONST LOAD_FAST LOAD_DEREF DELETE_FAST"),
    (11, _NEWEST, "0", _MOVES, "DELETE_DEREF MAKE_CELL COPY_FREE_VARS"),
    (11, 12, "0", _MOVES, "LOAD_CLOSURE KW_NAMES"),
    (11, 11, "0", _MOVES, "LOAD_CLASSDEREF PRECALL"),
    (12, _NEWEST, "0", _MOVES, "LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR"),
    (12, _NEWEST, "0", "the audit: only for LOAD_FROM_DICT_OR_DEREF", "LOAD_LOCALS"),
    (12, _NEWEST, "1", _MOVES, "LOAD_FROM_DICT_OR_DEREF"),
    (13, _NEWEST, "0", _MOVES, "LOAD_FAST_LOAD_FAST"),
    (14, 14, "0", _MOVES, "LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW"),
    (14, 14, "0", _MOVES, "LOAD_SMALL_INT NOT_TAKEN"),
    (14, 14, "0", _KIND, "LOAD_COMMON_CONSTANT"),
    (14, 14, "1", _NAMES, "LOAD_FROM_DICT_OR_GLOBALS"),
    (14, 14, "1", _KIND, "LOAD_SPECIAL"),
    (14, 14, "1", _MOVES, "POP_ITER"),
    (11, _NEWEST, "1", _MOVES, "POP_TOP STORE_FAST STORE_DEREF"),
    (13, _NEWEST, "1", _MOVES, "STORE_FAST_LOAD_FAST"),
    (13, _NEWEST, "2", _MOVES, "STORE_FAST_STORE_FAST"),
    (11, _NEWEST, "0n", _MOVES, "BUILD_LIST BUILD_TUPLE BUILD_STRING BUILD_SLICE"),
    (11, _NEWEST, "1", _MOVES, "LIST_APPEND"),
    (11, 13, "1n", _METHODS, "BUILD_CONST_KEY_MAP"),
    (11, _NEWEST, "0n", _METHODS, "BUILD_SET"),
    (11, _NEWEST, "02n", _METHODS, "BUILD_MAP"),
    (11, _NEWEST, "1", _METHODS, "SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE"),
    (11, _NEWEST, "1", _METHODS, "DICT_MERGE"),
    (11, _NEWEST, "2", _METHODS, "MAP_ADD"),
    (11, 11, "1", _MOVES, "LIST_TO_TUPLE"),
    (11, 12, "1b", _MOVES, "MAKE_FUNCTION"),
    (13, _NEWEST, "1", _MOVES, "MAKE_FUNCTION"),
    (13, _NEWEST, "2", _MOVES, "SET_FUNCTION_ATTRIBUTE"),
    (11, _NEWEST, "0", _NAMES, "LOAD_NAME LOAD_GLOBAL DELETE_NAME DELETE_GLOBAL"),
    (11, _NEWEST, "1", _NAMES, "STORE_NAME STORE_GLOBAL"),
    (11, 13, "0", _NAMES, "SETUP_ANNOTATIONS"),
    (11, _NEWEST, "1", _GUARD, "LOAD_ATTR DELETE_ATTR"),
    (11, _NEWEST, "2", _GUARD, "STORE_ATTR"),
    (11, _NEWEST, "2n", _CALLS, "CALL"),
    (11, 13, "3k", _CALLS, "CALL_FUNCTION_EX"),
    (14, 14, "4", _CALLS, "CALL_FUNCTION_EX"),
    (13, _NEWEST, "3n", _CALLS, "CALL_KW"),
    (11, _NEWEST, "0", _CLASS, "LOAD_BUILD_CLASS"),
    (11, _NEWEST, "1", _METHODS, "UNARY_NEGATIVE UNARY_NOT UNARY_INVERT GET_ITER"),
    (11, 11, "1", _METHODS, "UNARY_POSITIVE"),
    (13, _NEWEST, "1", _METHODS, "TO_BOOL"),
    (11, _NEWEST, "2", _METHODS, "BINARY_OP COMPARE_OP CONTAINS_OP IS_OP"),
    (11, 13, "2", _METHODS, "BINARY_SUBSCR"),
    (11, _NEWEST, "3", _METHODS, "STORE_SUBSCR"),
    (11, _NEWEST, "2", _METHODS, "DELETE_SUBSCR"),
    (12, _NEWEST, "3", _METHODS, "BINARY_SLICE"),
    (12, _NEWEST, "4", _METHODS, "STORE_SLICE"),
    (11, _NEWEST, "1", _METHODS, "UNPACK_SEQUENCE UNPACK_EX"),
    (11, 12, "1s", "SPECIAL_METHODS: no class defines __format__", "FORMAT_VALUE"),
    (13, _NEWEST, "1", "SPECIAL_METHODS: no class defines __format__", "FORMAT_SIMPLE"),
    (13, _NEWEST, "2", _METHODS, "FORMAT_WITH_SPEC"),
    (13, _NEWEST, "1", _METHODS, "CONVERT_VALUE"),
    (11, _NEWEST, "0", _METHODS, "GET_LEN MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS"),
    (11, _NEWEST, "3", "the audit: only without patterns", "MATCH_CLASS"),
    (11, _NEWEST, "0", _FLOW, "JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT"),
    (11, 11, "1", _FLOW, "JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP"),
    (11, 11, "1", _FLOW, "POP_JUMP_FORWARD_IF_FALSE POP_JUMP_BACKWARD_IF_FALSE"),
    (11, 11, "1", _FLOW, "POP_JUMP_FORWARD_IF_TRUE POP_JUMP_BACKWARD_IF_TRUE"),
    (11, 11, "1", _FLOW, "POP_JUMP_FORWARD_IF_NONE POP_JUMP_BACKWARD_IF_NONE"),
    (11, 11, "1", _FLOW, "POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_NOT_NONE"),
    (12, _NEWEST, "1", _FLOW, "POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_NONE"),
    (12, _NEWEST, "1", _FLOW, "POP_JUMP_IF_NOT_NONE"),
    (11, _NEWEST, "1", _METHODS, "FOR_ITER"),
    (12, 12, "2", _FLOW, "END_FOR"),
    (13, _NEWEST, "1", _FLOW, "END_FOR"),
    (11, _NEWEST, "1", _FLOW, "RETURN_VALUE"),
    (12, 13, "0", _FLOW, "RETURN_CONST"),
    (11, _NEWEST, "0", _FLOW, "RETURN_GENERATOR"),
    (11, _NEWEST, "1", "the worker: it takes only what `call` made", "YIELD_VALUE"),
    (11, _NEWEST, "1", _METHODS, "GET_YIELD_FROM_ITER"),
    (11, _NEWEST, "2", _METHODS, "SEND"),
    (12, _NEWEST, "2", _FLOW, "END_SEND"),
    (12, _NEWEST, "3", _ERRORS, "CLEANUP_THROW"),
    (11, 13, "1", "SPECIAL_METHODS: __enter__ and __exit__", "BEFORE_WITH"),
    (11, _NEWEST, "0", "SPECIAL_METHODS: __exit__", "WITH_EXCEPT_START"),
    (11, _NEWEST, "1", _ERRORS, "PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH RERAISE"),
    (11, _NEWEST, "0n", _ERRORS, "RAISE_VARARGS"),
    (11, 13, "0", _ERRORS, "LOAD_ASSERTION_ERROR"),
    (11, _NEWEST, "2", _GROUPS, "CHECK_EG_MATCH"),
    (11, 11, "2", _GROUPS, "PREP_RERAISE_STAR"),
    (12, _NEWEST, "1", _KIND, "CALL_INTRINSIC_1"),
    (12, _NEWEST, "2", _KIND, "CALL_INTRINSIC_2"),
)

KINDS: Final = {
    "CALL_INTRINSIC_1": (
        "_intrinsic_1_descs",
        "INTRINSIC_LIST_TO_TUPLE INTRINSIC_STOPITERATION_ERROR "
        "INTRINSIC_UNARY_POSITIVE",
    ),
    "CALL_INTRINSIC_2": ("_intrinsic_2_descs", "INTRINSIC_PREP_RERAISE_STAR"),
    "LOAD_COMMON_CONSTANT": (
        "_common_constants",
        "AssertionError NotImplementedError tuple all any",
    ),
    "LOAD_SPECIAL": ("_special_method_names", "__enter__ __exit__"),
}
"""The instructions that do several things: the list of these in `opcode`, by the
argument, and which of them a half may have."""


def instructions_of(minor: int) -> dict[str, Instruction]:
    """Return the allow list of a minor version of Python 3; none for an unknown one."""
    if minor not in VERSIONS:
        return {}
    return {
        name: Instruction(name, pops, guard)
        for first, last, pops, guard, names in _ROWS
        if first <= minor <= last
        for name in names.split()
    }


@cache
def allowed() -> dict[int, Instruction]:
    """Return the allow list of this interpreter, by number; empty if it is unknown."""
    if sys.implementation.name != "cpython" or sys.version_info[0] != 3:
        return {}
    listed = instructions_of(sys.version_info[1])
    return {dis.opmap[name]: one for name, one in listed.items() if name in dis.opmap}


@lru_cache(4096)
def effects(
    number: int, argument: int
) -> tuple[int, Sequence[None], Sequence[None] | None]:
    """Return what an allowed instruction does with the stack.

    Returns:
        How many values it takes, those that it puts there, of which nothing is known,
        and the same where it jumps; None if it never does.
    """
    count = _popped(allowed()[number], argument)
    given = argument if number >= dis.HAVE_ARGUMENT else None
    left = dis.stack_effect(number, given, jump=False) + count
    if number not in dis.hasjrel:
        return count, (None,) * left, None
    jumped = dis.stack_effect(number, given, jump=True) + count
    return count, (None,) * left, (None,) * jumped


def _popped(one: Instruction, argument: int) -> int:
    more = {
        "": 0,
        "n": argument,
        "2n": 2 * argument,
        "b": (argument & 15).bit_count(),
        "s": int(argument & 4 == 4),
        "k": argument & 1,
    }
    return int(one.pops[0]) + more[one.pops[1:]]
