"""`protocols export` and `import`: files in and out, byte for byte."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import httpx
import pytest

from anp.sidecar.bundles.format import MAX_BUNDLE
from anp.sidecar.home.home import Home
from tests.anp.cli.test_commands import HASH, FakeApi, Output, anpd, api, home

__all__ = ["api", "home"]

BUNDLE = b'{\n  "format": "anpd-bundle"\n}\n'
EXPORT = f"/v1/protocols/{HASH}/export"
IMPORTED = {
    "hash": HASH,
    "code": [
        {
            "role": "provider",
            "revision": 2,
            "peers": [],
            "capabilities": ["shop.buy", "shop.look"],
        },
        {
            "role": "requester",
            "revision": 1,
            "peers": ["did:key:z\x1b"],
            "capabilities": [],
        },
    ],
}


def test_export_prints_the_bytes_as_they_come(
    home: Home, api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    api.answers[EXPORT] = httpx.Response(200, content=BUNDLE)
    assert anpd(home, "protocols", "export", HASH) == 0
    assert capfdbinary.readouterr().out == BUNDLE


def test_export_writes_a_file_and_passes_its_options(
    home: Home, api: FakeApi, tmp_path: Path
) -> None:
    options = "role=provider&peer=shop&did=1&tests=0"
    api.answers[f"{EXPORT}?{options}"] = httpx.Response(200, content=BUNDLE)
    file = tmp_path / "bundle.json"
    words = ["export", HASH, "--role", "provider", "--peer", "shop", "-o", str(file)]
    assert anpd(home, "protocols", *words, "--with-did", "--without-tests") == 0
    assert file.read_bytes() == BUNDLE


def test_import_posts_the_bytes_of_the_file(
    home: Home, api: FakeApi, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "bundle.json"
    file.write_bytes(BUNDLE)
    path = "/v1/protocols/import?role=provider&peer=shop"
    api.answers[path] = httpx.Response(200, json=IMPORTED)
    words = ["import", str(file), "--role", "provider", "--peer", "shop"]
    assert anpd(home, "protocols", *words) == 0
    assert api.asked[-1].content == BUNDLE
    assert api.asked[-1].headers["content-type"] == "application/json"
    told = capsys.readouterr().out
    assert "code for the provider, revision 2, used with any peer" in told
    assert "it may call shop.buy, shop.look, with arguments of its choice" in told
    assert told.count("may call") == 1
    assert "did:key:z<1b>" in told


def test_import_reads_standard_input(
    home: Home, api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    api.answers["/v1/protocols/import"] = httpx.Response(200, json=IMPORTED)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BUNDLE)))
    assert anpd(home, "protocols", "import", "-", "--json") == 0
    assert api.asked[-1].content == BUNDLE
    assert '"revision": 2' in capsys.readouterr().out


def test_a_file_that_is_too_large_or_not_there_is_no_bundle(
    home: Home, api: FakeApi, tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "bundle.json"
    assert anpd(home, "protocols", "import", str(file)) == 13
    file.write_bytes(b" " * (MAX_BUNDLE + 1))
    assert anpd(home, "protocols", "import", str(file)) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "more than" in said[1]
    assert api.asked == []
