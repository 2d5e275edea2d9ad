"""A task that is watched, with the local API in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from anp.cli.client import Client
from anp.cli.commands.tasks.watch import TaskWatch
from anp.errors import CallError, ErrorKind

PEER, OWN = "did:wba:peer.example", "did:wba:own.example"


class Api:
    """The daemon's answers about one task."""

    def __init__(self, *parts: dict[str, Any]) -> None:
        self.parts = parts

    def get(self, path: str) -> dict[str, Any]:
        return {
            "made_by": "agent",
            "executor": PEER,
            "requester": OWN,
            "ended": True,
            "state": "failed",
        }

    def events(self, path: str, *, after: int) -> Iterator[dict[str, Any]]:
        for number, part in enumerate(self.parts, 1):
            message = {"by": PEER, "purpose": "result", "parts": [part]}
            yield {
                "number": number,
                "type": "task.message",
                "data": {"message": message},
            }

    def download(self, path: str) -> Iterator[bytes]:
        yield b"half"
        if path.endswith("/bad"):
            raise CallError(ErrorKind.APPLICATION_ERROR, "the peer ended it")


def content(artifact: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "bytes",
        "artifact": artifact,
        "media_type": "image/png",
        "name": f"{artifact}.png",
        **more,
    }


def watch(api: Api, save: Path | None) -> TaskWatch:
    connect = lambda: cast(Client, api)  # noqa: E731
    return TaskWatch(connect, "task", as_json=False, save=save)


def test_a_file_that_ends_early_is_named_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api(
        content("1.0", continued=True),
        content("bad"),
        content("other", size=9, sha256="0" * 64),
        content("good", size=4, sha256=""),
    )
    watched = watch(api, tmp_path / "saved")
    watched.run()
    said = capsys.readouterr().err
    assert "[image/png 1.0.png did not come: it ended early]" in said
    assert "[image/png bad.png did not come: the peer ended it]" in said
    assert "not the file that was announced" in said
    # The one that is whole has come all the same.
    assert [one.name for one in (tmp_path / "saved").iterdir()] == ["good.png"]
    with pytest.raises(CallError, match=r"bad\.png.*other\.png.*1\.0\.png") as caught:
        watched.check_saved()
    assert caught.value.kind is ErrorKind.APPLICATION_ERROR


def test_a_content_whose_end_came_is_saved_once(tmp_path: Path) -> None:
    api = Api(content("1.0", continued=True), content("1.0", begun=True))
    watched = watch(api, tmp_path)
    watched.run()
    watched.check_saved()
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"half"]
