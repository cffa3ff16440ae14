"""Variants through the commands: prepared, run, graded, listed, removed, and no part of any split."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.settings import get_settings
from flows.cli import main
from storage.dataset import Dataset
from storage.datasets.current import find, read_marker
from storage.store import Store
from storage.tables import read_table
from tests.stores import put_dataset

VARIANT = "digits--rows40-seed1"


def lines(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_a_variant_is_prepared_run_and_graded_under_its_own_name(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", store.root]
    assert main(["prepare", "-c", "digits", "--rows", "40", "--variant-seed", "1", *where]) == 0
    assert f"-c {VARIANT}" in capfd.readouterr().out
    whole, small = (find(store, Dataset("v1", name)) for name in ("digits", VARIANT))
    assert whole is not None
    assert small is not None
    marker = read_marker(store, small)
    assert marker is not None
    assert marker["recipe"]["download"] == whole.key
    assert marker["recipe"]["params"] == {"rows": 40, "seed": 1}

    assert main(["prepare", "-c", VARIANT, *where]) == 0
    assert "already prepared" in capfd.readouterr().out
    assert main(["prepare", "-c", VARIANT, "--edition", "v2", *where]) == 1  # the competition is prepared in v1 only
    assert "is made of the prepared dataset of digits" in capfd.readouterr().out

    assert main(["run", "-c", VARIANT, "-c", "digits", "--agent", "dummy", "--run-group", "g", *where]) == 0
    grades = read_table(store, "grades").set_index("competition_id")
    assert dict(grades["complexity"]) == {VARIANT: "variant", "digits": "demo"}
    assert grades["dataset_key"][VARIANT] == small.key
    capfd.readouterr()
    assert main(["report", "g", "--json", *where]) == 0
    (of_group,) = json.loads(capfd.readouterr().out)
    assert list(of_group["splits"]) == ["demo"]
    assert of_group["splits"]["demo"]["attempts"] == 1
    assert main(["verify", "g", *where]) == 0
    assert "2 of 2 runs verified (" in capfd.readouterr().out
    assert main(["gc", "--edition", "v1", *where]) == 0
    assert find(store, Dataset("v1", VARIANT)) is None


def test_a_variant_and_its_competition_are_prepared_by_one_command(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", store.root]
    both = ["-c", VARIANT, "-c", "digits", *where]
    assert main(["run", *both, "--agent", "dummy", "--dry-run"]) == 0
    assert f"{VARIANT}: to be derived from digits\n" in capfd.readouterr().out
    assert main(["prepare", *both]) == 0
    for name in ("digits", VARIANT):
        assert find(store, Dataset("v1", name)) is not None
    capfd.readouterr()
    assert main(["gc", "--variants", *where]) == 0
    assert capfd.readouterr().out.startswith(f"removed prepared v1 {VARIANT} complete, ")
    assert find(store, Dataset("v1", VARIANT)) is None
    assert find(store, Dataset("v1", "digits")) is not None
    assert main(["prepare", *both]) == 0


def test_a_variant_whose_competition_fails_says_so(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spaceship-titanic.zip").write_bytes(b"no archive")
    variant = "spaceship-titanic--rows40-seed0"
    options = ["--raw-dir", str(tmp_path), "--skip-verification", "--store", store.root]
    assert main(["prepare", "-c", variant, "-c", "spaceship-titanic", *options]) == 1
    out = "".join(capfd.readouterr())
    assert f"{variant} is made of the prepared dataset of spaceship-titanic" in out or "is made of the prepared" in out


def test_what_a_dry_run_says_of_variants(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    where = ["--store", store.root]
    run = ["run", "-c", VARIANT, "--agent", "dummy", "--dry-run", *where]
    assert main(run) == 1
    assert "run: mlebench prepare -c digits" in capfd.readouterr().out  # the competition must be prepared
    assert main(["prepare", "-c", "digits", *where]) == 0
    assert main(run) == 0
    assert f"{VARIANT}: to be derived from digits\n" in capfd.readouterr().out
    assert main(["prepare", "-c", VARIANT, *where]) == 0
    assert f"{VARIANT}: split from digits\n" in capfd.readouterr().err
    assert main(run) == 0
    assert f"{VARIANT}: prepared already, to be reused\n" in capfd.readouterr().out


@pytest.mark.parametrize("rows", [1437, 100000])
def test_a_variant_has_fewer_units_than_its_competition(
    rows: int, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    where = ["--store", store.root]
    says = f"digits--rows{rows}-seed0: digits has only 1,437 units of train: use --rows below that\n"
    assert main(["prepare", "-c", "digits", "--rows", f"{rows}", *where]) == 1
    out = capfd.readouterr().out
    assert says in out
    assert "To use variants" not in out  # it names those that are prepared
    assert main(["prepare", "-c", f"digits--rows{rows}-seed0", *where]) == 1
    assert says in capfd.readouterr().out
    assert find(store, Dataset("v1", f"digits--rows{rows}-seed0")) is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-c", VARIANT, "--rows", "20"], f"{VARIANT} is a variant itself: use -c digits --rows 20"),
        (["-c", "digits", "--variant-seed", "0"], "--variant-seed needs --rows"),
        (
            ["-c", "digits--rows50"],
            "unknown competition 'digits--rows50'. Variants are named digits--rowsN-seedK, "
            "such as digits--rows50-seed0.",
        ),
    ],
)
def test_a_wrong_use_ends_before_work_starts(
    arguments: list[str], says: str, store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", *arguments, "--store", store.root]) == 2
    assert capfd.readouterr() == ("", f"mlebench: {says}\n")


def test_a_variant_without_its_competition_names_the_command(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "-c", VARIANT, "--store", store.root]) == 1
    assert "run: mlebench prepare -c digits" in "".join(capfd.readouterr())


@pytest.mark.parametrize("rows", ["9", "-1", "many"])
def test_too_few_rows_are_a_wrong_use(rows: str, store: Store) -> None:
    assert main(["prepare", "-c", "digits", "--rows", rows, "--store", store.root]) == 2


def test_variants_of_prepared_datasets_are_checked(
    store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("digits", "diabetes"):
        put_dataset(store, name)
    monkeypatch.setenv("MLEBENCH_STORE", store.root)
    monkeypatch.setattr("flows.commands.check._raw_of", None)  # no download is prepared
    get_settings.cache_clear()
    try:
        assert main(["check", "digits", "diabetes", "--variants"]) == 0
    finally:
        monkeypatch.undo()
        get_settings.cache_clear()
    assert "2 of 2 competitions passed" in capfd.readouterr().out


def test_a_variant_is_checked(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "digits", "--variants", "--json"]) == 0
    results = {each["check"]: each["verdict"] for each in lines(capfd)}
    assert results == dict.fromkeys(
        ["variant", "sample", "gold", "order", "secrecy", "public", "form", "ranking"], "ok"
    )
