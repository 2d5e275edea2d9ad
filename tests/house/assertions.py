"""Lists every assertion of the test suite, and compares the lists of two checkouts.

    python -m tests.house.assertions [DIR]
    python -m tests.house.assertions --compare OLD_DIR NEW_DIR

An assertion belongs to the function it stands in, whose name is enough: moving a test
to another file, or renaming a file, changes nothing. Functions inside a function belong
to the outer one. A function is a test when pytest would collect it, so its file has to
be named `test_*.py`; every other function is a helper.

These count, in a form that does not depend on layout, quotes or comments:

- `assert`, without its message, and calls of mocks such as `assert_called_once`;
- `pytest.raises`, `pytest.warns` and the like, with their arguments;
- `pytest.fail` and `raise AssertionError`, without their message;
- marks and calls of `xfail` and `skip`, with their arguments;
- each case of `pytest.mark.parametrize`, where the cases stand in the mark.

The comparison also tells which calls of helpers that assert are no longer made. Three
things it cannot see: cases in a constant or a data file that became fewer, a test whose
assertions stay while its steps change, and code in strings, such as programs that a
test writes. A renamed variable or module in an assertion shows as one missing and one
gained.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

DATA = {"vectors": "tests", "escapes": "corpus", "honest": "corpus"}
"Folders of data that look like code, each with the name of the folder above it."

WITH_ARGUMENTS = {
    "pytest.raises",
    "pytest.RaisesGroup",
    "pytest.warns",
    "pytest.deprecated_call",
}
WITHOUT_ARGUMENTS = {"pytest.fail"}
WEAKENING = {
    "pytest.xfail",
    "pytest.mark.xfail",
    "pytest.skip",
    "pytest.mark.skip",
    "pytest.mark.skipif",
    "pytest.importorskip",
}
"Names by which a test may pass without all of its assertions."

PARAMETRIZE = "pytest.mark.parametrize"
MODULE = "<module>"
"Stands for the function of an assertion or mark outside of every function."


@dataclass(frozen=True, slots=True)
class Suite:
    """The assertions of one checkout's tests."""

    assertions: Counter[tuple[str, str]] = field(default_factory=Counter)
    "Function and normalised text of each assertion, with its number."

    functions: Counter[str] = field(default_factory=Counter)
    "Every test and helper; the number is over 1 where files share a name."

    files: dict[str, list[str]] = field(default_factory=dict)
    "The files of each function, below the checkout."

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    "Function and last name of everything it calls."

    def asserting_helpers(self) -> set[str]:
        """Return the last names of helpers that have an assertion themselves."""
        names = {function for function, text in self.assertions if not _is_mark(text)}
        return {
            name.removeprefix("helper ").rpartition(".")[2]
            for name in names
            if name.startswith("helper ") and name != f"helper {MODULE}"
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between an older and a newer suite."""

    missing: Counter[tuple[str, str]]
    "Assertions of the older suite that the newer does not have, by function and text."

    gained: Counter[tuple[str, str]]
    "Assertions that only the newer suite has."

    gone: Counter[str]
    "Functions the newer suite has fewer of: tests, and helpers that lost assertions."

    calls: Counter[tuple[str, str]]
    "Calls of asserting helpers that functions of both suites no longer make."

    @property
    def is_clean(self) -> bool:
        """Say if nothing was lost and nothing weakened."""
        weakened = any(_is_mark(text) for _, text in self.gained)
        return not (self.missing or self.gone or self.calls or weakened)


def read_suite(checkout: Path) -> Suite:
    """Return all assertions below `tests` of a checkout."""
    suite = Suite()
    for path in sorted((checkout / "tests").rglob("*.py")):
        place = PurePosixPath(path.relative_to(checkout).as_posix())
        parts = place.parts
        if any(DATA.get(one) == above for above, one in pairwise(parts)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(place))
        _Reader(suite, place, _pytest_names(tree)).read_body(tree, ())
    return suite


class _Reader:
    """Adds the functions of one file to a suite."""

    def __init__(
        self, suite: Suite, file: PurePosixPath, names: dict[str, str]
    ) -> None:
        self._suite = suite
        self._file = file
        self._names = names

    def read_body(self, node: ast.AST, above: tuple[str, ...]) -> None:
        """Add the functions directly in a module or class, and what stands beside."""
        for one in ast.iter_child_nodes(node):
            match one:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._add(one, self._title((*above, one.name)))
                case ast.ClassDef():
                    for mark in one.decorator_list:
                        self._add(mark, self._title((*above, one.name)))
                    self.read_body(one, (*above, one.name))
                case ast.If() | ast.Try() | ast.ExceptHandler() | ast.With():
                    self.read_body(one, above)
                case _:
                    self._add(one, self._title((*above, MODULE)))

    def _title(self, names: tuple[str, ...]) -> str:
        title = ".".join(names)
        *classes, name = names
        is_test = (
            self._file.name.startswith("test_")
            and name.startswith("test")
            and all(one.startswith("Test") for one in classes)
        )
        return title if is_test else f"helper {title}"

    def _add(self, node: ast.AST, title: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._suite.functions[title] += 1
            self._note_file(title)
        for text in self._texts(node):
            self._suite.assertions[title, text] += 1
            self._note_file(title)
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                name = ast.unparse(one.func).rpartition(".")[2]
                self._suite.calls[title, name] += 1

    def _note_file(self, title: str) -> None:
        files = self._suite.files.setdefault(title, [])
        if str(self._file) not in files:
            files.append(str(self._file))

    def _texts(self, node: ast.AST) -> Iterator[str]:
        below: Iterator[ast.AST] = ast.iter_child_nodes(node)
        match node:
            case ast.Assert():
                yield f"assert {ast.unparse(node.test)}"
            case ast.Raise() if self._raises_assertion(node):
                yield "raise AssertionError"
            case ast.Call():
                yield from self._of_call(node)
                if self._dotted(node.func) in WEAKENING:
                    below = iter([*node.args, *node.keywords])
            case ast.Attribute() | ast.Name():
                name = self._dotted(node)
                if name in WEAKENING and name.startswith("pytest.mark."):
                    yield name
        for one in below:
            yield from self._texts(one)

    def _of_call(self, node: ast.Call) -> Iterator[str]:
        name = self._dotted(node.func)
        if name in WITH_ARGUMENTS | WEAKENING:
            arguments = [ast.unparse(one) for one in (*node.args, *node.keywords)]
            yield f"{name}({', '.join(arguments)})"
        elif name in WITHOUT_ARGUMENTS:
            yield name
        elif name == PARAMETRIZE:
            yield from _cases(node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr.startswith(
            "assert_"
        ):
            yield ast.unparse(node)

    def _dotted(self, node: ast.AST) -> str:
        """Return the name that `node` has in pytest, or an empty string."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return ""
        return ".".join([self._names[node.id], *parts])

    @staticmethod
    def _raises_assertion(node: ast.Raise) -> bool:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "AssertionError"


def _pytest_names(tree: ast.Module) -> dict[str, str]:
    """Return the names that a file has for pytest and for parts of it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "pytest":
                    found[alias.asname or "pytest"] = "pytest"
        elif isinstance(node, ast.ImportFrom) and node.module == "pytest":
            for alias in node.names:
                found[alias.asname or alias.name] = f"pytest.{alias.name}"
    return found


def _cases(node: ast.Call) -> Iterator[str]:
    arguments = [
        *node.args,
        *(one.value for one in node.keywords if one.arg == "argvalues"),
    ]
    names = ast.unparse(arguments[0])
    for values in arguments[1:2]:
        if isinstance(values, ast.List | ast.Tuple | ast.Set):
            for one in values.elts:
                yield f"case {names}: {ast.unparse(one)}"
        else:
            yield f"cases {names}: {ast.unparse(values)}"


def _is_mark(text: str) -> bool:
    return text.partition("(")[0] in WEAKENING


def compare(old: Suite, new: Suite) -> Comparison:
    """Return the assertions, functions and calls in which two suites differ."""
    missing = old.assertions - new.assertions
    losing = {function for function, _ in missing}
    gone = Counter(
        {
            name: count
            for name, count in (old.functions - new.functions).items()
            if not name.startswith("helper ") or name in losing
        }
    )
    helpers = old.asserting_helpers()
    calls = Counter(
        {
            (function, name): count
            for (function, name), count in (old.calls - new.calls).items()
            if name in helpers and new.functions[function]
        }
    )
    return Comparison(missing, new.assertions - old.assertions, gone, calls)


def listing(suite: Suite) -> list[str]:
    """Return the assertions sorted by function, and then the files of each function."""
    lines = ["# Assertions"]
    for (function, text), count in sorted(suite.assertions.items()):
        lines.extend([f"{function}\t{_line(text)}"] * count)
    lines.append("# Files")
    for function, files in sorted(suite.files.items()):
        lines.append(f"{function}\t{' '.join(files)}")
    return lines


def report(old: Suite, new: Suite) -> list[str]:
    """Return the lines of a comparison."""
    found = compare(old, new)
    lines = [
        f"# {_numbers('old', old)}; {_numbers('new', new)}",
        f"# Assertions of old that are not in new: {found.missing.total()}",
        *_counted(found.missing),
    ]
    fates = list(_fates(found, old, new))
    lines += [f"# By function: {len(fates)}", *fates]
    lines.append(f"# Calls of asserting helpers no longer made: {found.calls.total()}")
    lines.extend(_counted(found.calls))
    marks = Counter(
        {key: count for key, count in found.gained.items() if _is_mark(key[1])}
    )
    lines.append(f"# Marks of xfail and skip that only new has: {marks.total()}")
    lines.extend(_counted(marks))
    return lines


def _numbers(name: str, suite: Suite) -> str:
    tests = sum(
        count for one, count in suite.functions.items() if not one.startswith("helper ")
    )
    return f"{name}: {suite.assertions.total()} assertions, {tests} tests"


def _counted(counts: Counter[tuple[str, str]]) -> list[str]:
    return [
        f"{function}\t{_line(text)}" + (f"\t{count} times" if count > 1 else "")
        for (function, text), count in sorted(counts.items())
    ]


def _line(text: str) -> str:
    # A string over several lines is unparsed with real line ends.
    return text.replace("\n", "\\n")


def _fates(found: Comparison, old: Suite, new: Suite) -> Iterator[str]:
    """Give a line about each function that lost assertions or is gone."""
    missing, gained = _by_function(found.missing), _by_function(found.gained)
    for name in sorted({*found.gone, *missing}):
        lost = missing.get(name, Counter())
        more = gained.get(name, Counter()).total()
        before, after = old.functions[name], new.functions[name]
        said = [f"{lost.total()} missing"]
        if before and not after:
            said.insert(0, f"gone from {' '.join(old.files[name])}")
            said.extend(_elsewhere(lost, gained))
        else:
            fewer = f"{before - after} of {before} functions of this name gone"
            said.insert(0, fewer if after < before else "still there")
            verdict = "as many or more" if more >= lost.total() else "FEWER"
            said.append(f"{more} gained, {verdict}")
        yield f"{name}\t{'; '.join(said)}"


def _elsewhere(
    missing: Counter[str], gained: Mapping[str, Counter[str]]
) -> Iterator[str]:
    """Say which function gained most of the missing texts, if any did."""
    same = {name: (missing & texts).total() for name, texts in gained.items()}
    best = max(sorted(same), key=same.__getitem__, default="")
    if best and same[best]:
        yield f"{same[best]} of them gained by {best}"


def _by_function(counts: Counter[tuple[str, str]]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for (function, text), count in counts.items():
        found.setdefault(function, Counter())[text] = count
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a listing, or a comparison; return 1 if something was lost or weakened."""
    parser = argparse.ArgumentParser(prog="python -m tests.house.assertions")
    parser.add_argument("checkout", nargs="?", type=Path, default=Path())
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args(arguments)
    for one in options.compare or [options.checkout]:
        if not (one / "tests").is_dir():
            parser.error(f"{one} is no checkout of this project: no folder tests")
    if options.compare is None:
        print("\n".join(listing(read_suite(options.checkout))))
        return 0
    old, new = (read_suite(one) for one in options.compare)
    print("\n".join(report(old, new)))
    return 0 if compare(old, new).is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
