"""Workers of a real Dask cluster: whose code they run, which of them declare, how they are reached."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest
from distributed.security import Security

from common.errors import UserError
from common.guard import basic, new_credential
from competitions.competition import Competition
from storage.datasets import workers
from storage.datasets.cluster import ClusterError, DaskExecutor, cluster, connect
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from storage.datasets.workers import ONE_MACHINE, WorkerSetup
from tests.certificates import self_signed
from tests.storage.datasets.dask_processes import ROOT, DaskProcesses


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(workers=2) as scheduler:
        yield scheduler


def _pid(_number: int) -> int:
    return os.getpid()


class TestTheSameCode:
    def test_a_worker_with_other_code_refuses(self, tmp_path: Path) -> None:
        other = tmp_path / "other"
        for room in ("common", "competitions", "storage", "tests"):
            shutil.copytree(ROOT / room, other / room, ignore=shutil.ignore_patterns("catalog", "*.xz", "__pycache__"))
        (other / "competitions" / "catalog").mkdir()
        with (other / "storage" / "datasets" / "execute.py").open("a") as file:
            file.write("\n# Another version.\n")
        with (
            DaskProcesses(tmp_path, 1, root=other) as (address, _),
            pytest.raises(UserError, match=r"a Dask worker on .* imported other code than .*; restart the workers"),
        ):
            list(DaskExecutor(address).map(_pid, [1]))

    def test_a_worker_that_cannot_be_set_up_is_one_line(self, tmp_path: Path) -> None:
        with (
            DaskProcesses(tmp_path, 1) as (address, _),
            pytest.raises(ClusterError, match=r"cannot be set up \(no module named tasks\); restart the workers"),
        ):
            list(DaskExecutor(address, set_up=_fails).map(_pid, [1]))

    def test_a_worker_with_another_pandas_refuses(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        mine = workers.environment()
        versions = tuple((name, "1.0" if name == "pandas" else version) for name, version in mine.versions)
        monkeypatch.setattr(workers, "environment", lambda: replace(mine, versions=versions))
        with pytest.raises(UserError, match=r"has imported pandas [\d.]+ instead of 1\.0; restart the workers"):
            list(DaskExecutor(address).map(_pid, [1]))

    def test_a_prepare_that_changed_after_its_import_is_refused(
        self, address: str, digits_zip: Path, tmp_path: Path
    ) -> None:
        folder = tmp_path / "digits"
        shutil.copytree(ROOT / "competitions" / "catalog" / "digits", folder)

        def job(name: str) -> Job:
            code = Competition.load(folder).fingerprint("prepare")
            return Job("digits", str(digits_zip), str(tmp_path / name), folder=str(folder), key=name, code=code)

        first = materialise(job("first"), executor=DaskExecutor(address)).to_pandas()
        with (folder / "prepare.py").open("a") as file:
            file.write("\nCHANGED = True\n")
        with pytest.raises(UserError, match="imported other code of digits than there is now; restart it, or the Dask"):
            materialise(job("second"), executor=DaskExecutor(address))
        assert not (tmp_path / "second" / "commit.json").exists()
        with cluster(workers=1) as fresh:
            assert materialise(job("second"), executor=DaskExecutor(fresh)).to_pandas().equals(first)


def _fails() -> None:
    raise RuntimeError("no module named tasks")


class TestMemory:
    def test_declarations_wait_for_a_worker_with_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workers, "DECLARING_BYTES", 1 << 60)  # more than any machine has: one at a time
        with cluster(workers=3) as address:
            executor = DaskExecutor(address)
            assert len(set(executor.map(_pid, range(12), heavy=True))) == 1
            assert len(set(executor.map(_pid, range(60)))) > 1

    def test_workers_that_share_a_machine_declare_only_as_many_as_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workers, "DECLARING_BYTES", psutil.virtual_memory().total // 2)
        limit = SimpleNamespace(memory_limit=workers.DECLARING_BYTES)

        def may_declare(name: object) -> bool:
            return WorkerSetup()._may_declare(SimpleNamespace(name=name, memory_manager=limit))

        names = [f"{ONE_MACHINE}-{number}" for number in range(4)]  # as `make up` calls them
        assert [may_declare(name) for name in names] == [True, True, False, False]
        assert may_declare(ONE_MACHINE), "if there is one"
        assert may_declare("tcp://10.0.0.1:4000"), "of somebody's own"

    def test_without_such_a_worker_the_log_says_so(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with (
            DaskProcesses(tmp_path, 1, options="--memory-limit 1GiB") as (address, _),
            caplog.at_level(logging.WARNING, logger="storage"),
        ):
            assert len(list(DaskExecutor(address).map(_pid, [1], heavy=True))) == 1
        assert "No Dask worker has a memory limit of 5 GiB" in caplog.text


def _clients(dask_scheduler: Any) -> list[str]:
    return [name for name in dask_scheduler.clients if name != "fire-and-forget"]


def test_no_client_stays_connected(address: str) -> None:
    results = DaskExecutor(address).map(_pid, range(10))
    next(results)
    results.close()  # type: ignore[attr-defined]  # a generator
    with connect(address) as client:
        assert client.run_on_scheduler(_clients) == [client.id]


def test_the_dashboard_is_reachable_and_named() -> None:
    links: list[str] = []
    with cluster(workers=1, dashboard="127.0.0.1:0", on_dashboard=links.append):
        link, _, login = links[0].rstrip(")").partition(" (login: ")
        assert Path(login).stat().st_mode & 0o777 == 0o600
        credential = Path(login).read_text().strip()
        for headers, status in (
            ({}, 401),
            ({"Authorization": basic(new_credential())}, 401),
            ({"Authorization": basic(credential), "Host": "evil.test"}, 403),
            ({"Authorization": basic(credential), "Origin": "null"}, 403),
            ({"Authorization": basic(credential)}, 200),
        ):
            answer = httpx.get(link, headers=headers, trust_env=False)
            assert (answer.status_code, "bokeh" in answer.text) == (status, status == 200), headers
    assert not Path(login).exists()


def _listening() -> set[tuple[int, str, int]]:
    """Process, address and port of all sockets on which this process and its children listen."""
    me = psutil.Process()
    return {
        (each.pid, link.laddr.ip, link.laddr.port)
        for each in (me, *me.children(recursive=True))
        for link in each.net_connections()
        if link.status == psutil.CONN_LISTEN
    }


def test_a_local_cluster_is_closed_to_others_of_the_machine() -> None:
    """Its scheduler runs the code of all clients, as this user."""
    from distributed import Client

    others = _listening()  # servers that tests share
    with cluster(workers=1) as address:
        assert len(list(DaskExecutor(address).map(_pid, [1]))) == 1
        for theirs, certificate in ((address, Security.temporary()), (address.replace("tls:", "tcp:"), None)):
            with pytest.raises(OSError, match=r"does not match|Timed out|reset by peer|SSL"):  # which end notices it
                Client(theirs, set_as_default=False, timeout="2s", security=certificate)
        for pid, host, port in _listening() - others:
            assert host == "127.0.0.1", pid
            with contextlib.suppress(httpx.HTTPError):  # no HTTP at all, which is as good
                for path in ("/", "/status", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json"):
                    status = httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False).status_code
                    assert status == 404, (pid, path)


def test_a_cluster_with_certificates(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    options: dict[str, Any] = {"require-encryption": True, "tls.ca-file": certificate}
    for role in ("scheduler", "worker", "client"):
        options |= {f"tls.{role}.cert": certificate, f"tls.{role}.key": key}
    import dask

    env = {f"DASK_DISTRIBUTED__COMM__{name.replace('.', '__')}": str(value) for name, value in options.items()}
    with (
        dask.config.set({f"distributed.comm.{name}": value for name, value in options.items()}),
        DaskProcesses(tmp_path, 1, env=env, scheduler_options="--protocol tls") as (address, _),
    ):
        assert address.startswith("tls://")
        assert len(list(DaskExecutor(address).map(_pid, [1]))) == 1
