"""Make `tests/vectors/identity/did_all.json` with the official SDK.

Run it with the SDK's own environment, outside this repository, whose package has the
same name, so that `anp` is the SDK's:

    cd /tmp && REPOSITORY/.venvs/sdk/bin/python \
        REPOSITORY/tests/sdk/make_did_vectors.py > did_all.json

The scalars are fixed, so every run gives the same file.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

SCALARS = (1, 2, 3, 0xA11CE, 0xB0B, 2**128 - 159, 2**255 - 19)


def main() -> None:
    """Print the vectors."""
    # By name, because type checkers would find our own `anp`.
    tool = import_module("anp.utils.crypto_tool")
    generate = import_module("anp.utils.did_generate")
    vectors = []
    for scalar in SCALARS:
        public = ec.derive_private_key(scalar, ec.SECP256R1()).public_key()
        point = public.public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        did = generate.generate_did(tool.generate_bitcoin_address(public))
        if not tool.verify_did_with_public_key(f"{did}@example.com:8080", public):
            raise SystemExit(f"the SDK does not accept {did}")
        vectors.append({"public_key": point.hex(), "did": did})
    document = {
        "made_by": f"anp {version('anp')}, tests/sdk/make_did_vectors.py",
        "vectors": vectors,
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
