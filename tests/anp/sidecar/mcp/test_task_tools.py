"""The tools for tasks take what the local API takes."""

from __future__ import annotations

from dataclasses import fields

from anp.sidecar.api.operations.task_bodies import StartBody
from anp.sidecar.mcp.tasks import TASK_TOOLS
from tests.clauses import clause


@clause("GBZ-59")
def test_a_task_in_parts_is_started_by_the_tool_as_by_the_api() -> None:
    (start,) = [one for one in TASK_TOOLS if one.name == "start_task"]
    offered = start.input_schema["properties"].keys()
    assert offered <= {one.name for one in fields(StartBody)}
    parts = {"subtasks", "candidates", "dispatch", "wait", "timeout", "parent", "proxy"}
    parts.add("group")
    assert parts <= offered
