"""The official SDK judges the documents that we make."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.identity.web.own_document import document_bytes, make_document, make_web_did
from tests.environments import side_python

ROOT = Path(__file__).parents[4]
CHECK = ROOT / "tests" / "sdk" / "check_web_did.py"


@pytest.mark.sdk
@pytest.mark.parametrize("path", ["", "user:alice"])
@pytest.mark.parametrize("key", ["ed25519", "p256"])
def test_the_sdk_accepts_our_documents(tmp_path: Path, path: str, key: str) -> None:
    binding = PrivateKey.generate(KeyKind.ED25519) if key == "ed25519" else None
    did = make_web_did(
        "agent.example",
        port=8443,
        path=path,
        binding_key=None if binding is None else binding.public_key,
    )
    document = make_document(
        did,
        hello_key=PrivateKey.generate().public_key,
        binding_key=binding,
        url="wss://agent.example:8443/",
        created=datetime.now(UTC),
    )
    done = subprocess.run(
        [side_python("sdk"), "-I", str(CHECK)],
        cwd=tmp_path,
        input=document_bytes(document).decode(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == {"ok": True, "url": did.document_url}
