"""What was not named is not run: requirements against the tools of MCP servers.

`real_tools/requirements.json` was written with sight of the tool lists alone, before
the rules were changed. This module, run as a program, prints the counts.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.mind import Demand
from negotiation.need import Capability, Need
from negotiation.rules.choice import NoChoice, choose
from negotiation.rules.names import unnamed_effects
from negotiation.rules.rules import propose

FOLDER = Path(__file__).parent / "real_tools"
TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def capability(server: str, tool: dict[str, Any]) -> Capability:
    hints = tool.get("annotations") or {}
    return Capability(
        f"{server}.{tool['name']}",
        tool.get("description", ""),
        tool["inputSchema"],
        tool.get("outputSchema") or TEXT,
        read_only=hints.get("readOnlyHint") is True,
        idempotent=hints.get("idempotentHint") is True,
    )


SERVERS = {
    server: [capability(server, tool) for tool in tools]
    for server, tools in read("tool_lists.json").items()
}
ALL = [one for offered in SERVERS.values() for one in offered]


def chosen(requirement: str, data: Any, offered: list[Capability]) -> str:
    """Return the name of what would run, or the refusal after a space."""
    demand = Demand(Need(requirement), data)
    found = choose(read_document(propose(demand)), offered)
    return f" {found.reason}" if isinstance(found, NoChoice) else found.name


def outcome(entry: dict[str, Any], offered: list[Capability]) -> str:
    means = entry["means"] and f"{entry['server']}.{entry['means']}"
    found = chosen(entry["requirement"], entry["input"], offered)
    if not found.startswith(" "):
        return "served" if found == means else f"WRONG: {found}"
    if means is None:
        return "refused: nothing was meant"
    first = found.partition("near to it: ")[2].split(",")[0].removesuffix(" and others")
    named = first == means or f"`{means}`" in found
    return f"refused: right one {'first' if named else 'not first'}"


@pytest.mark.parametrize("offered", [None, ALL], ids=["its server", "all servers"])
def test_nothing_runs_that_was_not_meant(offered: list[Capability] | None) -> None:
    entries = read("requirements.json")
    found = [outcome(one, offered or SERVERS[one["server"]]) for one in entries]
    wrong = [
        (one["requirement"], end)
        for one, end in zip(entries, found, strict=True)
        if end.startswith("WRONG")
    ]
    assert wrong == []
    counts = Counter(found)
    assert counts["served"] >= 45
    assert counts["refused: right one first"] > counts["refused: right one not first"]


@pytest.mark.parametrize(
    ("requirement", "data"),
    [
        ("delete_all_records", {"query": "all"}),
        ("shutdown_server", {"timezone": "Europe/Paris"}),
        ("git_reset_hard", {"repo_path": "."}),
        ("Nobody shall git_reset here", {"repo_path": "."}),
        ("do not git_commit anything", {"repo_path": ".", "message": "x"}),
    ],
)
def test_what_is_not_there_runs_nothing(requirement: str, data: Any) -> None:
    assert chosen(requirement, data, ALL).startswith(" ")


@pytest.mark.parametrize("requirement", ["please git_reset now", "git reset --hard"])
def test_a_sentence_with_the_name_of_a_side_effect_is_the_owners_to_allow(
    requirement: str,
) -> None:
    assert chosen(requirement, {"repo_path": "."}, ALL) == "git.git_reset"
    assert unnamed_effects(requirement, ["git.git_reset"], ALL) == ["git.git_reset"]


def test_a_negation_counts_in_the_sentence_that_has_the_name() -> None:
    name, data = "git_diff_unstaged", {"repo_path": "."}
    for text in (
        f"Which changes are not staged yet? By {name}.",
        f"Show changes, by {name}. Error 404 if there is no such folder.",
        f"哪些更改没有暂存？使用 {name}。",
    ):
        assert chosen(text, data, SERVERS["git"]) == f"git.{name}"
    for text in (
        f"Show changes. But not by {name}.",
        f"Never do what follows:\n- {name}",
        f"不要使用 {name}。",
    ):
        assert chosen(text, data, SERVERS["git"]).startswith(" ")


if __name__ == "__main__":
    for which, some in (("its server", None), ("all servers", ALL)):
        entries = read("requirements.json")
        ends = Counter(outcome(e, some or SERVERS[e["server"]]) for e in entries)
        print(
            which,
            *(f"  {count:4} {end}" for end, count in sorted(ends.items())),
            sep="\n",
        )
