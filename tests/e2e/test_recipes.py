"""The recipes that one machine can run, as they stand in docs/recipes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.documents import ROOT, Block, blocks
from tests.e2e.daemons import Anpd
from tests.e2e.terminals import Terminal, reader_environ, type_all, with_free_ports

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ANPD_RECIPES" not in os.environ, reason="make test-recipes"),
]

RECIPES = ROOT / "docs" / "recipes"
MACHINES = (RECIPES / "two-machines.md").read_text("utf-8")
CONTAINER = (RECIPES / "container.md").read_text("utf-8")
CLIENTS = (RECIPES / "mcp-clients.md").read_text("utf-8")


def variable(terminal: Terminal, name: str, command: str) -> None:
    """Set what a reader copies from one machine to the other."""
    printed, code = terminal.run(f'{name}=$({command}); echo "{name} is ${name}"')
    assert code == 0, printed
    assert any("did:key:" in line for line in printed), printed


def test_two_machines_with_tls(tmp_path: Path) -> None:
    text = with_free_ports(MACHINES, 8765, 8766).replace("shop.example", "localhost")
    environ = reader_environ(tmp_path)
    # As after `. .venv/bin/activate`.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    found = blocks(text)
    shop, buyer = (one.text for one in found if one.kind == "toml")
    typed: list[Block] = [one for one in found if one.kind == "console"]
    terminal = Terminal(tmp_path, environ)
    try:
        certificate, attached, up, refused, waits, allowed, called = typed
        type_all(certificate, terminal)
        type_all(attached, terminal)
        for home, settings in (("shop", shop), ("buyer", buyer)):
            folder = tmp_path / home
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / "anpd.toml").write_text(settings, "utf-8")
            shutil.copy(tmp_path / "shop.pem", folder)
        shutil.copy(tmp_path / "shop.key", tmp_path / "shop")
        type_all(up, terminal)
        variable(
            terminal, "ADDRESS", "anpd --home ~/shop status | sed -n 's/^address *//p'"
        )
        type_all(refused, terminal)
        type_all(waits, terminal)
        variable(
            terminal,
            "BUYER",
            "anpd --home ~/buyer identity show | sed -n 's/^did  *//p'",
        )
        type_all(allowed, terminal)
        type_all(called, terminal)
    finally:
        for home in ("shop", "buyer"):
            terminal.run(f"anpd --home ~/{home} stop")
        terminal.close()


async def test_an_mcp_client_starts_what_its_configuration_says(tmp_path: Path) -> None:
    shop, buyer = Anpd(tmp_path / "shop"), Anpd(tmp_path / "buyer")
    shop.ok(
        "attach", "python", str(ROOT / "examples" / "catalogue.py"), "--expose", "*"
    )
    configurations = [
        json.loads(one.text) for one in blocks(CLIENTS) if one.kind == "json"
    ]
    wanted = [{"find", "describe", "call"}, {"shop_catalogue_get_product"}]
    assert len(configurations) == len(wanted)
    with shop.up(), buyer.up():
        buyer.ok("peers", "add", "shop", shop.address)
        for configuration, tools in zip(configurations, wanted, strict=True):
            (entry,) = configuration["mcpServers"].values()
            assert re.fullmatch(r"/\S+/anpd", entry["command"])
            server = StdioServerParameters(
                command=sys.executable,
                args=["-P", "-m", "anp", "--home", str(buyer.home), *entry["args"]],
            )
            async with Client(stdio_client(server)) as client:
                offered = {tool.name for tool in (await client.list_tools()).tools}
            assert tools <= offered


def test_the_npm_servers_of_the_container_are_attached(tmp_path: Path) -> None:
    if shutil.which("npx") is None:
        pytest.skip("npm and npx are not here")
    text = CONTAINER.replace("/var/lib/anpd/shared", str(tmp_path))
    (package,) = re.findall(r"npm install -g (\S+)", text)
    words = ["npm", "install", "-g", "--prefix", str(tmp_path), package]
    subprocess.run(words, check=True, capture_output=True)
    environ = reader_environ(tmp_path)
    folders = [str(tmp_path / "bin"), str(Path(sys.executable).parent)]
    environ["PATH"] = ":".join([*folders, environ["PATH"]])
    # As in the container, but without it.
    commands = re.findall(r"(?m)^docker exec shop (anpd attach .+)$", text)
    exposed = ["everything.echo", "files.read_text_file"]
    assert len(commands) == len(exposed)
    terminal = Terminal(tmp_path, environ)
    try:
        for command, name in zip(commands, exposed, strict=True):
            printed, code = terminal.run(command)
            assert code == 0, printed
            assert any(line.split() == [name, "exposed"] for line in printed), printed
    finally:
        terminal.close()
