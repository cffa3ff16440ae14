"""A competition's folder is a package: its modules import each other, and never those of another folder."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from competitions import registry
from competitions.competition import Competition
from competitions.errors import BadCompetition
from tests.competitions.test_registry import copy_of

ROOT = Path(__file__).parents[2]
GRADE = """
from .columns import TARGET

def grade(submission, answers, edition):
    return len(TARGET)
"""
PREPARE = """
from .columns import TARGET

def prepare(raw, edition, params): ...

def derived(raw, times):
    yield TARGET.encode() * times
"""


def folder_with(place: Path, target: str, competition_id: str = "my-own") -> Competition:
    folder = copy_of("diabetes", place / competition_id)
    (folder / "columns.py").write_text(f"TARGET = {target!r}\n")
    (folder / "grade.py").write_text(GRADE)
    (folder / "prepare.py").write_text(PREPARE)
    return Competition.load(folder)


def derived(folder: Path) -> bytes:
    """What another process makes of a function that is known by its name."""
    return b"".join(Competition.load(folder).function("derived")(None, 2))


def test_modules_of_a_folder_share_constants(tmp_path: Path) -> None:
    competition = folder_with(tmp_path, "width")
    assert competition.score_table(None, None) == 5
    assert competition.module("prepare").TARGET is competition.module("grade").TARGET


def test_folders_with_the_same_file_names_do_not_mix(tmp_path: Path) -> None:
    first, second = folder_with(tmp_path, "width", "one-own"), folder_with(tmp_path, "height", "two-own")
    assert [each.score_table(None, None) for each in (first, second, first)] == [5, 6, 5]


def test_an_id_at_another_path_is_another_package(tmp_path: Path) -> None:
    first, second = folder_with(tmp_path / "a", "width"), folder_with(tmp_path / "b", "height")
    assert first.id == second.id
    assert [each.score_table(None, None) for each in (first, second, first)] == [5, 6, 5]


def test_ids_that_differ_in_dashes_only_do_not_mix(tmp_path: Path) -> None:
    first, second = folder_with(tmp_path, "width", "a-b"), folder_with(tmp_path, "height", "A-b")
    assert [each.score_table(None, None) for each in (first, second)] == [5, 6]


def test_a_module_is_imported_once(tmp_path: Path) -> None:
    competition = folder_with(tmp_path, "width")
    assert competition.module("grade") is Competition.load(competition.folder).module("grade")


def test_a_relative_path_is_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    competition = folder_with(tmp_path, "width")
    monkeypatch.chdir(tmp_path)
    assert Competition.load(Path("my-own")).module("grade") is competition.module("grade")


def test_a_module_that_fails_to_import_is_not_half_there(tmp_path: Path) -> None:
    competition = folder_with(tmp_path, "width")
    (competition.folder / "grade.py").write_text("from .missing import NAME\n")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="missing"):
            competition.score_table(None, None)


@pytest.mark.parametrize("name", ["prepare", "grade"])
@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (None, b"x = 1\ndef f(:\n", ", line 2: invalid syntax"),
        ("columns", b"\n\n  TARGET = 1\n", ", line 3: unexpected indent"),
        (None, b"x = 1\0\n", ": source code string cannot contain null bytes"),
    ],
)
def test_a_syntax_error_is_one_line_with_its_file(
    tmp_path: Path, name: str, file: str | None, content: bytes, says: str
) -> None:
    competition = folder_with(tmp_path, "width")
    path = competition.folder / f"{file or name}.py"
    path.write_bytes(content)
    with pytest.raises(BadCompetition) as caught:
        competition.module(name)
    assert str(caught.value) == f"{path}{says}"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_functions_are_found_by_name_in_other_processes(tmp_path: Path, method: str) -> None:
    competition = folder_with(tmp_path, "width")
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        assert pool.submit(derived, competition.folder).result() == b"widthwidth"


def test_grading_imports_only_what_grading_needs() -> None:
    """icecube's prepare.py and grade.py share the names of columns, and grade.py nothing else of prepare.py."""
    code = (
        "import sys; from competitions import registry;"
        "registry.get('icecube-neutrinos-in-deep-ice').load_grader();"
        "print(*(name for name in sys.modules if name.endswith(('.prepare', '.declaration', 'sklearn'))))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.split() == []


class TestFingerprints:
    @pytest.fixture
    def competition(self, tmp_path: Path) -> Competition:
        return folder_with(tmp_path, "width")

    def changed(self, competition: Competition, name: str, text: str) -> set[str]:
        """Which fingerprints change when a file of the folder does."""
        before = {part: competition.fingerprint(part) for part in ("prepare", "grade")}
        (competition.folder / name).write_text(text)
        return {part for part in ("prepare", "grade") if competition.fingerprint(part) != before[part]}

    def test_each_follows_its_own_code(self, competition: Competition) -> None:
        assert self.changed(competition, "grade.py", GRADE + "# changed\n") == {"grade"}
        assert self.changed(competition, "prepare.py", PREPARE + "# changed\n") == {"prepare"}

    def test_descriptions_do_not_count(self, competition: Competition) -> None:
        assert self.changed(competition, "description.md", "better words") == set()

    def test_what_both_import_counts_for_both(self, competition: Competition) -> None:
        assert self.changed(competition, "columns.py", "TARGET = 'height'\n") == {"prepare", "grade"}

    def test_what_one_imports_counts_for_it_alone(self, competition: Competition) -> None:
        self.changed(competition, "prepare.py", "from . import reading\n" + PREPARE)
        self.changed(competition, "reading.py", "from .bits import BITS\n")
        assert self.changed(competition, "reading.py", "from .bits import BITS as MANY\n") == {"prepare"}
        assert self.changed(competition, "bits.py", "BITS = 3\n") == {"prepare"}

    def test_a_part_that_imports_the_other_follows_it_as_well(self, competition: Competition) -> None:
        self.changed(competition, "grade.py", "from .prepare import TARGET\n" + GRADE)
        assert self.changed(competition, "prepare.py", PREPARE + "# changed\n") == {"prepare", "grade"}

    def test_what_neither_imports_may_matter_to_both(self, competition: Competition) -> None:
        assert self.changed(competition, "classes.json", "[1, 2]") == {"prepare", "grade"}
        assert self.changed(competition, "other.py", "X = 1\n") == {"prepare", "grade"}

    def test_a_file_that_does_not_parse_has_one(self, competition: Competition) -> None:
        assert self.changed(competition, "grade.py", "def grade(:\n") == {"grade"}
        assert "prepare" in self.changed(competition, "prepare.py", "\0")

    def test_threads_may_ask_for_it_at_once(self) -> None:
        # As in a process with a Dask client: its callback lets other threads run during a garbage collection.
        gc.callbacks.append(lambda *_: time.sleep(0))
        before = gc.get_threshold()
        gc.set_threshold(20)
        try:
            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(Competition.fingerprint, map(registry.get, 2 * registry.list("low"))))
        finally:
            gc.set_threshold(*before)
            gc.callbacks.pop()
        assert found[: len(found) // 2] == found[len(found) // 2 :]

    def test_an_import_of_each_other_ends(self, competition: Competition) -> None:
        self.changed(competition, "columns.py", "from . import columns\nTARGET = 'width'\n")
        assert len(competition.fingerprint("grade")) == 16


def test_every_folder_of_the_catalog_can_be_imported_whole() -> None:
    for name in registry.list():
        competition = registry.get(name)
        for path in competition.folder.glob("*.py"):
            assert competition.module(path.stem).__file__ == str(path)
