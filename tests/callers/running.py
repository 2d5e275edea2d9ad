"""Runs a caller as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.environments import side_python

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Call:
    """One call."""

    need: str
    "Full name of the capability."

    input: dict[str, Any]
    "The data."


@dataclass(frozen=True, slots=True)
class Request:
    """The input of a caller, as JSON on its standard input."""

    anpd: list[str]
    "The command line of `anpd` with the home of the caller's daemon."

    home: str
    "That home."

    peer: str
    "Whom to call."

    calls: list[Call]
    "What to call, in order."


@dataclass(frozen=True, slots=True)
class Program:
    """One kind of caller."""

    script: str
    "Its file in this folder."

    mode: str = ""
    "Its argument."

    own_environment: bool = False
    "Whether it runs with what `make callers-env` installed."

    bare: bool = False
    "Whether it has nothing but the standard library."

    def run(self, request: Request) -> list[Any]:
        """Return what each call gave."""
        python = side_python("callers") if self.own_environment else sys.executable
        # Without site-packages, nothing that is installed here can help.
        flags = ["-I", "-S"] if self.bare else ["-P"]
        done = subprocess.run(
            [python, *flags, str(HERE / self.script), self.mode],
            input=json.dumps(asdict(request)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={k: v for k, v in os.environ.items() if not k.startswith("ANPD_")},
        )
        assert done.returncode == 0, f"{self.script}: {done.stderr}"
        outputs: list[Any] = json.loads(done.stdout)
        assert len(outputs) == len(request.calls)
        return outputs
