"""Commands that talk to Kaggle: kernels, the official description, and downloads that cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import fingerprints, registry
from flows.cli import main
from flows.forms import Archives
from flows.unattended import preparation
from storage.cache import Cache
from storage.dataset import Dataset
from storage.datasets.local_copy import local_copy
from storage.datasets.prepared import committed_key
from storage.store import Store as AnyStore
from tests.kaggle_server import KaggleServer
from tests.stores import Store, put_dataset

ID = "leaf-classification"


class TestOtherCode:
    def test_a_dataset_whose_download_is_gone_is_used_until_the_operator_decides(
        self, kaggle: KaggleServer, store: Store, packs: Path, capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        kaggle.archives[ID] = (packs / ID / "raw.zip").read_bytes()
        arguments = ["prepare", "-c", ID, "--store", store.root]
        # The miniature has other checksums than the real data.
        assert main([*arguments, "--skip-verification"]) == 0
        dataset = Dataset("v1", ID)
        key = committed_key(store, dataset)
        store.remove(store.raw(ID))
        files = sorted(store.local("prepared").rglob("*.*"))
        capfd.readouterr()

        monkeypatch.setattr(fingerprints, "_version", lambda _: "another version")
        monkeypatch.setattr("tasks.split._code", lambda _: "")  # the workers have the true version
        assert main([*arguments, "--skip-verification"]) == 0
        output = capfd.readouterr().out
        assert "1 reused" in output
        assert f"1 prepared by other code, used as they are: {ID} (v1)" in output
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 1

        assert main([*arguments, "--skip-verification", "--renew"]) == 0
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2
        assert "prepared by other code" not in capfd.readouterr().out
        assert committed_key(store, dataset) == key
        assert sorted(store.local("prepared").rglob("*.*")) == files, "nothing is made again"
        assert main([*arguments, "--skip-verification", "--renew"]) == 0
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2, "it is known now"

        monkeypatch.setattr(fingerprints, "_version", lambda _: "a third version")
        store.remove(store.raw(ID))
        preparation(competition_ids=[ID], store=store.root, archives=Archives(skip_verification=True))
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 2
        renewing = Archives(skip_verification=True, renew=True)
        preparation(competition_ids=[ID], store=store.root, archives=renewing)
        assert len(kaggle.asked("api", "DownloadDataFiles")) == 3, "a deployed flow can be told to as well"
        assert committed_key(store, dataset) == key


class TestOfficialDescription:
    def prepared(self, store: AnyStore, packs: Path) -> None:
        put_dataset(store, ID, packs / ID / "raw.zip")

    @pytest.fixture
    def described(self, kaggle: KaggleServer) -> KaggleServer:
        kaggle.pages[ID] = [
            {"name": "rules", "content": "No sharing."},
            {"name": "Evaluation", "content": "<p>Log loss.</p>"},
            {"name": "Description", "content": "There are half a million species of plant."},
            {"name": "Timeline", "content": "It is over."},
        ]
        return kaggle

    def test_it_lies_beside_ours_and_says_what_differs(
        self, described: KaggleServer, store: Store, packs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.commands.prepare import _official

        self.prepared(store, packs)
        ours = store.local("prepared", "v1", ID, "k", "public", "description.md").read_text()
        assert _official([ID, "digits"], store, ["v1"]) == 0
        text = store.local("prepared", "v1", ID, "k", "public", "description_official.md").read_text()
        head, body = text.split("## Description", 1)
        for difference in (
            "new split",
            "random 10% of rows",
            "graded on this benchmark",
            "no internet",
            "submission/submission.csv",
        ):
            assert difference in head
        assert "half a million species" in body
        assert body.index("half a million") < body.index("Log loss")
        assert "No sharing" not in text
        assert "It is over" not in text
        assert store.local("prepared", "v1", ID, "k", "public", "description.md").read_text() == ours

    def test_asked_for_on_the_command_line(
        self, described: KaggleServer, store: Store, packs: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        described.archives[ID] = (packs / ID / "raw.zip").read_bytes()
        arguments = ["prepare", "-c", ID, "--skip-verification", "--store", store.root]
        assert main(arguments) == 0
        public = store.local("prepared", "v1", ID, str(committed_key(store, Dataset("v1", ID))), "public")
        assert not (public / "description_official.md").exists(), "ours is the default"
        assert not described.asked("api", "ListCompetitionPages")
        ours = (public / "description.md").read_text()

        assert main([*arguments, "--official-description"]) == 0
        assert "description_official.md" in capfd.readouterr().out
        text = (public / "description_official.md").read_text()
        head, body = text.split("## Description", 1)
        assert "Differences in this benchmark" in head
        assert "half a million species" in body
        assert (public / "description.md").read_text() == ours == registry.get(ID).description
        assert len(described.asked("api", "DownloadDataFiles")) == 1, "what is prepared is not fetched again"

    def test_it_comes_along_from_an_object_store(self, described: KaggleServer, packs: Path, tmp_path: Path) -> None:
        from storage.sources.kaggle.pages import write_official_description

        store = AnyStore(f"memory://{tmp_path.name}")
        self.prepared(store, packs)
        dataset, cache = Dataset("v1", ID, "k"), Cache(tmp_path / "cache", limit=10**9)
        with local_copy(store, dataset, "public", cache) as folder:
            assert not (folder / "public" / "description_official.md").exists()
        write_official_description(store, dataset, registry.get(ID))
        with local_copy(store, dataset, "public", cache) as folder:
            assert "half a million" in (folder / "public" / "description_official.md").read_text()

    def test_a_competition_without_pages_does_not_stop_the_others(
        self, described: KaggleServer, store: Store, packs: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from flows.commands.prepare import _official

        other = "spaceship-titanic"
        self.prepared(store, packs)
        put_dataset(store, other, packs / other / "raw.zip")
        assert _official([other, ID], store, ["v1"]) == 1
        captured = capsys.readouterr()
        assert "Kaggle shows no description" in captured.err
        assert "description_official.md" in captured.out
