"""Known ways out of restricted Python end at the language layer (Goal 1)."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest

from sandbox.errors import Finding
from sandbox.language.facades.facade import Facade
from sandbox.language.facades.modules import FACADES, MODULE_MEMBERS
from sandbox.language.runtime.attributes import writable
from sandbox.language.runtime.classes import BASES, exact_group
from tests.sandbox.language.loaded import fenced, findings_of, outcome_plain

GADGETS = Path(__file__).parent.parent / "corpus" / "gadgets" / "all.txt"


def _gadgets() -> dict[str, str]:
    parts = GADGETS.read_text("utf-8").split("# --- ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


def _end_of(source: str) -> list[Finding] | str:
    """Return the findings of a source, or the exception that ended it."""
    findings = findings_of(source)
    if findings:
        return findings
    with pytest.raises(Exception) as caught:  # any, but one
        fenced(source)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_there_are_many_gadgets() -> None:
    assert len(_gadgets()) >= 90


@pytest.mark.parametrize("name", _gadgets())
def test_a_gadget_ends_before_its_result(name: str) -> None:
    source = _gadgets()[name]
    assert _end_of(source), name
    # It must be refused for what it does, not for a fault of its own.
    assert "NameError" not in str(_end_of(source))


@pytest.mark.parametrize(
    "source",
    [
        "from collections import UserDict\nresult = UserDict(a=1).copy().data",
        "import copy\nclass C:\n    def __new__(cls): return object.__new__(cls)\n"
        "    def __copy__(self): return 1\nresult = copy.copy(C())",
    ],
)
def test_what_is_not_a_gadget_still_works(source: str) -> None:
    assert repr(fenced(source)["result"]) == outcome_plain(source)[0]


def _members(facade: Facade, below: str) -> dict[str, object]:
    names = MODULE_MEMBERS[below]
    return {name: getattr(facade, name) for name in names if below != "logging"}


@pytest.mark.parametrize("module", MODULE_MEMBERS)
def test_a_facade_holds_no_module_and_nothing_that_can_be_written_to(
    module: str,
) -> None:
    for name, value in _members(FACADES[module], module).items():
        assert type(value).__name__ != "module", name
        assert not isinstance(value, dict | list | set | bytearray | OrderedDict), name


@pytest.mark.parametrize("module", MODULE_MEMBERS)
def test_a_facade_and_its_members_cannot_be_written_to(module: str) -> None:
    facade = FACADES[module]
    with pytest.raises(AttributeError):
        facade.x = 1
    with pytest.raises(TypeError):
        writable(facade)
    for value in _members(facade, module).values():
        with pytest.raises(TypeError):
            writable(value)


def test_bases_make_no_metaclass_and_no_exception_group_may_be_one() -> None:
    assert not any(issubclass(base, type) for base in BASES)
    assert exact_group() is None  # type: ignore[func-returns-value]  # nothing raised


def test_except_star_takes_only_the_original_groups() -> None:
    class Odd(ExceptionGroup[ValueError]):
        pass

    source = "def f(error):\n try:\n  raise error\n except* ValueError: pass\n"
    function = fenced(source)["f"]
    function(ExceptionGroup("m", [ValueError()]))
    with pytest.raises(TypeError, match="takes an ExceptionGroup itself"):
        function(Odd("m", [ValueError()]))
