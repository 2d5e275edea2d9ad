"""Let the official SDK judge a DID document: `ok` and the URL it would fetch, or not.

The document comes on standard input. Run it with the SDK's own environment, outside
this repository, so that `anp` is the SDK's.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module


def main() -> None:
    """Print the verdict as JSON."""
    # By name, because type checkers would find our own `anp`.
    resolver = import_module("anp.authentication.did_resolver")
    document = json.load(sys.stdin)
    good = resolver.validate_did_document_method(document, verify_proof=True)
    url = resolver.build_did_resolution_url(document["id"])
    print(json.dumps({"ok": good, "url": url}))


if __name__ == "__main__":
    main()
