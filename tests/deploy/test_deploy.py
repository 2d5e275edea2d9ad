"""The files under deploy/ are sound, as far as is seen without root or a cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import canonicalize_name

from anp.cli.app import run
from anp.errors import EXIT_CODES
from anp.sidecar.config.load import load_config
from anp.sidecar.home.home import Home
from anp.version import daemon_version
from tests.house.pins import needed_with, pins_of

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "anpd.service"
CONTAINERFILE = (DEPLOY / "container" / "Containerfile").read_text("utf-8")
DOCUMENTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((DEPLOY / "kubernetes" / "agent.yaml").read_text("utf-8"))
)
STOP_TIMEOUT = 20.0


def unit() -> dict[str, list[str]]:
    """Return the settings of the service, each with its values."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text("utf-8").splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def kind(name: str) -> dict[str, Any]:
    """Return the one object of a kind in the manifest."""
    (found,) = [one for one in DOCUMENTS if one["kind"] == name]
    return found


def pod() -> dict[str, Any]:
    """Return the specification of the pod."""
    spec: dict[str, Any] = kind("StatefulSet")["spec"]["template"]["spec"]
    return spec


def sidecar() -> dict[str, Any]:
    """Return our container."""
    (found,) = pod()["initContainers"]
    assert isinstance(found, dict)
    return found


def command_exists(words: list[str]) -> bool:
    """Tell whether the command line has a command, with its options."""
    names = [word for word in words if not word.startswith(("-", "/"))]
    options = {word for word in words if word.startswith("--")}
    options -= {"--home", "--config", "--debug"}
    return run([*names, *options, "--help"]) == 0


# systemd.


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here"
)
def test_systemd_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8").replace("/opt/anpd/bin/anpd", "/bin/true")
    copy = tmp_path / "anpd.service"
    copy.write_text(text, "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "anpd.service" in line]
    assert ours == []
    assert done.returncode == 0, done.stderr


def test_the_service_runs_commands_that_exist() -> None:
    for key in ("ExecStart", "ExecReload"):
        (line,) = unit()[key]
        program, *words = line.split()
        assert program == "/opt/anpd/bin/anpd"
        assert command_exists(words), line


def test_the_service_is_told_when_the_daemon_is_ready() -> None:
    assert unit()["Type"] == ["notify"]
    assert float(unit()["TimeoutStopSec"][0]) > STOP_TIMEOUT


def test_the_service_is_not_root_and_is_locked_in() -> None:
    found = unit()
    assert found["User"] == ["anpd"]
    assert found["CapabilityBoundingSet"] == [""]
    for key in ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "RestrictNamespaces"):
        assert found[key] == ["yes"], key
    assert found["ProtectSystem"] == ["strict"]
    # Without these the workers could not lock themselves in, and no code would run.
    allowed = found["SystemCallFilter"][0].split()
    assert {"seccomp", "landlock_restrict_self"} <= set(allowed)
    home = next(v for v in found["Environment"] if v.startswith("ANPD_HOME="))
    assert home.endswith(f"/var/lib/{found['StateDirectory'][0]}")


def test_the_service_knows_our_exit_codes() -> None:
    codes = {kind.value: code for kind, code in EXIT_CODES.items()}
    assert unit()["RestartPreventExitStatus"] == [str(codes["configuration"])]
    assert unit()["SuccessExitStatus"] == [str(codes["timeout"])]


# The container.


def stages() -> list[list[str]]:
    """Return the instructions of each stage, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", CONTAINERFILE)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("FROM "):
            found.append([])
        if found:
            found[-1].append(line)
    return found


def test_the_image_has_two_stages_and_a_pinned_python() -> None:
    assert len(stages()) == 2
    assert "ARG BASE=python:${PYTHON}-slim\n" in CONTAINERFILE
    assert all(stage[0].startswith("FROM ${BASE}") for stage in stages())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", CONTAINERFILE, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_what_the_image_copies_is_there_and_is_all_that_is_needed() -> None:
    copied = set()
    for line in stages()[0]:
        if line.startswith("COPY "):
            copied |= set(line.split()[1:-1])
    assert {name for name in copied if not (ROOT / name).exists()} == set()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], project["project"]["readme"], "pyproject.toml"}
    needed |= {Path(name).parts[0] for name in wheel["force-include"]}
    assert needed <= copied
    ignored = (DEPLOY / "container" / "Containerfile.dockerignore").read_text("utf-8")
    let_in = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    assert let_in == copied


def test_the_image_is_not_root_and_says_how_it_is() -> None:
    last = stages()[-1]
    users = [line.split()[1] for line in last if line.startswith("USER ")]
    assert users == ["10001:10001"]
    health = next(line for line in last if line.startswith("HEALTHCHECK "))
    assert 'CMD ["anpd", "health"]' in health
    assert command_exists(["health"])
    assert "STOPSIGNAL SIGTERM" in last


def test_no_secret_and_no_unpinned_fetch_is_in_the_image() -> None:
    assert not re.search(r"(?i)(api_?key|token|password)\s*=", CONTAINERFILE)
    assert not re.search(r"\b(curl|wget|ADD)\b", CONTAINERFILE)
    assert "--require-hashes -r requirements.txt" in CONTAINERFILE


PARTS = {
    "deploy/container/requirements.txt": ("all",),
    "deploy/local/requirements.txt": ("all", "demo"),
    "deploy/local/demo.txt": ("demo",),
}
"Parts of the pinned packages, with the extras that each is for."


def test_every_pinned_version_has_its_hashes_and_the_parts_have_the_same() -> None:
    block = re.compile(r"(?m)^\S+==\S+(?: \\\n    --hash=sha256:[0-9a-f]{64})+$")
    for name in ("constraints.txt", *PARTS):
        text = (ROOT / name).read_text()
        assert len(block.findall(text)) == len(pins_of(text)) > 40
        # Nothing of the index of the machine on which it was written.
        assert "://" not in text
    all_pins = set(pins_of((ROOT / "constraints.txt").read_text()))
    pinned = {canonicalize_name(name) for name, _ in all_pins}
    for part, extras in PARTS.items():
        own = set(pins_of((ROOT / part).read_text()))
        assert own <= all_pins
        # Nothing is resolved when they are installed, so all that is needed is there.
        needed = needed_with(*extras) & pinned
        assert needed <= {canonicalize_name(name) for name, _ in own}


def test_the_variables_of_the_image_are_settings(tmp_path: Path) -> None:
    environ = dict(re.findall(r"(ANPD_[A-Z_]+)=(\S+)", CONTAINERFILE))
    config = load_config(Home(tmp_path), home_given=True, environ=environ)
    assert config.listen.host == "0.0.0.0"
    assert config.log.format == "json"
    # Elsewhere than on loopback only listed peers are let in.
    assert config.peers_policy == "listed"


# Kubernetes.


def test_it_is_a_native_sidecar() -> None:
    assert sidecar()["restartPolicy"] == "Always"
    assert sidecar()["image"] == f"anpd:{daemon_version()}"
    # One identity, one home, one daemon.
    assert kind("StatefulSet")["spec"]["replicas"] == 1


def test_its_commands_and_probes_exist() -> None:
    assert command_exists(["up"])
    assert sidecar()["args"][-1] == "up"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        program, *words = sidecar()[probe]["exec"]["command"]
        assert program == "anpd"
        assert command_exists(words), probe
        # A probe of ours gives up after five seconds by itself.
        assert sidecar()[probe]["timeoutSeconds"] > 5


def test_the_agent_can_start_before_the_daemon_is_ready() -> None:
    """Readiness waits for the attachment, which is the agent itself."""
    assert "--live" in sidecar()["startupProbe"]["exec"]["command"]


def test_its_configuration_is_accepted(tmp_path: Path) -> None:
    data = kind("ConfigMap")["data"]
    (tmp_path / "anpd.toml").write_text(data["anpd.toml"], "utf-8")
    config = load_config(
        Home(tmp_path / "home"),
        home_given=True,
        config_file=tmp_path / "anpd.toml",
        environ={},
    )
    assert config.listen.port == sidecar()["ports"][0]["containerPort"]
    assert config.peers_policy == "listed"
    assert pod()["terminationGracePeriodSeconds"] > config.operation.stop_timeout
    assert config.operation.stop_timeout == STOP_TIMEOUT


def test_every_volume_that_is_mounted_is_there_and_its_folders_fit() -> None:
    volumes = {one["name"] for one in pod()["volumes"]}
    claims = kind("StatefulSet")["spec"]["volumeClaimTemplates"]
    volumes |= {one["metadata"]["name"] for one in claims}
    for container in (sidecar(), *pod()["containers"]):
        assert {one["name"] for one in container["volumeMounts"]} <= volumes


def test_the_agent_sees_the_socket_and_not_the_key() -> None:
    (agent,) = pod()["containers"]
    (mount,) = agent["volumeMounts"]
    environ = {one["name"]: one["value"] for one in sidecar()["env"]}
    home = Home(Path(environ["ANPD_HOME"]))
    root = next(
        Path(one["mountPath"])
        for one in sidecar()["volumeMounts"]
        if one["name"] == mount["name"]
    )
    assert root / mount["subPath"] == home.path / "run"
    assert not home.key_file.is_relative_to(root / mount["subPath"])
    shown = {one["name"]: one["value"] for one in agent["env"]}
    assert shown["ANPD_SOCKET"] == f"{mount['mountPath']}/api.sock"


def test_secrets_are_files_of_a_secret() -> None:
    assert kind("Secret")["stringData"].keys() == {"model.key"}
    (volume,) = [one for one in pod()["volumes"] if "secret" in one]
    assert volume["secret"]["secretName"] == kind("Secret")["metadata"]["name"]
    assert volume["secret"]["defaultMode"] == 0o440
    environ = [one for c in (sidecar(), *pod()["containers"]) for one in c["env"]]
    assert not [one for one in environ if re.search("KEY|TOKEN", one["name"])]


def test_nobody_in_the_pod_is_root() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert f"--uid {pod()['securityContext']['runAsUser']} " in CONTAINERFILE
    for container in (sidecar(), *pod()["containers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert sidecar()["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod()["automountServiceAccountToken"] is False


def test_selectors_fit_the_labels() -> None:
    labels = kind("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert kind("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    assert kind("Service")["spec"]["selector"] == labels
