"""`mlebench contamination` with a scripted model that returns log-probabilities as vLLM does."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from common.errors import UserError
from common.settings import get_settings
from competitions import registry
from flows.cli import main
from grading.medals import Thresholds
from storage.tables import read_table, write_frame
from tasks.normalised import sample_score
from tasks.report import write_aggregates
from tasks.wiring.requests import RunRequest
from tests.flows.test_integrity_violations import provided
from tests.grading.page.pages import graded as graded_row
from tests.prepared import PreparedCompetitions
from tests.sandbox.gateway.llm import ScriptedLLM
from tests.stores import Store, copy_dataset

KNOWN = {
    "leaf-classification": 0.9,
    "spaceship-titanic": 0.6,
    "random-acts-of-pizza": 0.5,
    "tweet-sentiment-extraction": 0.1,
}
WORDS = {"silhouette": 0.9, "passenger": 0.6, "pizza": 0.5, "tweet": 0.1}


class Reciting(ScriptedLLM):
    """Knows each competition by heart to the degree of WORDS."""

    echoes: bool = True

    def _whole(self, path: str, body: Any) -> Any:
        assert path == "/v1/completions"
        prompt = body["prompt"]
        sure = next((p for word, p in WORDS.items() if word in prompt.lower()), 0.3)
        offsets = [found.start() for found in re.finditer(r"\S+", prompt)] if self.echoes else []
        logprobs = [None, *[math.log(sure)] * (len(offsets) - 1)] if offsets else []
        answer = {"token_logprobs": [*logprobs, -9.0], "text_offset": [*offsets, len(prompt)]}
        return {"choices": [{"index": 0, "text": "", "logprobs": answer}], "usage": {"prompt_tokens": 9}}


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reciting]:
    reciting = Reciting()
    with provided(reciting, monkeypatch):
        yield reciting


@pytest.fixture
def graded(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A group that scored higher where the model knows more; the last report of it was about a split without any."""
    points = [1 - n / 20 for n in range(21)]
    monkeypatch.setattr("tasks.familiarity.leaderboards_of", lambda *tables: dict.fromkeys(KNOWN, points))
    rows = [graded_row(name, 0, sure - 0.05) for name, sure in KNOWN.items()]
    write_frame(store, "grades", "g", pd.DataFrame(rows))
    write_aggregates(store, "g", split="high")
    return store


def contamination(store: Store, capfd: pytest.CaptureFixture[str], code: int = 0, group: str = "g") -> tuple[str, str]:
    capfd.readouterr()
    assert main(["examine", "--only", "contamination", group, "--model", "llama-3-70b", "--store", store.root]) == code
    return capfd.readouterr()


def test_familiarity_is_measured_and_correlated(
    graded: Store, llm: Reciting, capfd: pytest.CaptureFixture[str]
) -> None:
    graded.write(graded.url("discussions", "leaf-classification", "a.md"), b"The silhouette is what matters most here.")
    out, _ = contamination(graded, capfd)
    assert "0.900  leaf-classification" in out
    line = "description: Spearman +1.00 [+1.00, +1.00], Pearson +1.00 (p = 0.000), 4 competitions, against the human"
    assert line in out
    table = read_table(graded, "familiarity").set_index(["competition_id", "kind"])
    for name, sure in KNOWN.items():
        assert table.loc[(name, "description"), "mean_probability"] == pytest.approx(sure)
    assert table.loc[("leaf-classification", "discussion"), "tokens"] == 6
    assert table.loc[("leaf-classification", "all"), "texts"] == 2
    asked = len(llm.requests)
    contamination(graded, capfd)
    assert len(llm.requests) == asked, "a text that was measured is not measured again"
    assert (
        main(["examine", "--only", "contamination", "g", "--model", "llama-3-70b", "--store", graded.root, "--json"])
        == 0
    )
    found = json.loads(capfd.readouterr().out)
    assert (found["run_group"], len(found["familiarity"]) >= len(KNOWN)) == ("g", True)
    assert {"description"} <= {each["kind"] for each in found["correlations"]}
    assert all(seen.body["echo"] for seen in llm.requests)


def test_at_places_as_published_scores_lie_between_the_sample_submission_and_gold(
    graded: Store, llm: Reciting, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores are those of v1, an invalid submission counts 0, and a failed grading does not count."""
    best = {
        "leaf-classification": 0.0,
        "spaceship-titanic": 0.9,
        "random-acts-of-pizza": 0.99,
        "tweet-sentiment-extraction": 0.5,
    }
    grades = [graded_row(name, 0, score) for name, score in best.items()]
    grades += [graded_row("leaf-classification", 1, None, outcome="invalid")]
    grades += [graded_row("leaf-classification", 2, None, outcome="failed")]
    grades += [graded_row("spaceship-titanic", 0, -1e200, edition="v2")]
    write_frame(graded, "grades", "g", pd.DataFrame(grades))
    samples = {"leaf-classification": 4.0, "spaceship-titanic": 0.5, "random-acts-of-pizza": 0.5}

    def sample_score(_store: object, name: str, _edition: str) -> float:
        if name not in samples:
            raise UserError(f"{name} is not prepared")
        return samples[name]

    monkeypatch.setattr("tasks.normalised.sample_score", sample_score)
    contamination(graded, capfd)
    table = read_table(graded, "familiarity").set_index(["kind", "competition_id"])
    found = table.loc["places"]["normalised_score"]
    gold = Thresholds.of(registry.get("spaceship-titanic").facts).gold
    assert found["leaf-classification"] == 0.5
    assert found["spaceship-titanic"] == pytest.approx(min(1.0, 0.4 / (gold - 0.5)))
    assert math.isnan(found["tweet-sentiment-extraction"])
    assert table.loc["places"]["tokens"].between(1, 1000).all()
    assert table.loc["all"]["human_percentile"]["spaceship-titanic"] == pytest.approx(90), "v2 is not mixed in"
    row = read_table(graded, "familiarity_correlation").set_index("kind").loc["places"]
    assert (row["n"], row["against"]) == (3, "normalised score")


def test_the_sample_submission_is_scored_with_the_prepared_dataset(
    store: Store, prepared: PreparedCompetitions
) -> None:
    subject = prepared["spaceship-titanic"]
    copy_dataset(store, "spaceship-titanic", subject.path)
    sample = subject.path / subject.competition.facts.files.sample_submission
    want = round(subject.competition.score(sample, subject.answers), 5)
    assert sample_score(store, "spaceship-titanic", "v1") == want
    with pytest.raises(UserError):
        sample_score(store, "leaf-classification", "v1")


def test_an_endpoint_that_tells_no_probabilities_is_one_line(
    graded: Store, llm: Reciting, capfd: pytest.CaptureFixture[str]
) -> None:
    llm.echoes = False
    _, err = contamination(graded, capfd, code=1)
    assert "its completions ignore `echo`" in err.splitlines()[-1]
    llm._whole = lambda path, body: {"choices": [{"text": "hello"}]}  # type: ignore[method-assign]
    assert "use a provider whose completions support `echo`" in contamination(graded, capfd, code=1)[1]


def test_a_group_without_grades_and_no_provider_are_one_line_each(
    graded: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "no graded runs of group 'nobody'" in contamination(graded, capfd, code=1, group="nobody")[1]
    get_settings.cache_clear()
    assert "no provider serves the model 'llama-3-70b'" in contamination(graded, capfd, code=1)[1]


def test_a_check_that_fails_does_not_stop_the_others(
    graded: Store, llm: Reciting, capfd: pytest.CaptureFixture[str]
) -> None:
    only = ["--only", "plagiarism", "--only", "contamination"]
    assert main(["examine", *only, "g", "--model", "llama-3-70b", "--store", graded.root]) == 1
    out, err = capfd.readouterr()
    assert "mlebench: plagiarism: no finished runs of group 'g'" in err
    assert "Spearman" in out
    assert main(["examine", *only, "g", "--store", graded.root]) == 2, "there is no model, before any check"


def test_it_is_a_stage_of_the_flow_where_a_model_is_set(
    store: Store, llm: Reciting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.full_benchmark import full_benchmark

    monkeypatch.delenv("MLEBENCH_INTEGRITY_MODEL")
    monkeypatch.setenv("MLEBENCH_FAMILIARITY_MODEL", "llama-3-70b")
    get_settings.cache_clear()
    outcomes = full_benchmark(
        ["breast-cancer"], RunRequest(agent="dummy", run_group="g", store=store.root, examine=True)
    )
    assert "1 competitions measured" in {each.message for each in outcomes}
    assert set(read_table(store, "familiarity")["competition_id"]) == {"breast-cancer"}
    assert "llama-3-70b" in store.local("reports", "g", "report.html").read_text()
