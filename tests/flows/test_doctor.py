"""mlebench doctor, du and gc: one screen that never breaks, and removal that keeps what is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from prefect import get_client
from prefect.client.schemas.actions import WorkPoolUpdate
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from prefect.workers.process import ProcessWorker

from common.progress import Event
from common.settings import get_settings
from competitions import registry
from deployments.background import free_port
from flows.cli import cli
from flows.diagnosis import health
from flows.diagnosis.server import check_prefect
from flows.fleet.template import ensure_pool
from flows.watching.board import Board
from sandbox.docker.abandoned import Orphan
from storage.cache import Cache
from storage.dataset import Dataset
from storage.lease import lease, prepare_lease
from tests.prefect_home import make_home
from tests.stores import Store, put_dataset
from tests.waiting import listening, until


def mlebench(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.output


class TestDoctor:
    def test_scratch_has_room_for_copies_of_a_store_elsewhere(self, store: Store) -> None:
        settings = get_settings()
        elsewhere: Any = SimpleNamespace(top=SimpleNamespace(local=False))
        names = [name for name in registry.folders() if (registry.get(name).facts.size_bytes or 0) > 0]
        largest = max(names, key=lambda name: registry.get(name).facts.size_bytes or 0)
        usage = SimpleNamespace(free=10**11)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(health.shutil, "disk_usage", lambda _: usage)
            finding = health.check_scratch(settings, elsewhere, [largest, "digits"])
            assert (finding.verdict, "a local copy of the largest dataset needs about" in finding.message) == (
                "warn",
                True,
            )
            assert health.check_scratch(settings, elsewhere, ["digits"]).verdict == "ok"
            assert health.check_scratch(settings, store, [largest]).verdict == "ok", "its data are used in place"

    def test_a_sound_installation(self, store: Store) -> None:
        code, output = mlebench("doctor", "--split", "demo", "--store", store.root)
        assert code == 0, output
        assert "all checks passed" in output
        for about in ("store", "disk", "memory", "kaggle", "dask", "prefect", "docker", "versions"):
            assert about in output

    def test_an_engine_that_cannot_limit_agents_is_not_ok(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = {
            "version": lambda: {"Version": "20.10"},
            "info": lambda: {"MemoryLimit": False},
            "close": lambda: None,
        }
        monkeypatch.setattr("sandbox.docker.engine.connect", lambda: SimpleNamespace(**answers))
        [finding] = health.check_docker()
        assert (finding.verdict, "cannot limit agents (MemoryLimit" in finding.message) == ("warn", True)

    def test_everything_missing_is_a_screen_not_a_traceback(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("MLEBENCH_DASK_ADDRESS", "tcp://127.0.0.1:1")
        monkeypatch.setenv("MLEBENCH_PATIENCE", "1")
        monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
        monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
        monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "file" / "scratch"))
        get_settings.cache_clear()
        code, output = mlebench("doctor", "-c", "leaf-classification", "--store", str(tmp_path / "file" / "store"))
        assert code == 1
        lines = {line.split()[1]: line.split()[0] for line in output.splitlines() if len(line.split()) > 2}
        failed = {about for about, verdict in lines.items() if verdict == "fail"}
        assert failed >= {"store", "scratch", "kaggle", "dask", "prefect"}, output
        assert lines["docker"] == "warn"
        assert "https://www.kaggle.com/settings" in output

    def test_a_disk_that_is_too_small(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
        finding = health.check_disk(store, registry.list("all"))
        assert finding.verdict == "fail"
        assert "1.0 GB free for the store" in finding.message
        assert health.check_disk(store, ["digits"]).verdict == "ok"

    def test_prepare_says_so_before_it_begins(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for competition_id in registry.list("lite"):
            (tmp_path / f"{competition_id}.zip").touch()
        monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**6))
        with pytest.raises(Exception, match="not enough space"):
            mlebench("prepare", "--lite", "--raw-dir", str(tmp_path), "--store", store.root)

    def test_downloads_that_are_there_already_need_no_account(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "leaf-classification.zip").touch()
        (finding,) = health.check_access(["leaf-classification", "digits"], str(tmp_path))
        assert finding.verdict == "ok"
        (finding,) = health.check_access(["leaf-classification", "dogs-vs-cats-redux-kernels-edition"], str(tmp_path))
        assert (finding.verdict, "dogs-vs-cats" in finding.remedy) == ("fail", True)

    def test_a_check_that_breaks_is_a_finding(self) -> None:
        def breaks() -> health.Finding:
            raise RuntimeError("no\nreason")

        (finding,) = health.guarded("odd", breaks)
        assert (finding.verdict, finding.message) == ("fail", "could not be checked: RuntimeError: no")


class TestLeftovers:
    """Containers; flow runs and slots are in tests/deployments/test_recovery.py, on a server."""

    @pytest.fixture
    def ended(self, monkeypatch: pytest.MonkeyPatch) -> list[Orphan]:
        """An engine with one container that nobody waits for; what `doctor` ends is in the list."""
        left = [Orphan("g-diabetes-0", Path("/w"), "running", "2026-01-01T00:00:00Z", "it has ended")]
        ended: list[Orphan] = []

        def end() -> list[Orphan]:
            ended.extend(left)
            left.clear()
            return ended

        monkeypatch.setattr("sandbox.docker.orphans", lambda: list(left))
        monkeypatch.setattr("sandbox.docker.end_orphans", end)
        return ended

    def test_containers_are_reported_and_with_fix_ended(self, store: Store, ended: list[Orphan]) -> None:
        arguments = ["doctor", "--split", "demo", "--store", store.root]
        code, output = mlebench(*arguments)
        (line,) = (line for line in output.splitlines() if "g-diabetes-0" in line)
        assert (code, line.split()[0], ended) == (0, "warn", [])
        assert line.endswith("mlebench doctor --fix")
        _, output = mlebench(*arguments, "--fix")
        (line,) = (line for line in output.splitlines() if "g-diabetes-0" in line)
        assert (line.split()[0], [each.run_id for each in ended]) == ("ok", ["g-diabetes-0"])
        assert "containers  no container is left over from a command that died" in mlebench(*arguments)[1]


@pytest.fixture
def full(store: Store) -> Store:
    """A store with digits complete and its archive kept, diabetes half made, and part of a download."""
    for name in ("digits", "diabetes"):
        put_dataset(store, name)
    store.write_json(store.url("raw", "digits", "download.json"), {"hash": "h"})
    store.write_json(store.url("raw", "diabetes", "download.json"), {"hash": "h"})
    store.remove(store.prepared(Dataset("v1", "diabetes", "k")) + "/commit.json")
    store.write(store.url("raw", "leaf-classification", "partial", "leaf-classification.zip"), b"half")
    return store


class TestRoom:
    def test_du_counts_everything_once(self, full: Store) -> None:
        code, output = mlebench("du", "--store", full.root)
        assert code == 0
        size = json.loads(full.local("prepared", "v1", "digits", "k", "commit.json").read_text())["bytes"]
        line = next(line for line in output.splitlines() if "v1 digits" in line)
        assert f"{size / 1000:,.1f} kB" in line
        assert "complete" in line
        assert "incomplete" in next(line for line in output.splitlines() if "v1 diabetes" in line)

    def test_a_dry_run_removes_nothing(self, full: Store) -> None:
        before = sorted(full.local().rglob("*"))
        code, output = mlebench("gc", "--raw", "--orphans", "--edition", "v1", "--dry-run", "--store", full.root)
        assert code == 0
        assert "would remove" in output
        assert [path for path in before if not path.exists()] == []

    def test_raw_archives_go_where_the_dataset_is_complete(self, full: Store) -> None:
        mlebench("gc", "--raw", "--store", full.root)
        assert not full.exists(full.raw("digits"))
        assert full.exists(full.url("raw", "digits", "download.json"))
        assert full.exists(full.raw("diabetes")), "still needed"
        assert full.exists(full.prepared(Dataset("v1", "digits", "k")) + "/commit.json")

    def test_orphans_go_and_nothing_complete(self, full: Store) -> None:
        _, output = mlebench("gc", "--orphans", "--store", full.root)
        assert not full.exists(full.prepared(Dataset("v1", "diabetes", "k")))
        assert not full.exists(full.url("raw", "leaf-classification", "partial", "leaf-classification.zip"))
        assert full.exists(full.prepared(Dataset("v1", "digits", "k")) + "/commit.json")
        assert full.exists(full.raw("digits"))
        assert "freed" in output

    def test_what_is_being_made_stays(self, full: Store) -> None:
        with (
            lease(full, prepare_lease(Dataset("v1", "diabetes"))),
            lease(full, prepare_lease(Dataset("v2", "digits"))),
            lease(full, "download/leaf-classification"),
        ):
            _, output = mlebench("gc", "--orphans", "--raw", "--store", full.root)
        assert "0 B freed" in output
        assert full.exists(full.prepared(Dataset("v1", "diabetes", "k")))
        assert full.exists(full.raw("digits")), "the other edition is made of it at this moment"

    def test_an_edition_goes_when_it_is_named(self, full: Store) -> None:
        mlebench("gc", "--edition", "v2", "--store", full.root)
        assert full.exists(full.prepared(Dataset("v1", "digits", "k")) + "/commit.json")
        mlebench("gc", "--edition", "v1", "--store", full.root)
        assert not full.glob("prepared/v1/*")

    def test_local_copies_go_unless_used(self, full: Store) -> None:
        settings = get_settings()
        cache = Cache(settings.scratch / "cache", settings.cache_limit)

        def fill(folder: Path) -> None:
            (folder / "file").write_bytes(b"x" * 1000)

        with cache.use("free", "free", 1000, fill):
            pass
        with cache.use("used", "used", 1000, fill):
            _, output = mlebench("gc", "--cache", "--store", full.root)
            assert "in use" in mlebench("du", "--store", full.root)[1]
        assert "1.0 kB freed" in output
        assert [entry.digest for entry in cache.entries()] == ["used"]

    def test_something_has_to_be_named(self, full: Store) -> None:
        with pytest.raises(Exception, match="choose what to remove"):
            mlebench("gc", "--store", full.root)


def test_the_board_shows_pace_and_what_is_left() -> None:
    from rich.console import Console

    board = Board("Preparing")
    board.take(Event("digits", "split", "3 of 10 files", 30_000_000, 90_000_000))
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    board.take(Event("digits", "split", "6 of 10 files", 60_000_000, 90_000_000))
    console.print(board)
    text = console.export_text()
    assert "60 of 90 MB" in text
    assert "MB/s" in text
    assert "left" in text


@pytest.mark.usefixtures("served")
def test_a_server_that_is_closed_is_fine() -> None:
    assert [(each.about, each.verdict) for each in check_prefect()] == [("prefect", "ok")]


@pytest.mark.usefixtures("served")
def test_a_login_that_is_wrong_or_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for login, said in (("mlebench:another", "refuses the login of PREFECT_API_AUTH_STRING"), ("", "asks for a login")):
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", login)
        (finding,) = check_prefect()
        assert (finding.verdict, said in finding.message) == ("fail", True)


def test_a_server_of_others_that_is_open_is_named(
    tmp_path: Path, prefect_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `prefect server start` serves, with a work pool as the UI makes it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    env = {**os.environ, "PREFECT_HOME": str(make_home(tmp_path, prefect_database)), "PREFECT__SERVER_EPHEMERAL": "1"}
    with subprocess.Popen([*command, "--port", str(port), "--log-level", "critical"], env=env) as server:
        try:
            until(lambda: listening(port), 300, may_yet=lambda: server.poll() is None, pause=0.2)
            template = ProcessWorker.get_default_base_job_template()
            pool = {"name": "theirs", "type": "process", "base_job_template": template}
            httpx.post(f"{url}/work_pools/", json=pool, trust_env=False).raise_for_status()
            monkeypatch.setenv("PREFECT_API_URL", url)
            first, *found = check_prefect()
            assert (first.about, first.verdict) == ("prefect", "ok")
            assert {each.verdict for each in found} == {"warn"}
            assert [each.about for each in found] == ["prefect login", "prefect pages", "prefect names", "prefect pool"]
            assert "theirs can set command, env, labels" in found[-1].message
            assert all(each.remedy for each in found)
            theirs = temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: None})
            with theirs, get_client(sync_client=True) as client:
                template["variables"]["properties"]["working_dir"]["default"] = "/srv"
                client.update_work_pool("theirs", WorkPoolUpdate(base_job_template=template))
                for _ in range(2):
                    ensure_pool(client, "theirs")
                job = client.read_work_pool("theirs").base_job_template["job_configuration"]
            assert job == {"working_dir": "/srv", "stream_output": True}, "closed, with what its operator chose"
            assert "prefect pool" not in [each.about for each in check_prefect()]
        finally:
            server.kill()
