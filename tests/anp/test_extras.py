"""The base of `anpd` without any extra: what it can do, and what it says it lacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from anp import extras
from anp.errors import CallError, ErrorKind
from tests.house.pins import needed_by

PROJECT = Path(__file__).parents[2]
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
OPTIONAL = DECLARED["optional-dependencies"]

MAX_PACKAGES = 37
"Distributions of a base installation, `anpd` itself and the four of `pint` included."

HIDDEN = """\
import sys

HIDDEN = frozenset({names!r})


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN or name in HIDDEN:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
        return None


sys.meta_path.insert(0, Hidden())
"""
"Hides modules, as if their packages were not installed."

RUN = """
import contextlib, io, json, os

from anp.cli.app import run

home, commands = json.load(sys.stdin)
found = []
for words, settings in commands:
    os.environ |= settings
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = run(["--home", home, *words])
    for name in settings:
        del os.environ[name]
    found.append([code, said.getvalue()])
print(json.dumps(found))
"""
"Runs commands in one process; prints the code and the errors of each."


def test_every_extra_that_commands_ask_for_is_declared() -> None:
    assert set(extras.MODULES) | {"all", "dev"} == set(OPTIONAL)


def test_all_extras_together_are_those_of_the_daemon() -> None:
    [one] = map(Requirement, OPTIONAL["all"])
    assert one.extras == set(extras.MODULES) - {"demo"}


def test_a_base_installation_has_few_packages() -> None:
    needed = needed_by(DECLARED["dependencies"])
    here = {canonicalize_name(one.name) for one in metadata.distributions()}
    assert len(needed & here) + 1 <= MAX_PACKAGES


def test_a_missing_extra_is_said_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert not extras.is_installed("mcp")
    with pytest.raises(CallError) as caught:
        extras.require("mcp", "anpd mcp")
    assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
    assert "\n" not in caught.value.detail
    assert caught.value.detail.endswith(f"run: {extras.install_line('mcp')}")


@pytest.mark.parametrize(
    ("prefix", "source", "line"),
    [
        ("/root/venv", "", "{python} -m pip install 'anpd[a2a]'"),
        ("/h/pipx/venvs/anpd", "", "pipx install --force 'anpd[a2a]'"),
        ("/h/.local/share/uv/tools/anpd", "", "uv tool install 'anpd[a2a]'"),
        (
            "/h/pipx/venvs/anpd",
            '{"url": "file:///w/anpd.whl", "archive_info": {}}',
            "pipx install --force 'anpd[a2a] @ file:///w/anpd.whl'",
        ),
        (
            "/h/clone/.venv",
            '{"url": "file:///h/my%20clone", "dir_info": {"editable": true}}',
            "{python} -m pip install -e '/h/my clone[a2a]'",
        ),
    ],
)
def test_the_remedy_fits_the_way_anpd_was_installed(
    monkeypatch: pytest.MonkeyPatch, prefix: str, source: str, line: str
) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            return source or None

    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert extras.install_line("a2a") == line.format(python=sys.executable)


def test_the_base_runs_and_names_the_extra_of_what_it_lacks(tmp_path: Path) -> None:
    names = _of_extras_only()
    assert {"a2a", "mcp", "jwt", "redis", "httpx"} <= names
    tool = tmp_path / "tool.py"
    tool.write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    attach = ("attach", "python", "--json", "--expose", "*", "--", str(tool))
    lacking: list[tuple[str, int, tuple[str, ...], dict[str, str]]] = [
        ("mcp", 13, ("mcp",), {}),
        ("mcp", 3, ("attach", "mcp", "--", "true"), {}),
        ("a2a", 3, ("attach", "a2a", "http://127.0.0.1:9/"), {}),
        ("redis", 3, ("up",), {"ANPD_CACHE__URL": "redis://127.0.0.1:9/"}),
        ("otel", 3, ("up",), {"ANPD_OTEL__ENABLED": "true"}),
    ]
    commands = [(words, settings) for _, _, words, settings in lacking]
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(names=names) + RUN],
        input=json.dumps([str(tmp_path / "home"), [*commands, (attach, {})]]),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    *found, attached = json.loads(done.stdout.splitlines()[-1])
    for (extra, wanted, words, _), (code, said) in zip(lacking, found, strict=True):
        assert code == wanted, (words, said)
        assert re.search(rf"run: .* install .*\[{extra}\]", said), (words, said)
        assert said.count("\n") == 1, (words, said)
    assert attached == [0, ""], attached


def _of_extras_only() -> set[str]:
    """Return the modules of the packages that only extras bring."""
    base = needed_by(DECLARED["dependencies"])
    lines = [line for lines in OPTIONAL.values() for line in lines]
    others = needed_by(line for line in lines if not line.startswith("anpd[")) - base
    # The tools of tests need some of the base; nothing of theirs is imported here.
    return {
        module
        for module, names in metadata.packages_distributions().items()
        if {canonicalize_name(name) for name in names} <= others
    } | {"opentelemetry.sdk", "opentelemetry.exporter"}
