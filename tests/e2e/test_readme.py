"""The walk of the README and docs/five-minutes.md, typed on a fresh clone.

The commands and what they print are read out of both files of the clone; of the
environment only `HOME` is another, and the ports are such as are free. The clone's
`.venv` is laid out here from what is installed already, so that `make install` finds
nothing to do; with `ANPD_README=make` (`make test-readme`) make installs everything
itself, as for a reader.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.documents import ROOT, Block, blocks
from tests.e2e.terminals import (
    Terminal,
    reader_environ,
    type_all,
    walk,
    with_free_ports,
)

DOCUMENTS = ("README.md", "docs/five-minutes.md")
"Where the walk stands, which goes on in the same terminal."

PORTS = (8765, 8766)
"The ports of the walk, which somebody's own daemon may use."


def git(*words: str, cwd: Path = ROOT) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=cwd, capture_output=True, check=True
    ).stdout


def listed(*options: str) -> list[str]:
    names = git("ls-files", "-z", *options).split(b"\0")[:-1]
    return [os.fsdecode(name) for name in names]


def overlay(clone: Path) -> None:
    """Bring changes that are not committed into the clone."""
    for name in listed("-d"):
        (clone / name).unlink(missing_ok=True)
    for name in listed("-m", "-o", "--exclude-standard"):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)


def lay_out_venv(clone: Path) -> None:
    """Make the clone's environment from ours: same packages, the clone's own code."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True
    )
    (found,) = (clone / ".venv" / "lib").glob("python*/site-packages")
    installed = sysconfig.get_path("purelib")
    # A path in a .pth file is only added; the .pth files in it, such as the one that
    # leads to the tree we were started from, are not read.
    (found / "anpd.pth").write_text(f"{clone}\n{installed}\n")
    script = clone / ".venv" / "bin" / "anpd"
    script.write_text(
        f"#!{clone}/.venv/bin/python\n"
        "import sys\nfrom anp.__main__ import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    (clone / ".venv" / ".installed").touch()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git work tree, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("readme") / "anpd"
    git("clone", "-q", str(ROOT), str(folder))
    overlay(folder)
    if os.environ.get("ANPD_README") != "make":
        lay_out_venv(folder)
    return folder


def walk_of(clone: Path, ports: Sequence[int] = ()) -> list[Block]:
    texts = [(clone / name).read_text("utf-8") for name in DOCUMENTS]
    text = with_free_ports("".join(texts), *ports)
    return [one for one in blocks(text) if one.kind == "console"]


@pytest.mark.slow
def test_the_walk_prints_what_the_documents_show(clone: Path, tmp_path: Path) -> None:
    environ = reader_environ(tmp_path)
    try:
        walk(walk_of(clone, PORTS), clone, environ, together=True)
    finally:
        # They run in the background, and outlive a walk that fails.
        for home in ("shop", "buyer"):
            command = str(clone / ".venv" / "bin" / "anpd")
            words = [command, "--home", str(tmp_path / home), "stop"]
            subprocess.run(words, env=environ, capture_output=True, check=False)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, os.environ)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize(
    "block",
    [
        "$ echo other\nshown\n",
        "$ echo shown; false\nshown\n",
        "$ echo shown; echo more\nshown\n",
        "$ anpd-that-is-not-there\n",
        "$ true\nanpd: it should have failed\n",
    ],
)
def test_a_command_that_breaks_or_prints_something_else_is_noticed(
    block: str, terminal: Terminal
) -> None:
    (found,) = blocks(f"```console\n{block}```\n")
    with pytest.raises(AssertionError):
        type_all(found, terminal)


def test_a_command_that_does_what_is_shown_passes(terminal: Terminal) -> None:
    text = "$ printf 'a  b 17\\nx\\ny\\nz\\n'\na b …\n…\nz\n$ X=1\n$ echo $X\n1\n"
    type_all(blocks(f"```console\n{text}```\n")[0], terminal)


def test_the_walk_is_there_and_the_readme_is_short() -> None:
    walk = walk_of(ROOT)
    commands = [typed.command for block in walk for typed in block.typed]
    assert sum(" up " in command for command in commands) == 2
    assert sum(" call " in command for command in commands) >= 2
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 115
