"""The Inspect port of the benchmark runs on ours: from its task to the score, offline.

Its scorer calls conda by an absolute path and grades what lies at absolute paths, as in its image. Nothing is made at
these paths: they exist in a root directory that only the port's processes see.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from mlebench.data import download_and_prepare_dataset
from mlebench.registry import registry
from tests.prepared import PreparedCompetitions
from tests.pythons import built
from tests.readers import INSPECT_PORT

pytestmark = pytest.mark.service("inspect-port")

CLIENT = """
import json, sys
from pathlib import Path

import mlebench
from inspect_ai import eval
from inspect_ai.solver import solver
from inspect_ai.util import sandbox
from inspect_evals.mle_bench import mle_bench

data, split, log_dir, submissions = sys.argv[1:]
submissions = json.loads(submissions)

@solver
def agent():
    async def solve(state, generate):
        content = Path(submissions[state.sample_id]).read_text()
        await sandbox().write_file("/home/submission/submission.csv", content)
        return state
    return solve

task = mle_bench(split=split, solver=agent(), data_dir=data, skip_tos_check=True, sandbox_type="local")
(log,) = eval(task, model="mockllm/model", log_dir=log_dir, display="none", max_samples=1)
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
root=$1 data=$2 python=$3
shift 3
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
mkdir -p "$root/opt/conda/bin" "$root/home/submission" "$root/private/data"
mount --bind "$data" "$root/private/data"
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


def inspect_port(folder: Path, wheel: Path, data: Path, submissions: Mapping[str, Path]) -> Any:
    """What the port found when it graded these submissions by competition."""
    split, root = folder / "split.txt", folder / "root"
    split.write_text("\n".join(submissions))
    root.mkdir()
    texts = json.dumps({name: str(path) for name, path in submissions.items()})
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    inside: list[str | Path] = [INSPECT_PORT, "-c", CLIENT, data, split, folder / "logs", texts]
    result = subprocess.run(
        ["unshare", "-rm", "sh", "-c", ROOT_OF_ITS_OWN, "-", root, data, *inside],
        env={**clean, "PYTHONPATH": str(wheel), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_from_its_task_to_the_score_of_grade_sample(
    prepared: PreparedCompetitions, wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, pack = tmp_path / "data", prepared["spaceship-titanic"]
    (data / "spaceship-titanic").mkdir(parents=True)
    (data / "spaceship-titanic" / "spaceship-titanic.zip").write_bytes(pack.raw.read_bytes())
    competition = registry.set_data_dir(data).get_competition("spaceship-titanic")
    download_and_prepare_dataset(competition, skip_verification=True)
    # The port prepares this one itself: its download is part of our package.
    sample = prepared["digits"].path / "public" / "sample_submission.csv"
    submissions = {"spaceship-titanic": pack.submission("noisy"), "digits": sample}
    found = inspect_port(tmp_path, wheel, data, submissions)
    assert found["status"] == "success", "\n".join(found["errors"])
    assert Path(found["package"]).is_relative_to(wheel)

    for name, path in submissions.items():
        capsys.readouterr()
        assert main(["grade-sample", str(path), name, "--data-dir", str(data)]) == 0
        graded = json.loads(capsys.readouterr().out)
        report = found["reports"][name]
        differing = {field for field in graded if graded[field] != report[field]}
        assert differing <= {"created_at", "submission_path"}
        assert report["valid_submission"]
        rates = ("valid_submission", "above_median", "any_medal")
        assert found["values"][name] == {rate: graded[rate] for rate in rates}


@pytest.mark.slow
def test_an_invalid_submission_is_a_score_too(prepared: PreparedCompetitions, wheel: Path, tmp_path: Path) -> None:
    pack = prepared["spaceship-titanic"]
    (tmp_path / "data" / "spaceship-titanic").mkdir(parents=True)
    (tmp_path / "data" / "spaceship-titanic" / "prepared").symlink_to(pack.path, target_is_directory=True)
    found = inspect_port(tmp_path, wheel, tmp_path / "data", {"spaceship-titanic": pack.submission("duplicate_id")})
    assert found["status"] == "success"
    report = found["reports"]["spaceship-titanic"]
    assert (report["submission_exists"], report["valid_submission"], report["score"]) == (True, False, None)
    assert set(found["values"]["spaceship-titanic"].values()) == {False}
