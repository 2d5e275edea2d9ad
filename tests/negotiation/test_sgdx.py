"""The table of SGD-X counts what a small service of our own shows."""

from __future__ import annotations

from typing import Any

from tests.negotiation.sgdx import OUTCOMES, VARIANTS, WAYS, fits, is_bad, table


def slot(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"the {name}",
        "is_categorical": False,
        "possible_values": [],
    }


def side(intent: str, *names: str) -> dict[str, Any]:
    return {
        "slots": [slot(name) for name in names],
        "intents": [
            {
                "name": intent,
                "description": "Finds songs",
                "is_transactional": False,
                "required_slots": [names[0]],
                "optional_slots": {},
                "result_slots": list(names[1:]),
            }
        ],
    }


def row(*variant: str) -> dict[str, Any]:
    others = {name: side("findSongs", *variant) for name in VARIANTS}
    return {"base": side("FindSongs", "artist", "title", "tracks"), **others}


async def outcomes(*variant: str) -> list[list[str]]:
    """Return the outcomes of each way, with which some pairs ended."""
    found = await table([row(*variant)])
    return [[name for name in OUTCOMES if found[way][name]] for way in WAYS]


async def test_equal_names_are_served_in_every_way() -> None:
    found = await outcomes("artist", "title", "tracks")
    assert found == [["served"]] * len(WAYS)
    assert not any(
        map(is_bad, (await table([row("artist", "title", "tracks")])).items())
    )


async def test_a_result_of_which_nothing_is_known_by_name_is_refused() -> None:
    assert await outcomes("artist", "name", "songs") == [["refused"]] * len(WAYS)
    assert fits([row("artist", "name", "songs")], required=False) == {"no fit": 5}


async def test_a_part_that_stays_empty_is_told_and_counts() -> None:
    found = await outcomes("artist", "title", "songs")
    assert found[0] == found[1] == ["refused"]
    assert found[2] == found[3] == found[4] == ["dropped and told"]
    lines = await table([row("artist", "title", "songs")])
    assert [is_bad((way, lines[way])) for way in WAYS] == [
        False,
        False,
        True,
        True,
        False,
    ]


async def test_a_false_friend_counts_as_wrong() -> None:
    assert (await outcomes("artist", "tracks", "title"))[0] == ["wrong"]
