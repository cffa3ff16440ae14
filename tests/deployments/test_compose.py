"""The production installation: what compose.yaml promises, our image, and its services started for real."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.settings import Settings
from deployments import image
from deployments.background import free_port
from tests import images
from tests.deployments.installation import FINAL, ROOT, until_served
from tests.services import skip_without

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FILE = ROOT / "deployments" / "compose.yaml"
OURS = {"server", "setup", "dask-scheduler", "dask-worker", "worker", "agents"}


@pytest.fixture
def described() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())


class TestDescription:
    def test_all_services_are_there_with_health_checks_and_restarts(self, described: dict[str, Any]) -> None:
        services = described["services"]
        assert services.keys() == OURS | {"postgres", "s3"}
        for name, service in services.items():
            assert service["restart"] == ("on-failure" if name == "setup" else "unless-stopped"), name
            assert "healthcheck" in service or name == "setup", name
            assert service["logging"]["options"]["max-size"], name

    def test_images_are_pinned(self, described: dict[str, Any]) -> None:
        for name, service in described["services"].items():
            if name in OURS:
                assert service["image"].startswith("${MLEBENCH_IMAGE:?"), name
            else:
                tag = service["image"].partition(":")[2]
                assert re.search(r"\d+\.\d+|\d{4}-\d{2}-\d{2}", tag), (name, service["image"])

    def test_no_password_has_a_default(self, described: dict[str, Any]) -> None:
        for name, service in described["services"].items():
            for variable, value in (service.get("environment") or {}).items():
                if re.search(r"PASSWORD|SECRET|AUTH|ACCESS_KEY|CONNECTION_URL|ROOT_USER", variable):
                    assert ":?" in value, (name, variable)
                    assert ":-" not in value, (name, variable)

    def test_volumes_are_named_and_ports_local(self, described: dict[str, Any]) -> None:
        for name, service in described["services"].items():
            for mount in service.get("volumes", []):
                source = re.sub(r"^\$\{\w+:-(\w+)\}", r"\1", mount).partition(":")[0]
                assert source in described["volumes"], (name, mount)
            for port in service.get("ports", []):
                assert re.match(r"\$\{\w+_BIND:-127\.0\.0\.1:", port), (name, port)

    def test_settings_are_settings(self, described: dict[str, Any]) -> None:
        named = {
            variable
            for service in described["services"].values()
            for variable in (service.get("environment") or {})
            if variable.startswith("MLEBENCH_")
        }
        assert {name.removeprefix("MLEBENCH_").lower() for name in named} <= Settings.model_fields.keys()

    def test_agents_of_ones_own_are_where_agents_run(self, described: dict[str, Any]) -> None:
        for name in ("worker", "agents"):
            service = described["services"][name]
            directory = service["environment"]["MLEBENCH_AGENT_DIRS"]
            assert f"${{AGENT_DIR:-none}}:{directory}:ro" in service["volumes"]

    def test_the_example_names_every_variable_that_must_be_set(self) -> None:
        required = set(re.findall(r"\$\{(\w+):\?", FILE.read_text()))
        example = FILE.with_name("compose.env.example").read_text()
        assert required == set(re.findall(r"^(\w+)=$", example, re.MULTILINE))
        used = set(re.findall(r"\$\{(\w+)|^ +(KAGGLE_\w+):$", FILE.read_text(), re.MULTILINE))
        optional = set(re.findall(r"^#(\w+)=", example, re.MULTILINE))
        assert optional <= {name for pair in used for name in pair}


def needs(command: str) -> None:
    skip_without(None if shutil.which(command) else f"{command} is not installed (Debian: {command})")


@pytest.fixture(scope="module")
def built() -> Iterator[str]:
    """Our image, on Debian from debootstrap."""
    skip_without(images.without_debian())
    tag = f"mlebench-test:{uuid.uuid4().hex[:8]}"
    assert image.main(["--base", images.DEBIAN, "--tag", tag]) == 0
    yield tag
    subprocess.run(["docker", "image", "rm", tag], check=True, capture_output=True)


def docker(*arguments: str) -> str:
    answer = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.service("docker")
class TestImage:
    def test_the_pipeline_runs_in_it_without_a_network(self, built: str) -> None:
        command = (
            "mlebench run -c breast-cancer --agent dummy --run-group one --store store && cat store/reports/one/*.md"
        )
        printed = docker("run", "--rm", "--network", "none", built, "sh", "-c", f"{command} && id -un")
        assert "2 done" in printed
        assert "breast-cancer" in printed
        assert printed.endswith("mlebench\n"), "not root"

    def test_nothing_of_its_builder_is_in_it(self, built: str) -> None:
        content = "ls -A /opt/mlebench /home/mlebench; ls -A /etc/pip.conf 2> /dev/null; env | sort; pip config list"
        printed = docker("run", "--rm", built, "sh", "-c", content) + docker("history", "--no-trunc", built)
        for name, value in os.environ.items():
            if re.search(r"INDEX|PROXY|TOKEN|SECRET|PASSWORD|KEY", name, re.IGNORECASE) and len(value) > 5:
                assert value not in printed, name
        assert "/etc/pip.conf\n" not in printed.partition("IMAGE")[0]
        assert "tests" not in printed.partition("PATH=")[0]


class Composed:
    """Our services by docker-compose, without those of other makers: no registry is reachable here.

    Prefect's server keeps SQLite then, and the store is a volume; both others are tested elsewhere.
    """

    def __init__(self, folder: Path, tag: str) -> None:
        self.port = free_port()
        self.env = {
            **os.environ,
            "MLEBENCH_IMAGE": tag,
            "PREFECT_BIND": f"127.0.0.1:{self.port}",
            "DASK_DASHBOARD_BIND": f"127.0.0.1:{free_port()}",
            **dict.fromkeys(["POSTGRES_PASSWORD", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"], "unused"),
            "PREFECT_AUTH": "admin:sesame",
            "DASK_WORKERS": "2",
            "DASK_WORKER_MEMORY": "1GiB",
            "COMPOSE_PROFILES": "fleet",
        }
        del self.env["MLEBENCH_HOST_NAME"]  # of these tests; the service has its own
        content = yaml.safe_load(FILE.read_text())
        services = content["services"]
        content["volumes"]["store"] = None
        for name in ("postgres", "s3"):
            del services[name]
        del services["server"]["environment"]["PREFECT_SERVER_DATABASE_CONNECTION_URL"]
        for service in services.values():
            for name in ("postgres", "s3"):
                service.get("depends_on", {}).pop(name, None)
            if "MLEBENCH_STORE" in service.get("environment", {}):
                kept = {k: v for k, v in service["environment"].items() if not k.startswith("MLEBENCH_S3")}
                service["environment"] = {**kept, "MLEBENCH_STORE": "/var/lib/mlebench/store"}
                service["volumes"] = [*service.get("volumes", []), "store:/var/lib/mlebench/store"]
        (folder / "compose.yaml").write_text(yaml.safe_dump(content))
        self._command = ["docker-compose", "--project-name", f"mlebench-{uuid.uuid4().hex[:8]}", "--file"]
        self._file = str(folder / "compose.yaml")

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None, file: Path | None = None) -> Any:
        return subprocess.run(
            [*self._command, str(file or self._file), *arguments],
            env=self.env if env is None else env,
            cwd=Path(self._file).parent,
            capture_output=True,
            text=True,
            check=False,
        )

    def api(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        login = base64.b64encode(self.env["PREFECT_AUTH"].encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api{path}", data, headers)

        def answer() -> list[Any] | None:
            try:
                with urllib.request.urlopen(request, timeout=60) as given:
                    return [json.load(given)]
            except urllib.error.HTTPError as error:
                if error.code == 503:  # the database is busy, and Prefect's own client would ask again, too
                    return None
                raise

        return until_served(f"an answer to {path}", answer)[0]

    def health(self) -> dict[str, str]:
        """Health, or the state where there is no health check, by service; of two the worse."""
        found: dict[str, str] = {}
        for container in filter(None, self("ps", "--quiet").stdout.split()):
            (facts,) = json.loads(docker("inspect", container))
            state = facts["State"]
            name = facts["Config"]["Labels"]["com.docker.compose.service"]
            health = state["Health"]["Status"] if "Health" in state else f"{state['Status']} {state['ExitCode']}"
            found[name] = max(found.get(name, ""), health)  # healthy < starting < unhealthy
        return found


@pytest.fixture
def composed(tmp_path: Path, built: str) -> Iterator[Composed]:
    needs("docker-compose")
    found = Composed(tmp_path, built)
    yield found
    found("down", "--volumes", "--timeout", "5")


@pytest.mark.service("docker")
def test_the_services_start_in_order_and_run_the_nightly(composed: Composed) -> None:
    without = {name: value for name, value in composed.env.items() if name != "POSTGRES_PASSWORD"}
    assert "password of the database" in composed("config", "--quiet", env=without, file=FILE).stderr
    assert composed("config", "--quiet", file=FILE).returncode == 0

    up = composed("up", "--detach")
    assert up.returncode == 0, up.stderr
    well = {**dict.fromkeys(OURS, "healthy"), "setup": "exited 0"}
    until_served("all healthy", lambda: composed.health() == well, 500)
    with pytest.raises(OSError, match="401"):
        urllib.request.urlopen(f"http://127.0.0.1:{composed.port}/api/flows/count", data=b"{}")

    deployment = composed.api("/deployments/name/nightly/nightly-lite")["id"]
    parameters = {"split": "demo", "competition_ids": ["diabetes", "digits"]}
    run = composed.api(f"/deployments/{deployment}/create_flow_run", {"parameters": parameters})["id"]
    until_served("the end of the nightly", lambda: composed.api(f"/flow_runs/{run}")["state_type"] in FINAL, 500)
    state = composed.api(f"/flow_runs/{run}")["state"]
    assert state["type"] == "COMPLETED", composed("logs", "worker").stdout
    listed = composed("exec", "-T", "worker", "mlebench", "ls").stdout
    assert re.search(r"nightly-demo-dummy-v1-\S+ +2 +dummy", listed), listed

    command = ["mlebench", "run", "-c", "diabetes", "--agent", "dummy", "--run-group", "fleet"]
    ran = composed("exec", "-T", "worker", *command, "--pool", "agents")
    assert ran.returncode == 0, ran.stdout + ran.stderr + composed("logs", "agents").stdout
    record = composed("exec", "-T", "worker", "cat", "/var/lib/mlebench/store/runs/fleet/diabetes/0/run.json").stdout
    assert json.loads(record)["host"] == "compose", "the service `agents` has made it"
