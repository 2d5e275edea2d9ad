"""The kernel decides about code of a model; two settings together overrule it."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from anp.sidecar.config.settings import Config, SandboxSettings
from anp.sidecar.telemetry.observer import Observer
from anp.sidecar.wiring import make_code
from sandbox.errors import SandboxError


@pytest.mark.parametrize(
    ("level", "without", "runs"),
    [
        ("full", "refuse", False),
        ("full", "as my own", False),
        ("reduced", "refuse", False),
        ("reduced", "as my own", True),
    ],
)
def test_code_of_a_model_runs_without_the_kernel_only_by_two_settings(
    level: Literal["full", "reduced"],
    without: Literal["refuse", "as my own"],
    runs: bool,
) -> None:
    settings = SandboxSettings(level=level, without_kernel=without)
    observer: Any = Observer()
    sandbox = make_code(Config(sandbox=settings), observer).sandbox
    # Before its start it is not isolated at all.
    assert sandbox.isolation.level == "reduced"
    if runs:
        sandbox._refuse_level("model")
        return
    sandbox._refuse_level("rules")
    with pytest.raises(SandboxError) as refused:
        sandbox._refuse_level("model")
    assert "sandbox.without_kernel" in refused.value.reason
