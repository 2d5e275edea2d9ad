"""Documents do not rot: links, commands, settings and blocks of code are checked."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from anp.errors import ConfigError
from anp.sidecar.config.load import load_config
from anp.sidecar.config.settings import Config
from anp.sidecar.home.explain import known_keys
from anp.sidecar.home.home import Home
from tests.command_lines import command_lines, problem_of
from tests.documents import ROOT, blocks, documents, headings, links, without_blocks

DOCUMENTS = {str(path.relative_to(ROOT)): path for path in documents()}
SHELLS = {"", "console", "sh", "bash", "shell"}
INLINE = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"\bmake ([a-z][a-z-]*)")
VARIABLE = re.compile(r"\bANPD_([A-Z]+)__([A-Z_]+)\b")
SECTIONS = known_keys(Config, [])
SETTING = re.compile(rf"({'|'.join(SECTIONS)})\.([a-z_]+)")
FILES = {"identity.key"}
PLACES = re.compile(r"(?<![\w.])/(?:root|work|tmp/wt|home/[a-z])|\bpypi\.org\b")

every_document = pytest.mark.parametrize("name", DOCUMENTS)


def text_of(name: str) -> str:
    return DOCUMENTS[name].read_text("utf-8")


def snippets(text: str) -> list[tuple[str, bool]]:
    """Return what a document shows as code, and whether words may explain it there."""
    found = [(code, False) for code in INLINE.findall(without_blocks(text))]
    for block in blocks(text):
        if block.kind == "console":
            found += [(typed.command, False) for typed in block.typed]
        elif block.kind in SHELLS:
            lines = block.text.replace("\\\n", " ").splitlines()
            found += [(line, not block.kind) for line in lines]
    return found


def test_the_documents_were_found() -> None:
    assert {"README.md", "CHANGELOG.md", "docs/README.md"} <= DOCUMENTS.keys()
    assert len(DOCUMENTS) >= 10


@every_document
def test_every_link_leads_somewhere(name: str) -> None:
    path = DOCUMENTS[name]
    for link in links(text_of(name)):
        if not link.is_local:
            continue
        file, _, anchor = link.target.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{name}: {link.target} is not there"
        assert target.is_relative_to(ROOT), f"{name}: {link.target} is elsewhere"
        if anchor:
            found = headings(target.read_text("utf-8"))
            assert anchor in found, f"{name}: {file} has no heading #{anchor}"


def test_every_page_of_docs_is_in_the_index() -> None:
    listed = {link.target for link in links(text_of("docs/README.md"))}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= listed


@every_document
def test_every_command_and_option_exists(name: str) -> None:
    for snippet, prose in snippets(text_of(name)):
        for words in command_lines(snippet):
            found = problem_of(words, prose=prose)
            assert found is None, f"{name}: {snippet!r}: {found}"


@every_document
def test_every_make_target_exists(name: str) -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text()))
    for snippet, _ in snippets(text_of(name)):
        if snippet.lstrip("$ ").startswith("make "):
            assert set(MAKE.findall(snippet)) <= targets, f"{name}: {snippet}"


@every_document
def test_every_table_of_settings_is_accepted(name: str, tmp_path: Path) -> None:
    for block in blocks(text_of(name)):
        if block.kind != "toml":
            continue
        where = f"{name}, line {block.line}"
        content = tomllib.loads(block.text)
        if not content.keys() <= set(SECTIONS):
            # A file of another kind, such as one attachment's.
            assert not content.keys() & set(SECTIONS), f"{where}: half of it is unknown"
            continue
        (tmp_path / "anpd.toml").write_text(block.text, "utf-8")
        try:
            load_config(Home(tmp_path), home_given=True, environ={})
        except ConfigError as exc:
            pytest.fail(f"{where}: {exc}")


@every_document
def test_every_setting_that_is_named_exists(name: str) -> None:
    text = text_of(name)
    named = [
        (match[1], match[2])
        for code in INLINE.findall(without_blocks(text))
        if (match := re.match(rf"{SETTING.pattern}(?=$| =|=)", code))
        # Modules and files of ours have such names too.
        and not (ROOT / match[1] / f"{match[2]}.py").exists()
        and match[0] not in FILES
    ]
    named += [(m[1].lower(), m[2].lower()) for m in VARIABLE.finditer(text)]
    for section, key in named:
        known = known_keys(Config, [section]) or known_keys(Config, [section, 0])
        assert key in known, f"{name}: there is no {section}.{key}"


@every_document
def test_blocks_of_code_can_be_read(name: str) -> None:
    for block in blocks(text_of(name)):
        where = f"{name}, line {block.line}"
        try:
            match block.kind:
                case "json":
                    json.loads(block.text)
                case "python":
                    ast.parse(block.text)
                case "console":
                    assert block.typed, f"{where}: nothing is typed"
        except (ValueError, SyntaxError) as exc:
            pytest.fail(f"{where}: {exc}")


@every_document
def test_no_place_of_one_machine_is_named(name: str) -> None:
    found = PLACES.search(text_of(name))
    assert found is None, f"{name}: {found and found[0]}"


@every_document
def test_no_mark_of_a_merge_was_left(name: str) -> None:
    marks = ("<<<<<<< ", ">>>>>>> ")
    assert not [line for line in text_of(name).splitlines() if line.startswith(marks)]


@pytest.mark.parametrize(
    "line",
    [
        "$ anpd --home ~/shop up --port 8765 &",
        "anpd protocols export HASH [--role requester|provider] [-o FILE]",
        "anpd negotiations show|hint ID",
        "anpd attach …",
        "ANPD_CONSENSUS__USE=false .venv/bin/anpd --home H up   where peers find us",
        "anpd call PEER TASK -d '[1, \"--none\"]' | jq .",
        "anpd attach mcp --name time -- server --none",
    ],
)
def test_a_command_that_exists_is_accepted(line: str) -> None:
    (words,) = command_lines(line)
    assert problem_of(words) is None


@pytest.mark.parametrize(
    "line",
    [
        "$ anpd upp",
        "anpd up --prot 1",
        "anpd --hom x up",
        "anpd negotiations show|look ID",
        "anpd protocols export HASH [--roles requester]",
        "make demo && anpd peers ls",
        "anpd doctor now",
    ],
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    (words,) = command_lines(line)
    assert problem_of(words) is not None
