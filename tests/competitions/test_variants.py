"""Small variants: ids, units, classes, and what belongs to units."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from common.errors import UsageError, UserError
from competitions import registry
from competitions.preparing.download import Download
from competitions.variant import Variant, VariantName
from competitions.variants.draw import Draw
from competitions.variants.links import side_of
from storage.datasets.job import Job
from storage.datasets.materialise import materialise
from tests.prepared import PreparedCompetitions


def variant_of(prepared: PreparedCompetitions, competition_id: str, out: Path, rows: int = 20, seed: int = 0) -> Path:
    """Prepare a variant of a competition's miniature in `out`."""
    name = str(VariantName(competition_id, rows, seed))
    materialise(Job(name, str(prepared[competition_id].path), str(out), published=True))
    return out


@pytest.mark.parametrize(
    "text",
    ["spaceship-titanic", "spaceship-titanic--rows200", "a--rows0-seed0", "a--rows010-seed0", "a--rows20-seed-1"],
)
def test_other_ids_are_no_variants(text: str) -> None:
    assert VariantName.of(text) is None


def test_a_variant_is_no_part_of_the_benchmark() -> None:
    variant = registry.get("spaceship-titanic--rows200-seed3")
    assert isinstance(variant, Variant)
    assert (variant.id, variant.facts.complexity) == ("spaceship-titanic--rows200-seed3", "variant")
    assert variant.facts.leaderboard == registry.get("spaceship-titanic").facts.leaderboard
    assert not variant.facts.checksums.prepared
    assert not any("--rows" in name for split in (None, *registry.SPLITS) for name in registry.list(split))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("spaceship-titanik--rows200-seed0", UserError, "unknown competition"),
        ("spaceship-titanic--rows5-seed0", UsageError, "at least 10 rows"),
        (
            "spaceship-titanic--rows50-seed0--rows20-seed0",
            UsageError,
            "is a variant itself: use -c spaceship-titanic --rows 20",
        ),
        ("spaceship-titanic--rows50", UserError, "Variants are named spaceship-titanic--rowsN-seedK"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        registry.get(text)


def test_units_are_drawn_with_two_of_each_class_whatever_their_order() -> None:
    rows = [(f"unit{number}", [("class", "rare" if number < 3 else "usual")]) for number in range(1000)]
    forwards, backwards = Draw(10, 0), Draw(10, 0)
    for unit, labels in rows:
        forwards.add(unit, labels)
    for unit, labels in reversed(rows):
        backwards.add(unit, labels)
    drawn = forwards.drawn()
    assert drawn == backwards.drawn()
    assert len(drawn.units) == 10
    assert len({"unit0", "unit1", "unit2"}.intersection(drawn.units)) == 2
    assert drawn.classes is None


def test_of_many_classes_some_are_kept_with_two_units_each() -> None:
    draw = Draw(10, 0)
    for number in range(1000):
        draw.add(f"unit{number}", [("class", f"class{number % 100}")])
    drawn = draw.drawn()
    assert drawn.classes is not None
    assert len(drawn.classes) == 5
    classes = [f"class{int(unit.removeprefix('unit')) % 100}" for unit in drawn.units]
    assert sorted(classes) == sorted([*drawn.classes, *drawn.classes])


def test_values_of_which_each_unit_has_its_own_are_no_classes() -> None:
    draw = Draw(10, 0)
    for number in range(1000):
        draw.add(f"unit{number}", [("price", f"{number}")])
    assert draw.drawn().classes is None


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("train.zip/test.jpg", "train"),
        ("nybg2020/test/images/1.jpg", "test"),
        ("sampleSubmission.csv", "test"),
        ("labels.csv", "train"),
        ("structures.csv", None),
    ],
)
def test_the_first_part_of_a_path_says_the_side(name: str, side: str | None) -> None:
    assert side_of(name) == side


def test_rows_are_those_of_the_original_byte_for_byte(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    whole, small = (
        prepared["spaceship-titanic"].path,
        variant_of(prepared, "spaceship-titanic", tmp_path / "small"),
    )
    for name in ("public/train.csv", "public/test.csv", "public/sample_submission.csv", "private/test.csv"):
        lines = (whole / name).read_bytes().splitlines(keepends=True)
        kept = (small / name).read_bytes().splitlines(keepends=True)
        assert kept[0] == lines[0]
        assert [line for line in lines if line in kept] == kept
    summary = json.loads((small / "public" / "variant.json").read_text())
    groups = pd.read_csv(small / "public" / "train.csv")["PassengerId"].str[:4]
    assert summary["train_units"] == groups.nunique() == 20


def test_files_tables_and_archives_are_cut_alike(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    small = variant_of(prepared, "aerial-cactus-identification", tmp_path / "small", rows=10)
    public = Download.open(str(small / "public"))
    train = public.read_csv("train.csv")
    assert len(train) == 10
    assert train["has_cactus"].value_counts().min() >= 2
    assert public.archive("train.zip").names() == sorted(train["id"])
    assert public.archive("test.zip").names() == sorted(public.read_csv("sample_submission.csv")["id"])


def test_rows_of_a_unit_stay_together(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    whole = prepared["champs-scalar-coupling"].path / "public"
    small = variant_of(prepared, "champs-scalar-coupling", tmp_path / "small", rows=10) / "public"
    molecules = set(pd.read_csv(small / "train.csv")["molecule_name"])
    assert len(molecules) == 10
    everything = pd.read_csv(whole / "train.csv")
    assert len(pd.read_csv(small / "train.csv")) == everything["molecule_name"].isin(molecules).sum()
    both = molecules | set(pd.read_csv(small / "test.csv")["molecule_name"])
    assert set(pd.read_csv(small / "structures.csv")["molecule_name"]) <= both
    assert {path.stem for path in (small / "structures").iterdir()} <= both


def test_customers_of_test_keep_their_history(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    name = "h-and-m-personalized-fashion-recommendations"
    small = variant_of(prepared, name, tmp_path / "small")
    customers = set(pd.read_csv(small / "private" / "answers.csv")["customer_id"])
    history = set(pd.read_csv(prepared[name].path / "public" / "transactions_train.csv")["customer_id"])
    assert customers & history <= set(pd.read_csv(small / "public" / "transactions_train.csv")["customer_id"])


def test_another_seed_chooses_other_units(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    first = variant_of(prepared, "spaceship-titanic", tmp_path / "0")
    second = variant_of(prepared, "spaceship-titanic", tmp_path / "1", seed=1)
    again = variant_of(prepared, "spaceship-titanic", tmp_path / "2")
    manifests = [pd.read_parquet(folder / "manifest.parquet") for folder in (first, second, again)]
    assert manifests[0].equals(manifests[2])
    assert not manifests[0].equals(manifests[1])


def test_what_cannot_be_derived_is_refused_with_the_reason(prepared: PreparedCompetitions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cdiscount-image-classification-challenge has no variants: no public table"):
        variant_of(prepared, "cdiscount-image-classification-challenge", tmp_path)
