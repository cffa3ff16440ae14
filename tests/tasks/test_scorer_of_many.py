"""Agents use the scorer and public scores on miniatures of competitions of all kinds, as a run does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.settings import get_settings
from tasks.agent_run import run_agent
from tasks.wiring.backends import stop_all
from tasks.wiring.requests import Attempt, RunRequest
from tests.prepared import PreparedCompetitions
from tests.stores import Store, copy_dataset

MODELLED = (
    "aerial-cactus-identification",
    "aptos2019-blindness-detection",
    "breast-cancer",
    "cassava-leaf-disease-classification",
    "champs-scalar-coupling",
    "diabetes",
    "digits",
    "dogs-vs-cats-redux-kernels-edition",
    "histopathologic-cancer-detection",
    "hotel-id-2021-fgvc8",
    "leaf-classification",
    "learning-agency-lab-automated-essay-scoring-2",
    "movie-review-sentiment-analysis-kernels-only",
    "new-york-city-taxi-fare-prediction",
    "paddy-disease-classification",
    "petfinder-pawpularity-score",
    "random-acts-of-pizza",
    "siim-isic-melanoma-classification",
    "spaceship-titanic",
    "spooky-author-identification",
    "statoil-iceberg-classifier-challenge",
    "tabular-playground-series-dec-2021",
    "tabular-playground-series-may-2022",
)
"""Competitions of tables, texts and images for whose miniatures the baseline agent finds a model."""
OTHERS = (
    "AI4Code",  # orders
    "3d-object-detection-for-autonomous-vehicles",
    "facebook-recruiting-iii-keyword-extraction",  # sets
    "google-research-identify-contrails-reduce-global-warming",  # masks
    "h-and-m-personalized-fashion-recommendations",  # ranks
    "multi-modal-gesture-recognition",  # sequences
    "siim-covid19-detection",  # boxes
    "stanford-covid-vaccine",  # several numbers
    "text-normalization-challenge-russian-language",
    "uw-madison-gi-tract-image-segmentation",
)
"""Competitions of other kinds, in which the example is a truth and predictions at once."""
UNDIVIDED = ("cassava-leaf-disease-classification", "champs-scalar-coupling", "leaf-classification")
"""Competitions among them whose miniatures are too small for a public and a private part."""
EXAMPLE = """\
cp "$SAMPLE_SUBMISSION" "$SUBMISSION_DIR/submission.csv" 2>/dev/null
[ -z "$PUBLIC_SCORE_SCRIPT" ] || sh "$PUBLIC_SCORE_SCRIPT" "$SAMPLE_SUBMISSION" > "$LOGS_DIR/public"
exec sh "$SCORE_SCRIPT" "$EXAMPLE_TRUTH" "$EXAMPLE_TRUTH"
"""
Run = Callable[[str, str], tuple[dict[str, Any], str]]


@pytest.fixture
def run(prepared: PreparedCompetitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Let an agent attempt the miniature of a competition with a scorer; returns the record and the agent's log."""
    monkeypatch.setenv("MLEBENCH_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("MLEBENCH_AGENT_DIRS", json.dumps([str(tmp_path / "agents")]))
    get_settings.cache_clear()
    folder = tmp_path / "agents" / "example"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("description: Scores the example.\ntrusted: true\n")
    (folder / "start.sh").write_text(EXAMPLE)
    store = Store(str(tmp_path / "store"))

    def run(agent: str, name: str) -> tuple[dict[str, Any], str]:
        copy_dataset(store, name, prepared[name].path)
        request = RunRequest(
            agent=agent,
            run_group="group",
            store=store.root,
            scorer=True,
            time_limit_seconds=300,
            obfuscated=True,
            feedback=0.5,
        )
        run_agent(Attempt(request=request, competition_id=name, seed=0, key="key"))
        record: dict[str, Any] = store.read_json(store.run("group", name, 0) + "/run.json")
        left = store.local("runs", "group", name, 0)
        assert left is not None
        return record, (left / "logs" / "agent.log").read_text()

    yield run
    stop_all()
    get_settings.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELLED)
def test_the_baseline_agent_chooses_its_model_by_the_metric(run: Run, name: str) -> None:
    record, log = run("baseline", name)
    assert (record["status"], record["submission_exists"]) == ("completed", True), log
    assert "the best by the competition's metric; trained on" in log
    assert record["scorer_calls"] >= 1
    if name in UNDIVIDED:
        assert "without feedback, as the test set cannot be divided: " in record["message"]
        return
    assert (record["feedback"], record["public_score_calls"]) == (0.5, 2), log
    assert log.count('public score: {"submission": ') == 2, log
    assert record["final"][-1] == "submission.csv"


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in OTHERS])
def test_an_agent_scores_the_example(run: Run, name: str) -> None:
    record, log = run("example", name)
    assert record["status"] == "completed", log
    assert record["scorer_calls"] == 1
    assert log.strip() in ("0.0", "1.0"), log
