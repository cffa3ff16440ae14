"""The lite split in one flow: downloaded from Kaggle by the real client, prepared, run with the dummy agent, graded."""

from __future__ import annotations

import json
import os
import threading
from importlib.metadata import version
from pathlib import Path

import pytest

from common.settings import get_settings
from competitions import registry
from flows.cli import main
from storage.tables import read_table
from tests.kaggle_server import Fault, KaggleServer
from tests.kaggle_server.server import RULES
from tests.stores import Store

pytestmark = pytest.mark.slow

FORBIDDEN = "dogs-vs-cats-redux-kernels-edition"
CLOSED = ("detecting-insults-in-social-commentary", "the-icml-2013-whale-challenge-right-whale-redux")
"""What a new account cannot join."""


@pytest.fixture
def miniatures(kaggle: KaggleServer, packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KaggleServer:
    """Kaggle with the parity miniatures of the lite split, and the parameters that fit them."""
    params = {}
    for name in registry.list("lite"):
        kaggle.archives[name] = (packs / name / "raw.zip").read_bytes()
        overrides = json.loads((packs / name / "expected.json").read_text())["overrides"]
        if overrides:
            params[name] = overrides
    (tmp_path / "params.json").write_text(json.dumps(params))
    monkeypatch.setenv("MLEBENCH_PARAMS", str(tmp_path / "params.json"))
    monkeypatch.setenv("MLEBENCH_SPACE_CHECK", "false")  # by the real sizes, the disk may be too small
    get_settings.cache_clear()
    return kaggle


@pytest.mark.timeout(900)
def test_the_lite_split_from_kaggle_to_grades(
    miniatures: KaggleServer,
    store: Store,
    waits: list[float],
    capfd: pytest.CaptureFixture[str],
) -> None:
    cut, busy = "spooky-author-identification", "aerial-cactus-identification"
    miniatures.faults[cut].append(Fault(cut=200))
    miniatures.faults[busy].append(Fault("api", 429, "", {"Retry-After": "5"}))
    miniatures.refused |= dict.fromkeys((FORBIDDEN, *CLOSED), RULES)
    miniatures.together = threading.Event()
    # The miniatures are not the published archives, hence --skip-verification.
    arguments = [
        "run",
        "--lite",
        "--agent",
        "dummy",
        "--run-group",
        "lite",
        "--skip-verification",
        "--store",
        store.root,
    ]

    assert main(arguments) == 1

    out, err = capfd.readouterr()
    assert f"accept them at https://www.kaggle.com/competitions/{FORBIDDEN}/rules" in err
    assert "storage/sources" not in out + err, "a line, not a traceback through our code"
    grades = read_table(store, "grades").set_index("competition_id")
    assert sorted(grades.index) == sorted(set(registry.list("lite")) - {FORBIDDEN, *CLOSED}), err
    assert set(grades["outcome"]) <= {"valid", "invalid"}, grades[["outcome", "message"]]
    assert (grades["outcome"] == "valid").sum() >= 16, grades[grades["outcome"] != "valid"]["message"].tolist()
    runs = read_table(store, "runs")
    assert set(runs["package_version"]) == {version("mlebench-pipeline")}
    assert runs[["hardware", "git_commit"]].map(bool).all(axis=None)
    page = (store.local("reports", "lite") / "report.html").read_text()
    assert all(f"<bdi>{said}</bdi>" in page for said in (runs["hardware"][0], runs["git_commit"][0]))
    assert len(waits) == 2
    assert miniatures.most == get_settings().downloads == 2, "several at once, and no more than the limit"
    asked = len(miniatures.requests)

    del miniatures.refused[FORBIDDEN]
    assert main(arguments) == 0
    assert FORBIDDEN in set(read_table(store, "grades")["competition_id"])
    assert len(miniatures.requests) == asked + 2 + len(CLOSED), "what is prepared is not asked for again"
    summary = (store.local("reports", "lite") / "report.md").read_text().replace("\\", "")
    assert f"low: over 20 of 22 competitions, without {', '.join(CLOSED)}: Kaggle lets no new accounts join" in summary

    # Neither in the store nor in what Prefect keeps: parameters, logs, artifacts, states.
    kept = [path for root in (store.local(), Path(os.environ["PREFECT_HOME"])) for path in root.rglob("*")]
    assert any(path.suffix == ".db" for path in kept)
    for path in filter(Path.is_file, kept):
        content = path.read_bytes()
        assert miniatures.token.encode() not in content, path
        assert b"planted-signature" not in content, path
    shown = out + err + "".join(capfd.readouterr())
    assert miniatures.token not in shown
    assert "planted-signature" not in shown


def test_missing_credentials_are_one_line_and_no_prompt(
    kaggle: KaggleServer, store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KAGGLE_API_TOKEN")
    assert main(["prepare", "-c", "leaf-classification", "--store", store.root]) == 1
    out, err = capfd.readouterr()
    assert "KAGGLE_USERNAME and KAGGLE_KEY" in err
    assert "storage/sources" not in out + err, "a line, not a traceback through our code"
    assert not kaggle.requests
