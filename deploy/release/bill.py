"""The list of all packages in a release, with their hashes (SBOM, CycloneDX 1.6)."""

from __future__ import annotations

import re
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BLOCK = re.compile(r"(?m)^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$")


def bill_of(project: Path, *, at: int) -> str:
    """Return the list as JSON; the same checkout gives the same bytes.

    Args:
        at: Unix time of the release.
    """
    declared = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    own = Component(
        name="anpd",
        version=declared["version"],
        type=ComponentType.APPLICATION,
        licenses=[LicenseExpression(declared["license"])],
        bom_ref=f"anpd=={declared['version']}",
        purl=PackageURL("pypi", name="anpd", version=declared["version"]),
    )
    # The image's list has all that the daemon uses with all of its extras.
    pins = (project / "deploy" / "container" / "requirements.txt").read_text("utf-8")
    parts = {
        canonicalize_name(name): _part(name, version, hashes)
        for name, version, hashes in BLOCK.findall(pins)
    }
    bom = Bom(
        components=parts.values(),
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"anpd:{at}:{pins}"),
    )
    bom.metadata.component = own
    bom.metadata.timestamp = datetime.fromtimestamp(at, UTC)
    needed = [Requirement(line) for line in declared["dependencies"]]
    for extra in ("a2a", "mcp", "otel", "redis", "zones"):
        needed += map(Requirement, declared["optional-dependencies"][extra])
    direct = {canonicalize_name(one.name) for one in needed}
    bom.register_dependency(own, [parts[name] for name in sorted(direct)])
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6)
    return text.output_as_string(indent=2) + "\n"


def _part(name: str, version: str, hashes: str) -> Component:
    digests = re.findall(r"sha256:([0-9a-f]{64})", hashes)
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{canonicalize_name(name)}=={version}",
        purl=PackageURL("pypi", name=canonicalize_name(name), version=version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in digests],
    )
