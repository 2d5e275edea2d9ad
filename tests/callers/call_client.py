"""A program with our Python client copied beside it, and nothing else installed.

MODE is `tcp` for the port of loopback with its token, or `socket`.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).parents[2] / "clients" / "python" / "anpd_client.py"


def main(mode: str, request: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(CLIENT, folder)
        sys.path.insert(0, folder)
        module = importlib.import_module("anpd_client")
    with connected(module, mode, request["home"]) as anpd:
        outputs = [
            anpd.call(request["peer"], call["need"], call["input"]).output
            for call in request["calls"]
        ]
    print(json.dumps(outputs))


def connected(module: Any, mode: str, home: str) -> Any:
    """Return a client of the daemon."""
    if mode == "socket":
        return module.Anpd(home)
    api = json.loads((Path(home) / "api.json").read_text())
    token = Path(api["token_file"]).read_text().strip()
    return module.Anpd(url=api["api_url"], token=token)


if __name__ == "__main__":
    main(sys.argv[1], json.load(sys.stdin))
