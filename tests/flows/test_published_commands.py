"""What a user of the published tool types: its commands and flags do here what they do there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
import yaml

from common.errors import UserError
from competitions import registry
from flows.cli import cli, main
from flows.commands.container_config import read_container_config
from storage.sources.kaggle.leaderboard import read_leaderboard
from tests.flows.graded import dataset, graded, group
from tests.kaggle_server import KaggleServer
from tests.stores import Store

DOCS = Path(__file__).parents[2] / "docs"

__all__ = ["dataset", "graded", "group"]


TABLE = re.search(r"\n\| published tool \|.*?\n\n", (DOCS / "migrating.md").read_text(), re.DOTALL)
ROWS = TABLE[0].strip().splitlines()[2:] if TABLE else []


@pytest.mark.parametrize("row", ROWS)
def test_every_flag_in_the_documented_table_exists(row: str) -> None:
    theirs, ours = row.strip("| ").split(" | ", 1)
    found = re.match(r"`mlebench ((?:dev )?[a-z-]+)", ours)
    assert found is not None
    command = cli.get_command(click.Context(cli), found[1])
    assert command is not None
    known = {flag for parameter in command.params for flag in parameter.opts}
    flags = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", theirs)
    assert flags or "CSV" in theirs
    assert set(flags) <= known, "the published flags are taken as they are"


class TestContainerConfig:
    def test_limits_are_those_of_the_file(
        self, tmp_path: Path, store: Store, capfd: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "container.json"
        content = {"mem_limit": "2g", "nano_cpus": 2_500_000_000, "storage_opt": {"size": "10G"}, "runtime": "runc"}
        path.write_text(json.dumps({**content, "shm_size": "4G", "gpus": -1, "privileged": True, "x": 1}))
        config = read_container_config(path)
        assert (config.memory, config.cpus, config.disk, config.runtime) == (2 << 30, 3, 10 << 30, "runc")
        assert len(config.unused) == 4
        path.write_text('{"mem_limit": "64m", "privileged": true}')
        command = ["run", "-c", "digits", "--agent-id", "dummy", "--n-seeds", "1", "--n-workers", "1", "--dry-run"]
        assert main([*command, "--container-config", str(path), "--retain", "--store", store.root]) == 0
        told = capfd.readouterr().err
        assert "`privileged` of container.json has no effect: use --allow-privileged" in told
        assert "`--retain` keeps no container: what the agent left is in the store" in told

    @pytest.mark.parametrize("text", ["[]", "{", '{"mem_limit": "many"}', '{"nano_cpus": -1}', '{"mem_limit": 0}'])
    def test_what_is_none_is_one_line(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "container.json"
        path.write_text(text)
        with pytest.raises(UserError, match=r"container\.json"):
            read_container_config(path)


class TestGrade:
    def test_comments_and_links_and_totals(
        self, group: Store, dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        sample = dataset / registry.get("diabetes").facts.files.sample_submission
        link = tmp_path / "submission.csv"
        link.symlink_to(sample)
        lines = [
            "\ufeff# submissions of July",
            "  // of two seeds",
            json.dumps({"competition_id": "diabetes", "submission_path": str(link)}),
            json.dumps({"competition_id": "diabetes", "submission_path": str(tmp_path / "none.csv")}),
        ]
        items = tmp_path / "items.jsonl"
        items.write_text("\n".join(lines))
        code = main(["grade", "--submission", str(items), "--output-dir", str(tmp_path), "--store", group.root])
        told = capfd.readouterr()
        assert code == 0
        report = json.loads(Path(told.out.strip()).read_text())
        assert (report["total_runs"], report["total_runs_with_submissions"]) == (2, 1)
        assert report["total_valid_submissions"] == 1
        totals = [f"{name}: {total}" for name, total in report.items() if name != "competition_reports"]
        assert told.err.splitlines()[-len(totals) :] == totals

    def test_an_invalid_sample_is_a_result_and_a_missing_one_is_not(
        self, group: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        wrong = tmp_path / "wrong.csv"
        wrong.write_text("id\n1\n")
        assert main(["grade-sample", str(wrong), "diabetes", "--store", group.root]) == 0
        told = capfd.readouterr()
        assert json.loads(told.out)["valid_submission"] is False
        assert "mlebench: invalid: " in told.err
        assert main(["grade-sample", str(tmp_path / "none.csv"), "diabetes", "--store", group.root]) == 1
        assert json.loads(capfd.readouterr().out)["submission_exists"] is False

    def test_a_link_to_the_answers_is_not_followed(
        self, group: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        answers = registry.get("diabetes").facts.files.answers
        link = tmp_path / "submission.csv"
        link.symlink_to(next(group.local("prepared").rglob(answers)))
        assert main(["grade-sample", str(link), "diabetes", "--store", group.root]) == 0
        assert "is a symbolic link" in capfd.readouterr().err


class TestLeaderboards:
    ID = "leaf-classification"

    def test_those_that_are_missing_or_all_by_force(
        self, kaggle: KaggleServer, store: Store, capfd: pytest.CaptureFixture[str]
    ) -> None:
        kaggle.teams[self.ID] = [{"teamId": n, "teamName": f"team {n}", "score": f"{n}.0"} for n in range(30)]
        command = ["dev", "download-leaderboard", "-c", self.ID, "-c", "digits", "--store", store.root]
        assert main(command) == 1
        told = capfd.readouterr()
        assert "30 teams written to" in told.out
        assert "digits: it is not on Kaggle" in told.err
        first = read_leaderboard(store, self.ID)
        kaggle.teams[self.ID].pop()
        assert main(["dev", "download-leaderboard", "-c", self.ID, "--store", store.root]) == 0
        assert "1 reused" in capfd.readouterr().out
        again = read_leaderboard(store, self.ID)
        assert first is not None
        assert again is not None
        assert first.equals(again)
        assert main(["dev", "download-leaderboard", "-c", self.ID, "--force", "--store", store.root]) == 0
        assert "29 teams written to" in capfd.readouterr().out


class TestOverwritingChecksums:
    @pytest.fixture
    def own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Path:
        monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path))
        assert main(["new", "tree-heights", "--into", str(tmp_path)]) == 0
        capfd.readouterr()
        return tmp_path / "tree-heights" / "competition.yaml"

    def test_they_are_those_of_the_prepared_files(
        self, own: Path, store: Store, capfd: pytest.CaptureFixture[str]
    ) -> None:
        text = own.read_text()
        assert main(["prepare", "-c", "tree-heights", "--overwrite-checksums", "--store", store.root]) == 0
        assert "checksums changed in" in capfd.readouterr().out
        sums = yaml.safe_load(own.read_text())["checksums"]
        assert {"public/train.csv", "private/test.csv"} <= set(sums["prepared"])
        assert len(sums["download"]) == 32
        kept = [line for line in text.splitlines() if line and line in own.read_text()]
        assert len(kept) >= len([line for line in text.splitlines() if line]) - 1, "nothing else is changed"
        assert main(["prepare", "-c", "tree-heights", "--store", store.root]) == 0, "they are right"
        assert main(["prepare", "-c", "tree-heights", "--overwrite-checksums", "--store", store.root]) == 0
        assert "0 checksums changed in" in capfd.readouterr().out

    def test_wrong_ones_are_replaced(self, own: Path, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
        right = f"checksums:\n  prepared:\n    public/train.csv: '{'0' * 32}'\n"
        own.write_text(own.read_text() + ("" if "checksums:" in own.read_text() else right))
        assert main(["prepare", "-c", "tree-heights", "--overwrite-checksums", "--store", store.root]) == 0
        assert "0" * 32 not in own.read_text()
        assert main(["prepare", "-c", "tree-heights", "--store", store.root]) == 0

    def test_another_edition_has_none(self, own: Path, store: Store, capfd: pytest.CaptureFixture[str]) -> None:
        command = ["prepare", "-c", own.parent.name, "--overwrite-checksums", "--edition", "v2", "--store", store.root]
        assert main(command) == 2
        assert "are those of edition v1" in capfd.readouterr().err
