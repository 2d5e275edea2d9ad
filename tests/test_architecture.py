"""The documents for maintainers agree with the code: places, rooms and decisions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import ROOT, headings, links, without_blocks
from tests.house.places import (
    defines,
    fixed,
    listed,
    modules_of,
    places,
    problems_of,
    rooms,
)
from tests.house.rooms import contracts_of

DOCS = ROOT / "docs"
ENTRANCES = (ROOT / "CONTRIBUTING.md", DOCS / "architecture.md")
"The documents that a newcomer begins with."

QUESTIONS = DOCS / "where-is-what.md"
ROOMS = {str(room.relative_to(ROOT)): room for room in rooms(ROOT)}
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
MAX_LINES = 70
"Lines of one screen."

CLAUSE = re.compile(
    r"\b(?:ANP|ENV|GBZ|A2A|INT)-Q?[0-9]+\b|\bWIRE rows? [0-9]+|\b[Nn]ot in the seed\b"
    r"|clauses GBZ and A2A"
)
CODE = re.compile(r"`([A-Za-z0-9_./-]+)`")


def named(document: Path) -> set[Path]:
    """Return the files and folders that a document names, by a link or as code."""
    text = document.read_text("utf-8")
    found = {
        (document.parent / link.target.partition("#")[0]).resolve()
        for link in links(text)
        if link.is_local
    }
    found |= {ROOT / path for path, _ in places(text)}
    found |= {ROOT / word for word in CODE.findall(without_blocks(text)) if "/" in word}
    return {path for path in found if path.exists() and path.is_relative_to(ROOT)}


def steps_to(path: Path) -> list[Path] | None:
    """Return the at most three steps from the entrances to a file, or None.

    A step is a file or folder that an entrance names, the list of a room, or the file
    itself. Tests stand where their rooms do, below `tests`.
    """
    known = {one for entrance in ENTRANCES for one in named(entrance)}
    if path in known:
        return [path]
    folder = path.parent
    if folder in known:
        init = folder / "__init__.py"
        if path.suffix != ".py" or not init.exists():
            return [folder, path]
        return [folder, init, path] if path.stem in listed(folder) else None
    if folder.is_relative_to(ROOT / "tests"):
        room = ROOT / folder.relative_to(ROOT / "tests")
        if room in known and ROOT / "tests" in known:
            return [room, folder, path]
    return None


def questions() -> dict[str, list[tuple[str, str]]]:
    """Return each question with the places that answer it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in QUESTIONS.read_text("utf-8").split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        found[title] = places(text)
        files = [word for word in CODE.findall(text) if "/" in word]
        found[title] += [(word, "") for word in files]
    return found


def test_the_architecture_fits_on_one_screen() -> None:
    lines = (DOCS / "architecture.md").read_text("utf-8").splitlines()
    assert len(lines) <= MAX_LINES


@pytest.mark.parametrize("document", [*ENTRANCES, QUESTIONS], ids=lambda one: one.name)
def test_every_named_place_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    assert places(text)
    missing = [
        f"{file}:{name}"
        for file, name in places(text)
        if not ((ROOT / file).is_file() and defines(ROOT / file, name))
    ]
    assert missing == []


@pytest.mark.parametrize("container", ["anp.sidecar", "negotiation"])
def test_every_room_of_the_import_order_is_in_the_architecture(container: str) -> None:
    (contract,) = (
        one
        for one in contracts_of(ROOT)
        if one.get("containers") == [container] and one["type"] == "layers"
    )
    document = DOCS / "architecture.md"
    text, known = document.read_text("utf-8"), named(document)
    for layer in contract["layers"]:
        for name in layer.split(" | "):
            folder = ROOT / container.replace(".", "/") / name
            if folder.is_dir():
                assert folder in known, f"{container}.{name} is not linked"
            else:
                assert f"`{name}`" in text, f"{container}.{name} is not named"


@pytest.mark.parametrize("name", ROOMS)
def test_the_list_of_a_room_is_its_folder(name: str) -> None:
    assert problems_of(ROOMS[name]) == []


def test_a_module_that_is_not_listed_and_one_that_is_missing_are_noticed(
    tmp_path: Path,
) -> None:
    text = '"""A room.\n\n* `one`: a module.\n* `two`: none.\n"""\n'
    (tmp_path / "__init__.py").write_text(text)
    (tmp_path / "one.py").touch()
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "__init__.py").touch()
    assert modules_of(tmp_path) == {"one", "three"}
    assert problems_of(tmp_path) == [
        "three is not listed",
        "two is listed and missing",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '"""A room."""\n',
        '"""A room.\n\nMore of it.\n"""\n\nONE = 1\n',
        '"""A room.\n\n* `gone`: a module with a long phrase\n  in two lines.\n"""\n',
        '"""A room.\n\n* `one`: a module.\n* `gone`: none.\n\nMore.\n"""\n',
    ],
)
def test_a_list_is_put_right(tmp_path: Path, text: str) -> None:
    init = tmp_path / "__init__.py"
    init.write_text(text)
    (tmp_path / "one.py").write_text('"""The first.\n\nMore."""\n')
    (tmp_path / "two.py").write_text(f'"""{"A sentence of some length. " * 5}"""\n')
    assert problems_of(tmp_path)
    init.write_text(fixed(tmp_path))
    assert problems_of(tmp_path) == []
    assert listed(tmp_path) == ["one", "two"]
    assert ("More" in text) == ("More" in init.read_text())


def test_a_place_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("A = 1\nB: int = 2\nclass C:\n    async def d(self): ...\n")
    assert all(defines(file, name) for name in ("A", "B", "C", "C.d"))
    assert not any(defines(file, name) for name in ("D", "d", "C.A", "A.d"))


@pytest.mark.parametrize("document", DECISIONS, ids=lambda one: one.name)
def test_each_decision_says_why_what_it_costs_and_its_clause(document: Path) -> None:
    if document.name == "README.md":
        listed_here = {link.target for link in links(document.read_text("utf-8"))}
        assert listed_here == {one.name for one in DECISIONS} - {"README.md"}
        return
    sections = document.read_text("utf-8").split("\n## ")[1:]
    assert sections
    for section in sections:
        title = section.partition("\n")[0]
        marks = re.findall(r"(?m)^\*(\w+)\.\* ", section)
        assert marks == ["Why", "Cost", "Clause"], f"{document.name}: {title}"
        clause = section.partition("*Clause.*")[2]
        assert CLAUSE.search(clause), f"{document.name}: {title}: no clause"


def test_there_are_ten_questions() -> None:
    assert len(questions()) == 10
    assert len(headings(QUESTIONS.read_text("utf-8"))) == 11


@pytest.mark.parametrize("question", questions())
def test_each_question_is_answered_in_three_steps(question: str) -> None:
    answers = questions()[question]
    assert answers, question
    for file, _ in answers:
        path = ROOT / file
        assert path.exists(), f"{question} {file} is not there"
        steps = steps_to(path)
        assert steps is not None, f"{question} no way leads to {file}"
        assert len(steps) <= 3
