"""The Inspect port of the benchmark runs on ours: from its task to the score, offline.

Its scorer calls conda by an absolute path and grades what lies at absolute paths, as in its image. Nothing is made at
these paths: they exist in a root directory that only the port's processes see.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from mlebench.data import download_and_prepare_dataset
from mlebench.registry import registry
from tests.docs.blocks import ROOT, blocks
from tests.prepared import Prepared, PreparedCompetitions
from tests.pythons import built
from tests.readers import INSPECT_PORT

ID = "spaceship-titanic"

pytestmark = [pytest.mark.service("inspect-port"), pytest.mark.slow]

CLIENT = r"""
import json, sys
from pathlib import Path

from inspect_ai import eval
from inspect_ai.solver import solver
from inspect_ai.util import sandbox
from inspect_evals.mle_bench import mle_bench

submissions = json.loads(sys.argv[1])
Path("split.txt").write_text("\n".join(submissions))

@solver
def agent():
    async def solve(state, generate):
        content = Path(submissions[state.sample_id]).read_text()
        await sandbox().write_file("/home/submission/submission.csv", content)
        return state
    return solve

task = mle_bench(Path("split.txt").absolute(), agent(), data_dir="data", skip_tos_check=True, sandbox_type="local")
logs = eval(task, model="mockllm/model", max_samples=1)
"""

RESULT = """
import json
import mlebench

(log,) = logs
errors = [log.error, *(sample.error for sample in log.samples or [])]
scores = {sample.id: next(iter(sample.scores.values())) for sample in log.samples or [] if sample.scores}
print(json.dumps({
    "package": mlebench.__file__,
    "status": log.status,
    "errors": [error.message + error.traceback for error in errors if error],
    "values": {name: score.value for name, score in scores.items()},
    "reports": {name: json.loads(score.explanation) for name, score in scores.items()},
}))
"""

ROOT_OF_ITS_OWN = """
set -eu
root=$1/root data=$1/data python=$2
shift 2
mount -t tmpfs none "$root"
bind() {
    for path in "$1"/*; do
        if [ -L "$path" ]; then cp -P "$path" "$root$path"
        elif [ "$path" = /home ] || [ "$path" = /opt ]; then mkdir "$root$path"; bind "$path"
        elif [ -d "$path" ]; then mkdir "$root$path"; mount --rbind "$path" "$root$path"
        elif [ -e "$path" ]; then touch "$root$path"; mount --bind "$path" "$root$path"
        fi
    done
}
bind ""
mkdir -p "$root/opt/conda/bin" "$root/home/submission" "$root/home/data" "$root/private/data"
mount --bind "$data" "$root/private/data"
mount --bind "$data/spaceship-titanic/prepared/public" "$root/home/data"
# conda run -n mleb python ...
printf '#!/bin/sh\\nshift 4\\nexec "%s" "$@"\\n' "$python" > "$root/opt/conda/bin/conda"
chmod +x "$root/opt/conda/bin/conda"
exec chroot "$root" "$python" "$@"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our packages as `pip install` unpacks them from the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    target = folder / "installed"
    subprocess.run(
        [INSPECT_PORT, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, built(folder)], check=True
    )
    return target


def inspect_port(folder: Path, wheel: Path, program: str, *arguments: str) -> Any:
    """What the port found: `program` runs in `folder`, with the data directory `data` in it, and leaves `logs`."""
    (folder / "root").mkdir()
    code = f"import os; os.chdir({str(folder)!r})\n{program}\n{RESULT}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    own = {"PYTHONPATH": wheel, "HOME": folder, "XDG_CACHE_HOME": folder / "cache", "INSPECT_DISPLAY": "none"}
    result = subprocess.run(
        ["unshare", "-rm", "sh", "-c", ROOT_OF_ITS_OWN, "-", folder, INSPECT_PORT, "-c", code, *arguments],
        env={**clean, **{name: str(value) for name, value in own.items()}},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture
def pack(prepared: PreparedCompetitions, tmp_path: Path) -> Prepared:
    """A competition, which is prepared in the data directory from the archive that lies there."""
    subject = prepared[ID]
    (tmp_path / "data" / ID).mkdir(parents=True)
    (tmp_path / "data" / ID / f"{ID}.zip").write_bytes(subject.raw.read_bytes())
    competition = registry.set_data_dir(tmp_path / "data").get_competition(ID)
    download_and_prepare_dataset(competition, skip_verification=True)
    return subject


def require_grade(found: Any, name: str, submission: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The port's report and score are those of `mlebench grade-sample`."""
    assert found["status"] == "success", "\n".join(found["errors"])
    capsys.readouterr()
    assert main(["grade-sample", str(submission), name, "--data-dir", str(data)]) == 0
    graded = json.loads(capsys.readouterr().out)
    report = found["reports"][name]
    assert {field for field in graded if graded[field] != report[field]} <= {"created_at", "submission_path"}
    rates = ("valid_submission", "above_median", "any_medal")
    assert found["values"][name] == {rate: graded[rate] for rate in rates}


def test_from_its_task_to_the_score_of_grade_sample(
    prepared: PreparedCompetitions, pack: Prepared, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The port prepares the second competition itself: its download is part of our package."""
    sample = prepared["digits"].path / "public" / "sample_submission.csv"
    submissions = {ID: pack.submission("noisy"), "digits": sample}
    texts = json.dumps({name: str(path) for name, path in submissions.items()})
    found = inspect_port(tmp_path, wheel, CLIENT, texts)
    assert Path(found["package"]).is_relative_to(wheel)
    for name, path in submissions.items():
        require_grade(found, name, path, tmp_path / "data", capsys)
        assert found["reports"][name]["valid_submission"]


@pytest.mark.slow
def test_an_invalid_submission_is_a_score_too(
    pack: Prepared, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    submission = pack.submission("duplicate_id")
    found = inspect_port(tmp_path, wheel, CLIENT, json.dumps({ID: str(submission)}))
    require_grade(found, ID, submission, tmp_path / "data", capsys)
    assert not found["reports"][ID]["valid_submission"]


def test_the_example_in_the_documentation(
    pack: Prepared, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = [block.text for block in blocks(ROOT / "docs" / "api.md") if "inspect_evals" in block.text]
    assert "skip_tos_check=True" in example
    found = inspect_port(
        tmp_path, wheel, example.replace("skip_tos_check=True", "skip_tos_check=True, sandbox_type='local'")
    )
    sample = tmp_path / "data" / ID / "prepared" / "public" / "sample_submission.csv"
    require_grade(found, ID, sample, tmp_path / "data", capsys)
