"""A need in other words than the capability's: refused, or told what stays empty."""

from __future__ import annotations

import json
from pathlib import Path

from negotiation.transcript import empty_notes
from tests.e2e.daemons import Anpd

SOURCE = '''
from typing import TypedDict


class Songs(TypedDict):
    songs: list[str]


class Album(TypedDict):
    title: str
    songs: list[str]


def get_songs(id: str) -> Songs:
    """Get the songs of an album."""
    return {"songs": ["River"]}


def get_album(id: str) -> Album:
    """Get an album."""
    return {"title": "Blue", "songs": ["River"]}
'''
WANTED = {
    "properties": {
        "title": {"type": "string"},
        "tracks": {"type": "array", "items": {"type": "string"}},
    }
}


def test_a_call_says_what_stays_empty_and_is_refused_where_all_would(
    tmp_path: Path,
) -> None:
    (tmp_path / "music.py").write_text(SOURCE)
    (tmp_path / "wanted.json").write_text(json.dumps(WANTED))
    (tmp_path / "tracks.json").write_text(
        json.dumps({"properties": {"tracks": {"type": "array"}}})
    )
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    music = f"{tmp_path}/music.py"
    provider.ok("attach", "python", music, "--expose", "*", "--read-only", "*")
    with provider.up(), caller.up():
        for name in ("get_album", "look it up with get_album"):
            # The first is published, and the other is negotiated.
            words = ["call", provider.address, name, "-d", '{"id": "1"}']
            words += ["--output-schema", str(tmp_path / "wanted.json")]
            for _ in range(2):
                answer = caller.ok(*words, "--json").json()
                assert answer["output"] == {"title": "Blue"}
                assert answer["notes"] == list(empty_notes(["/tracks"]))
            assert "note: /tracks gets no value" in caller.ok(*words).stderr
            shown = caller.ok("protocols", "show", answer["protocol"])
            assert "/tracks gets no value" in shown.stdout
            kept = caller.ok("protocols", "show", answer["protocol"], "--json").json()
            assert kept["agreements"][0]["notes"] == answer["notes"]
        for name in ("get_songs", "look it up with get_songs"):
            words = ["call", provider.address, name, "-d", '{"id": "1"}']
            ended = caller.run(
                *words, "--json", "--output-schema", str(tmp_path / "tracks.json")
            )
            assert ended.code == 6
            assert "'tracks', got only 'songs'" in ended.json()["detail"]
