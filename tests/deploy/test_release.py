"""What a release rests on: one version everywhere, and checksums that are signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.release.notes import ReleaseError, version_of
from deploy.release.signing import PUBLIC, SIGNATURE, SUMS, new_key, sign, verify

ROOT = Path(__file__).resolve().parents[2]


def test_project_and_changelog_have_the_same_version() -> None:
    version, _ = version_of(ROOT)
    assert version == "0.1.0"


@pytest.mark.parametrize(
    ("heading", "fault"),
    [
        ("## [0.2.0] - unreleased", "begins with 0.2.0"),
        ("## [0.1.0] - soon", "soon is no date"),
        ("## 0.1.0", "no heading"),
    ],
)
def test_a_changelog_that_does_not_fit_is_a_fault(
    tmp_path: Path, heading: str, fault: str
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    with pytest.raises(ReleaseError, match=fault):
        version_of(tmp_path)


def test_a_dated_changelog_is_no_draft(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [0.1.0] - 2026-12-01\n")
    assert version_of(tmp_path) == ("0.1.0", True)


def test_a_changed_file_or_another_key_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "anpd.whl").write_bytes(b"wheel")
    sign(tmp_path, ["anpd.whl"], new_key())
    public = (tmp_path / PUBLIC).read_bytes()
    verify(tmp_path, public)
    (tmp_path / "anpd.whl").write_bytes(b"another")
    with pytest.raises(ValueError, match=r"anpd\.whl is not what was signed"):
        verify(tmp_path, public)
    sign(tmp_path, ["anpd.whl"], new_key())
    with pytest.raises(ValueError, match="is not of this key"):
        verify(tmp_path, public)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl here")
def test_the_command_in_the_policy_verifies(tmp_path: Path) -> None:
    (tmp_path / "anpd.whl").write_bytes(b"wheel")
    sign(tmp_path, ["anpd.whl"], new_key())
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    [command] = [line for line in text.splitlines() if line.startswith("openssl ")]

    def check() -> int:
        return subprocess.run(
            command.split(), cwd=tmp_path, capture_output=True, check=False
        ).returncode

    assert (SUMS in command, SIGNATURE in command, check()) == (True, True, 0)
    (tmp_path / SUMS).write_bytes(b"others")
    assert check() != 0
