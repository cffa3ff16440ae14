"""`mlebench new` and `mlebench check`: from nothing to a competition of one's own that passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from competitions import registry
from flows.cli import main


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path))
    return tmp_path


def test_a_new_competition_passes_at_once(own: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "tree-heights", "--into", str(own)]) == 0
    assert "mlebench check tree-heights" in capfd.readouterr().out
    assert registry.get("tree-heights").facts.name == "Tree heights"
    assert main(["check", "tree-heights", "--page", str(own / "check.html")]) == 0
    out = capfd.readouterr().out
    assert not any(word in out for word in ("failed", "noted"))
    assert "1 of 1 competition passed, with 1 check skipped" in out
    page = (own / "check.html").read_text()
    assert page.count('class="verdict ok"') == 21  # of 21 checks and gates, and their count; copies are skipped


def test_the_variable_to_set_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("MLEBENCH_COMPETITIONS", str(tmp_path / "a"))
    main(["new", "tree-heights", "--into", str(tmp_path / "b")])
    assert f"export MLEBENCH_COMPETITIONS={tmp_path / 'a'}:{tmp_path / 'b'}" in capfd.readouterr().out
    main(["new", "tree-widths", "--into", str(tmp_path / "a")])
    assert "export" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("digits", "already"),
        ("no good", "is not an id"),
        ("../up", "is not an id"),
        ("-x", "No such option"),
        ("here", "exists"),
    ],
)
def test_what_cannot_be_made_is_refused(
    own: Path, name: str, complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (own / "here").mkdir()
    assert main(["new", name, "--into", str(own)]) != 0
    assert complaint in capfd.readouterr().err
    assert sorted(path.name for path in own.iterdir()) == ["here"]


def test_a_failed_check_is_told_and_exits_with_1(own: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["new", "tree-heights", "--into", str(own)])
    path = own / "tree-heights" / "description.md"
    path.write_text(path.read_text().replace("test.csv", "the test set"))
    assert main(["check", "tree-heights"]) == 1
    assert "description.md does not name test.csv" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name competitions"),
        (["leaf-classification"], "needs its download"),
        (["digits", "diabetes", "--params", "{}"], "require exactly one competition"),
        (["digits", "diabetes", "--page", "x.html"], "require exactly one competition"),
        (["digits", "--variants", "--page", "x.html"], "leave out --variants"),
        (["digits", "--page", "no/such/x.html"], "there is no directory no/such"),
        (["digits", "--params", "{"], "not JSON"),
        (["digits", "--params", "[]"], "JSON object"),
        (["digits", "--prepared", "."], "is not a prepared dataset"),
        (["digis"], "Did you mean digits"),
    ],
)
def test_what_cannot_be_checked_is_told_in_one_line(
    arguments: list[str], complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) in (1, 2)
    err = capfd.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
