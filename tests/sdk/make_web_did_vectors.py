"""Make `tests/vectors/identity/did_wba.json` with the official SDK.

Run it with the SDK's own environment, outside this repository, whose package has the
same name, so that `anp` is the SDK's:

    cd /tmp && REPOSITORY/.venvs/sdk/bin/python \
        REPOSITORY/tests/sdk/make_web_did_vectors.py > did_wba.json

Keys are drawn anew in each run. The SDK itself accepts each document before it is
written; no private key is.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from typing import Any

CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("the whole host", {"hostname": "example.com"}),
    ("a host with a port", {"hostname": "example.com", "port": 8800}),
    (
        "a path bound to an Ed25519 key",
        {"hostname": "example.com", "path_segments": ["user", "alice"]},
    ),
    (
        "a path, port and bound key, with a service",
        {
            "hostname": "example.com",
            "port": 3000,
            "path_segments": ["agents"],
            "services": [
                {
                    "id": "#messages",
                    "type": "messageService",
                    "serviceEndpoint": "wss://example.com:3000/",
                }
            ],
        },
    ),
    (
        "a path bound to a secp256k1 key",
        {
            "hostname": "example.com",
            "path_segments": ["user", "bob"],
            "did_profile": "k1",
        },
    ),
    (
        "a path bound to none",
        {
            "hostname": "example.com",
            "path_segments": ["user", "carol"],
            "did_profile": "plain_legacy",
        },
    ),
)


def main() -> None:
    """Print the vectors."""
    # By name, because type checkers would find our own `anp`.
    wba = import_module("anp.authentication.did_wba")
    resolver = import_module("anp.authentication.did_resolver")
    vectors = []
    for name, arguments in CASES:
        document, keys = wba.create_did_wba_document(**arguments)
        if not resolver.validate_did_document_method(document, verify_proof=True):
            raise SystemExit(f"the SDK does not accept {document['id']}")
        vectors.append(
            {
                "name": name,
                "did": document["id"],
                "url": resolver.build_did_resolution_url(document["id"]),
                "keys": sorted(keys),
                "document": document,
            }
        )
    made = {
        "made_by": f"anp {version('anp')}, tests/sdk/make_web_did_vectors.py",
        "vectors": vectors,
    }
    print(json.dumps(made, indent=2))


if __name__ == "__main__":
    main()
