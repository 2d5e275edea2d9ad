"""The pages of the site: each link has its page, and they say what the code says."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from anp.errors import EXIT_CODES, ErrorKind
from anp.interaction.errors import InteractionFault
from anp.sidecar.config.settings import Config
from tests.command_lines import ROOT_COMMAND
from tests.documents import ROOT, blocks, documents
from tests.site.built import make_local, problems_in
from tests.site.cast import drawn_cast
from tests.site.links import WALK, place_of, relinked
from tests.site.messages import messages, texts
from tests.site.pages import section_of, write_sources
from tests.site.pictures import FOLDER, drawn
from tests.site.reference import GENERATED, openapi_document

DOCS = ROOT / "docs"
TROUBLE = (DOCS / "troubleshooting.md").read_text("utf-8")
ROW = re.compile(r"(?m)^\| (.+?) \|")
QUOTED = re.compile(r"`` (.+?) ``|`([^`]+)`")

RUN = {
    "README.md": "tests/e2e/test_readme.py",
    "docs/a2a.md": "tests/e2e/test_a2a_example.py",
    "docs/consensus.md": "tests/e2e/test_consensus_example.py",
    "docs/five-minutes.md": "tests/e2e/test_readme.py",
    "docs/groups.md": "tests/e2e/test_groups_example.py",
    "docs/recipes/two-machines.md": "tests/e2e/test_recipes.py",
    "docs/subscriptions.md": "tests/e2e/test_subscriptions_example.py",
    "docs/tasks.md": "tests/e2e/test_tasks_example.py",
    "examples/formats/README.md": "tests/e2e/test_consensus_example.py",
}
"Documents that show what is typed and printed, and the tests that type it."

READ_ONLY = {
    "CONTRIBUTING.md": "`make venv` takes minutes; every continuous run begins with it",
    "docs/operation.md": "what is printed where a package is missing; here none is",
}
"Documents whose typed commands are only checked to exist, each with the reason."

PROGRAMS = {
    "make": "the demo has tests of its own",
    "docker": "no container engine is there for tests; test_recipes.py does without",
    "kubectl": "needs a cluster; the file it applies has tests of its own",
    "/opt/anpd/bin/pip": "changes an installed service",
    "install": "installs a service as root",
    "journalctl": "needs systemd",
    "python3": "installs a service as root",
    "sudo": "needs a service of another user",
    "systemctl": "needs systemd",
    "tar": "saves the home of a service",
    "openssl": "needs the files of a release",
    "pip": "fetches packages",
    "sha256sum": "needs the files of a release",
    "GOMP_SPINCOUNT=2000": "needs a model of a gigabyte",
}
"Programs in blocks of shell that no test runs, each with the reason."


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "source"
    write_sources(folder)
    return folder


def test_every_document_has_its_page_and_every_page_of_the_menu_is_there(
    sources: Path,
) -> None:
    for path in documents():
        assert (sources / place_of(path)).exists(), path
    menu = tomllib.loads((sources.parent / "zensical.toml").read_text("utf-8"))

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        below = entry.values() if isinstance(entry, dict) else entry
        return [page for one in below for page in pages(one)]

    listed = pages(menu["project"]["nav"])
    assert len(listed) == len(set(listed))
    for page in listed:
        assert (sources / page).exists(), page
    # Their own index leads to the decisions, the page about security to reports.
    own = {place_of(path) for path in documents()} - set(listed) - {"reporting.md"}
    assert {Path(one).parent.name for one in own} <= {"decisions"}, own


def test_links_between_sources_lead_to_sources(sources: Path) -> None:
    link = re.compile(r"\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)")
    for path in sources.rglob("*.md"):
        if "source" in path.relative_to(sources).parts:
            continue
        for target in link.findall(path.read_text("utf-8")):
            if "://" not in target:
                assert (path.parent / target).resolve().exists(), (path, target)


def test_the_walk_of_the_readme_stands_on_the_page_of_the_five_minutes(
    sources: Path,
) -> None:
    page = (sources / "five-minutes.md").read_text("utf-8")
    assert "up --background --port 8765" in page
    assert "up --background" not in (sources / "index.md").read_text("utf-8")


@pytest.mark.parametrize("word", GENERATED)
def test_each_generated_part_stands_on_one_page(word: str, sources: Path) -> None:
    marks = [path for path in documents() if f"generated: {word}" in path.read_text()]
    assert len(marks) == 1
    page = (sources / place_of(marks[0])).read_text("utf-8")
    assert "<!-- generated" not in page
    assert "\n".join(GENERATED[word]()) in page


def test_the_reference_has_every_command_setting_operation_and_kind(
    sources: Path,
) -> None:
    text = {
        path.stem: path.read_text("utf-8")
        for path in (sources / "reference").glob("*.md")
    }

    def names(command: Any, words: str) -> list[str]:
        below = getattr(command, "commands", {})
        return [words, *(n for k, c in below.items() for n in names(c, f"{words} {k}"))]

    for name in names(ROOT_COMMAND, "anpd")[1:]:
        assert re.search(rf"(?m)^#+ {name}$", text["commands"]), name
    for section in fields(Config):
        value = getattr(Config(), section.name)
        part = text["settings"].partition(f"[{section.name}]")[2].partition("\n## ")[0]
        for key in fields(value) if is_dataclass(value) else ():
            assert f"| `{key.name}` |" in part, f"{section.name}.{key.name}"
    for path, methods in openapi_document()["paths"].items():
        for method in methods:
            assert f"### `{method.upper()} {path}`" in text["operations"]
    for one in messages():
        assert one.text in text["errors"]
    for fault in InteractionFault:
        assert f"| `{fault.value}` |" in text["errors"]


def test_a_link_to_code_leads_to_a_page_with_it_and_code_stays_as_it_is() -> None:
    wanted: list[Path] = []
    text = "[a](../examples/booking.py), `[b](c.md)`, [`d`](api.md#mcp), [e](#f)\n"
    made = relinked(text, DOCS / "why.md", "why.md", wanted.append)
    assert made == (
        "[a](source/examples/booking.py.md), `[b](c.md)`, [`d`](api.md#mcp), [e](#f)\n"
    )
    assert wanted == [ROOT / "examples" / "booking.py", DOCS / "api.md"]


def test_what_a_built_page_loads_or_links_wrongly_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x"></a><a href="#y"></a><a href="b.html#z"></a>'
        '<script src="https://elsewhere.example/iframe-worker/shim"></script>'
        '<img src="https://elsewhere.example/a.png">'
    )
    (tmp_path / "b.html").write_text('<a href="c.html"></a><a href="a.html#x"></a>')
    make_local(tmp_path)
    assert problems_in(tmp_path) == [
        "a.html: loads https://elsewhere.example/a.png from elsewhere",
        "a.html: #y: no such place on that page",
        "a.html: b.html#z: no such place on that page",
        "b.html: c.html leads nowhere",
    ]


def test_every_kind_of_error_has_its_part_of_the_troubleshooting() -> None:
    parts = re.findall(r"(?m)^## (\w+)\n\nExit code (\d+)\.", TROUBLE)
    assert {name: int(code) for name, code in parts} == {
        kind.value: code for kind, code in EXIT_CODES.items()
    }


def test_every_message_of_the_troubleshooting_is_one_of_the_code() -> None:
    known = texts()
    found = 0
    for row in ROW.findall(TROUBLE):
        for quoted in QUOTED.findall(row):
            words = "".join(quoted).replace("\\|", "|").strip("…")
            if len(words) > 12:
                found += 1
                assert any(words in text for text in known), quoted
    assert found > 40


def test_messages_are_read_out_of_the_code() -> None:
    kinds = {one.kind for one in messages()}
    assert kinds == set(ErrorKind)
    assert len(messages()) > 200


def test_every_figure_of_the_limits_is_the_default_of_its_setting() -> None:
    units = {"s": 1, "an hour": 3600, "a day": 86400, "days": 86400}
    units |= {"MiB": 2**20, "GiB": 2**30}
    rows = re.findall(
        r"(?m)^\| [^|]+ \| ([^|]+) \| ((?:`[a-z_.]+`(?:, )?)+) \|$",
        (DOCS / "limits.md").read_text("utf-8").partition("## Figures")[2],
    )
    assert len(rows) > 8
    config = Config()
    for shown, named in rows:
        figures = re.findall(r"(\d+)(?: (s|days|MiB|GiB)\b)?|(an hour|a day)", shown)
        for name, (number, unit, words) in zip(
            re.findall(r"`([a-z_.]+)`", named), figures, strict=False
        ):
            section, _, key = name.partition(".")
            default = getattr(getattr(config, section), key)
            value = units[words] if words else int(number) * units.get(unit, 1)
            assert default == value, name


@pytest.mark.parametrize(
    "path", documents(), ids=lambda one: str(one.relative_to(ROOT))
)
def test_what_is_typed_in_a_document_is_run_or_there_is_a_reason(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    shown = blocks(path.read_text("utf-8"))
    if any(one.kind == "console" for one in shown) and name not in READ_ONLY:
        test = ROOT / RUN[name]
        assert path.name in test.read_text("utf-8"), f"{test} does not read {name}"
    for block in shown:
        if block.kind in {"sh", "bash", "shell"}:
            for line in block.text.replace("\\\n", " ").splitlines():
                word = line.split()[0] if line.split() else "anpd"
                assert word in {"anpd", *PROGRAMS}, f"{name}: {line}"


def test_the_pictures_are_drawn_from_their_texts() -> None:
    found = sorted(FOLDER.glob("*.txt"))
    assert len(found) >= 6
    for path in found:
        picture = path.with_suffix(".svg")
        text = drawn(path.read_text("utf-8"))
        assert picture.read_text("utf-8") == text, f"{picture}: run `make cast`"
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_the_picture_of_the_walk_shows_the_commands_of_the_readme() -> None:
    walk = section_of((ROOT / "README.md").read_text("utf-8"), WALK)
    picture = ElementTree.fromstring((FOLDER / "walk.svg").read_text("utf-8"))
    shown = ["".join(one.itertext()) for one in picture.iter() if "text" in one.tag]
    typed = [one.command for block in blocks(walk) for one in block.typed]
    for command in typed:
        if "anpd" in command:
            assert f"$ {command}" in shown, f"{command}: run `make cast`"


def test_a_cast_has_what_was_typed_and_printed_in_order() -> None:
    lines = [(0.5, "$ anpd <up>", True), (1.0, "x" * 150, False)]
    picture = ElementTree.fromstring(drawn_cast(lines, "a & b"))
    shown = ["".join(one.itertext()) for one in picture.iter() if "text" in one.tag]
    assert shown == ["$ anpd <up>", "x" * 100, "x" * 50]
