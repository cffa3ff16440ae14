"""Commands in environments as people have them: proxies, profiles of Prefect, other packages, certificates."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from common.environment import settle
from common.settings import get_settings
from flows import which_server
from flows.cli import main
from tests.prefect_home import make_home
from tests.proxies import proxy

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("mlebench")

_NOT_OF_THE_USER = {"PREFECT_HOME", "PREFECT_API_URL", "PREFECT_PROFILES_PATH", "MLEBENCH_SCRATCH"}
_NOT_OF_THE_USER |= {"PWD", "PYTHONSAFEPATH"}
"""Variables of this process that a user does not have; commands that were called in it have set some."""


@pytest.fixture
def home(tmp_path: Path, prefect_database: Path) -> Path:
    """A home directory of its own with Prefect's database in it, and nothing else."""
    make_home(tmp_path / "home" / ".prefect", prefect_database)
    return tmp_path / "home"


def run(
    home: Path, *arguments: str, program: Sequence[Path | str] = (COMMAND,), **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command itself, as a user of this home calls it there, or in the directory that PWD names."""
    env = {name: value for name, value in os.environ.items() if name not in _NOT_OF_THE_USER}
    env |= {"HOME": str(home), "MLEBENCH_STORE": str(home / "store"), "MLEBENCH_DASK_WORKERS": "1", **variables}
    return subprocess.run(
        [*program, *arguments],
        env=env,
        cwd=env.get("PWD") or home,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The only line of standard error of a command that was refused."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("mlebench: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"HTTP_PROXY": "{http}", "all_proxy": "{socks}", "NO_PROXY": "fe80::/10, 10.0.0.0/8"},
        pytest.param({"HTTP_PROXY": "{http}", "HTTPS_PROXY": "{http}"}, marks=pytest.mark.slow),
        pytest.param({"ALL_PROXY": "{socks}"}, marks=pytest.mark.slow),
    ],
    ids=lambda variables: "+".join(variables),
)
def test_a_run_and_doctor_work_beside_a_proxy(variables: dict[str, str], home: Path) -> None:
    with proxy("http") as (http_proxy, asked), proxy("socks5") as (socks_proxy, asked_socks):
        env = {name: value.format(http=http_proxy, socks=socks_proxy) for name, value in variables.items()}
        done = run(home, "run", "-c", "digits", "--agent", "dummy", "--run-group", "g", **env)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 done" in done.stdout
        examined = run(home, "doctor", "-c", "digits", **env)
        assert (examined.returncode, "a temporary server starts and answers" in examined.stdout) == (0, True), examined
    assert (asked, asked_socks) == ([], [])


def test_a_proxy_that_cannot_be_used_is_one_line(home: Path) -> None:
    done = run(home, "run", "-c", "digits", "--agent", "dummy", ALL_PROXY="socks4://127.0.0.1:1080")
    assert "ALL_PROXY begins with socks4://" in one_line(done)


def test_certificates_that_are_missing_are_one_line(home: Path) -> None:
    assert "SSL_CERT_FILE: /nowhere/ca.pem cannot be used" in one_line(run(home, "ls", SSL_CERT_FILE="/nowhere/ca.pem"))


class _Company(http.server.BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(500)

    do_POST = do_GET  # noqa: N815


@pytest.fixture
def company() -> Iterator[tuple[str, list[str]]]:
    """The address of a company's Prefect server, and what it was asked for."""
    asked: list[str] = []
    handler = type("Handler", (_Company,), {"asked": asked, "log_message": lambda *_: None})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api", asked
        server.shutdown()


def profile(home: Path, text: str) -> None:
    (home / ".prefect" / "profiles.toml").write_text(text)


def test_flow_runs_do_not_land_in_the_server_of_the_active_profile(
    home: Path, tmp_path: Path, company: tuple[str, list[str]]
) -> None:
    url, asked = company
    profile(home, f'active = "work"\n[profiles.work]\nPREFECT_API_URL = "{url}"\nPREFECT_API_KEY = "pnu_secret"\n')
    here = tmp_path / "project"
    here.mkdir()
    (here / "prefect.toml").write_text(f'[api]\nurl = "{url}"\n[server.ephemeral]\nenabled = false\n')
    (here / ".env").write_text(f"PREFECT_API_URL={url}\n")
    (here / "pyproject.toml").write_text(f'[tool.prefect.api]\nurl = "{url}"\n')
    command = ["run", "-c", "digits", "--agent", "dummy", "--run-group", "g", "--skip-space-check"]
    done = run(home, *command, PWD=str(here))
    assert done.returncode == 0, done.stdout + done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "recorded" in line]
    assert f"not in {url} of the active profile; PREFECT_PROFILE=work uses that" in said
    assert "PREFECT_PROFILE=work" in run(home, "watch", "group", PWD=str(here)).stderr
    assert asked == []
    assert run(home, "watch", "group", "--once", PWD=str(here), PREFECT_PROFILE="work").returncode == 1
    assert asked, "it is used if the variable says so"


def test_the_choice_outlasts_another_reading_of_the_settings(tmp_path: Path) -> None:
    environment = {"PREFECT_HOME": str(tmp_path), "PREFECT_API_URL": " "}
    for _ in range(2):
        settle(environment)
        which_server.choose(environment)
        assert environment["PREFECT_API_URL"] == ""
    settle(environment)
    assert environment["PREFECT_API_URL"] == ""


def test_a_profile_that_is_asked_for_precedes_an_empty_address(tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text('[profiles.work]\nPREFECT_API_URL = "http://company/api"\n')
    environment = {"PREFECT_HOME": str(tmp_path), "PREFECT_API_URL": "", "PREFECT_PROFILE": "work"}
    which_server.choose(environment)
    assert environment["PREFECT_API_URL"] == "http://company/api"


@pytest.mark.parametrize(
    "text",
    ["active = ", 'active = "gone"\n', 'active = "work"\n[profiles.work]\nPREFECT_NONSENSE = "1"\n', "profiles = 3"],
)
def test_a_broken_profile_that_is_not_used_does_not_matter(text: str, home: Path) -> None:
    profile(home, text)
    done = run(home, "watch", "group")
    assert done.returncode == 1
    assert (done.stderr.count("\n"), "Prefect server: set PREFECT_API_URL" in done.stderr) == (1, True), done.stderr


def test_a_broken_profile_that_is_asked_for_is_one_line(home: Path) -> None:
    profile(home, "[profiles.work]\n")
    assert "PREFECT_PROFILE=worj is no profile of" in one_line(run(home, "watch", "group", PREFECT_PROFILE="worj"))
    profile(home, "active = ")
    assert "profiles.toml cannot be read (" in one_line(run(home, "watch", "group", PREFECT_PROFILE="work"))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("prefect.toml", "[api\n"),
        ("prefect.toml", "[api]\nrequest_timeout = 'x'\n"),
        (".env", "PREFECT_API_REQUEST_TIMEOUT=x\n"),
    ],
)
def test_settings_of_prefect_that_are_not_valid_are_named(file: str, text: str, home: Path) -> None:
    (home / file).write_text(text)
    done = run(home, "prepare", "-c", "digits")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "mlebench: Prefect's settings are not valid (" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["common", "tasks", "flows", "storage", "sandbox"])
@pytest.mark.parametrize("kind", ["file", "package"])
def test_a_module_that_hides_one_of_ours_is_named_and_not_executed(name: str, kind: str, home: Path) -> None:
    mine = home / "mine"
    path = mine / f"{name}.py" if kind == "file" else mine / name / "__init__.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"open({str(home / 'executed')!r}, 'w')")
    for search_path in (str(mine), f":{mine}"):
        assert str(path) in one_line(run(home, "list", PYTHONPATH=search_path))
    if name != "flows":  # Python itself executes that
        program = (sys.executable, "-m", "flows.cli")
        assert str(path) in one_line(run(home, "list", program=program, PYTHONPATH=str(ROOT), PWD=str(mine)))
    assert not (home / "executed").exists()


def test_a_store_that_does_not_exist_is_not_created_by_commands_that_read(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = home / "store"
    monkeypatch.setenv("HOME", str(home))

    def called(value: str, *command: str) -> tuple[int, str]:
        monkeypatch.setenv("MLEBENCH_STORE", value)
        get_settings.cache_clear()
        capfd.readouterr()
        return main(command), capfd.readouterr().err

    def refused(value: str, *command: str) -> str:
        code, said = called(value, *command)
        assert (code, said.count("\n")) == (2, 1), said
        return said

    for command in ("ls", "du", "gc --raw", "report g", "show g", "verify g", "compare a b"):
        assert f"there is no store at {store.as_uri()}" in refused(str(store), *command.split()), command
        assert not store.exists(), command
    shutil.copytree(ROOT / "docs", store / "anything")
    assert called(f" '{store}'\n", "du")[0] == 0
    assert "no runs in" in called(f"{store}\r\n", "ls")[1]
    assert "MLEBENCH_STORE is empty" in refused("''", "ls")
    assert "MLEBENCH_STORE is empty" in refused("", "prepare", "-c", "diabetes")
    assert "--store is empty" in refused(str(store), "ls", "--store", "")
    assert not (home / ".local" / "share" / "mlebench").exists()
    assert "is neither a directory nor a URL" in called("s3://bucket\n/x", "ls")[1]
    assert "write s3://bucket" in called("s3:/bucket", "ls")[1]
