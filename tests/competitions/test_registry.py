"""Finding competitions: by id, by split, in folders of one's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from common.errors import UserError
from competitions import registry
from competitions.errors import BadCompetition, UnknownCompetition, UnknownSplit


def test_an_unknown_id_names_close_matches() -> None:
    with pytest.raises(UnknownCompetition, match="Did you mean leaf-classification"):
        registry.get("leaf-clasification")


def test_an_unknown_split_names_the_splits() -> None:
    with pytest.raises(UnknownSplit, match="low, lite, medium"):
        registry.list("lo")


def test_lite_is_low_and_lists_are_sorted() -> None:
    assert registry.list("lite") == registry.list("low") == sorted(registry.list("low"))
    assert registry.list("demo") == ["breast-cancer", "diabetes", "digits"]


def test_a_selection_names_each_once() -> None:
    assert registry.select(["digits", "digits"], "demo") == ["breast-cancer", "diabetes", "digits"]
    with pytest.raises(UserError, match="nothing selected"):
        registry.select()


def test_a_folder_outside_is_found(tmp_path: Path) -> None:
    copy_of("diabetes", tmp_path / "my-own")
    registry.extend([tmp_path])
    assert registry.get("my-own").facts.complexity == "demo"


def test_further_folders_replace_those_added_before(tmp_path: Path) -> None:
    for place in ("a", "b"):
        copy_of("diabetes", tmp_path / place / f"of-{place}")
    registry.extend([str(tmp_path / "a"), str(tmp_path / "b")])
    assert {"of-a", "of-b"} <= set(registry.list())
    registry.extend([tmp_path / "b"])
    assert {"of-a", "of-b"} & set(registry.list()) == {"of-b"}


def test_a_directory_that_is_none_is_named_and_hides_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copy_of("diabetes", tmp_path / "own" / "mine")
    registry.extend([tmp_path / "nowhere", tmp_path / "own"])
    assert "mine" in registry.list()
    assert "nowhere, which is not a directory" in caplog.text


def test_a_folder_with_a_mistake_is_named_once_and_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    facts = copy_of("diabetes", tmp_path / "broken") / "competition.yaml"
    facts.write_text(facts.read_text().replace("direction: ", "directions: "))
    registry.extend([tmp_path])
    for split in registry.SPLITS:
        assert registry.list(split)
    (record,) = caplog.records
    assert f"{tmp_path / 'broken'} is ignored, because {facts}: " in record.getMessage()


def test_an_id_that_exists_twice_is_refused_and_hides_no_other(tmp_path: Path) -> None:
    shutil.copytree(registry.CATALOG / "diabetes", tmp_path / "diabetes")
    copy_of("diabetes", tmp_path / "mine")
    registry.extend([tmp_path])
    assert registry.get("mine").id == "mine"
    with pytest.raises(UserError, match=r"exists twice: .* Rename one of them"):
        registry.get("diabetes")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("leaderboard: 3", "leaderboard"),
        ("colour: blue", r"competition.yaml: colour: unknown field$"),
        ("category: 'Knitting'", "category"),
        ("id: other", "differs from the folder's name"),
        ("a: b: c", r"is not valid YAML \(line \d+\): mapping values"),
        ("complexity: enormous", r"complexity: must be .* \(it is 'enormous'\)$"),
    ],
)
def test_bad_facts_are_named_in_one_line(tmp_path: Path, line: str, complaint: str) -> None:
    folder = copy_of("diabetes", tmp_path / "my-own")
    facts = yaml.safe_load((folder / "competition.yaml").read_text())
    facts.pop(line.split(":")[0], None)
    (folder / "competition.yaml").write_text(yaml.safe_dump(facts) + line)
    with pytest.raises(BadCompetition, match=complaint) as caught:
        registry.Competition.load(folder)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    folder = copy_of("diabetes", tmp_path / "my-own")
    (folder / "grade.py").unlink()
    with pytest.raises(BadCompetition, match=r"grade\.py missing"):
        registry.Competition.load(folder)


def test_params_are_known_by_name() -> None:
    with pytest.raises(UserError, match="has no parameter rows"):
        registry.get("digits").params({"rows": 3})


def copy_of(competition_id: str, folder: Path) -> Path:
    """A competition of the catalog as one of the user's own."""
    shutil.copytree(registry.CATALOG / competition_id, folder)
    text = (folder / "competition.yaml").read_text()
    (folder / "competition.yaml").write_text(text.replace(f"id: {competition_id}", f"id: {folder.name}"))
    return folder


@pytest.mark.parametrize("split", registry.SPLITS)
def test_a_split_has_the_competitions_whose_facts_say_so(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list passes over most files at a glance, without parsing them."""
    wanted = {"lite": ("low",), "all": ("low", "medium", "high")}.get(split, (split,))
    facts = [registry.get(name).facts for name in registry.list()]
    assert registry.list(split) == [each.id for each in facts if each.complexity in wanted or split in each.splits]
    registry.reread()
    registry.list(split)
    assert registry._loaded.cache_info().currsize < len(facts) or split == "all"
