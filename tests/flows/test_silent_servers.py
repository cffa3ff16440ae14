"""Commands end with one line when a server accepts connections and never answers, for users of little patience."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.flows.test_ordinary_environments import home, run
from tests.proxies import proxy
from tests.silent import silent_server

__all__ = ["home"]

LEAF = "leaf-classification"
pytestmark = pytest.mark.slow

KAGGLE = {"KAGGLE_USERNAME": "a", "KAGGLE_KEY": "b"}
AWS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        pytest.param(
            ["prepare", "-c", LEAF],
            {**KAGGLE, "HTTPS_PROXY": "http://{server}"},
            f"{LEAF}: gave up after 2 tries (api.kaggle.com: Read timed out); run again to resume",
            id="proxy",
        ),
        pytest.param(
            ["prepare", "-c", "digits"],
            {**AWS, "MLEBENCH_STORE": "s3://bucket/x", "AWS_ENDPOINT_URL": "http://{server}"},
            "store s3://bucket/x cannot be written: Read timeout on endpoint URL",
            id="store",
        ),
        pytest.param(
            ["prepare", "-c", "digits"],
            {"PREFECT_API_URL": "http://{server}/api"},
            "the Prefect server http://{server}/api does not answer; start it (make up), or unset PREFECT_API_URL",
            id="prefect",
        ),
        pytest.param(
            ["prepare", "-c", "digits"],
            {"MLEBENCH_DASK_ADDRESS": "tcp://{server}"},
            "no Dask scheduler answers at tcp://{server}; start it or unset MLEBENCH_DASK_ADDRESS",
            id="dask",
        ),
        pytest.param(
            ["build", "base"],
            {"DOCKER_HOST": "tcp://{server}"},
            "no Docker engine answers (read timed out): start it, or set DOCKER_HOST",
            id="docker",
        ),
    ],
)
@pytest.mark.usefixtures("served")
def test_a_command_ends(command: list[str], variables: dict[str, str], said: str, home: Path) -> None:
    with silent_server() as server:
        env = {"PREFECT_API_URL": os.environ["PREFECT_API_URL"]}
        env |= {name: value.format(server=server) for name, value in variables.items()}
        done = run(home, *command, MLEBENCH_PATIENCE="1", **env)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert said.format(server=server) in done.stdout + done.stderr


def test_doctor_names_each(home: Path) -> None:
    with silent_server() as server:
        done = run(
            home, "doctor", "-c", LEAF, MLEBENCH_PATIENCE="1", **KAGGLE, HTTPS_PROXY=f"http://{server}",
            PREFECT_API_URL=f"http://{server}/api", MLEBENCH_DASK_ADDRESS=f"tcp://{server}", DOCKER_HOST=f"tcp://{server}",
        )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "fail kaggle gave up after 2 tries (api.kaggle.com: Read timed out)" in lines
    assert f"fail dask nothing answers at tcp://{server} -> start it, or unset MLEBENCH_DASK_ADDRESS" in lines
    assert any(line.startswith(f"fail prefect http://{server}/api: timed out -> start it") for line in lines)
    assert any(line.startswith("warn docker no Docker engine answers (read timed out)") for line in lines)


@pytest.mark.usefixtures("served")
def test_a_proxy_that_asks_for_a_login_is_one_line(home: Path) -> None:
    with proxy("http", login=True) as (url, asked):
        env = {**KAGGLE, "PREFECT_API_URL": os.environ["PREFECT_API_URL"]}
        done = run(home, "prepare", "-c", LEAF, **env, HTTPS_PROXY=url)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done
    said = "the proxy on the way to Kaggle asks for a login; set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
    assert f"failed  {LEAF}: {said}" in done.stdout
    assert set(asked) == {"api.kaggle.com:443"}


@pytest.mark.service("docker")
def test_a_build_that_fails_beside_a_socks_proxy_says_so(home: Path) -> None:
    agent = home / "agents" / "builder"
    agent.mkdir(parents=True)
    (agent / "agent.yaml").write_text("description: Its image cannot be built.\ntrusted: true\n")
    (agent / "start.sh").write_text("true\n")
    (agent / "Dockerfile").write_text("FROM scratch\nCOPY missing /\n")
    done = run(home, "build", "builder", MLEBENCH_AGENT_DIRS=str(agent.parent), ALL_PROXY="socks5://127.0.0.1:1")
    assert done.returncode == 1, done
    assert "builds cannot use a SOCKS proxy: set HTTP_PROXY and HTTPS_PROXY to an HTTP proxy" in done.stderr
