"""The tools that are capabilities of named peers, over a stand-in for the local API."""

from __future__ import annotations

from typing import Any

import pytest

from anp.cli.commands.servers import _tell_of_missing
from anp.errors import ErrorKind
from anp.sidecar.mcp.local_api import ApiProblem
from anp.sidecar.mcp.server import _Face, _failure

UNKNOWN = ApiProblem({"kind": "usage", "detail": "no peer is called shop"})


class FakeApi:
    """Answers as a daemon whose peers publish capabilities of these names."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.publishes = True
        self.problem: ApiProblem | None = None
        self.asked: list[dict[str, str]] = []

    async def get(self, path: str, **params: str) -> dict[str, Any]:
        assert path == "/v1/peers/offers"
        self.asked.append(params)
        if self.problem is not None:
            raise self.problem
        hints = {"read_only": True, "idempotent": True}
        rest = {"description": "", "input_schema": {"type": "object"}} | hints
        offered = [{"name": name} | rest for name in self.names]
        protocols = [{"capabilities": offered}] if self.publishes else []
        return {
            "peer_did": "did:key:zShop",
            "publishes": self.publishes,
            "protocols": protocols,
            "agreements": [],
        }


async def listed(face: _Face) -> set[str]:
    result = await face.list_tools(None, None)  # type: ignore[arg-type]  # unused
    return {one.name for one in result.tools if one.name.startswith("shop_")}


def face_over(api: FakeApi) -> _Face:
    return _Face(api, ("shop",))  # type: ignore[arg-type]  # all that it uses of it


async def test_each_list_of_tools_is_what_the_peer_publishes_now() -> None:
    api = FakeApi("a.buy")
    face = face_over(api)
    assert await listed(face) == {"shop_a_buy"}
    api.names = ("a.sell",)
    assert await listed(face) == {"shop_a_sell"}
    assert [one.get("fresh") for one in api.asked] == ["1", "1"]


async def test_a_description_asks_the_peer_anew() -> None:
    api = FakeApi("a.buy")
    await face_over(api)._describe({"peer": "shop"})
    assert api.asked == [{"peer": "shop", "fresh": "1"}]


async def test_tools_of_a_peer_that_is_away_for_a_moment_stay() -> None:
    api = FakeApi("a.buy")
    face = face_over(api)
    await listed(face)
    api.publishes = False
    assert await listed(face) == {"shop_a_buy"}
    api.problem = UNKNOWN
    assert await listed(face) == {"shop_a_buy"}


async def test_a_peer_without_tools_is_named_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = FakeApi("a.buy")
    await _tell_of_missing(api, ("shop",))  # type: ignore[arg-type]  # as above
    assert capsys.readouterr().err == ""
    api.publishes = False
    await _tell_of_missing(api, ("shop",))  # type: ignore[arg-type]  # as above
    api.problem = UNKNOWN
    await _tell_of_missing(api, ("shop",))  # type: ignore[arg-type]  # as above
    written = capsys.readouterr()
    away, unknown = written.err.splitlines()
    assert "--peer shop" in away
    assert "does not answer" in away
    assert unknown.endswith("no peer is called shop")
    assert written.out == ""


def test_a_failure_that_is_a_question_has_one_mark_and_neutral_advice() -> None:
    kind = ErrorKind.PEER_UNREACHABLE.value
    (text,) = _failure(ApiProblem({"kind": kind, "detail": "is its anpd up?"})).content
    assert "up? The agent" in getattr(text, "text", "")
    kind = ErrorKind.APPLICATION_ERROR.value
    (text,) = _failure(ApiProblem({"kind": kind, "detail": "sold out"})).content
    assert "sold out. " in getattr(text, "text", "")
    assert "if it is about the input" in getattr(text, "text", "")
