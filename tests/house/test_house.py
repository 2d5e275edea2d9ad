"""The measures of the house and the list of assertions, on small trees made here."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.house.assertions import compare, listing, main, read_suite, report
from tests.house.circles import circles, import_graph
from tests.house.folders import (
    complex_functions,
    count_lines,
    flat_files,
    gerund_modules,
    repeated_file_names,
)
from tests.house.limits import GERUND_NOUNS
from tests.house.rooms import contracts_of, ordered_rooms, rooms_of
from tests.house.sources import Source, read_sources
from tests.house.traced_daemon import SENDS, Recorder
from tests.house.warm_call import Interval, files_of, summarised
from tests.house.words import class_names, names_twice, riddles, twice_in_package


def made(folder: Path, **files: str) -> list[Source]:
    """Write files, each named with `__` for a slash, and return the product's."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return read_sources(folder)


def init(folder: Path, package: str, text: str = "") -> None:
    """Write the `__init__` of a package."""
    (folder / package).mkdir(parents=True, exist_ok=True)
    (folder / package / "__init__.py").write_text(text)


def found_circles(sources: list[Source]) -> list[list[str]]:
    """Return the circles of made files."""
    return circles(import_graph(sources))


def test_files_are_counted_per_folder_without_init_and_main(tmp_path: Path) -> None:
    init(tmp_path, "anp/wire")
    (tmp_path / "anp" / "__main__.py").touch()
    sources = made(tmp_path, anp__a="", anp__wire__b="", anp__wire__c="", tests__d="")
    assert flat_files(sources) == [("anp/wire", 2), ("anp", 1)]


def test_file_names_of_two_folders_are_told(tmp_path: Path) -> None:
    init(tmp_path, "anp")
    init(tmp_path, "cache")
    sources = made(tmp_path, anp__keys="", cache__keys="", cache__rows="")
    assert repeated_file_names(sources) == {"keys.py": ["anp", "cache"]}


def test_gerunds_are_told_and_nouns_are_not(tmp_path: Path) -> None:
    names = ("trying", "case_testing", "tracing", "string", "ring", "settings")
    sources = made(tmp_path, **{f"anp__{name}": "" for name in names})
    found = gerund_modules(sources, GERUND_NOUNS)
    assert found == ["anp/case_testing.py", "anp/trying.py"]


def test_lines_are_line_ends(tmp_path: Path) -> None:
    sources = made(tmp_path, anp__a="x = 1\n\ny = 2", cache__b="x = 1\n")
    assert count_lines(sources) == {
        "anp": 2,
        "negotiation": 0,
        "sandbox": 0,
        "cache": 1,
        "jsonic": 0,
    }


def test_a_complex_function_counts_also_where_the_rule_is_off(tmp_path: Path) -> None:
    branches = "".join(
        f"    if x == {number}:\n        return\n" for number in range(4)
    )
    made(tmp_path, anp__a=f"def hard(x):  # noqa: C901\n{branches}")
    (found,) = complex_functions(tmp_path, 4)
    assert found.startswith("anp/a.py:1 `hard`")
    assert complex_functions(tmp_path, 5) == []


def test_modules_that_import_each_other_are_a_circle(tmp_path: Path) -> None:
    sources = made(
        tmp_path,
        anp__a="import anp.b",
        anp__b="from anp.c import x",
        anp__c="from anp import a",
        anp__d="import anp.a",
    )
    assert found_circles(sources) == [["anp.a", "anp.b", "anp.c"]]


def test_imports_in_functions_and_for_types_count(tmp_path: Path) -> None:
    sources = made(
        tmp_path,
        anp__a="""
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from anp.b import B
        """,
        anp__b="""
            def late():
                from .a import A
        """,
    )
    assert found_circles(sources) == [["anp.a", "anp.b"]]


def test_a_package_that_shows_its_modules_is_no_circle(tmp_path: Path) -> None:
    init(tmp_path, "anp/room", "from anp.room.a import A\nfrom .b import B\n")
    sources = made(tmp_path, anp__room__a="from anp.room.b import B", anp__room__b="")
    assert found_circles(sources) == []


def test_a_name_taken_from_the_own_package_is_a_circle(tmp_path: Path) -> None:
    init(tmp_path, "anp/room", "from anp.room.a import A\n")
    sources = made(tmp_path, anp__room__a="from anp.room import B")
    assert found_circles(sources) == [["anp.room", "anp.room.a"]]


def test_a_submodule_taken_from_its_package_is_not_the_package(tmp_path: Path) -> None:
    init(tmp_path, "anp/room", "from anp.room.a import A\n")
    sources = made(tmp_path, anp__room__a="from . import b", anp__room__b="")
    assert import_graph(sources)["anp.room.a"] == {"anp.room.b"}
    assert found_circles(sources) == []


def test_circles_that_touch_by_one_import_stay_apart() -> None:
    graph = {
        "a": {"b"},
        "b": {"a", "c"},
        "c": {"d"},
        "d": {"e"},
        "e": {"c"},
        "f": {"a"},
    }
    assert circles(graph) == [["c", "d", "e"], ["a", "b"]]
    assert circles({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def test_a_long_chain_does_not_end_the_recursion() -> None:
    graph = {f"{number:05}": {f"{number + 1:05}"} for number in range(5000)}
    assert circles({**graph, "05000": set()}) == []
    assert len(circles({**graph, "05000": {"00000"}})[0]) == 5001


def test_a_room_is_in_order_by_an_exhaustive_contract_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        dedent("""
        [[tool.importlinter.contracts]]
        type = "layers"
        containers = ["anp", "cache"]
        exhaustive = true
        exhaustive_ignores = ["tests"]

        [[tool.importlinter.contracts]]
        type = "layers"
        containers = ["sandbox"]

        [[tool.importlinter.contracts]]
        type = "forbidden"
        exhaustive = true
        containers = ["negotiation"]
        """)
    )
    ordered = ordered_rooms(contracts_of(tmp_path))
    assert ordered == {"anp": ["tests has no place"], "cache": ["tests has no place"]}


def test_packages_and_large_folders_of_anp_need_an_order(tmp_path: Path) -> None:
    for name in ("anp", "anp/big", "anp/small", "cache"):
        init(tmp_path, name)
    sources = made(
        tmp_path,
        **{f"anp__big__a{number}": "" for number in range(10)},
        **{f"anp__big__below__b{number}": "" for number in range(6)},
        **{f"anp__small__a{number}": "" for number in range(15)},
    )
    assert rooms_of(sources) == ["anp", "anp.big", "cache"]


def test_class_names_of_two_modules_are_told(tmp_path: Path) -> None:
    sources = made(
        tmp_path,
        anp__a="class One: ...\nclass _Own: ...\nclass Two:\n    class Three: ...",
        anp__b="class One: ...\nclass _Own: ...\nclass Three: ...",
        cache__c="if True:\n    class Two: ...\nelse:\n    class Two: ...",
    )
    names = class_names(sources)
    assert sorted(names) == ["One", "Three", "Two"]
    assert names_twice(names) == {
        "One": ["anp.a", "anp.b"],
        "Two": ["anp.a", "cache.c"],
    }
    assert twice_in_package(names) == {"One": ["anp.a", "anp.b"]}


def test_riddles_are_docstrings_and_field_strings(tmp_path: Path) -> None:
    sources = made(
        tmp_path,
        anp__a='''
            """What this is."""
            class A:
                """Counts things."""
                b: int
                "Whether it is so."
                c = "What is no documentation."
                def d(self):
                    """
                    Who calls."""
                "Whatever comes."
        ''',
    )
    assert riddles(sources) == [
        "anp/a.py:2 What this is.",
        "anp/a.py:6 Whether it is so.",
        "anp/a.py:9 Who calls.",
    ]


def test_files_of_a_call_are_told_in_order_and_without_idle_work() -> None:
    call = Interval((("a", "f"), ("t", "tick"), ("b", "g"), ("a", "h"), ("c", "i")), 3)
    idle = {("t", "tick"), ("a", "f")}
    assert files_of(call, set()) == ({"a": "f", "t": "tick", "b": "g"}, {"c": "i"})
    # A file counts while one of its functions is entered by calls only.
    assert files_of(call, idle) == ({"b": "g"}, {"a": "h", "c": "i"})
    unsent = files_of(Interval(call.functions, None), set())
    assert [list(one) for one in unsent] == [[], ["a", "t", "b", "c"]]


def test_a_file_that_one_call_did_not_enter_does_not_count() -> None:
    calls = [Interval((("a", "f"), ("b", "g"), ("c", "h")), 2) for _ in range(2)]
    calls.append(Interval((("x", "k"), ("a", "f"), ("c", "h")), 2))
    served = [Interval((("p", "f"), ("q", "g")), 1)] * 3
    idle = [Interval((("q", "g"),), None)]
    found = summarised(calls, served, [Interval((), None)], idle)
    assert (found.before, found.after) == ({"a": "f"}, {"c": "h"})
    assert found.provider == {"p": "f"}
    assert found.both == {"a", "c", "p"}


@pytest.mark.parametrize("send", sorted(SENDS))
def test_the_recorder_notes_functions_until_a_frame_is_sent(
    tmp_path: Path, send: str
) -> None:
    recorder = Recorder(str(tmp_path))
    names: dict[str, Any] = {}
    library = "async def send(text): pass\n"
    project = """
def helper(): pass
async def write():
    helper()
    await send("frame")
    after()
def after(): helper()
"""
    library, project = (one.replace("send(", f"{send}(") for one in (library, project))
    exec(compile(library, "/lib/websockets/asyncio/connection.py", "exec"), names)
    exec(compile(project, str(tmp_path / "anp" / "link.py"), "exec"), names)
    before = sys.getprofile()
    sys.setprofile(recorder.hook)
    try:
        names["helper"]()
        recorder.begin()
        with pytest.raises(StopIteration):
            names[send]("by somebody else").send(None)
        with pytest.raises(StopIteration):
            names["write"]().send(None)
        found = recorder.end()
        names["after"]()
    finally:
        sys.setprofile(before)
    assert found == recorder.end()
    assert found["before_send"] == 2
    assert found["functions"] == [
        ["anp/link.py", "write:3"],
        ["anp/link.py", "helper:2"],
        ["anp/link.py", "after:7"],
    ]


SUITE = """
    import pytest

    @pytest.mark.parametrize("x", [1, 2])
    def test_one(x):
        assert x, "not told"
        with pytest.raises(ValueError, match='no'):
            check(x)

        def inner():
            assert   'x'  # not told

    @pytest.mark.xfail(reason="later")
    def test_two(mock):
        mock.assert_called_once_with(1)
        if mock:
            pytest.fail("so")

    def check(x):
        assert x > 0
"""


def test_every_kind_of_assertion_is_listed(tmp_path: Path) -> None:
    made(tmp_path, tests__test_a=SUITE, tests__vectors__data="assert 1")
    assert listing(read_suite(tmp_path)) == [
        "# Assertions",
        "helper check\tassert x > 0",
        "test_one\tassert 'x'",
        "test_one\tassert x",
        "test_one\tcase 'x': 1",
        "test_one\tcase 'x': 2",
        "test_one\tpytest.raises(ValueError, match='no')",
        "test_two\tmock.assert_called_once_with(1)",
        "test_two\tpytest.fail",
        "test_two\tpytest.mark.xfail(reason='later')",
        "# Files",
        "helper check\ttests/test_a.py",
        "test_one\ttests/test_a.py",
        "test_two\ttests/test_a.py",
    ]


def test_other_names_for_pytest_and_bare_marks_are_known(tmp_path: Path) -> None:
    text = """
        import pytest as p
        from pytest import raises as fails
        pytestmark = p.mark.skip

        class TestA:
            def test_b(self):
                with fails(KeyError):
                    raise AssertionError("x")
    """
    made(tmp_path, tests__test_a=text)
    assert sorted(read_suite(tmp_path).assertions) == [
        ("TestA.test_b", "pytest.raises(KeyError)"),
        ("TestA.test_b", "raise AssertionError"),
        ("helper <module>", "pytest.mark.skip"),
    ]


def test_a_moved_test_and_a_new_layout_are_no_difference(tmp_path: Path) -> None:
    made(tmp_path / "old", tests__test_a=SUITE)
    moved = SUITE.replace("'no'", '"no"').replace("assert   'x'", "assert 'x'")
    made(tmp_path / "new", tests__room__test_b=moved)
    old, new = read_suite(tmp_path / "old"), read_suite(tmp_path / "new")
    assert compare(old, new).is_clean
    assert main(["--compare", str(tmp_path / "old"), str(tmp_path / "new")]) == 0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('assert x, "not told"', "pass", ("test_one", "assert x")),
        ("[1, 2]", "[1]", ("test_one", "case 'x': 2")),
        (
            "ValueError",
            "Exception",
            ("test_one", "pytest.raises(ValueError, match='no')"),
        ),
        ("assert x > 0", "return x > 0", ("helper check", "assert x > 0")),
    ],
)
def test_a_removed_assertion_is_told(
    tmp_path: Path, before: str, after: str, expected: tuple[str, str]
) -> None:
    made(tmp_path / "old", tests__test_a=SUITE)
    made(tmp_path / "new", tests__test_a=SUITE.replace(before, after))
    found = compare(read_suite(tmp_path / "old"), read_suite(tmp_path / "new"))
    assert found.missing == Counter([expected])
    assert not found.is_clean
    assert main(["--compare", str(tmp_path / "old"), str(tmp_path / "new")]) == 1


def test_the_same_assertion_made_less_often_is_told(tmp_path: Path) -> None:
    text = "def test_a():\n    assert x\n    x = 2\n    assert x\n"
    made(tmp_path / "old", tests__test_a=text)
    made(tmp_path / "new", tests__test_a="def test_a():\n    assert x\n")
    found = compare(read_suite(tmp_path / "old"), read_suite(tmp_path / "new"))
    assert found.missing == Counter({("test_a", "assert x"): 1})


def test_a_report_tells_gone_changed_and_weakened_tests(tmp_path: Path) -> None:
    made(
        tmp_path / "old",
        tests__test_a="""
            from tests.help import check
            def test_changed():
                assert one
            def test_fewer():
                assert one
                assert two
            def test_gone():
                assert three
            def test_renamed():
                assert four
                assert five
            def test_without_assertions():
                check(1)
            def test_unchecked():
                check(1)
            def test_no_more_found():
                assert six
        """,
        tests__help="def check(x):\n    assert x",
    )
    made(
        tmp_path / "new",
        tests__test_a="""
            import pytest
            def test_changed():
                assert other
            def test_fewer():
                assert one
            def test_newly_named():
                assert four
                assert five
            @pytest.mark.skip
            def test_unchecked():
                pass
        """,
        tests__help="""
            def check(x):
                assert x
            def test_no_more_found():
                assert six
        """,
    )
    old, new = read_suite(tmp_path / "old"), read_suite(tmp_path / "new")
    assert report(old, new) == [
        "# old: 8 assertions, 7 tests; new: 7 assertions, 4 tests",
        "# Assertions of old that are not in new: 6",
        "test_changed\tassert one",
        "test_fewer\tassert two",
        "test_gone\tassert three",
        "test_no_more_found\tassert six",
        "test_renamed\tassert five",
        "test_renamed\tassert four",
        "# By function: 6",
        "test_changed\tstill there; 1 missing; 1 gained, as many or more",
        "test_fewer\tstill there; 1 missing; 0 gained, FEWER",
        "test_gone\tgone from tests/test_a.py; 1 missing",
        "test_no_more_found\tgone from tests/test_a.py; 1 missing; "
        "1 of them gained by helper test_no_more_found",
        "test_renamed\tgone from tests/test_a.py; 2 missing; "
        "2 of them gained by test_newly_named",
        "test_without_assertions\tgone from tests/test_a.py; 0 missing",
        "# Calls of asserting helpers no longer made: 1",
        "test_unchecked\tcheck",
        "# Marks of xfail and skip that only new has: 1",
        "test_unchecked\tpytest.mark.skip",
    ]
