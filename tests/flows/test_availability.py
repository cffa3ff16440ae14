"""Competitions that not everybody can download: named before the work, left out of it, and named in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.prepared import committed_key
from tests.kaggle_server import KaggleServer
from tests.kaggle_server.server import RULES, Fault
from tests.stores import Store

CLOSED = "detecting-insults-in-social-commentary"
ALSO_CLOSED = "the-icml-2013-whale-challenge-right-whale-redux"
OPEN = "leaf-classification"
REASON = "Kaggle lets no new accounts join (as of 2026-02)"
NOTICE = f"not everybody can download 1 of 2 competitions: {REASON}: {CLOSED}"


@pytest.fixture
def closed(kaggle: KaggleServer, packs: Path) -> KaggleServer:
    """Kaggle as a new account finds it: one of two competitions cannot be joined."""
    kaggle.archives[OPEN] = (packs / OPEN / "raw.zip").read_bytes()
    kaggle.refused[CLOSED] = RULES
    return kaggle


def command(name: str, store: Store, *more: str) -> list[str]:
    return [name, "-c", OPEN, "-c", CLOSED, "--skip-verification", "--store", store.root, *more]


def test_preparing_names_it_first_and_ends_well_without_it(
    closed: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(command("prepare", store)) == 0
    out = capfd.readouterr().out
    assert out.index(NOTICE) < out.index("1 done, 1 unavailable")
    assert f"unavailable {CLOSED}: {REASON}; with an archive of it, put {CLOSED}.zip into a directory" in out
    assert main(command("prepare", store, "--json")) == 0
    results = [json.loads(line)["result"] for line in capfd.readouterr().out.splitlines()]
    assert results == ["reused", "unavailable"]


def test_credentials_are_not_needed_when_only_it_is_missing(
    closed: KaggleServer, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", "-c", OPEN, "--skip-verification", "--store", store.root]) == 0
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    capfd.readouterr()
    assert main(command("prepare", store)) == 0
    assert "1 reused, 1 unavailable" in capfd.readouterr().out


def test_alone_it_is_a_failure(closed: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "-c", CLOSED, "--store", store.root]) == 1
    assert "1 unavailable" in capfd.readouterr().out


def test_an_archive_that_one_has_is_used(
    closed: KaggleServer, packs: Path, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / f"{OPEN}.zip").write_bytes(closed.archives[OPEN])
    assert main(command("prepare", store, "--raw-dir", str(raw))) == 0
    out = capfd.readouterr().out
    assert NOTICE in out
    assert "1 done, 1 unavailable" in out
    (raw / f"{CLOSED}.zip").write_bytes((packs / CLOSED / "raw.zip").read_bytes())
    assert main(command("prepare", store, "--raw-dir", str(raw))) == 0
    assert "not everybody" not in capfd.readouterr().out
    assert committed_key(store, Dataset("v1", CLOSED))


def test_an_account_that_has_joined_downloads_it(closed: KaggleServer, packs: Path, store: Store) -> None:
    del closed.refused[CLOSED]
    closed.archives[CLOSED] = (packs / CLOSED / "raw.zip").read_bytes()
    assert main(command("prepare", store)) == 0
    assert committed_key(store, Dataset("v1", CLOSED))


def test_another_error_stays_a_failure(closed: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    del closed.refused[CLOSED]
    closed.archives[CLOSED] = b"no archive"
    assert main(command("prepare", store)) == 1
    assert "1 done, 1 failed" in capfd.readouterr().out


@pytest.mark.usefixtures("waits")
def test_an_outage_stays_a_failure(
    closed: KaggleServer, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLEBENCH_PATIENCE", "0")
    get_settings.cache_clear()
    closed.faults[CLOSED].extend([Fault("api", status=503)] * 9)
    assert main(command("prepare", store)) == 1
    out = capfd.readouterr().out
    assert f"failed  {CLOSED}: gave up after " in out
    assert "1 done, 1 failed" in out


def test_a_run_goes_on_without_it_and_its_report_says_so(
    closed: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(command("run", store, "--agent", "dummy", "--dry-run")) == 0
    assert NOTICE in capfd.readouterr().out
    assert main(command("run", store, "--agent", "dummy", "--dry-run", "--json")) == 0
    plan = json.loads(capfd.readouterr().out)
    assert plan["availability"][CLOSED]["as_of"] == "2026-02"

    arguments = command("run", store, "--agent", "dummy", "--run-group", "g")
    assert main(arguments) == 0
    out = capfd.readouterr().out
    assert NOTICE in out
    low = len(registry.list("low"))
    assert f"over 1 seed and 1 of {low} competitions" in " ".join(out.split())
    over = f"low: over 1 of {low} competitions, without {CLOSED}, {ALSO_CLOSED}: {REASON}"
    folder = store.local("reports", "g")
    for text in ((folder / "report.md").read_text().replace("\\", ""), (folder / "report.html").read_text()):
        assert over in text
    pasted = (folder / "report.html").read_text().split('<pre class="paste">')[1].split("</pre>")[0]
    assert f"(1 of {low})" in pasted
    assert over in pasted.replace("\\", "")

    assert main([*arguments, "--json"]) == 0
    results = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    [rate] = [r for r in results[-1]["rates"] if (r["split"], r["rate"]) == ("low", "any_medal")]
    assert (rate["competitions"], rate["of"]) == (1, low)
    assert main(["report", "g", "--json", "--store", store.root]) == 0
    [published] = json.loads(capfd.readouterr().out)
    assert CLOSED in published["splits"]["low"]["never_attempted"]


def test_lists_and_doctor_name_it(closed: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--lite"]) == 0
    [notice] = [line for line in capfd.readouterr().out.splitlines() if REASON in line]
    assert notice == f"not everybody can download 2 of 22 competitions: {REASON}: {CLOSED}, {ALSO_CLOSED}"
    assert main(["list", "-c", CLOSED, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["availability"]["source"]

    main(["doctor", "-c", OPEN, "-c", CLOSED, "--store", store.root, "--json"])
    findings = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    by_subject = {finding["about"]: finding for finding in findings}
    assert by_subject["availability"]["verdict"] == "warn"
    assert by_subject["availability"]["message"] == NOTICE
    assert not any(finding["verdict"] == "fail" and CLOSED in finding["message"] for finding in findings)


def test_a_competition_of_ones_own_has_its_own_reason(
    closed: KaggleServer,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "mine"))
    get_settings.cache_clear()
    main(["new", "own", "--into", str(tmp_path / "mine")])
    path = tmp_path / "mine" / "own" / "competition.yaml"
    facts = yaml.safe_load(path.read_text())
    facts |= {"source": "kaggle", "availability": {"reason": "its host withdrew the data", "source": "its host"}}
    path.write_text(yaml.safe_dump(facts))
    assert main(["prepare", "-c", "own", "-c", OPEN, "--store", store.root]) == 1
    assert "availability.as_of: missing" in capfd.readouterr().err

    facts["availability"]["as_of"] = "2027-01"
    path.write_text(yaml.safe_dump(facts))
    registry.reread()
    assert main(["prepare", "-c", "own", "-c", OPEN, "--skip-verification", "--store", store.root]) == 0
    assert "own: its host withdrew the data (as of 2027-01)" in capfd.readouterr().out
