"""Runs schemathesis against a real daemon's OpenAPI document (`make test-api`).

    python -m tests.api.fuzz PATH/TO/schemathesis [EXAMPLES]

Fails at any 5xx, any answer the document does not have, and any request that should
have been refused. `positive_data_acceptance` is off: a peer, a hash and a document that
fit their schemas need not exist. Streams of events never end, so they are left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd


def main(schemathesis: str, examples: int) -> int:
    """Run it, and return its exit code."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Anpd(Path(folder) / "home", listen__api_port="0").up() as daemon,
    ):
        address = Home(daemon.home).read_api()
        # Every operation is reached, not only those of scope `agent`.
        token = Home(daemon.home).read_owner().token
        done = subprocess.run(
            [
                *(schemathesis, "run", f"{address.api_url}/v1/openapi.json"),
                *("-H", f"Authorization: Bearer {token}"),
                *("--phases", "examples,coverage,fuzzing"),
                *("--max-examples", str(examples), "--generation-deterministic"),
                *("--exclude-path-regex", "events$"),
                *("--exclude-checks", "positive_data_acceptance"),
                *("--request-timeout", "30", "--continue-on-failure"),
            ],
            cwd=folder,
            check=False,
        )
        # Whatever was sent, the daemon is as it was.
        daemon.ok("doctor")
    return done.returncode


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    sys.exit(main(str(Path(sys.argv[1]).absolute()), count))
