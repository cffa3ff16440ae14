"""Folders in the published format: their facts, their code, and how their `prepare` may end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from common.errors import UserError
from competitions import registry
from competitions.errors import BadCompetition
from competitions.preparing import limits
from competitions.preparing.download import Download
from competitions.published_format import PublishedCompetition
from competitions.scoring.errors import InvalidSubmission
from competitions.truth import require_scorable
from storage.datasets import prepare
from tests.published_folders import IDS, copy_forks, write_downloads


@pytest.fixture
def forks(tmp_path: Path) -> Path:
    return copy_forks(tmp_path / "forks")


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_downloads(tmp_path_factory.mktemp("published") / "raw")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of temporary files, in which nothing may be left."""
    monkeypatch.setattr(limits, "scratch", tmp_path / "scratch")
    yield tmp_path / "scratch"
    assert list((tmp_path / "scratch").iterdir()) == []


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_facts_come_from_the_files_of_the_folder(forks: Path) -> None:
    (forks / "hourly-load" / "checksums.yaml").write_text(
        f"zip: {'a' * 32}\npublic:\n  train.csv: {'b' * 32}\n  big.parquet: {'c' * 32}\nprivate:\n"
    )
    facts = registry.load(forks / "hourly-load").facts
    assert (facts.name, facts.category, facts.complexity) == ("Hourly Load Forecasting", "unknown", "unknown")
    assert (facts.metric.name, facts.metric.direction) == ("mean-absolute-scaled-error", "lower")
    board = facts.leaderboard
    assert (board.teams, board.gold, board.silver, board.bronze, board.median) == (120, 0.68, 0.96, 1.44, 1.69)
    assert board.percentiles is not None
    assert (board.percentiles[0], board.percentiles[-1]) == (0.5, 2.88)
    assert facts.files.answers == facts.files.gold_submission == "private/answers.csv"
    assert (facts.checksums.download, facts.checksums.prepared) == ("a" * 32, {"public/train.csv": "b" * 32})
    assert registry.load(forks / "signal-strength").facts.files.gold_submission == "private/gold_submission.csv"
    assert registry.load(forks / "cell-types").facts.metric.direction == "higher"


def test_the_registry_finds_them_and_no_other_folder_with_a_config(forks: Path) -> None:
    (forks / "conf").mkdir()
    (forks / "conf" / "config.yaml").write_text("model: gpt\n")
    registry.extend([forks])
    assert set(IDS) <= set(registry.list())
    assert "conf" not in registry.list()
    assert isinstance(registry.get("cell-types"), PublishedCompetition)
    assert registry.get("cell-types").files_of("v2") == "v1"


def test_of_a_clone_that_has_the_published_competitions_ours_are_used(
    forks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (forks / "hourly-load").rename(forks / "leaf-classification")
    (forks / "cell-types").rename(forks / "dog-breed-identification")
    registry.extend([forks])
    assert registry.get("leaf-classification").folder.parent == registry.CATALOG
    assert "signal-strength" in registry.list()
    assert "the catalog's own are used instead of 2 published folders there" in caplog.text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, r"leaderboard.csv is missing: .* Write the scores"),
        ("", r"has no scores: it needs a column `score`"),
        ("teamId,points\n1,2\n", r"has no scores: it needs a column `score`"),
        ("score\n", r"has no scores"),
        ("score,team\n,a\nnan,b\n", r"no team has one"),
        ("score\n0.5\nn/a\n", r"line 3: the score 'n/a' is not a number"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", r"`git lfs pull`"),
    ],
)
def test_a_leaderboard_without_scores_ends_in_one_line_that_says_what_to_do(
    forks: Path, content: str | None, complaint: str
) -> None:
    path = forks / "hourly-load" / "leaderboard.csv"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadCompetition, match=complaint) as caught:
        registry.load(forks / "hourly-load")
    assert "\n" not in str(caught.value)


def test_teams_without_a_score_have_no_rank(forks: Path) -> None:
    (forks / "hourly-load" / "leaderboard.csv").write_text("score\n1\n\n2\n3\n")
    (forks / "cell-types" / "leaderboard.csv").write_text("team,score\na,3\nb,\nc,2\n")
    assert registry.load(forks / "hourly-load").facts.leaderboard.teams == 3
    assert registry.load(forks / "cell-types").facts.leaderboard.teams == 2


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("id: hourly-load", "id: other", "differs from the folder's name"),
        ("hourly-load/prepared/private/answers.csv", "hourly-load/raw/answers.csv", "does not begin with hourly-load/"),
        ("prepared/private/answers.csv", "prepared/public/answers.csv", r"must be below private/"),
        (".grade:grade", ".grading:grade", r"grader.grade_fn: .* names no module in .* such as .*hourly-load.grade:"),
        (".prepare:prepare", ".prepare", r"preparer: .* is not of the form module:function"),
        ("mlebench.competitions.hourly-load.prepare:", "file:/etc/prepare.py:", r"preparer: .* names no module"),
        ("name: Hourly", "title: Hourly", r"config.yaml: name: missing"),
        ("dataset:", "- dataset", "not valid YAML"),
    ],
)
def test_a_config_that_cannot_be_used_is_named_in_one_line(forks: Path, old: str, new: str, complaint: str) -> None:
    edit(forks / "hourly-load" / "config.yaml", old, new)
    with pytest.raises(BadCompetition, match=complaint) as caught:
        registry.load(forks / "hourly-load")
    assert "\n" not in str(caught.value)


def test_a_description_is_found_where_the_config_names_it(forks: Path) -> None:
    clone = forks.parent / "clone" / "mlebench" / "competitions"
    clone.parent.mkdir(parents=True)
    forks.rename(clone)
    text = (clone / "hourly-load" / "description.md").read_text()
    assert registry.load(clone / "hourly-load").description == text
    (clone / "hourly-load" / "description.md").rename(clone.parent.parent / "about.md")
    with pytest.raises(BadCompetition, match=r"has no description for agents: write description\.md"):
        registry.load(clone / "hourly-load").describe("v1")
    edit(clone / "hourly-load" / "config.yaml", "mlebench/competitions/hourly-load/description.md", "about.md")
    assert registry.load(clone / "hourly-load").description == text
    with pytest.raises(UserError, match="has no obfuscated description"):
        _ = registry.load(clone / "hourly-load").obfuscated_description


@pytest.mark.parametrize("name", IDS)
def test_it_is_prepared_and_graded_unchanged(
    name: str, forks: Path, downloads: Path, tmp_path: Path, scratch: Path
) -> None:
    folder, out = forks / name, tmp_path / "out"
    raw = next(path for path in (downloads / name, downloads / f"{name}.zip") if path.exists())
    manifest = prepare(name, raw, out, folder=folder)
    competition = registry.load(folder)
    assert {f"{row.part}/{row.path}" for row in manifest.itertuples()} >= {
        competition.facts.files.answers,
        competition.facts.files.sample_submission,
    }
    assert not (out / "public_val").exists()  # beside the two parts
    assert competition.grade(out / competition.facts.files.sample_submission, out) >= 0
    assert competition.grade(out / competition.facts.files.sample_submission, out, "v2") >= 0


def test_a_submission_of_which_the_grader_dies_is_invalid(forks: Path) -> None:
    """Published graders check little, and the published benchmark has no score then."""
    competition, answers = (
        registry.load(forks / "hourly-load"),
        pd.DataFrame({"id": [1], "load": [2.0], "scale": [1.0]}),
    )
    for submission, reason in (
        (pd.DataFrame({"id": [1]}), r"cannot score this submission \(KeyError\)$"),
        (pd.DataFrame({"id": [1, 2], "load": [2, 2]}), r"cannot score this submission \(AssertionError\)$"),
    ):
        with pytest.raises(InvalidSubmission, match=reason):
            competition.score_table(submission, answers)
    cells = registry.load(forks / "cell-types")
    with pytest.raises(InvalidSubmission, match="Expected columns cell, types Got Index"):
        cells.check_table(pd.DataFrame({"a": [1]}), [])


@pytest.mark.parametrize("line", ["import no_such_module", "return None"])
def test_a_grader_at_fault_is_not_the_submission_s_failure(forks: Path, line: str) -> None:
    (forks / "hourly-load" / "grade.py").write_text(f"def grade(submission, answers):\n    {line}\n")
    with pytest.raises((ImportError, TypeError)):
        registry.load(forks / "hourly-load").score_table(pd.DataFrame(), pd.DataFrame())


def test_it_has_no_scorer(forks: Path) -> None:
    with pytest.raises(UserError, match="`mlebench new ID --from-published` makes"):
        require_scorable(registry.load(forks / "cell-types"))


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("hourly-load/prepare.py", {"prepare"}),
        ("hourly-load/grade.py", {"grade"}),
        ("hourly-load/leaderboard.csv", set()),
        ("hourly-load/description.md", set()),
        ("signal-strength/grade.py", set()),
        ("telecom_metrics.py", {"signal-strength"}),  # which is imported by its name alone
        ("cell-types/classes.py", {"cell-types"}),
    ],
)
def test_the_fingerprints_cover_their_code_and_nothing_else(forks: Path, path: str, parts: set[str]) -> None:
    def prints() -> dict[str, str]:
        loaded = {name: registry.load(forks / name) for name in IDS}
        own = {part: loaded["hourly-load"].fingerprint(part) for part in ("prepare", "grade")}
        return own | {name: loaded[name].grader_fingerprint("v1") for name in IDS if name != "hourly-load"}

    before = prints()
    with (forks / path).open("a") as file:
        file.write("\n0.1\n" if path.endswith("csv") else "\n# changed\n")
    after = prints()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == parts or (changed, path) == ({"signal-strength"}, "signal-strength/grade.py")


HOSTILE: dict[str, tuple[str, str]] = {
    "runs forever": ("import time\n    time.sleep(1000)", "took more than 2 s and was ended; raise MLEBENCH_PREPARE_"),
    "raises": ("raw / 3", r"prepare raised TypeError: unsupported .*\(hourly-load/prepare.py, line 2\)"),
    "misses a file": ("open(raw / 'x.csv')", r"FileNotFoundError: .* 'hourly-load/raw/x.csv'"),
    "writes nothing": ("pass", "wrote no private/answers.csv, the answers of config.yaml; it wrote nothing"),
    "ends its process": ("import os\n    os._exit(3)", "ended its process with exit code 3"),
    "exits": ("raise SystemExit(0)", "raised SystemExit: 0"),
    "takes all memory": ("bytearray(1 << 50)", "needs more memory than this machine has"),
    "is killed": ("import os\n    os.kill(os.getpid(), 9)", "most likely because memory ran out"),
    "changes its folder": (
        "(Path(__file__).parent / 'more.json').write_text('')",
        "prepare changed files in .*, so it would not do the same again",
    ),
    "links outside": ("(public / 'x').symlink_to('/etc/passwd')", "public/x is a link to /etc/passwd: write the file"),
    "links to a folder": ("(public / 'x').symlink_to(raw)", "public/x is no file"),
    "links in a loop": ("(public / 'x').symlink_to('x')", "public/x is no file: a link, if it is one, must lead"),
    "replaces public": ("public.rmdir()\n    public.symlink_to('/etc')", "public is a link to /etc: write into the"),
    "replaces the parent": (
        "public.parent.rename(raw / 'x')\n    public.parent.symlink_to('/etc')",
        "public is a link to /etc/public: write into the",
    ),
    "leaves a pipe": ("import os\n    os.mkfifo(public / 'x')", "public/x is no file"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_prepare_that_fails_ends_in_one_line(
    name: str, forks: Path, downloads: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, complaint = HOSTILE[name]
    if name == "runs forever":
        monkeypatch.setattr(limits, "time_limit", 2.0)
    (forks / "hourly-load" / "prepare.py").write_text(f"def prepare(raw, public, private):\n    {body}\n")
    if "Path(" in body:
        edit(forks / "hourly-load" / "prepare.py", "def prepare", "from pathlib import Path\ndef prepare")
    with pytest.raises(BadCompetition, match=complaint) as caught:
        registry.load(forks / "hourly-load").declare(Download.open(str(downloads / "hourly-load.zip")))
    assert "\n" not in str(caught.value)
    assert str(scratch) not in str(caught.value)


def test_what_it_starts_ends_with_it(forks: Path, downloads: Path, scratch: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    (forks / "hourly-load" / "prepare.py").write_text(
        "import subprocess\n"
        "def prepare(raw, public, private):\n"
        "    child = subprocess.Popen(['sleep', '1000'])\n"
        f"    open({str(note)!r}, 'w').write(str(child.pid))\n"
    )
    with pytest.raises(BadCompetition, match="wrote no"):
        registry.load(forks / "hourly-load").declare(Download.open(str(downloads / "hourly-load.zip")))
    assert eventually(lambda: not is_running(int(note.read_text())))


def test_it_sees_no_secrets_and_its_own_home(
    forks: Path, downloads: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEBENCH_S3_SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("KAGGLE_KEY", "hush")
    edit(
        forks / "hourly-load" / "prepare.py",
        'print("Preparing hourly-load ...")',
        "import os\n    assert 'hush' not in os.environ.values()\n"
        "    assert Path.home() == Path.cwd() == raw.parent.parent\n    open('note.txt', 'w').write('gone')",
    )
    out = registry.load(forks / "hourly-load").declare(Download.open(str(downloads / "hourly-load.zip")))
    assert [path for part, path, _ in out.operations() if part == "private"] == ["answers.csv"]
    del out  # its files go with it


def test_a_name_that_leads_out_of_the_download_is_refused(forks: Path, tmp_path: Path, scratch: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../../escaped.txt", "x")
        archive.writestr("load.csv", "x")
    with pytest.raises(UserError, match=r"escaped.txt"):
        registry.load(forks / "hourly-load").declare(Download.open(str(tmp_path / "bad.zip")))
    assert not list(tmp_path.rglob("escaped.txt"))


def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        os.sched_yield()
    return condition()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
