"""The printers of the commands: lists, single things, and JSON of both."""

from __future__ import annotations

import json

import pytest

from anp.cli.output import (
    Column,
    Line,
    Settings,
    call_line,
    fail,
    print_list,
    print_one,
    short_did,
    table,
)
from anp.errors import ErrorKind
from anp.interaction.elements import party_name

Output = pytest.CaptureFixture[str]
EVIL = "\x1b[2J\u202eevil\r\x7f"


def clean(text: str) -> bool:
    """Say whether a terminal has nothing to act on but line ends."""
    return all(c.isprintable() or c == "\n" for c in text)


def test_a_list_has_columns_as_wide_as_their_widest_cell() -> None:
    rows = [{"id": "n1", "open": True}, {"id": "n1000", "open": False}]
    columns: dict[str, Column] = {
        "ID": "id",
        "OPEN": lambda row: "yes" if row["open"] else None,
    }
    assert table(rows, columns) == ["ID     OPEN", "n1     yes", "n1000  -"]


def test_chinese_characters_are_two_columns_wide() -> None:
    rows = [{"id": "n1", "说明": "查询天气预报"}, {"id": "北京n", "说明": "e\u0301t"}]
    columns: dict[str, Column] = {"ID": "id", "说明": "说明", "END": lambda _: "x"}
    assert table(rows, columns) == [
        "ID     说明          END",
        "n1     查询天气预报  x",
        "北京n  e\u0301t            x",
    ]
    narrow = table(rows, columns, width=20)
    assert narrow[1:] == ["n1     查询天…   x", "北京n  e\u0301t        x"]


def test_names_in_chinese_are_lined_up(capsys: Output) -> None:
    print_one({}, [("名字", "a"), ("id", "b")], as_json=False)
    assert capsys.readouterr().out.splitlines() == ["名字  a", "id    b"]


def test_an_empty_list_is_its_head(capsys: Output) -> None:
    print_list({"rows": []}, [], {"ID": "id"}, as_json=False, notes=["no more"])
    assert capsys.readouterr().out == "ID\nno more\n"


def test_names_and_values_of_one_thing_are_lined_up(capsys: Output) -> None:
    told: list[Line] = [
        ("did", "did:key:z"),
        ("addresses", ["a", "b"]),
        "more",
        ("none", None),
    ]
    print_one({}, told, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "did        did:key:z",
        "addresses  a, b",
        "more",
        "none       -",
    ]


def test_with_json_both_print_the_whole_answer(capsys: Output) -> None:
    answer = {"rows": [{"id": 1}], "next": None}
    print_list(answer, answer["rows"] or [], {"ID": "id"}, as_json=True, notes=["x"])
    assert json.loads(capsys.readouterr().out) == answer
    print_one(answer, ["x"], as_json=True)
    assert json.loads(capsys.readouterr().out) == answer


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_is_printed_steers_the_terminal(
    as_json: bool, capsys: Output
) -> None:
    answer = {"rows": [{"id": EVIL}]}
    print_list(answer, answer["rows"], {"ID": "id"}, as_json=as_json, notes=[EVIL])
    print_one(answer, [EVIL, ("name", EVIL)], as_json=as_json)
    fail(Settings(json=as_json), ErrorKind.USAGE, EVIL, found=[EVIL])
    out, err = capsys.readouterr()
    assert "evil" in out
    assert clean(out + err)


def test_callers_that_are_no_peers_are_shown_by_name() -> None:
    assert party_name("local:ann") == "ann (A2A)"
    assert party_name("local:jwt:auth0|7") == "auth0|7 (A2A, by JWT)"
    assert party_name("did:key:z6Mk") == "did:key:z6Mk"
    call = {
        "direction": "served",
        "at": 0.0,
        "outcome": "ok",
        "count": 1,
        "ms": 1.0,
        "capability": "shop.list",
        "need": None,
        "peer": "local:ann",
        "asked": None,
        "source": "task",
        "uri": None,
        "protocol": None,
        "reason": "",
    }
    assert "shop.list  <-  ann (A2A)" in call_line(call)


DID = "did:key:zDnaeYZ2Wz4vGcqVuXH3WmzVnv9Kz4zQ5S2bcdefgh1234"


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe() -> None:
    rows = [{"name": "bob", "why": "a long story " * 4, "did": DID}]
    columns: dict[str, Column] = {"NAME": "name", "WHY": "why", "DID": "did"}
    [_, whole] = table(rows, columns)
    assert DID in whole
    for width in (120, 80, 60, 40):
        lines = table(rows, columns, width=width)
        assert all(len(line) <= width for line in lines)
        # The beginning and the end tell a DID from others.
        assert lines[1].split()[-1].endswith("1234")
        assert lines[1].startswith("bob ")
    # As narrow as is of use, and no narrower.
    assert table(rows, columns, width=1)[0].split() == ["NAME", "WHY", "DID"]


def test_a_short_did_keeps_its_ends() -> None:
    assert short_did(DID) == "did:key:zDna…gh1234"
    assert short_did("did:web:a.example") == "did:web:a.example"
    assert short_did("no did at all, but a long text") == (
        "no did at all, but a long text"
    )


def test_a_table_has_the_names_of_peers_in_place_of_their_dids() -> None:
    did = "did:key:zDnaeXKWaFBoxL3SbMqCRdzXe67UzRs1BBm"
    rows = [{"peer": did, "n": 1}, {"peer": "did:key:zOther", "n": 2}]
    columns: dict[str, Column] = {"PEER": "peer", "N": "n"}
    lines = table(rows, columns, width=80, names={did: "bob"})
    assert lines[1:] == ["bob             1", "did:key:zOther  2"]
