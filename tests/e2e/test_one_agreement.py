"""A capability has one agreement, however its caller names it and from any face."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.e2e.daemons import Anpd
from tests.e2e.test_mcp_face import connected

TOOLS = 40
SOURCE = "\n\n".join(
    f"def tool_{number}(base: int, more: int = 1) -> dict[str, int]:\n"
    f'    return {{"sum": base + more + {number}}}'
    for number in range(TOOLS)
)


@pytest.mark.slow
async def test_forty_tools_called_in_every_way_have_forty_agreements(
    tmp_path: Path,
) -> None:
    (tmp_path / "many_tools.py").write_text(SOURCE)
    provider = Anpd(tmp_path / "provider", consensus__use="true")
    provider.ok("attach", "python", "many_tools", "--expose", "*", cwd=tmp_path)
    caller = Anpd(tmp_path / "caller", consensus__use="true")
    with provider.up(), caller.up():
        protocols: dict[str, set[str]] = {}
        async with asyncio.timeout(300), connected(caller, "stdio") as client:
            for number in range(TOOLS):
                full = f"many_tools.tool_{number}"
                typed = await asyncio.to_thread(
                    caller.ok,
                    *("call", provider.address, f"tool_{number}", "--json"),
                    *("-d", json.dumps({"base": 1})),
                )
                results = [typed.json()]
                for need in (f"tool_{number}", full, f"Tool-{number}"):
                    for optional in ({}, {"more": 1}):
                        called = await client.call_tool(
                            "call",
                            {
                                "peer": provider.address,
                                "need": need,
                                "input": {"base": 1, **optional},
                            },
                        )
                        assert not called.is_error, called
                        results.append(called.structured_content)
                for one in results:
                    assert one["output"] == {"sum": number + 2}
                    assert one["capability"] == full
                    protocols.setdefault(full, set()).add(one["protocol"])
        meant = ("--capability", "tool_7", "-d", '{"base": 1}', "--json")
        worded = caller.ok("call", provider.address, "add numbers", *meant).json()
        assert {worded["protocol"]} == protocols[worded["capability"]]
        assert {len(found) for found in protocols.values()} == {1}
        listed = caller.ok("protocols", "list", "--json").json()["protocols"]
        assert len(listed) == len({one["hash"] for one in listed}) == TOOLS
        assert caller.ok("negotiations", "list", "--json").json()["negotiations"] == []
