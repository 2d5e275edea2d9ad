"""Environments beside our own, for tests that need other people's programs."""

from __future__ import annotations

import pytest

from tests.documents import ROOT

SIDE = ("sdk", "agents", "callers", "recipes", "a2a", "a2a-0.3")
"Environments that pin other versions than we do; each lies in a folder of `.venvs`."


def side_python(name: str) -> str:
    """Return the interpreter of a side environment; skip the test if there is none."""
    assert name in SIDE
    path = ROOT / ".venvs" / name / "bin" / "python"
    if not path.exists():
        pytest.skip(f"needs the environment {name} (made by `make {name}-env`)")
    return str(path)
