"""The audit of compiled code finds what the rules for syntax would let pass."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from sandbox.language import audit as audit_module
from sandbox.language.audit import GUARDS, audit
from sandbox.language.opcodes import (
    KINDS,
    VERSIONS,
    allowed,
    effects,
    instructions_of,
)
from sandbox.language.policy import compile_half
from sandbox.worker.worker import fresh_globals

CORPUS = Path(__file__).parent.parent / "corpus"

UNGUARDED = {
    "x.y": "the attribute y of unexamined objects",
    "x.y()": "LOAD_METHOD|calls a method that no guard read",
    "x.y = 1": "the attribute y of unexamined objects",
    "del x.y": "the attribute y of unexamined objects",
    "x.y += 1": "the attribute y of unexamined objects",
    "f(_write_(x)).y": "the attribute y of unexamined objects",
    "(_write_(x) if a else x).y": "the attribute y of unexamined objects",
    "(_write_(x) or x).y = 1": "the attribute y of unexamined objects",
    "(x if a else _write_(x)).y = 1": "the attribute y of unexamined objects",
    "(x, _write_(x))[0].y = 1": "the attribute y of unexamined objects",
    "for a in b: c = _write_(a)\na.y = 1": "the attribute y of unexamined objects",
    "[_write_(x).y for x in [x.y]]": "the attribute y of unexamined objects",
    "_hold_(x).other": "the attribute other of unexamined objects",
    "_write_(x).__class__ = 1": "the attribute __class__",
    "_write_(x).gi_frame = 1": "the attribute gi_frame",
    "_write_(x).format += 1": "the attribute format",
    "f = _getattr_": "the guard _getattr_ as a value",
    "[_getattr_]": "the guard _getattr_ as a value",
    "f(_getattr_)": "the guard _getattr_ as a value",
    "f(*_getattr_)": "the guard _getattr_ as a value",
    "(_getattr_ if a else f)(x, 'y')": "a guard on one of two ways only",
    "(a and _getattr_)(x, 'y')": "a guard on one of two ways only",
    "f = a and _getattr_": "a guard",
    "_getattr_(x, *y)": "the guard _getattr_ as a value",
    "_getattr_(x, name=y)": "calls _getattr_ in another way than ours",
    "_getattr_(x)": "calls _getattr_ in another way than ours",
    "_getattr_(x, y)": "reads the attribute None by _getattr_",
    "_getattr_(x, 'a' if b else 'c')": "reads the attribute None by _getattr_",
    "_getattr_(x, 'gi_frame')": "reads the attribute 'gi_frame'",
    "_getattr_(x, '__class__')": "reads the attribute '__class__'",
    "_getattr_(x, 'format')": "reads the attribute 'format'",
    "_getattr_guarded_(x, 'y')": "reads the attribute 'y'",
    "_getattr_guarded_(x, '__dict__')": "reads the attribute '__dict__'",
    "@_write_\ndef f(): pass": "_write_",
    "class C(_hold_): pass": "the guard _hold_ as a value",
    "_import_('os')": "imports",
    "_import_('json', 'decoder')": "imports",
    "_import_(x)": "imports",
    "__builtins__": "reads __builtins__",
    "__loader__": "reads __loader__",
    "_unknown_": "reads _unknown_",
    "_getattr_ = 1": "sets or deletes _getattr_",
    "del _getattr_": "sets or deletes _getattr_",
    "__name__ = 'os'": "sets or deletes __name__",
    "def f():\n global _write_\n _write_ = 1": "sets or deletes _write_",
    "def f(_write_): pass": "a variable _write_",
    "lambda: [0 for _write_ in ()]": "a variable _write_",
    "def f():\n _write_ = 1\n def g(): return _write_": "a variable _write_",
    "class C:\n __module__ = 'os'": "sets or deletes __module__",
    "class C:\n __getattr__ = 1": "sets or deletes __getattr__",
    "class C:\n __match_args__ = ()": "sets or deletes __match_args__",
    "class C:\n def f(self): return __class__": "",
    "import os": "IMPORT_NAME",
    "from json import loads": "IMPORT_NAME",
    "async def f(): await x": "GET_AWAITABLE",
    "async def f():\n async with x: pass": "BEFORE_ASYNC_WITH|LOAD_SPECIAL",
    "async def f(): yield 1": "ASYNC_GEN_WRAP|CALL_INTRINSIC_1",
    "match x:\n case int(y): pass": "matches a class with patterns inside",
    "match x:\n case int(y=1): pass": "matches a class with patterns inside",
    "match x:\n case [C(a, b)]: pass": "matches a class with patterns inside",
}


def _sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the source of all code of the corpus."""
    for path in [*CORPUS.rglob("honest/*.py"), *CORPUS.rglob("escapes/*/*.py")]:
        yield str(path.relative_to(CORPUS)), path.read_text("utf-8")
    for path in [*CORPUS.rglob("constructs/*.txt"), *CORPUS.rglob("gadgets/*.txt")]:
        for part in path.read_text("utf-8").split("# --- ")[1:]:
            name, _, source = part.partition("\n")
            yield f"{path.stem}: {name}", source


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _inside(one)


def test_all_code_of_the_corpus_has_guarded_instructions_only() -> None:
    refused, seen = {}, set()
    compiled = 0
    for name, source in _sources():
        code, findings = compile_half(source)
        if code is not None:
            compiled += 1
            for one in _inside(code):
                seen |= {item.opname for item in dis.get_instructions(one)}
        elif any("the compiled code" in finding.reason for finding in findings):
            refused[name] = findings
    assert refused == {}
    assert compiled >= 450
    # All but a few of the allow list occur, so that it is not wider than need be.
    unused = {one.name for one in allowed().values()} - seen
    assert unused <= {
        "CACHE",
        "DELETE_DEREF",
        "DELETE_GLOBAL",
        "LOAD_CLASSDEREF",
        "LOAD_CLOSURE",
        "LOAD_FROM_DICT_OR_DEREF",
        "LOAD_LOCALS",
        "STORE_SLICE",
    }


@pytest.mark.parametrize("source", UNGUARDED)
def test_what_no_guard_examines_is_found_in_plain_code(source: str) -> None:
    code = compile(source, "<plain>", "exec", dont_inherit=True)
    if not UNGUARDED[source]:
        assert audit(code) == []
        return
    reasons = [finding.reason for finding in audit(code)]
    assert any(
        part in reason for part in UNGUARDED[source].split("|") for reason in reasons
    ), reasons


def test_a_finding_has_the_line_of_the_instruction() -> None:
    code = compile("a = 1\n\ndef f(x):\n    return x.y\n", "<plain>", "exec")
    assert [finding.line for finding in audit(code)] == [4]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n x = 1\n class C:\n  y = x\n  def g(self): return super(), x\n",
        "def f(x):\n del x\n def g():\n  nonlocal x\n  x = 1\n  del x\n",
        "def f():\n global g\n g = 1\n del g\n",
        "x = [1, 2, 3]\nx[0:2] = x[1:]\ndel x[0]\n",
        "def f(a, /, b=1, *c, d=2, **e):\n return f(a, b, *c, d=d, **e)\n",
        "def f(x):\n x.a.b += [y for y in x.c if y] or (x.d if x else x.e)\n",
        "def f(x):\n x.a[0].b, (x.c, *x.d) = [g(y.z) for y in x.a], (1, 2)\n",
        "def f(x):\n return [y.a and z.b for y in x for z in y.c if y.d or z.e]\n",
        "def f(x):\n while x.a:\n  try: yield (yield from x.b)\n"
        "  except (x.C, ValueError) as e: x.d = e.args\n  finally: del x.a\n",
    ],
)
def test_rare_forms_of_honest_code_pass(source: str) -> None:
    code, findings = compile_half(source)
    assert code is not None, findings


def test_code_runs_on_no_version_that_was_not_examined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert instructions_of(max(VERSIONS) + 1) == {}
    assert instructions_of(10) == {}
    monkeypatch.setattr(audit_module, "allowed", dict)
    code, findings = compile_half("x = 1")
    assert code is None
    version = ".".join(map(str, sys.version_info[:2]))
    assert f"Python {version} were never examined here" in findings[0].reason


@pytest.mark.parametrize("minor", sorted(VERSIONS))
def test_each_instruction_of_each_version_says_who_guards_it(minor: int) -> None:
    listed = instructions_of(minor)
    assert all(one.guard and one.pops for one in listed.values())
    never = "IMPORT_NAME IMPORT_FROM IMPORT_STAR LOAD_METHOD LOAD_SUPER_ATTR PRINT_EXPR"
    assert not listed.keys() & set(never.split())
    assert not [name for name in listed if "ASYNC" in name or "AWAIT" in name]


def test_the_list_of_this_version_names_instructions_that_it_has() -> None:
    minor = sys.version_info[1]
    assert instructions_of(minor).keys() <= dis.opmap.keys()
    for number, one in allowed().items():
        for argument in range(2, 5) if one.name not in KINDS else (1,):
            taken, given, jumped = effects(number, argument)
            net = len(given) - taken
            has_argument = number >= dis.HAVE_ARGUMENT
            told = dis.stack_effect(number, argument if has_argument else None)
            if jumped is None and one.name not in {"CALL", "CALL_KW", "PRECALL"}:
                assert net == told, one.name


def test_the_guards_are_those_of_the_worker() -> None:
    made = {name for name in fresh_globals() if name.startswith("_")}
    assert made - {"__builtins__", "__name__"} == set(GUARDS)
