"""Measures how familiar a language model is with the texts of competitions, and whether scores correlate with that."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from common.settings import get_settings
from competitions import registry
from competitions.errors import UnknownCompetition
from grading.integrity.familiarity import at_places, mean_probability
from grading.statistics.attempts import competition_table
from grading.statistics.correlation import correlation
from grading.statistics.series import latest_grades
from storage.dataset import Dataset
from storage.datasets.current import find
from storage.keys import content_key
from storage.runs.folders import no_runs
from storage.sources.kaggle.kernels import read_index
from storage.sources.kaggle.pages import OFFICIAL
from storage.store import Store
from storage.tables import read_table, write_table
from tasks.language_model import LanguageModel, ModelError, language_model
from tasks.normalised import normalised_scores
from tasks.report import leaderboards_of
from tasks.wiring.services import gateway_policy

WINDOW_CHARACTERS = 8000
"""Number of characters that are measured of each text. They fit into the context of most models."""
MAX_WINDOWS = 25
"""Number of pieces of that length in which a whole text is read for random places; the rest of it is not read."""
KINDS = ("description", "discussion", "all")
PLACES, PLACED = 1000, "places"
"""Number of random places in the paper, and the kind of the rows about them."""


def find_familiarity(
    store: Store,
    run_group: str,
    model_name: str,
    kernels: int = 5,
    places: int = PLACES,
    on_next: Callable[[str], None] = lambda _: None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Measure the competitions of a graded group; writes tables/familiarity and familiarity_correlation.

    Scores are those of one edition, v1 if there is any, because those of different editions are not comparable.

    Args:
        store: the store with the group's tables.
        run_group: the group with the competitions and the scores.
        model_name: usually the model that the group's agent used.
        kernels: number of pulled notebooks to read per competition, besides its description and discussions.
        places: number of random places for the figure as published; 0 leaves it out.
        on_next: called with the id of each competition before it is measured.

    Returns:
        The rows of both tables: one per competition and kind of text, and one per kind of text.

    Raises:
        UserError: the group has no graded runs.
        ModelError: a request to the model failed, or the model returns no probabilities.
    """
    grades = read_table(store, "grades", [run_group])
    if grades.empty:
        raise no_runs(store, run_group, "graded runs")
    # tables/aggregates is not used, because it depends on the options of the last report.
    scores = competition_table(grades, leaderboards_of(grades))
    edition = min(scores["edition"])
    beaten = scores[scores["edition"] == edition].groupby("competition_id")["human_percentile"].mean().to_dict()
    shares = normalised_scores(store, _attempts(store, run_group, edition), edition) if places else {}
    rows: list[dict[str, Any]] = []
    with language_model(model_name, gateway_policy(get_settings()), "openai") as model:
        for name in sorted(map(str, beaten)):
            on_next(name)
            texts = list(texts_of(store, name, edition, kernels))
            score = {"human_percentile": float(beaten[name])}
            rows += ({**row, **score} for row in _by_kind(store, model, name, texts))
            if places:
                rows += (
                    {**row, **score, "normalised_score": shares.get(name, math.nan)}
                    for row in _at_places(store, model, name, texts, places)
                )
    comparisons = [(kind, "human percentile", "human_percentile") for kind in KINDS]
    comparisons.append((PLACED, "normalised score", "normalised_score"))
    correlations = [
        {"model": model_name, "kind": kind, "against": words, **asdict(correlation(*_columns(rows, kind, column)))}
        for kind, words, column in comparisons
        if any(row["kind"] == kind and not math.isnan(row[column]) for row in rows)
        or (kind in KINDS and any(row["kind"] == kind for row in rows))
    ]
    write_table(store, "familiarity", run_group, rows)
    write_table(store, "familiarity_correlation", run_group, correlations)
    return rows, correlations


def _attempts(store: Store, run_group: str, edition: str) -> Any:
    """The graded attempts of a group in an edition, without those whose grading failed."""
    grades = read_table(store, "grades", [run_group])
    if grades.empty:
        return grades
    newest = latest_grades(grades)
    return newest[(newest["edition"] == edition) & (newest["outcome"] != "failed")]


def _by_kind(store: Store, model: LanguageModel, name: str, texts: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The familiarity with the beginnings of texts, by their kind."""
    measured = [(kind, _measure(store, model, text[:WINDOW_CHARACTERS])) for kind, text in texts]
    for kind in KINDS:
        values_of_texts = [values for text_kind, values in measured if kind in (text_kind, "all") and values]
        tokens = [value for values in values_of_texts for value in values]
        if tokens:
            row = {"competition_id": name, "model": model.name, "kind": kind, "texts": len(values_of_texts)}
            yield {**row, "tokens": len(tokens), "mean_probability": mean_probability(tokens)}


def _at_places(
    store: Store, model: LanguageModel, name: str, texts: list[tuple[str, str]], places: int
) -> Iterator[dict[str, Any]]:
    """The familiarity at random places of whole texts, which the model reads in windows."""
    windows = [
        [
            text[at : at + WINDOW_CHARACTERS]
            for at in range(0, min(len(text), WINDOW_CHARACTERS * MAX_WINDOWS), WINDOW_CHARACTERS)
        ]
        for _, text in texts
    ]
    values_by_text = [
        [value for window in text_windows for value in _measure(store, model, window)] for text_windows in windows
    ]
    drawn = at_places(values_by_text, places, name)
    if drawn:
        row = {"competition_id": name, "model": model.name, "kind": PLACED, "texts": sum(map(bool, values_by_text))}
        yield {**row, "tokens": len(drawn), "mean_probability": mean_probability(drawn)}


def texts_of(store: Store, competition_id: str, edition: Any, kernels: int) -> Iterator[tuple[str, str]]:
    """(kind, text) of a competition: its description, and the notebooks and discussions in the store.

    Kaggle's own description is used if it was fetched (`mlebench prepare --official-description`). Ours is newly
    written, so models cannot have seen it.
    """
    dataset = find(store, Dataset(edition, competition_id))
    official = f"{store.prepared(dataset)}/public/{OFFICIAL}" if dataset else ""
    if official and store.exists(official):
        yield "description", _text(store, official)
    else:
        with contextlib.suppress(UnknownCompetition):
            yield "description", registry.get(competition_id).description
    index = read_index(store, competition_id)
    for path in list(index["path"])[:kernels] if index is not None else []:
        yield "discussion", _text(store, store.url("kernels", competition_id, path))
    for suffix in ("md", "txt"):
        for url in store.glob(f"discussions/{competition_id}/*.{suffix}"):
            yield "discussion", _text(store, url)


def _columns(rows: list[dict[str, Any]], kind: str, column: str) -> tuple[list[float], list[float]]:
    kind_rows = [row for row in rows if row["kind"] == kind]
    return [row["mean_probability"] for row in kind_rows], [row[column] for row in kind_rows]


def _measure(store: Store, model: LanguageModel, text: str) -> list[float]:
    """Log-probabilities of a text's tokens; kept in the store, so that each text is measured once."""
    if not text.strip():
        return []
    url = store.url("integrity", "familiarity", content_key(model.name, text) + ".json")
    measurement = store.read_json(url)
    if measurement is None:
        logprobs = prompt_logprobs(model, text)
        measurement = {
            "model": model.name,
            "mean": mean_probability(logprobs),
            "tokens": len(logprobs),
            "logprobs": [round(value, 6) for value in logprobs],
        }
        store.write_json(url, measurement)
    return [float(value) for value in measurement["logprobs"]]


def prompt_logprobs(model: LanguageModel, text: str) -> list[float]:
    """Log-probabilities of a text's tokens except the first. Raises `ModelError` if the endpoint returns none."""
    body = {"model": model.name, "prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
    choices = model.post("/v1/completions", body).get("choices")
    logprobs = (choices or [{}])[0].get("logprobs") or {}
    values, offsets = logprobs.get("token_logprobs"), logprobs.get("text_offset")
    if not isinstance(values, list) or not isinstance(offsets, list) or len(values) != len(offsets):
        raise ModelError(
            f"model {model.name} returns no log-probabilities of its prompt; use a provider whose completions "
            "support `echo` with `logprobs`, such as vLLM"
        )
    prompt_values = [v for v, offset in zip(values, offsets, strict=True) if v is not None and offset < len(text)]
    if not prompt_values:
        raise ModelError(
            f"model {model.name} returns log-probabilities of its answer only, because its completions ignore `echo`; "
            "use a provider that supports it, such as vLLM"
        )
    return [float(value) for value in prompt_values]


def _text(store: Store, url: str) -> str:
    return store.read(url).decode("utf-8", "replace")
